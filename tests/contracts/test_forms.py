"""What every form promises, whatever its kind."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.metrics.pairwise import rbf_kernel

from samewise import forms, load

D = 5


def rows(seed, n=9, d=D, dtype=np.float64):
    # Values in (0, 1] with some zeros: every normalizer is defined there.
    rng = np.random.default_rng(seed)
    X = rng.uniform(0.1, 1, size=(n, d)) * (rng.random((n, d)) < 0.7)
    X[:, 0] += 0.2
    return X.astype(dtype)


def psd_matrix(seed=0, rank=D):
    B = np.random.default_rng(seed).normal(size=(rank, D))
    return B.T @ B


def square(seed=1):
    return np.random.default_rng(seed).normal(size=(D, D))


def product_of_sums(X, Y):
    return np.outer(np.asarray(X.sum(axis=1)).ravel(), np.asarray(Y.sum(axis=1)).ravel())


FORMS = {
    "mahalanobis": lambda: forms.Mahalanobis(psd_matrix()),
    "mahalanobis low rank": lambda: forms.Mahalanobis(psd_matrix(rank=2)),
    "mahalanobis components": lambda: forms.Mahalanobis.from_components(square()[:3]),
    "mahalanobis identity": lambda: forms.Mahalanobis.identity(D),
    "mahalanobis zero": lambda: forms.Mahalanobis(np.zeros((D, D))),
    "bilinear": lambda: forms.Bilinear(square()),
    "low rank bilinear": lambda: forms.LowRankBilinear(square()[:, :3], square(2)[:, :3]),
    "plain": lambda: forms.NormalizedBilinear(square(), None),
    "cosine": lambda: forms.NormalizedBilinear(square(), "cosine"),
    "dice": lambda: forms.NormalizedBilinear(square(), "dice"),
    "jaccard": lambda: forms.NormalizedBilinear(square(), "jaccard"),
    "callable normalizer": lambda: forms.NormalizedBilinear(square(), product_of_sums),
    "generalized cosine": lambda: forms.GeneralizedCosine(psd_matrix()),
    "generalized cosine low rank": lambda: forms.GeneralizedCosine(psd_matrix(rank=2), "zero"),
    "kernel rbf": lambda: forms.KernelMahalanobis(
        np.random.default_rng(2).normal(size=(3, 4)), rows(3, 4), kernel_params={"gamma": 0.5}
    ),
    "kernel sparse": lambda: forms.KernelMahalanobis(
        np.random.default_rng(2).normal(size=(3, 4)), sparse.csr_array(rows(3, 4)), "poly"
    ),
    "kernel precomputed": lambda: forms.KernelMahalanobis(
        np.random.default_rng(2).normal(size=(3, 2)), [1, 4], "precomputed"
    ),
    "multi metric": lambda: forms.MultiMetric(
        [square(), square(2)[:3], square(3)], centers=rows(6, 3)
    ),
    "neural": lambda: forms.NeuralSimilarity(
        square()[:3], square(2)[:3], square(3)[0, :3], square(3)[1, :3], 0.5
    ),
    "posterior": lambda: forms.PosteriorSimilarity(
        square()[:3], square()[3, :3], square(2)[:3, :3]
    ),
}
DISTANCES = [name for name in FORMS if name.startswith(("mahalanobis", "kernel"))]
COSINES = [name for name in FORMS if name.startswith("generalized")]
UNSAVABLE = {"callable normalizer"}


@pytest.fixture(params=FORMS)
def form(request):
    return FORMS[request.param]()


def close(a, b, dtype=np.float64):
    # The expansion of a squared distance is exact to the rounding of the squared norms, so a
    # distance is exact to the root of it.
    tolerance = 1e-7 if dtype == np.float64 else 3e-3
    np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_pairs_are_the_diagonal_of_cross(form, dtype):
    X, Y = rows(4, dtype=dtype), rows(5, dtype=dtype)
    close(form.pairs(X, Y), np.diag(form.cross(X, Y)), dtype)
    close(form.pair_closeness(X, Y), np.diag(form.closeness(X, Y)), dtype)
    close(form.cross(X), form.cross(X, X), dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array, sparse.csr_matrix])
def test_the_type_of_the_rows_is_kept(form, dtype, kind):
    X, Y = kind(rows(4, dtype=dtype)), kind(rows(5, 7, dtype=dtype))
    values = [form.cross(X, Y), form.closeness(X, Y), form.pairs(X, X), form.pair_closeness(X, X)]
    values += [block for _, block in form.blocks(X, Y)]
    for name in ("embed", "embed_item"):
        if hasattr(form, name):
            values.append(getattr(form, name)(X))
    assert all(type(v) is np.ndarray and v.dtype == dtype for v in values)
    assert values[0].shape == (9, 7)


def test_mixed_types_meet_in_the_wider_one(form):
    X, Y = rows(4, dtype=np.float32), rows(5)
    assert form.cross(X, Y).dtype == form.pairs(X, Y).dtype == np.float64
    assert form.cross(np.ones((2, D), dtype=int)).dtype == np.float64


@pytest.mark.parametrize("left", [np.asarray, sparse.csr_array, sparse.csr_matrix])
@pytest.mark.parametrize("right", [np.asarray, sparse.csr_array])
def test_sparse_rows_are_worth_the_same_as_dense_ones(form, left, right):
    X, Y = rows(4), rows(5)
    close(form.cross(left(X), right(Y)), form.cross(X, Y))
    close(form.pairs(left(X), right(Y)), form.pairs(X, Y))
    close(form.cross(left(X)), form.cross(X))


def test_duplicate_entries_of_a_csr_matrix_count_as_their_sum(form):
    X = rows(4)
    split = sparse.csr_array(
        (np.repeat(X.ravel() / 2, 2), np.repeat(np.tile(np.arange(D), 9), 2), np.arange(10) * 2 * D)
    )
    entries = split.nnz
    close(form.cross(split, X), form.cross(X, X))
    close(form.pairs(split, split), form.pairs(X, X))
    assert split.nnz == entries


@pytest.mark.parametrize("block_bytes", [1, 200, 2**20])
@pytest.mark.parametrize("items", [None, rows(5, 6)])
def test_blocks_laid_together_are_the_closeness(form, block_bytes, items):
    X = rows(4)
    parts = list(form.blocks(X, items, block_bytes=block_bytes))
    assert [i for s, _ in parts for i in range(s.start, s.stop)] == list(range(len(X)))
    if block_bytes == 1:
        assert len(parts) == len(X)
    close(np.vstack([block for _, block in parts]), form.closeness(X, items))


def test_many_rows_are_worked_on_in_several_blocks(form, monkeypatch):
    X, Y = rows(4), rows(5)
    pairs, cross = form.pairs(X, Y), form.cross(X)
    for name in ("_PAIR_BYTES", "_BLOCK_BYTES"):
        monkeypatch.setattr(f"samewise.forms.form.{name}", 200)
    close(form.pairs(X, Y), pairs)
    close(form.cross(X), cross)


def test_closeness_is_larger_for_what_is_closer(form):
    X, Y = rows(4), rows(5, 6)
    values = form.cross(X, Y)
    expected = -values if form.is_distance else values
    np.testing.assert_array_equal(form.closeness(X, Y), expected)


@pytest.mark.parametrize("name", DISTANCES)
def test_distances_are_distances(name):
    form, X = FORMS[name](), rows(4, 12)
    assert form.is_distance
    D = form.cross(X)
    assert (D >= 0).all()
    assert (np.diag(D) == 0).all()
    assert not np.signbit(np.diag(form.closeness(X))).any()
    close(D, D.T)
    assert (D[:, None, :] <= D[:, :, None] + D[None, :, :] + 1e-9).all()
    close(form.cross(X, X[:5], squared=True), form.cross(X, X[:5]) ** 2)
    np.testing.assert_allclose(form.pairs(X, X[::-1], squared=True), form.pairs(X, X[::-1]) ** 2)
    E = form.embed(X)
    naive = [[np.sqrt(sum((a - b) ** 2)) for b in E] for a in E]
    close(D, naive)


@pytest.mark.parametrize("name", COSINES)
def test_cosines_are_cosines(name):
    form, X = FORMS[name](), rows(4, 12)
    assert not form.is_distance
    S = form.cross(X)
    assert (np.abs(S) <= 1).all()
    close(np.diag(S), 1)
    close(S, S.T)
    E = form.embed(X)
    close(np.linalg.norm(E, axis=1), 1)
    close(S, E @ E.T)


@pytest.mark.parametrize("name", ["bilinear", "low rank bilinear", "plain", "cosine", "posterior"])
def test_embedded_queries_score_stored_items(name):
    form, X, Y = FORMS[name](), rows(4), rows(5, 6)
    stored = Y / np.linalg.norm(Y, axis=1, keepdims=True) if name == "cosine" else Y
    if name in ("low rank bilinear", "posterior"):
        stored = form.embed_item(Y)
    close(form.embed_query(X) @ stored.T, form.cross(X, Y))
    close(form.embed_query(sparse.csr_array(X)), form.embed_query(X))


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_input_is_never_changed(form, kind):
    X, Y = kind(rows(4)), kind(rows(5))
    before = copy.deepcopy((X, Y))
    form.cross(X, Y), form.pairs(X, Y), form.closeness(X), list(form.blocks(X, Y))
    for now, then in zip((X, Y), before, strict=True):
        assert (now != then).sum() == 0
        parts = (now.data, now.indices) if sparse.issparse(now) else (now,)
        assert all(part.flags.writeable for part in parts)


def test_read_only_and_non_contiguous_rows_are_fine(form):
    X = np.asfortranarray(rows(4))
    X.flags.writeable = False
    close(form.cross(X), form.cross(rows(4)))
    wide = np.repeat(rows(4), 2, axis=1)[:, ::2]
    close(form.pairs(wide, X), form.pairs(rows(4), rows(4)))


def test_no_rows_give_no_values(form):
    none, X = np.empty((0, D)), rows(4)
    assert form.cross(none, X).shape == (0, 9)
    assert form.cross(X, none).shape == (9, 0)
    assert form.cross(none).shape == (0, 0)
    assert form.pairs(none, none).shape == (0,)
    assert list(form.blocks(none, X)) == []


def array_parts(form):
    arrays = form.state().arrays
    public = {name: value for name, value in vars(form).items() if not name.startswith("_")}
    for name in ("matrix", "eigenvalues"):
        if hasattr(form, name):
            public[name] = getattr(form, name)
    assert arrays
    for _, value in sorted(public.items()):
        if sparse.issparse(value):
            yield from (value.data, value.indices, value.indptr)
        elif isinstance(value, np.ndarray):
            yield value


def assert_frozen(form):
    parts = list(array_parts(form))
    assert parts
    for part in parts:
        with pytest.raises(ValueError, match="read-only"):
            part[...] = 0


def test_frozen(form):
    with pytest.raises(AttributeError, match="is frozen: 'matrix' cannot be set; make a new form"):
        form.matrix = np.eye(D)
    with pytest.raises(AttributeError, match="is frozen: 'anything' cannot be set"):
        form.anything = 1
    with pytest.raises(AttributeError, match="is frozen"):
        del form.n_features_in
    assert_frozen(form)


def test_pickled_and_copied_forms_are_the_same_and_still_frozen(form):
    again = pickle.loads(pickle.dumps(form))
    assert again == form
    assert_frozen(again)
    with pytest.raises(AttributeError, match="is frozen"):
        again.is_distance = True
    assert copy.deepcopy(form) == copy.copy(form) == clone(form, safe=False) == form


def test_equal_means_the_same_kind_and_the_same_bits():
    made = {name: make() for name, make in FORMS.items()}
    again = {name: make() for name, make in FORMS.items()}
    for name, form in made.items():
        for other_name, other in again.items():
            assert (form == other) == (name == other_name), (name, other_name)
    assert made["bilinear"] != "bilinear"
    nudged = np.nextafter(square(), np.inf)
    assert forms.Bilinear(nudged) != made["bilinear"]


@pytest.mark.parametrize("name", [name for name in FORMS if name not in UNSAVABLE])
def test_saved_and_loaded_forms_have_the_same_bits(name, tmp_path):
    form, path = FORMS[name](), tmp_path / "form"
    form.save(path)
    again = load(path)
    assert type(again) is type(form) and again == form
    for a, b in zip(array_parts(form), array_parts(again), strict=True):
        assert a.dtype == b.dtype and a.tobytes() == b.tobytes()
    assert_frozen(again)
    X, Y = rows(4), rows(5)
    np.testing.assert_array_equal(again.cross(X, Y), form.cross(X, Y))
    np.testing.assert_array_equal(again.pairs(X, Y), form.pairs(X, Y))
    again.save(tmp_path / "twice")
    assert (tmp_path / "twice").read_bytes() == path.read_bytes()


def test_repr_is_one_short_line(form):
    assert repr(form).startswith(type(form).__name__ + "(")
    assert "\n" not in repr(form) and len(repr(form)) < 120


def test_wrong_rows_are_refused(form):
    X = rows(4)
    owner = type(form).__name__
    precomputed = getattr(form, "kernel", None) == "precomputed"
    counted = f"X has 3 {'columns' if precomputed else 'features'}, but {owner}"
    with pytest.raises(ValueError, match=counted):
        form.cross(X[:, :3], X)
    with pytest.raises(ValueError, match="Y has 3 "):
        form.pairs(X, X[:, :3])
    with pytest.raises(ValueError, match="X has 3 "):
        form.blocks(X[:, :3])
    with pytest.raises(ValueError, match=r"it has one; reshape it with X.reshape\(1, -1\)"):
        form.cross(X[0])
    with pytest.raises(ValueError, match=r"Y must have two dimensions .* but it has 3"):
        form.cross(X, X[None])
    for bad in (np.nan, np.inf, -np.inf):
        spoiled = X.copy()
        spoiled[2, 1] = bad
        with pytest.raises(ValueError, match="X contains NaN or infinity"):
            form.pairs(spoiled, X)
        with pytest.raises(ValueError, match="Y contains NaN or infinity"):
            form.closeness(X, sparse.csr_array(spoiled))
    with pytest.raises(ValueError, match="X has 9 rows and Y has 4; give as many of each"):
        form.pairs(X, X[:4])
    with pytest.raises(ValueError, match="X must be a rectangular array of real numbers"):
        form.cross([["a"] * D])
    with pytest.raises(ValueError, match="X must be a rectangular array of real numbers"):
        form.cross(X + 1j)
    with pytest.raises(ValueError, match="X must be a rectangular array of real numbers"):
        form.cross([[1.0] * D, [1.0]])


def test_large_finite_values_are_not_taken_for_infinities():
    X = np.full((2, D), 1e308)
    assert forms.Bilinear(np.eye(D) * 1e-308).embed_query(X).shape == (2, D)


@pytest.mark.parametrize("what", ["cross", "closeness"])
def test_what_does_not_fit_is_refused_before_it_is_allocated(form, what):
    X = sparse.csr_array((100_000, form.n_features_in))
    text = (
        rf"{what} would need 74.5 GiB \(100000 × 100000 float64\), more than max_bytes=4.0 GiB; "
        "go through it with `blocks`, or raise max_bytes"
    )
    with pytest.raises(MemoryError, match=text):
        getattr(form, what)(X)
    with pytest.raises(MemoryError, match=r"more than max_bytes=9.31e-08 GiB"):
        getattr(form, what)(rows(4), max_bytes=100)
    assert getattr(form, what)(rows(4), max_bytes=9 * 9 * 8).shape == (9, 9)


def test_precomputed_kernel_agrees_with_the_kernel_it_stands_for():
    train, X = rows(6, 5), rows(7)
    C = np.random.default_rng(8).normal(size=(3, 2))
    direct = forms.KernelMahalanobis(C, train[[1, 4]], "rbf", {"gamma": 0.5})
    indirect = forms.KernelMahalanobis(C, [1, 4], "precomputed")
    close(indirect.cross(rbf_kernel(X, train, gamma=0.5)), direct.cross(X))
