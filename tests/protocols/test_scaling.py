import numpy as np
import pytest
import scipy.sparse as sp

from samewise.protocols import mean_and_scale, standardization


def test_columns_are_standardized_only_if_their_spreads_differ():
    X = np.array([[0.0, 0.0, 7.0], [2.0, 30.0, 7.0]])
    y = ["a", "b"]
    mean, scale = standardization(X, y)
    np.testing.assert_allclose(mean, [1, 15, 7])
    np.testing.assert_allclose(scale, [1, 15, 1])
    units = X[:, 1:] / np.linalg.norm(X[:, 1:], axis=1, keepdims=True)
    assert standardization(units, y) is None
    assert standardization(X[:, [0, 2]], y) is None
    assert standardization(sp.csr_array(X), y) is None


@pytest.mark.parametrize("n", [400, 5000])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_columns_that_hardly_vary_and_say_nothing_are_not_blown_up(n, dtype):
    rng = np.random.default_rng(0)
    y = np.arange(n) % 2
    X = rng.normal(size=(n, 40)) * 0.01
    X[:, 0] = y + 0.2 * rng.normal(size=n)
    assert standardization(X.astype(dtype), y) is None


@pytest.mark.parametrize("seed, left_alone", [(20, True), (29, True), (1, False), (9, False)])
def test_what_is_clear_is_clear_at_5_percent_on_one_side(seed, left_alone):
    # Of the rows that one of the two gets right, scaling loses 5 of 5 (3.1 %) or 4 of 4 (6.3 %).
    rng = np.random.default_rng(seed)
    y = np.arange(100) % 2
    X = rng.normal(size=(100, 12)) * 0.01
    X[:, 0] = y + 0.35 * rng.normal(size=100)
    assert (standardization(X, y) is None) == left_alone


def test_columns_in_other_units_that_say_much_are_standardized():
    rng = np.random.default_rng(0)
    y = np.arange(400) % 2
    X = rng.normal(size=(400, 3)) * 100
    X[:, 0] = y + 0.2 * rng.normal(size=400)
    mean, scale = standardization(X, y)
    np.testing.assert_array_equal(mean, X.mean(axis=0))
    np.testing.assert_array_equal(scale, mean_and_scale(X)[1])
