import numpy as np
import pytest

from samewise.kernels.neighbors import at_least, first_k_per_row, kth_bound, top_k


def naive_top_k(C, k):
    return np.array([sorted(range(len(row)), key=lambda j: (-row[j], j))[:k] for row in C])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("k", [1, 2, 5, 29, 30])
@pytest.mark.parametrize("levels", [1, 2, 4, None])
def test_top_k_is_the_sorted_list(levels, k, dtype):
    rng = np.random.default_rng(k)
    C = rng.normal(size=(40, 30)) if levels is None else rng.integers(levels, size=(40, 30))
    C = C.astype(dtype)
    before = C.copy()
    np.testing.assert_array_equal(top_k(C, k), naive_top_k(C, k))
    np.testing.assert_array_equal(C, before)


@pytest.mark.parametrize("levels", [2, 50, None])
@pytest.mark.parametrize("m", [640, 701])
def test_top_k_of_long_rows(m, levels):
    # Long enough for groups of columns; two levels tie so often that a partition takes over.
    rng = np.random.default_rng(m)
    C = rng.normal(size=(9, m)) if levels is None else rng.integers(levels, size=(9, m))
    C = C.astype(float)
    np.testing.assert_array_equal(top_k(C, 5), naive_top_k(C, 5))


@pytest.mark.parametrize("k", [1, 3, 5, 40])
@pytest.mark.parametrize("m", [40, 640, 701])
def test_kth_bound_is_reached_by_k_values_but_not_by_many_more(m, k):
    C = np.random.default_rng(k).normal(size=(200, m))
    reached = (C >= kth_bound(C, k)[:, None]).sum(axis=1)
    assert reached.min() >= k
    assert reached.mean() <= 2 * k + 1


def test_at_least_lists_what_reaches_the_bound():
    C = np.random.default_rng(0).integers(5, size=(7, 11)).astype(float)
    bound = np.arange(7.0)
    rows, columns = at_least(C, bound)
    expected = [(i, j) for i in range(7) for j in range(11) if C[i, j] >= bound[i]]
    assert list(zip(rows.tolist(), columns.tolist(), strict=True)) == expected


def test_top_k_treats_minus_infinity_as_the_worst():
    C = np.array([[-np.inf, 1.0, -np.inf, 0.0]])
    np.testing.assert_array_equal(top_k(C, 3), [[1, 3, 0]])


def test_top_k_of_no_rows_is_empty():
    assert top_k(np.empty((0, 5)), 2).shape == (0, 2)


@pytest.mark.parametrize("k", [1, 3])
def test_first_k_per_row_is_the_sorted_list(k):
    rng = np.random.default_rng(0)
    lengths = rng.integers(k, 10, size=20)
    rows = np.repeat(np.arange(20), lengths)
    columns = np.concatenate([rng.permutation(50)[:length] for length in lengths])
    values = rng.integers(3, size=rows.size).astype(float)
    shuffled = rng.permutation(rows.size)
    found_values, found = first_k_per_row(
        rows[shuffled], columns[shuffled], values[shuffled], 20, k
    )
    for i in range(20):
        own = sorted(zip(values[rows == i], columns[rows == i], strict=True))[:k]
        assert [tuple(pair) for pair in zip(found_values[i], found[i], strict=True)] == own
