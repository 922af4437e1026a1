import itertools
import math
import tracemalloc

import numpy as np
import pytest
from sklearn.metrics import (
    average_precision_score,
    label_ranking_average_precision_score,
    ndcg_score,
)

from samewise.exceptions import DegenerateInputError, InvalidInputError
from samewise.forms import Bilinear, Mahalanobis
from samewise.scores import ranking, tied_rankings
from samewise.scores.ranking import (
    average_precision,
    ndcg,
    precision_at_k,
    recall_at_k,
    reciprocal_rank,
    retrieval_scores,
)

KS = (1, 3, 10)


def draw(seed, levels=None, dtype=np.float64, n_queries=12, n_items=25):
    """Scores, with many ties if levels are given, and gains 0 … 3; query 0 has none."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(n_queries, n_items))
    if levels:
        scores = np.round(scores * levels) / levels
    gains = rng.integers(-3, 4, size=scores.shape).clip(0)
    gains[0] = 0
    gains[1:, 5] = 2
    return scores.astype(dtype), gains


def naive_order(scores):
    return sorted(range(len(scores)), key=lambda item: (-scores[item], item))


def naive_scores(scores, gains, k):
    """All scores of one query, one rank at a time, by the formulas."""
    ranked = [gains[item] for item in naive_order(scores)]
    n_relevant = sum(gain > 0 for gain in ranked)
    if n_relevant == 0:
        return dict.fromkeys(["precision", "recall", "ndcg", "map", "mrr"], math.nan)
    found, total, first = 0, 0.0, None
    for rank, gain in enumerate(ranked, start=1):
        if gain > 0:
            found += 1
            total += found / rank
            first = first or rank
    dcg = [
        sum(gain / math.log2(1 + rank) for rank, gain in enumerate(row[:k], start=1))
        for row in (ranked, sorted(ranked, reverse=True))
    ]
    within = sum(gain > 0 for gain in ranked[:k])
    return {
        "precision": within / k,
        "recall": within / n_relevant,
        "ndcg": dcg[0] / dcg[1],
        "map": total / n_relevant,
        "mrr": 1 / first,
    }


def naive_table(scores, gains, k):
    rows = [naive_scores(list(s), list(g), k) for s, g in zip(scores, gains, strict=True)]
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def over_orders(scores, gains, k):
    """The means of all scores over all orders of items of equal score, order by order."""
    tables = []
    for order in itertools.permutations(range(scores.shape[1])):
        columns = list(order)
        tables.append(naive_table(scores[:, columns], gains[:, columns], k))
    return {name: np.mean([table[name] for table in tables], axis=0) for name in tables[0]}


def all_scores(scores, gains, k, **options):
    return {
        "precision": precision_at_k(scores, gains, k, **options),
        "recall": recall_at_k(scores, gains > 0, k, **options),
        "ndcg": ndcg(scores, gains, k, **options),
        "map": average_precision(scores, gains, **options),
        "mrr": reciprocal_rank(scores, gains > 0, **options),
    }


def in_blocks(C, size):
    return ((slice(i, min(i + size, len(C))), C[i : i + size]) for i in range(0, len(C), size))


@pytest.mark.parametrize("k", [1, 4, 25])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("levels", [None, 1])
def test_scores_are_those_of_the_formulas(seed, levels, dtype, k):
    scores, gains = draw(seed, levels, dtype)
    expected = naive_table(scores, gains, k)
    for ties in ("index",) if levels else ("index", "expected"):
        found = all_scores(scores, gains, k, ties=ties)
        for name, values in expected.items():
            np.testing.assert_allclose(found[name], values, rtol=1e-12, err_msg=name)
            assert found[name].dtype == np.float64
        if k == scores.shape[1]:
            np.testing.assert_array_equal(ndcg(scores, gains, ties=ties), found["ndcg"])


@pytest.mark.parametrize("k", [1, 2, 4, 6])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_ties_are_worth_the_mean_over_their_orders(seed, dtype, k):
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, 3, size=(8, 6)).astype(dtype)
    scores[1] = 7
    gains = rng.integers(-2, 4, size=scores.shape).clip(0) * np.array(0.5)
    gains[0], gains[1:, 3] = 0, 1.5
    for name, values in over_orders(scores, gains, k).items():
        found = all_scores(scores, gains, k)[name]
        np.testing.assert_allclose(found, values, rtol=1e-12, err_msg=name)


def test_a_constant_score_is_worth_chance():
    """However the gallery is sorted: 30 of 100 items are relevant."""
    flat = np.zeros((2, 100))
    gains = np.array([np.arange(100) < 30, np.arange(100) >= 70])
    for k in (1, 10, 99, 100):
        np.testing.assert_allclose(precision_at_k(flat, gains, k), 0.3, rtol=1e-12)
        np.testing.assert_allclose(recall_at_k(flat, gains, k), k / 100, rtol=1e-12)
    ap = np.mean([(1 + (rank - 1) * 29 / 99) / rank for rank in range(1, 101)])
    np.testing.assert_allclose(average_precision(flat, gains), ap, rtol=1e-12)
    first = [math.comb(100 - rank, 29) / math.comb(100, 30) / rank for rank in range(1, 72)]
    np.testing.assert_allclose(reciprocal_rank(flat, gains), sum(first), rtol=1e-12)
    assert average_precision(flat, gains, ties="index")[0] == 1.0


def test_the_order_of_tied_columns_does_not_matter(seed):
    scores, gains = draw(seed, levels=2, n_queries=20, n_items=300)
    mixed = np.random.default_rng(seed).permutation(300)
    here, there = all_scores(scores, gains, 20), all_scores(scores[:, mixed], gains[:, mixed], 20)
    for name, values in here.items():
        np.testing.assert_allclose(there[name], values, rtol=1e-12, err_msg=name)


def test_ties_among_relevant_items_only_leave_every_bit_as_it_is():
    # In one chunk with a row whose ties do matter.
    scores, gains = draw(4, levels=1, n_items=200)
    gains[1:] = scores[1:] == 1
    gains[0, :7] = 1
    for function in (average_precision, reciprocal_rank):
        expected = function(scores, gains)
        np.testing.assert_array_equal(expected[1:], function(scores, gains, ties="index")[1:])
        assert expected[0] != function(scores, gains, ties="index")[0]


def test_bad_ties():
    match = "ties must be 'expected' or 'index'. Got 'random' instead"
    for function in (average_precision, reciprocal_rank, ndcg):
        with pytest.raises(InvalidInputError, match=match):
            function(GOOD, [[1, 0, 0]], ties="random")
    for function in (precision_at_k, recall_at_k):
        with pytest.raises(InvalidInputError, match=match):
            function(GOOD, [[1, 0, 0]], 1, ties="random")
    with pytest.raises(InvalidInputError, match=match):
        retrieval_scores([(slice(0, 1), GOOD)], [0], [0, 1, 2], ks=(1,), ties="random")


def test_scores_agree_with_scikit_learn(seed):
    scores, gains = draw(seed)
    scores, gains = scores[1:], gains[1:]
    relevant = gains > 0
    ap = average_precision(scores, relevant)
    theirs = [average_precision_score(r, s) for s, r in zip(scores, relevant, strict=True)]
    np.testing.assert_allclose(ap, theirs, rtol=1e-12)
    lrap = label_ranking_average_precision_score(relevant, scores)
    np.testing.assert_allclose(ap.mean(), lrap, rtol=1e-12)
    for levels, k in itertools.product((None, 1), (None, 1, 7)):
        scores, gains = (a[1:] for a in draw(seed, levels))
        np.testing.assert_allclose(ndcg(scores, gains, k).mean(), ndcg_score(gains, scores, k=k))


def test_ties_may_go_to_the_smaller_column():
    tied = np.zeros((1, 3))
    assert reciprocal_rank(tied, [[0, 0, 1]], ties="index")[0] == 1 / 3
    assert precision_at_k(tied, [[1, 0, 0]], 1, ties="index")[0] == 1.0
    assert average_precision(tied, [[0, 1, 0]], ties="index")[0] == 0.5


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_zeros_of_either_sign_and_equal_infinities_tie(dtype):
    scores = np.array([[0.0, -0.0, 0.0, -0.0], [-np.inf, np.inf, -np.inf, np.inf]], dtype=dtype)
    gains = np.array([[0, 0, 1, 0], [1, 0, 0, 0]])
    in_order = {"ties": "index"}
    np.testing.assert_array_equal(reciprocal_rank(scores, gains, **in_order), [1 / 3, 1 / 3])
    np.testing.assert_array_equal(precision_at_k(scores, gains, 3, **in_order), [1 / 3, 1 / 3])
    np.testing.assert_array_equal(precision_at_k(scores, gains, 2, **in_order), [0.0, 0.0])
    np.testing.assert_allclose(reciprocal_rank(scores, gains), [25 / 48, 7 / 24])
    np.testing.assert_allclose(precision_at_k(scores, gains, 3), [1 / 4, 1 / 6])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_adjacent_floats_do_not_tie(dtype):
    scores = np.array([[1.0, np.nextafter(dtype(1), dtype(2))]], dtype=dtype)
    assert reciprocal_rank(scores, [[0, 1]])[0] == 1.0
    assert precision_at_k(scores, [[0, 1]], 1)[0] == 1.0
    result = retrieval_scores([(slice(0, 1), scores)], [1], [0, 1], ks=(1,))
    assert result.means["precision@1"] == 1.0


@pytest.mark.parametrize("layout", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("levels", [1, 3, 300, None])
def test_full_order_is_that_of_a_stable_sort(seed, levels, dtype, layout):
    scores, _ = draw(seed, levels, dtype, n_queries=5, n_items=400)
    order, equal = tied_rankings.ranked(np.asarray(scores, order=layout))
    np.testing.assert_array_equal(order, np.argsort(-scores, axis=1, kind="stable"))
    steps = np.diff(np.take_along_axis(scores, order, axis=1), axis=1, prepend=np.inf)
    np.testing.assert_array_equal(equal, steps == 0)


@pytest.mark.parametrize("ties", ["index", "expected"])
@pytest.mark.parametrize("chunk", [1, 60])
def test_size_of_the_chunks_does_not_matter(monkeypatch, chunk, ties):
    scores, gains = draw(5, levels=1)
    by_matrix = (average_precision, reciprocal_rank)
    whole = [function(scores, gains, ties=ties) for function in by_matrix]
    y = np.arange(12) % 3
    blocks = list(in_blocks(scores[:, :12], 7))
    in_one = retrieval_scores(blocks, y, y, exclude_self=True, ties=ties)
    monkeypatch.setattr(ranking, "_CHUNK", chunk)
    for function, values in zip(by_matrix, whole, strict=True):
        np.testing.assert_array_equal(function(scores, gains, ties=ties), values)
    again = retrieval_scores(blocks, y, y, exclude_self=True, ties=ties)
    for name, values in again.per_query.items():
        # The last bit of a product with fractions is BLAS's to say.
        rtol = 1e-15 if "ndcg" in name and ties == "expected" else 0
        np.testing.assert_allclose(values, in_one.per_query[name], rtol=rtol, err_msg=name)


def test_perfect_and_worst_rankings():
    scores = np.arange(10.0)[::-1][None]
    perfect, worst = np.arange(10) < 3, np.arange(10) >= 7
    assert average_precision(scores, perfect[None])[0] == 1.0
    assert ndcg(scores, perfect[None])[0] == 1.0
    np.testing.assert_allclose(average_precision(scores, worst[None]), (1 / 8 + 2 / 9 + 3 / 10) / 3)
    assert reciprocal_rank(scores, worst[None])[0] == 1 / 8


def test_queries_without_relevant_items_are_nan():
    scores, gains = draw(0)
    for values in (
        precision_at_k(scores, gains, 3),
        recall_at_k(scores, gains, 3),
        ndcg(scores, gains),
        average_precision(scores, gains),
        reciprocal_rank(scores, gains),
    ):
        np.testing.assert_array_equal(np.isnan(values), np.arange(12) == 0)


def test_input_is_not_changed():
    scores, gains = draw(1, levels=1)
    scores.flags.writeable = gains.flags.writeable = False
    average_precision(scores, gains)
    ndcg(scores, gains, 3)
    y = np.arange(12) % 3
    square = scores[:, :12]
    retrieval_scores([(slice(0, 12), square)], y, y, ks=(1,), exclude_self=True)


@pytest.mark.parametrize("exclude_self", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("levels", [None, 1])
@pytest.mark.parametrize("size", [1, 7, 30])
def test_blocks_give_the_scores_of_the_formulas(seed, size, levels, dtype, exclude_self):
    C, _ = draw(seed, levels, dtype, n_queries=30, n_items=30)
    y = np.random.default_rng(seed).choice(["a", "b", "c"], 30)
    y[4] = "z"
    options = {"ks": KS, "exclude_self": exclude_self}
    result = retrieval_scores(in_blocks(C, size), y, y, **options, ties="index")
    kept = ~np.eye(30, dtype=bool) if exclude_self else np.ones((30, 30), dtype=bool)
    rankings = [C[i, kept[i]] for i in range(30)]
    gains = [(y == y[i])[kept[i]].astype(int) for i in range(30)]
    for k in KS:
        for name, values in naive_table(rankings, gains, k).items():
            key = name if name in ("map", "mrr") else f"{name}@{k}"
            np.testing.assert_allclose(result.per_query[key], values, rtol=1e-12, err_msg=key)
            np.testing.assert_allclose(result.means[key], np.nanmean(values), rtol=1e-12)
    assert result.n_skipped == int(exclude_self)
    assert len(result.means) == 3 * len(KS) + 2
    # With the ties left open, the scores of matrices, which are checked order by order.
    result = retrieval_scores(in_blocks(C, size), y, y, **options)
    for i, (scores, hits) in enumerate(zip(rankings, gains, strict=True)):
        for k in KS:
            for name, value in all_scores(scores[None], hits[None], k).items():
                key = name if name in ("map", "mrr") else f"{name}@{k}"
                np.testing.assert_allclose(result.per_query[key][i], value[0], rtol=1e-12)


def test_blocks_may_come_in_any_order():
    C, _ = draw(3, n_queries=20)
    queries, items = np.arange(20) % 4, np.arange(25) % 5
    blocks = list(in_blocks(C, 6))
    there = retrieval_scores(blocks, queries, items)
    back = retrieval_scores(blocks[::-1], queries, items)
    for name, values in there.per_query.items():
        np.testing.assert_array_equal(back.per_query[name], values)


def test_labels_of_queries_unknown_to_the_items_are_left_out_of_the_means():
    C = np.array([[2.0, 1.0], [2.0, 1.0]])
    result = retrieval_scores([(slice(0, 2), C)], [7, 1], [0, 1], ks=(1, 2))
    assert result.n_skipped == 1
    assert result.means["mrr"] == 0.5
    assert result.means["precision@1"] == 0.0
    assert result.means["recall@2"] == 1.0


@pytest.mark.parametrize("form", [Mahalanobis.identity(5), Bilinear(np.diag([1.0, 2, 3, 4, 5]))])
def test_forms_are_scored_through_their_blocks(labeled, form):
    X, y = labeled
    result = retrieval_scores(form.blocks(X, block_bytes=4000), y, y, exclude_self=True)
    C = np.array(form.closeness(X))
    np.fill_diagonal(C, -np.inf)
    relevant = (y[:, None] == y) & ~np.eye(60, dtype=bool)
    np.testing.assert_allclose(result.per_query["map"], average_precision(C, relevant))
    np.testing.assert_allclose(result.per_query["precision@10"], precision_at_k(C, relevant, 10))
    np.testing.assert_allclose(result.per_query["ndcg@10"], ndcg(C, relevant, 10))


def test_no_array_of_queries_by_items_is_made():
    n, rng = 3000, np.random.default_rng(0)
    x = rng.normal(size=n).astype(np.float32)
    y = np.arange(n) % 10
    blocks = ((slice(i, i + 50), -np.abs(x[i : i + 50, None] - x)) for i in range(0, n, 50))
    tracemalloc.start()
    retrieval_scores(blocks, y, y, exclude_self=True)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < n * n * 4


GOOD = np.array([[3.0, 2.0, 1.0]])


@pytest.mark.parametrize(
    ("scores", "relevant", "match"),
    [
        ([3.0, 2.0], [1, 0], r"shape \(n_queries, n_items\).*one query is scores\[None, :\]"),
        ([["a", "b"]], [[1, 0]], "dense array of real numbers"),
        ([[1.0 + 2.0j]], [[1]], "dense array of real numbers.*complex128"),
        ([[1.0, np.nan]], [[1, 0]], "scores must not contain NaN"),
        (GOOD, [[1, 0]], r"same shape .* Got \(1, 3\) and \(1, 2\)"),
        (np.empty((0, 3)), np.empty((0, 3)), "not empty"),
        (GOOD, [[1, 0, -1]], "finite gains ≥ 0"),
        (GOOD, [[1, 0, np.nan]], "finite gains ≥ 0"),
        (GOOD, [["yes", "no", "no"]], "booleans or finite gains"),
    ],
)
def test_bad_scores_and_relevance(scores, relevant, match):
    for function in (average_precision, reciprocal_rank, ndcg):
        with pytest.raises(InvalidInputError, match=match):
            function(scores, relevant)
    with pytest.raises(InvalidInputError, match=match):
        precision_at_k(scores, relevant, 1)


@pytest.mark.parametrize("k", [0, -1, 4, 1.5, "2"])
def test_bad_k(k):
    match = f"k must be an integer from 1 to 3, the items ranked. Got {k!r} instead"
    for function in (precision_at_k, recall_at_k, ndcg):
        with pytest.raises(InvalidInputError, match=match):
            function(GOOD, [[1, 0, 0]], k)
    with pytest.raises(InvalidInputError, match=match):
        retrieval_scores([(slice(0, 1), GOOD)], [0], [0, 1, 2], ks=(1, k))


def test_the_query_itself_does_not_count_for_k():
    C = np.eye(3)
    with pytest.raises(InvalidInputError, match="from 1 to 2"):
        retrieval_scores([(slice(0, 3), C)], [0, 0, 1], [0, 0, 1], ks=(3,), exclude_self=True)


@pytest.mark.parametrize(
    ("blocks", "match"),
    [
        (np.eye(3), r"Got an array; a whole matrix C is \[\(slice"),
        ([(slice(0, 3), np.ones((3, 2)))], r"must have shape \(3, 3\).*Got \(3, 2\)"),
        ([(slice(0, 4), np.ones((4, 3)))], r"must have shape \(3, 3\).*Got \(4, 3\)"),
        ([(slice(0, 3), np.full((3, 3), np.nan))], "A block must not contain NaN"),
        ([(slice(0, 2), np.ones((2, 3)))], "Query 2 came 0 times"),
        ([(slice(0, 3), np.eye(3)), (slice(1, 2), np.ones((1, 3)))], "Query 1 came 2 times"),
        ([], "each of the 3 queries exactly once"),
    ],
)
def test_bad_blocks(blocks, match):
    with pytest.raises(InvalidInputError, match=match):
        retrieval_scores(blocks, [0, 0, 1], [0, 0, 1], ks=(1,))


@pytest.mark.parametrize(
    ("queries", "items", "match"),
    [
        ([[0], [1]], [0, 1], r"one-dimensional and not empty. Got shapes \(2, 1\) and \(2,\)"),
        ([], [0, 1], "one-dimensional and not empty"),
        ([0.0, np.nan], [0.0, 1.0], "must not be NaN"),
        (["0", "1"], [0, 1], "all numbers or all text"),
    ],
)
def test_bad_labels(queries, items, match):
    with pytest.raises(InvalidInputError, match=match):
        retrieval_scores([(slice(0, 2), np.eye(2))], queries, items, ks=(1,))


@pytest.mark.parametrize("n_items", [3, 1])
def test_exclude_self_needs_the_same_examples(n_items):
    with pytest.raises(InvalidInputError, match="same examples as queries and as items, at least"):
        retrieval_scores([], [0], [0] * n_items, ks=(), exclude_self=True)


def test_nothing_relevant_at_all():
    with pytest.raises(DegenerateInputError, match="No query has a relevant item"):
        retrieval_scores([(slice(0, 2), np.eye(2))], [0, 1], [0, 1], ks=(1,), exclude_self=True)
