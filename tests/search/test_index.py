import numpy as np
import pytest
import scipy.sparse as sp

from samewise.exceptions import InvalidInputError
from samewise.forms import (
    Bilinear,
    GeneralizedCosine,
    KernelMahalanobis,
    Mahalanobis,
    NormalizedBilinear,
)
from samewise.search import Index
from tests.pairwise import pairwise


def naive(closeness, k, exclude_self=False):
    """Sorted lists of (−closeness, index), one row at a time."""
    found = []
    for i, row in enumerate(closeness):
        items = [(-c, j) for j, c in enumerate(row) if not (exclude_self and i == j)]
        found.append([j for _, j in sorted(items)[:k]])
    return np.array(found)


def naive_euclidean(Q, X):
    Q, X = np.asarray(Q, dtype=np.float64), np.asarray(X, dtype=np.float64)
    return np.array([[-np.sqrt(((q - x) ** 2).sum()) for x in X] for q in Q])


def data(kind, dtype=np.float64, n=120, d=4):
    rng = np.random.default_rng(5)
    if kind == "continuous":
        X = rng.normal(size=(n, d))
    elif kind == "integer":
        X = rng.integers(3, size=(n, d))
    elif kind == "duplicates":
        X = rng.normal(size=(n // 6, d))[rng.integers(n // 6, size=n)]
    else:
        X = np.ones((n, d))
    return X.astype(dtype)


# Thinned from 96 cases to 14.
@pairwise(
    k=[1, 4],
    kind=["continuous", "integer", "duplicates", "constant"],
    route=["tree", "blocked", "sparse"],
    dtype=[np.float64, np.float32],
    exclude_self=[False, True],
)
def test_every_route_gives_the_sorted_list(kind, route, dtype, exclude_self, k):
    X = data(kind, dtype)
    Q = X if exclude_self else data(kind, dtype)[::3]
    stored = sp.csr_array(X) if route == "sparse" else X
    index = Index(None, stored, route="blocked" if route == "sparse" else route)
    closeness, indices = index.query(Q, k, exclude_self)
    expected = naive_euclidean(Q, X)
    np.testing.assert_array_equal(indices, naive(expected, k, exclude_self))
    assert closeness.dtype == dtype
    np.testing.assert_allclose(
        closeness, np.take_along_axis(expected, indices, axis=1), rtol=1e-6, atol=1e-12
    )


@pytest.mark.parametrize("kind", ["continuous", "integer", "duplicates", "constant"])
@pytest.mark.parametrize("exclude_self", [False, True])
def test_k_may_be_as_large_as_the_set(kind, exclude_self):
    X = data(kind, n=30)
    k = 30 - exclude_self
    expected = naive(naive_euclidean(X, X), k, exclude_self)
    for route in ("tree", "blocked"):
        _, indices = Index(None, X, route=route).query(X, k, exclude_self)
        np.testing.assert_array_equal(indices, expected)


def test_routes_agree_over_many_blocks(monkeypatch):
    monkeypatch.setattr("samewise.search.distance_search.BLOCK_BYTES", 5000)
    X = np.random.default_rng(0).integers(4, size=(300, 3)).astype(float)
    tree, blocked = Index(None, X, route="tree"), Index(None, X, route="blocked")
    for exclude_self in (False, True):
        for one, other in zip(
            tree.query(X, 5, exclude_self), blocked.query(X, 5, exclude_self), strict=True
        ):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("sparse", [False, True])
def test_near_duplicates_far_from_the_origin_keep_their_order(dtype, sparse):
    # ‖a‖² + ‖b‖² − 2ab alone cannot see these differences.
    step = 2.0 ** (-8 if dtype == np.float32 else -30)
    X = np.full((40, 3), 1024.0)
    X[:, 0] += step * np.random.default_rng(1).permutation(40)
    X = np.vstack([X, np.zeros((2, 3))]).astype(dtype)
    stored = sp.csr_array(X) if sparse else X
    _, indices = Index(None, stored, route="blocked").query(X, 7)
    np.testing.assert_array_equal(indices, naive(naive_euclidean(X, X), 7))


@pytest.mark.parametrize("scale", [1e-25, 1e-22, 1e-20, 1e17])
def test_very_small_and_very_large_float32_values(scale):
    X = (data("continuous") * scale).astype(np.float32)
    for route in ("tree", "blocked"):
        _, indices = Index(None, X, route=route).query(X, 4)
        np.testing.assert_array_equal(indices, naive(naive_euclidean(X, X), 4))


def test_sparse_rows_in_a_million_dimensions():
    X = sp.random_array((50, 1_000_000), density=1e-4, format="csr", rng=np.random.default_rng(0))
    closeness, indices = Index(None, X).query(X, 1)
    np.testing.assert_array_equal(indices[:, 0], np.arange(50))
    np.testing.assert_array_equal(closeness, np.zeros((50, 1)))


def test_dense_and_sparse_queries_meet_dense_and_sparse_rows():
    X = data("integer", d=6)
    expected = Index(None, X).query(X[:7], 3)
    for stored in (X, sp.csr_matrix(X)):
        for Q in (X[:7], sp.csr_matrix(X[:7]), X[:7].tolist()):
            for one, other in zip(Index(None, stored).query(Q, 3), expected, strict=True):
                np.testing.assert_array_equal(one, other)


def make_form(name, d):
    rng = np.random.default_rng(2)
    B = rng.normal(size=(d, d))
    return {
        "mahalanobis": lambda: Mahalanobis(B.T @ B),
        "low rank": lambda: Mahalanobis.from_components(B[:2]),
        "kernel": lambda: KernelMahalanobis(rng.normal(size=(3, 8)), rng.normal(size=(8, d))),
        "bilinear": lambda: Bilinear(B),
        "normalized": lambda: NormalizedBilinear(B, normalizer="cosine"),
        "cosine": lambda: GeneralizedCosine(B.T @ B),
    }[name]()


FORMS = ["mahalanobis", "low rank", "kernel", "bilinear", "normalized", "cosine"]


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("exclude_self", [False, True])
@pytest.mark.parametrize("name", FORMS)
def test_neighbors_under_a_form_are_those_of_its_pairs(name, exclude_self, sparse):
    X, form = data("continuous", n=60), make_form(name, 4)
    expected = np.array([form.pair_closeness(np.repeat(x[None], 60, 0), X) for x in X])
    stored = sp.csr_array(X) if sparse else X
    closeness, indices = Index(form, stored).query(stored, 5, exclude_self)
    np.testing.assert_array_equal(indices, naive(expected, 5, exclude_self)[:, :5])
    # Exactly zero against the square root of a rounding error: hence the absolute part.
    np.testing.assert_allclose(
        closeness, np.take_along_axis(expected, indices, axis=1), rtol=1e-9, atol=1e-9
    )


@pytest.mark.parametrize("name", ["mahalanobis", "low rank", "kernel"])
def test_routes_agree_under_a_form(name):
    X, form = data("duplicates", n=200), make_form(name, 4)
    tree, blocked = Index(form, X, route="tree"), Index(form, X, route="blocked")
    assert (tree.route, blocked.route) == ("tree", "blocked")
    for one, other in zip(tree.query(X, 6, True), blocked.query(X, 6, True), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", FORMS)
def test_float32_stays_float32(name):
    X = data("continuous", np.float32)
    closeness, _ = Index(make_form(name, 4), X).query(X[:5], 2)
    assert closeness.dtype == np.float32


def test_rows_and_queries_of_different_precision():
    X = data("continuous")
    single = X.astype(np.float32)
    assert Index(None, X).query(single[:5], 2)[0].dtype == np.float64
    assert Index(None, single).query(X[:5], 2)[0].dtype == np.float64


def test_similarity_ties_go_to_the_smaller_index():
    X = data("integer")
    form = Bilinear(np.eye(4))
    for exclude_self in (False, True):
        _, indices = Index(form, X).query(X, 6, exclude_self)
        np.testing.assert_array_equal(indices, naive(X @ X.T, 6, exclude_self))


@pytest.mark.parametrize("sparse", [False, True])
def test_a_row_is_not_its_own_neighbor_in_any_block(monkeypatch, sparse):
    monkeypatch.setattr("samewise.search.index.BLOCK_BYTES", 5000)
    X, form = data("continuous"), Bilinear(np.eye(4))
    stored = sp.csr_array(X) if sparse else X
    assert len(list(form.blocks(stored, stored, block_bytes=5000))) > 3
    _, indices = Index(form, stored).query(stored, 5, exclude_self=True)
    np.testing.assert_array_equal(indices, naive(X @ X.T, 5, exclude_self=True))


def test_a_form_between_two_spaces():
    rng = np.random.default_rng(3)
    W, Q, P = rng.normal(size=(3, 5)), rng.normal(size=(4, 3)), rng.normal(size=(9, 5))
    _, indices = Index(Bilinear(W), P).query(Q, 2)
    np.testing.assert_array_equal(indices, naive(Q @ W @ P.T, 2))


def test_a_metric_of_rank_zero_finds_everything_equally_near():
    X = data("continuous", n=1200)
    closeness, indices = Index(Mahalanobis(np.zeros((4, 4))), X).query(X[:3], 2)
    np.testing.assert_array_equal(indices, [[0, 1]] * 3)
    np.testing.assert_array_equal(closeness, np.zeros((3, 2)))


def test_the_tree_is_for_many_rows_in_few_dimensions():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 30))
    assert Index(None, X[:, :3]).route == "tree"
    assert Index(None, X[:200, :3]).route == "blocked"
    assert Index(None, X).route == "blocked"
    assert Index(Mahalanobis.from_components(X[:2]), X).route == "tree"
    assert Index(None, sp.csr_array(X[:, :3]), route="tree").route == "blocked"
    assert Index(Bilinear(np.eye(3)), X[:, :3]).route == "blocked"


def test_zero_distances_are_not_negative_zeros():
    closeness, _ = Index(None, data("constant")).query(np.ones((1, 4)), 3)
    assert not np.signbit(closeness).any()


def test_input_is_not_changed():
    X = data("continuous")
    before = X.copy()
    X.flags.writeable = False
    for route in ("tree", "blocked"):
        Index(None, X, route=route).query(X, 3, exclude_self=True)
    np.testing.assert_array_equal(X, before)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda X: Index(None, X, route="ball"), "route must be .* Got 'ball'"),
        (lambda X: Index(None, X[0]), "Expected 2D array, got 1D array"),
        (lambda X: Index(None, X * np.nan), "Input X contains NaN"),
        (lambda X: Index(Mahalanobis(np.eye(3)), X), "X has 4 features, but 3 are expected"),
        (lambda X: Index(None, X).query(X[:, :3], 1), "Q has 3 features, but 4 are expected"),
        (lambda X: Index(None, X).query(X / 0.0, 1), "Input Q contains (NaN|infinity)"),
        (lambda X: Index(None, X * 1e160), r"X holds values up to .*overflow float64; scale"),
        (
            lambda X: Index(None, X).query((X * 1e25).astype(np.float32), 1),
            "Q holds values up to .*overflow float32",
        ),
        (lambda X: Index(None, X).query(X, 0), "k must be an integer from 1 to 120.*Got 0"),
        (lambda X: Index(None, X).query(X, 121), "from 1 to 120.*Got 121"),
        (lambda X: Index(None, X).query(X, 120, True), "from 1 to 119.*Got 120"),
        (lambda X: Index(None, X).query(X, 2.0), "k must be an integer"),
        (lambda X: Index(None, X).query(X[:5], 2, True), "needs the 120 indexed rows.*got 5"),
    ],
)
def test_bad_input_is_named(call, text):
    with np.errstate(all="ignore"), pytest.raises(InvalidInputError, match=text):
        call(data("continuous"))


