from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from samewise import load
from samewise.exceptions import InvalidInputError, TooLargeError
from samewise.forms import Bilinear, LowRankBilinear, NormalizedBilinear

rng = np.random.default_rng(0)
L, R = rng.normal(size=(6, 2)), rng.normal(size=(4, 2))
Q, P = rng.normal(size=(7, 6)), rng.normal(size=(9, 4))
W = rng.normal(size=(6, 4))


def test_values_are_those_of_the_formula():
    form = LowRankBilinear(L, R)
    assert (form.n_features_in, form.n_features_items, form.rank) == (6, 4, 2)
    assert not form.is_distance
    assert repr(form) == "LowRankBilinear(shape=(6, 4), rank=2)"
    expected = np.array([[q @ L @ R.T @ p for p in P] for q in Q])
    np.testing.assert_allclose(form.cross(Q, P), expected, rtol=1e-12)
    np.testing.assert_allclose(form.closeness(Q, P), expected, rtol=1e-12)
    np.testing.assert_allclose(form.pairs(Q, P[:7]), np.diag(expected), rtol=1e-12)
    np.testing.assert_allclose(form.embed_query(Q) @ form.embed_item(P).T, expected, rtol=1e-12)
    blocks = [block for _, block in form.blocks(Q, P, block_bytes=200)]
    assert len(blocks) > 2
    np.testing.assert_allclose(np.vstack(blocks), expected, rtol=1e-12)
    np.testing.assert_allclose(form.cross(sparse.csr_array(Q), sparse.csr_array(P)), expected)


