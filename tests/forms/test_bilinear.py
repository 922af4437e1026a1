from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from samewise.exceptions import DegenerateInputError, InvalidInputError
from samewise.forms import Bilinear, NormalizedBilinear

rng = np.random.default_rng(0)
W = rng.normal(size=(3, 5))
A = rng.normal(size=(4, 4))
Q, P = rng.normal(size=(6, 3)), rng.normal(size=(7, 5))
X, Y = rng.uniform(0, 1, size=(70, 4)), rng.uniform(0, 1, size=(70, 4))


def naive(A, N, X, Y):
    return np.array([[x @ A @ y / N(x, y) for y in Y] for x in X])


def cosine(x, y):
    return np.linalg.norm(x) * np.linalg.norm(y)


def dice(x, y):
    return (abs(x).sum() + abs(y).sum()) / 2


def jaccard(x, y):
    return abs(x).sum() + abs(y).sum() - x @ y


def test_bilinear_between_two_spaces():
    form = Bilinear(W)
    assert (form.n_features_in, form.n_features_items) == (3, 5)
    assert not form.is_distance
    expected = naive(W, lambda q, p: 1, Q, P)
    np.testing.assert_allclose(form.cross(Q, P), expected, rtol=1e-12)
    np.testing.assert_allclose(form.pairs(Q, P[:6]), np.diag(expected), rtol=1e-12)
    np.testing.assert_allclose(form.embed_query(Q) @ P.T, expected, rtol=1e-12)
    np.testing.assert_allclose(form.cross(sparse.csr_array(Q), sparse.csr_array(P)), expected)


def test_between_two_spaces_the_items_must_be_given():
    form = Bilinear(W)
    for ask in (form.cross, form.closeness, form.blocks):
        with pytest.raises(InvalidInputError, match="3 features with rows of 5, so Y cannot be X"):
            ask(Q)
    with pytest.raises(InvalidInputError, match="Y has 3 features, but Bilinear expects 5"):
        form.cross(Q, Q)
    with pytest.raises(InvalidInputError, match="Q has 5 features, but Bilinear expects 3"):
        form.embed_query(P)


@pytest.mark.parametrize("matrix", [np.ones(3), np.empty((0, 3)), np.empty((3, 0)), [[np.nan]]])
def test_unusable_matrices(matrix):
    with pytest.raises(InvalidInputError, match="The matrix of Bilinear"):
        Bilinear(matrix)


@pytest.mark.parametrize(
    ("normalizer", "N"),
    [
        ("cosine", cosine),
        ("dice", dice),
        ("jaccard", jaccard),
        (None, lambda x, y: 1),
        (lambda X, Y: -1 - np.asarray(X @ Y.T), lambda x, y: -1 - x @ y),
    ],
)
def test_normalized_values_are_those_of_the_formula(normalizer, N):
    form = NormalizedBilinear(A, normalizer)
    expected = naive(A, N, X, Y)
    np.testing.assert_allclose(form.cross(X, Y), expected, rtol=1e-10)
    np.testing.assert_allclose(form.pairs(X, Y), np.diag(expected), rtol=1e-10)
    blocks = [block for _, block in form.blocks(X, Y, block_bytes=2000)]
    assert len(blocks) > 5
    np.testing.assert_allclose(np.vstack(blocks), expected, rtol=1e-10)


def test_well_known_coefficients_of_sets():
    x, y = [[1.0, 1, 1, 0]], [[0.0, 1, 1, 1]]
    assert NormalizedBilinear(np.eye(4), "dice").pairs(x, y) == pytest.approx(2 / 3)
    assert NormalizedBilinear(np.eye(4), "jaccard").pairs(x, y) == pytest.approx(2 / 4)
    assert NormalizedBilinear(np.eye(4), "cosine").pairs(x, y) == pytest.approx(2 / 3)


def test_normalizers_between_two_spaces():
    for name, N in (("cosine", cosine), ("dice", dice)):
        np.testing.assert_allclose(NormalizedBilinear(W, name).cross(Q, P), naive(W, N, Q, P))
    with pytest.raises(InvalidInputError, match=r"jaccard' must be square, but .* \(3, 5\)"):
        NormalizedBilinear(W, "jaccard")