TILED = 2200


def far_and_near(rng, kind, dtype):
    """Rows whose neighbors float32 cannot tell, or can, and queries among them."""
    X = rng.normal(size=(TILED, 7))
    if kind == "one far away":
        X[5] = 1e9
    elif kind == "ten times over":
        X = np.repeat(X[: TILED // 10], 10, axis=0)
    elif kind == "close together":
        X = 1e6 + 1e-3 * X
    Q = X[rng.permutation(TILED)[:600]] + 1e-7
    if kind == "queries far away":
        Q[::3] *= 1e16
    return X.astype(dtype), Q.astype(dtype)


@pairwise(
    kind=["ordinary", "one far away", "ten times over", "close together", "queries far away"],
    dtype=[np.float64, np.float32],
    k=[1, 5, 70],
)
def test_tiles_are_exact_where_float32_is_not(kind, dtype, k):
    X, Q = far_and_near(np.random.default_rng(3), kind, dtype)
    index = Index(None, X, route="blocked")
    exact = ((Q[:, None].astype(np.float64) - X) ** 2).sum(axis=2)
    for queries, squared in ((Q, exact), (Q[:1], exact[:1])):
        closeness, rows = index.query(queries, k)
        expected = np.lexsort((np.broadcast_to(np.arange(TILED), squared.shape), squared))[:, :k]
        near = np.take_along_axis(squared, expected, axis=1)
        np.testing.assert_allclose(closeness.astype(float) ** 2, near, rtol=1e-5)
        # Sums of squares in another order may differ in the last digit.
        other = rows != expected
        np.testing.assert_allclose(
            np.take_along_axis(squared, rows, axis=1)[other], near[other], rtol=1e-12
        )