def test_it_is_the_bilinear_form_of_its_matrix():
    form = LowRankBilinear(L, R)
    np.testing.assert_allclose(form.matrix, L @ R.T, rtol=1e-15)
    full = Bilinear(form.matrix)
    np.testing.assert_allclose(form.cross(Q, P), full.cross(Q, P), rtol=1e-12)
    assert form != full


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array, sparse.csr_matrix])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_embeddings_have_the_rows_type(kind, dtype):
    form = LowRankBilinear(L, R)
    E, F = form.embed_query(kind(Q.astype(dtype))), form.embed_item(kind(P.astype(dtype)))
    assert type(E) is type(F) is np.ndarray and E.dtype == F.dtype == dtype
    np.testing.assert_allclose(E, Q @ L, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(F, P @ R, rtol=1e-4, atol=1e-6)


def test_factors_keep_their_types():
    form = LowRankBilinear(L.astype(np.float32), R)
    assert (form.left.dtype, form.right.dtype) == (np.float32, np.float64)
    assert form.matrix.dtype == form.cross(Q, P).dtype == np.float64
    assert form != LowRankBilinear(L, R)


def test_pairs_in_many_blocks_are_the_same(monkeypatch):
    form = LowRankBilinear(L, R)
    once = form.pairs(Q, P[:7])
    monkeypatch.setattr("samewise.forms.low_rank._PAIR_BYTES", 64)
    np.testing.assert_allclose(form.pairs(Q, P[:7]), once, rtol=1e-14)
    np.testing.assert_allclose(form.pairs(sparse.csr_array(Q), P[:7]), once, rtol=1e-12)


def test_many_features_are_scored_without_the_matrix():
    m, n = 40_000, 30_000
    form = LowRankBilinear(np.ones((m, 2)), np.ones((n, 2)))
    queries = sparse.csr_array(([3.0, 1.0], ([0, 1], [5, m - 1])), shape=(2, m))
    items = sparse.csr_array(([2.0], ([0], [n - 1])), shape=(1, n))
    np.testing.assert_array_equal(form.cross(queries, items), [[12.0], [4.0]])
    np.testing.assert_array_equal(form.pairs(queries[[0]], items), [12.0])
    with pytest.raises(
        TooLargeError,
        match=r"8.9 GiB \(40000 × 30000 float64\), more than 4.0 GiB; use left and right",
    ):
        form.matrix  # noqa: B018


def test_the_items_must_be_given_and_fit():
    form = LowRankBilinear(L, R)
    for ask in (form.cross, form.closeness, form.blocks):
        with pytest.raises(InvalidInputError, match="6 features with rows of 4, so Y cannot be X"):
            ask(Q)
    with pytest.raises(InvalidInputError, match="Y has 6 features, but LowRankBilinear expects 4"):
        form.pairs(Q, Q)
    with pytest.raises(InvalidInputError, match="Q has 4 features, but LowRankBilinear expects 6"):
        form.embed_query(P)
    with pytest.raises(InvalidInputError, match="P has 6 features, but LowRankBilinear expects 4"):
        form.embed_item(Q)


@pytest.mark.parametrize("bad", [np.ones(3), np.empty((0, 2)), np.empty((3, 0)), [[np.nan, 1.0]]])
def test_unusable_factors(bad):
    with pytest.raises(InvalidInputError, match="The left of LowRankBilinear"):
        LowRankBilinear(bad, R)
    with pytest.raises(InvalidInputError, match="The right of LowRankBilinear"):
        LowRankBilinear(L, bad)


def test_factors_of_different_widths():
    with pytest.raises(InvalidInputError, match=r"as many columns, but .* \(6, 2\) and \(4, 1\)"):
        LowRankBilinear(L, R[:, :1])


def test_the_callers_arrays_are_not_followed():
    left, right = L.copy(), R.copy()
    form = LowRankBilinear(left, right)
    left[0, 0] = right[0, 0] = 100
    assert form == LowRankBilinear(L, R)


# Reduction of a full matrix


@pytest.mark.parametrize("shape", [(6, 4), (4, 6), (5, 5)])
def test_reduce_is_the_best_approximation(shape):
    W = rng.normal(size=shape)
    X, Y = rng.normal(size=(20, shape[0])), rng.normal(size=(20, shape[1]))
    singular = np.linalg.svd(W, compute_uv=False)
    for k in range(1, len(singular) + 1):
        form = Bilinear(W).reduce(k)
        assert type(form) is LowRankBilinear and form.rank == k
        error = np.linalg.norm(W - form.matrix)
        assert error == pytest.approx(np.sqrt((singular[k:] ** 2).sum()), abs=1e-13)
        off = np.abs(form.pairs(X, Y) - Bilinear(W).pairs(X, Y))
        bound = np.append(singular, 0)[k] * np.linalg.norm(X, axis=1) * np.linalg.norm(Y, axis=1)
        assert (off <= bound + 1e-12).all()
        for gram in (form.left.T @ form.left, form.right.T @ form.right):
            np.testing.assert_allclose(gram, np.diag(singular[:k]), atol=1e-12)


def test_no_other_matrix_of_that_rank_is_nearer():
    best = np.linalg.norm(W - Bilinear(W).reduce(2).matrix)
    for _ in range(50):
        # The best right factor for any left one, by least squares.
        left = rng.normal(size=(6, 2))
        right = np.linalg.lstsq(left, W, rcond=None)[0]
        assert np.linalg.norm(W - left @ right) > best


def test_the_signs_are_fixed():
    left = Bilinear(W).reduce(3).left
    peaks = left[np.abs(left).argmax(axis=0), range(3)]
    assert (peaks > 0).all()
    # The opposite matrix has the same left factor: only the right one can carry the sign.
    np.testing.assert_allclose(Bilinear(-W).reduce(3).left, left, atol=1e-12)
    np.testing.assert_allclose(
        Bilinear(-W).reduce(3).right, -Bilinear(W).reduce(3).right, atol=1e-12
    )
    assert Bilinear(W).reduce(3) == Bilinear(W).reduce(3)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_from_the_rank_on_it_is_the_matrix_itself(dtype):
    form = Bilinear((L @ R.T).astype(dtype))
    for k in (2, 3, 4, 100, np.int64(3)):
        reduced = form.reduce(k)
        assert reduced.rank == 2
        assert reduced.left.dtype == reduced.right.dtype == dtype
        np.testing.assert_allclose(reduced.matrix, form.matrix, atol=20 * np.finfo(dtype).eps)


def test_the_zero_matrix_keeps_one_column():
    form = Bilinear(np.zeros((3, 2))).reduce(2)
    assert form.rank == 1
    np.testing.assert_array_equal(form.matrix, np.zeros((3, 2)))


@pytest.mark.parametrize("rank", [0, -1, 1.5, "2", None])
def test_unusable_ranks(rank):
    with pytest.raises(InvalidInputError, match=f"rank must be an integer of at least 1.*{rank}"):
        Bilinear(W).reduce(rank)


def test_a_normalizer_is_not_dropped_in_silence():
    for normalizer in ("cosine", "dice", lambda X, Y: 1):
        with pytest.raises(InvalidInputError, match=r"reduce needs the normalizer None, but it is"):
            NormalizedBilinear(W, normalizer).reduce(2)
    assert NormalizedBilinear(W, None).reduce(2) == Bilinear(W).reduce(2)


def test_saved_and_loaded(tmp_path):
    path = tmp_path / "metric"
    form = LowRankBilinear(L.astype(np.float32), R)
    form.save(path)
    again = load(path)
    assert again == form and type(again) is LowRankBilinear
    np.testing.assert_array_equal(again.cross(Q, P), form.cross(Q, P))