def test_a_callable_sees_only_blocks_of_rows():
    seen = []

    def N(X, Y):
        seen.append((X.shape[0], Y.shape[0]))
        return np.ones((X.shape[0], Y.shape[0]))

    form = NormalizedBilinear(A, N)
    form.pairs(X, Y)
    assert max(seen) <= (32, 32)
    seen.clear()
    list(form.blocks(X, Y, block_bytes=70 * 8 * 10))
    assert seen == [(10, 70)] * 7


def test_a_callable_must_return_all_against_all():
    form = NormalizedBilinear(A, lambda X, Y: np.ones(len(X)))
    with pytest.raises(InvalidInputError, match=r"array of shape \(70, 70\) .* its shape is \(70,"):
        form.cross(X, Y)


@pytest.mark.parametrize("normalizer", ["other", 3, ["cosine"]])
def test_unknown_normalizers(normalizer):
    with pytest.raises(InvalidInputError, match="must be 'cosine', 'dice', 'jaccard', None or a c"):
        NormalizedBilinear(A, normalizer)


def test_zero_vectors_are_named_by_their_row():
    X0, Y0 = X.copy(), Y.copy()
    X0[60], Y0[3] = 0, 0
    form = NormalizedBilinear(A, "cosine")
    with pytest.raises(DegenerateInputError, match="row 60 of X with row 0 of Y; leave zero vec"):
        list(form.blocks(X0, Y, block_bytes=2000))
    with pytest.raises(DegenerateInputError, match="row 0 of X with row 3 of Y"):
        form.cross(X, Y0)
    with pytest.raises(DegenerateInputError, match="row 60 of X with row 60 of Y"):
        form.pairs(X0, Y)
    with pytest.raises(DegenerateInputError, match="Row 60 of Q is zero and has no cosine"):
        form.embed_query(X0)
    dice = NormalizedBilinear(A, "dice")
    assert dice.cross(X0, Y).shape == (70, 70)
    with pytest.raises(DegenerateInputError, match=r"dice normalizer .* row 60 of X with row 3"):
        dice.cross(X0, Y0)
    with pytest.raises(DegenerateInputError, match=r"given normalizer .* it must be finite and"):
        NormalizedBilinear(A, lambda X, Y: np.zeros((len(X), len(Y)))).cross(X, Y)
    with pytest.raises(DegenerateInputError, match="given normalizer"):
        NormalizedBilinear(A, lambda X, Y: np.full((len(X), len(Y)), np.nan)).pairs(X, Y)


@pytest.mark.parametrize("normalizer", ["cosine", "dice", "jaccard"])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_zero_vectors_may_have_the_similarity_0(normalizer, kind):
    X0, Y0 = np.abs(X) / 9, np.abs(Y) / 9
    X0[60] = Y0[3] = 0
    form = NormalizedBilinear(A, normalizer, on_zero="zero")
    S = form.cross(kind(X0), kind(Y0))
    assert not S[60].any() and not S[:, 3].any()
    rest = np.delete(np.arange(70), 60), np.delete(np.arange(70), 3)
    expected = NormalizedBilinear(A, normalizer).cross(X0[rest[0]], Y0[rest[1]])
    np.testing.assert_allclose(S[np.ix_(*rest)], expected, rtol=1e-12)
    assert form.pairs(kind(X0[[60, 5]]), kind(Y0[[3, 3]])).tolist() == [0, 0]
    if normalizer == "cosine":
        assert not form.embed_query(X0)[60].any()
    elif normalizer == "jaccard":
        with pytest.raises(DegenerateInputError, match="jaccard"):
            NormalizedBilinear(np.eye(1), "jaccard", "zero").pairs([[3.0]], [[3.0]])


def test_what_zero_vectors_have_is_checked():
    with pytest.raises(InvalidInputError, match="must be 'raise' or 'zero', but it is 'skip'"):
        NormalizedBilinear(A, on_zero="skip")


def test_jaccard_outside_the_unit_interval():
    with pytest.raises(DegenerateInputError, match=r"and scale the features to \[0, 1\]"):
        NormalizedBilinear(np.eye(1), "jaccard").pairs([[3.0]], [[3.0]])


@pytest.mark.parametrize("normalizer", ["dice", "jaccard", lambda X, Y: 1])
def test_not_every_normalizer_embeds_queries(normalizer):
    with pytest.raises(
        InvalidInputError, match="embed_query needs the normalizer 'cosine' or None"
    ):
        NormalizedBilinear(A, normalizer).embed_query(X)
