import numpy as np
import pytest
from scipy.spatial.distance import cdist

from samewise.kernels.manhattan import manhattan


@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 5, 2), (7, 2500, 3), (4, 1024, 0)])
def test_sums_of_differences(shape, seed):
    n, m, d = shape
    rng = np.random.default_rng(seed)
    X, Y = rng.normal(size=(n, d)), rng.normal(size=(m, d))
    D = manhattan(X, np.ascontiguousarray(Y.T))
    expected = cdist(X, Y, "cityblock") if d else np.zeros((n, m))
    np.testing.assert_allclose(D, expected, rtol=1e-13)
