import numpy as np
import pytest
import scipy.sparse as sp

from samewise.exceptions import InvalidInputError
from samewise.forms import Bilinear, GeneralizedCosine, Mahalanobis
from samewise.search import ClassIndex

RNG = np.random.default_rng(0)
X = RNG.normal(size=(50, 4))
LABELS = np.r_[np.arange(3).repeat(5), RNG.integers(3, size=35)]
B = RNG.normal(size=(4, 4))
FORMS = [None, Mahalanobis(B.T @ B), Bilinear(B), GeneralizedCosine(B.T @ B)]


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("form", FORMS, ids=lambda form: type(form).__name__)
@pytest.mark.parametrize("k", [1, 5])
def test_best_members_of_each_class(form, k, dtype, sparse):
    rows = sp.csr_array(X.astype(dtype)) if sparse else X.astype(dtype)
    found = ClassIndex(form, rows, LABELS).query(rows[:8], k)
    measure = Mahalanobis.identity(4) if form is None else form
    assert found.dtype == dtype
    for i in range(8):
        closeness = measure.pair_closeness(np.repeat(X[i : i + 1], 50, axis=0), X)
        for c in range(3):
            expected = sorted(closeness[LABELS == c], reverse=True)[:k]
            np.testing.assert_allclose(
                found[i, c], expected, rtol=1e-4 if dtype == np.float32 else 1e-9, atol=1e-5
            )


@pytest.mark.parametrize("k", [0, 99, 1.0])
def test_k_must_fit_the_smallest_class(k):
    smallest = np.bincount(LABELS).min()
    with pytest.raises(InvalidInputError, match=rf"1 to {smallest}, .* class. Got {k}"):
        ClassIndex(None, X, LABELS).query(X, k)


def test_wrong_features_are_named():
    with pytest.raises(InvalidInputError, match="X has 4 features, but 3 are expected"):
        ClassIndex(Mahalanobis(np.eye(3)), X, LABELS)
    with pytest.raises(InvalidInputError, match="Q has 2 features, but 4 are expected"):
        ClassIndex(None, X, LABELS).query(X[:, :2], 1)
