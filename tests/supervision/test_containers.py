"""Pairs and Triplets hold row numbers, never rows."""

from __future__ import annotations

import pickle
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

from samewise import Pairs, Quadruplets, Triplets

N = 6


@pytest.fixture(params=["pairs", "triplets", "quadruplets"])
def made(request):
    """A maker of supervision over a given matrix, and the names of its row numbers."""
    if request.param == "pairs":
        return lambda X, w=None: Pairs(X, [0, 1, 2], [3, 4, 5], [1, -1, 1], w), ("left", "right")
    if request.param == "quadruplets":
        return lambda X, w=None: Quadruplets(X, *[[0, 1, 2]] * 3, [3, 4, 5], w), tuple("abcd")
    return (
        lambda X, w=None: Triplets(X, [0, 1, 2], [3, 4, 5], [5, 0, 1], sample_weight=w),
        ("anchor", "positive", "negative"),
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dense_rows_are_not_copied(made, dtype):
    X = np.arange(N * 2, dtype=dtype).reshape(N, 2)
    held = made[0](X).X
    assert np.shares_memory(held, X)
    assert held.dtype == dtype


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", [sp.csr_array, sp.csr_matrix])
def test_sparse_rows_are_neither_copied_nor_made_dense(made, kind, dtype):
    X = kind(np.eye(N, 3, dtype=dtype))
    held = made[0](X).X
    assert sp.issparse(held) and held.format == "csr"
    assert np.shares_memory(held.data, X.data)
    assert held.dtype == dtype


def test_other_sparse_formats_become_csr(made):
    held = made[0](sp.coo_array(np.eye(N, 3))).X
    assert held.format == "csr"
    np.testing.assert_array_equal(held.toarray(), np.eye(N, 3))


def test_integers_become_float64(made):
    assert made[0](np.arange(N * 2).reshape(N, 2)).X.dtype == np.float64


def test_row_numbers_are_shared_and_cannot_be_written_through(made):
    make, names = made
    supervision = make(np.zeros((N, 2)), np.ones(3))
    for name in (*names, "sample_weight"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(supervision, name)[0] = 1
    left = np.array([0, 1], dtype=np.int32)
    pairs = Pairs(np.zeros((N, 2)), left, left, [1, 1])
    assert np.shares_memory(pairs.left, left)
    assert pairs.left.dtype == np.int32
    left[0] = 5  # The owner still may.


def test_labels_of_pairs_take_a_byte_each():
    assert Pairs(np.zeros((N, 2)), [0], [1], [1.0]).y.dtype == np.int8
    y = np.array([1, -1], dtype=np.int8)
    assert np.shares_memory(Pairs(np.zeros((N, 2)), [0, 1], [1, 2], y).y, y)


@pytest.mark.parametrize(
    "rows",
    [
        slice(1, None),
        slice(None, None, -1),
        slice(0, 0),
        [2, 0, 0],
        np.array([-1]),
        np.array([True, False, True]),
        np.array([], dtype=int),
    ],
    ids=repr,
)
def test_choosing_by_slice_numbers_or_mask(made, rows):
    make, names = made
    supervision = make(np.zeros((N, 2)), [1.0, 2.0, 3.0])
    chosen = supervision[rows]
    assert type(chosen) is type(supervision)
    assert chosen.X is supervision.X
    for name in (*names, "sample_weight", *(("y",) if "left" in names else ())):
        expected = getattr(supervision, name)[rows]
        np.testing.assert_array_equal(getattr(chosen, name), expected)
        assert getattr(chosen, name).dtype == expected.dtype
        assert not getattr(chosen, name).flags.writeable
    assert len(chosen) == len(getattr(supervision, names[0])[rows])


def test_a_slice_shares_the_row_numbers(made):
    make, names = made
    supervision = make(np.zeros((N, 2)))
    assert np.shares_memory(getattr(supervision[1:], names[0]), getattr(supervision, names[0]))
    assert supervision[1:].sample_weight is None


def test_differences_are_the_left_rows_minus_the_right_ones():
    X = np.random.default_rng(0).normal(size=(N, 3))
    left, right = [0, 3, 3], [1, 2, 3]
    expected = np.array([X[i] - X[j] for i, j in zip(left, right, strict=True)])
    np.testing.assert_array_equal(Pairs(X, left, right, [1, 1, 1]).differences(), expected)
    sparse = Pairs(sp.csr_array(X), left, right, [1, 1, 1]).differences()
    assert sparse.format == "csr"
    np.testing.assert_array_equal(sparse.toarray(), expected)


def test_triplets_over_two_matrices_with_different_features():
    queries, items = np.zeros((2, 3)), np.zeros((5, 7), dtype=np.float32)
    triplets = Triplets(queries, [0, 1], [4, 3], [0, 1], items=items)
    assert np.shares_memory(triplets.items, items)
    assert triplets[:1].items is triplets.items
    assert repr(triplets) == "Triplets(2 triplets over 2 rows of 3 features and 5 items of 7)"
    # Without a second matrix the items are the rows.
    alone = Triplets(queries, [0], [1], [0])
    assert alone.items is alone.X


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_arrays_of_pairs_and_triplets_are_viewed(dtype):
    values = np.arange(24, dtype=dtype)
    pairs = Pairs.from_arrays(values.reshape(4, 2, 3), [1, -1, 1, 1], [1, 2, 3, 4])
    triplets = Triplets.from_arrays(values.reshape(4, 3, 2), [1, 2, 3, 4])
    for supervision in (pairs, triplets):
        assert np.shares_memory(supervision.X, values)
        assert supervision.X.dtype == dtype
        np.testing.assert_array_equal(supervision.sample_weight, [1, 2, 3, 4])
    for i, (a, b) in enumerate(values.reshape(4, 2, 3)):
        np.testing.assert_array_equal(pairs.X[pairs.left[i]], a)
        np.testing.assert_array_equal(pairs.X[pairs.right[i]], b)
    for i, (a, b, c) in enumerate(values.reshape(4, 3, 2)):
        np.testing.assert_array_equal(triplets.X[triplets.anchor[i]], a)
        np.testing.assert_array_equal(triplets.X[triplets.positive[i]], b)
        np.testing.assert_array_equal(triplets.X[triplets.negative[i]], c)


def test_an_array_of_pairs_that_is_not_contiguous_keeps_its_meaning():
    values = np.random.default_rng(0).normal(size=(3, 2, 4)).transpose(2, 1, 0)
    pairs = Pairs.from_arrays(values, [1, 1, 1, 1])
    np.testing.assert_array_equal(pairs.differences(), values[:, 0] - values[:, 1])


def test_pickle_round_trip(made):
    make, names = made
    supervision = make(np.eye(N, 2), [1.0, 2.0, 3.0])
    again = pickle.loads(pickle.dumps(supervision))
    for name in ("X", *names, "sample_weight"):
        np.testing.assert_array_equal(getattr(again, name), getattr(supervision, name))


def _peak(make):
    """Bytes that are kept, and the most that were taken on the way."""
    tracemalloc.start()
    try:
        kept = make()
        return *tracemalloc.get_traced_memory(), kept
    finally:
        tracemalloc.stop()


def test_many_pairs_cost_their_row_numbers_only():
    # 100 000 × 384 floats that nobody wrote to: the rows take no memory until someone copies them.
    n_rows, n_pairs = 100_000, 10_000_000
    X = np.zeros((n_rows, 384), dtype=np.float32)
    left = np.zeros(n_pairs, dtype=np.int32)
    y = np.ones(n_pairs, dtype=np.int8)
    kept, peak, pairs = _peak(lambda: Pairs(X, left, left, y))
    assert np.shares_memory(pairs.X, X)
    assert kept < 2**16
    # Checking may look at masks of the labels, a few bytes for each.
    assert peak < 8 * n_pairs


def test_drawn_pairs_cost_their_row_numbers_only():
    n_rows, n_pairs = 2_000, 50_000
    X = np.zeros((n_rows, 384), dtype=np.float32)
    labels = np.arange(n_rows) % 10
    kept, peak, pairs = _peak(lambda: Pairs.from_labels(X, labels, n_pairs, random_state=0))
    assert len(pairs) == n_pairs
    index_bytes = pairs.left.nbytes + pairs.right.nbytes + pairs.y.nbytes
    assert index_bytes <= 17 * n_pairs
    assert kept < index_bytes + 2**16
    # The differences alone would take 384 · 4 bytes for each pair.
    assert peak < 200 * n_pairs


def test_choosing_a_portion_costs_the_portion_only():
    n_pairs = 200_000
    left = np.arange(n_pairs) % 100
    pairs = Pairs(np.zeros((100, 384), dtype=np.float32), left, left, np.ones(n_pairs))
    kept, _, _ = _peak(lambda: pairs[1000:2000])
    assert kept < 4096
    kept, _, _ = _peak(lambda: pairs[np.arange(1000)])
    assert kept < 17 * 1000 + 4096


def test_a_notebook_shows_numbers_of_pairs_and_triplets():
    X, y = np.arange(24.0).reshape(8, 3), np.arange(8) % 2
    pairs = Pairs.from_labels(X, y, n_pairs=10, random_state=0)
    similar = int((pairs.y == 1).sum())
    html = pairs._repr_html_()
    for text in ("Pairs", ">10<", f">{similar}<", f">{10 - similar}<", ">8 rows of 3 features<"):
        assert text in html
    triplets = Triplets(X[:5], [0, 1], [0, 1], [1, 2], X[5:])
    html = triplets._repr_html_()
    assert ">2<" in html and ">5 rows of 3 features<" in html and ">3 rows of 3 features<" in html
    own = Triplets.from_labels(X, y, n_triplets=4, random_state=0)._repr_html_()
    assert "items" not in own
