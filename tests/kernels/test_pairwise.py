from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import sparse

from samewise.kernels import normalizers, pairwise


def rows(seed, n, d=6):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.6)


KINDS = [np.asarray, sparse.csr_array, sparse.csr_matrix]
BOTH = list(itertools.product(KINDS, KINDS))


@pytest.mark.parametrize(("left", "right"), BOTH)
def test_products_match_loops_for_every_mix_of_kinds(left, right):
    X, Y = rows(0, 5), rows(1, 5)
    one_by_one = [sum(a * b for a, b in zip(x, y, strict=True)) for x, y in zip(X, Y, strict=True)]
    crossed = [[sum(a * b for a, b in zip(x, y, strict=True)) for y in Y[:3]] for x in X]
    np.testing.assert_allclose(pairwise.row_dots(left(X), right(Y)), one_by_one, atol=1e-14)
    dots = pairwise.all_dots(left(X), right(Y[:3]))
    np.testing.assert_allclose(dots, crossed, atol=1e-14)
    assert type(dots) is np.ndarray and dots.flags.c_contiguous
    V = pairwise.difference(left(X), right(Y))
    np.testing.assert_array_equal(pairwise.dense(V), X - Y)


@pytest.mark.parametrize("kind", KINDS)
def test_norms_and_sums_match_loops(kind):
    X = rows(2, 7)
    np.testing.assert_allclose(pairwise.squared_norms(kind(X)), [sum(x * x) for x in X])
    np.testing.assert_allclose(pairwise.row_sums(kind(X)), [sum(abs(x)) for x in X])
    assert pairwise.squared_norms(kind(X.astype(np.float32))).dtype == np.float32


def test_squared_distances_match_loops_and_are_never_negative():
    E, F = rows(3, 8), rows(4, 5)
    naive = [[sum((e - f) ** 2) for f in F] for e in E]
    np.testing.assert_allclose(pairwise.squared_distances(E, F), naive, atol=1e-13)
    known = pairwise.squared_distances(E, F, pairwise.squared_norms(F))
    np.testing.assert_array_equal(known, pairwise.squared_distances(E, F))
    far = E + 1e6
    assert pairwise.squared_distances(far, far).min() >= 0


@pytest.mark.parametrize(("n", "row_bytes", "block_bytes"), [(10, 8, 24), (3, 100, 1), (0, 8, 8)])
def test_slices_cover_every_row_once(n, row_bytes, block_bytes):
    slices = list(pairwise.row_slices(n, row_bytes, block_bytes))
    assert [i for s in slices for i in range(s.start, s.stop)] == list(range(n))
    assert all((s.stop - s.start) * row_bytes <= max(block_bytes, row_bytes) for s in slices)


def naive_normalizer(name, x, y):
    if name == "cosine":
        return np.sqrt(sum(x * x)) * np.sqrt(sum(y * y))
    total = sum(abs(x)) + sum(abs(y))
    return total / 2 if name == "dice" else total - sum(x * y)


@pytest.mark.parametrize("name", normalizers.NAMES)
@pytest.mark.parametrize(("left", "right"), BOTH)
def test_normalizers_match_their_formulas(name, left, right):
    X, Y = rows(5, 4), rows(6, 4)
    crossed = [[naive_normalizer(name, x, y) for y in Y] for x in X]
    np.testing.assert_allclose(
        normalizers.crossed(name, left(X), right(Y)), crossed, rtol=1e-12, atol=1e-13
    )
    np.testing.assert_allclose(
        normalizers.paired(name, left(X), right(Y)), np.diag(crossed), rtol=1e-12, atol=1e-13
    )
