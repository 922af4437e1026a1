"""What used to go wrong unnoticed when embeddings learn from feedback; numbers before and after.

Data are the sentence embeddings of banking77: 40 intents, every fourth question.
"""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

import samewise
from samewise import OASIS, DiagonalAROMA, FactoredAROMA, Triplets
from samewise.datasets import load
from samewise.exceptions import DatasetNotFoundError, SamewiseWarning
from samewise.scores import retrieval_scores

LEARNERS = [OASIS, DiagonalAROMA, FactoredAROMA]


@pytest.fixture(scope="module")
def questions():
    """Training and test part: rows and intents."""
    try:
        bunch = load("banking77_minilm", dtype=np.float32)
    except DatasetNotFoundError as error:
        pytest.skip(str(error))
    wanted = bunch.target < 40
    train, test = (np.flatnonzero(wanted & part)[::4] for part in (bunch.train, ~bunch.train))
    return bunch.data[train], bunch.target[train], bunch.data[test], bunch.target[test]


def unit(seed, n, d=20):
    X = np.random.RandomState(seed).randn(n, d) + 0.3
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def precision(form, questions, k=10):
    """Precision at k of test questions among the training ones, in percent."""
    X, y, test, intents = questions
    return 100 * retrieval_scores(form.blocks(test, X), intents, y, ks=(k,)).means[f"precision@{k}"]


# The margin


def rounded(X):
    step = np.abs(X).max() / 127
    return np.round(X / step) * step


def emptied(X):
    X = X.copy()
    X[17] = 0
    return X


def stretched(X):
    X = X.copy()
    X[17] *= 1.002
    return X


@pytest.mark.parametrize("disturb", [emptied, stretched, rounded])
def test_odd_rows_do_not_change_the_margin(disturb, questions):
    # Before: 1 instead of 0.18, and precision@10 fell below that of no learning.
    X, y, _, _ = questions
    triplets = Triplets.from_labels(X, y, 3000, random_state=0)
    rows = (triplets.anchor, triplets.positive, triplets.negative)
    clean = OASIS().fit(triplets)
    odd = OASIS().fit(Triplets(disturb(X), *rows))
    assert clean.margin_ < 0.3
    assert odd.margin_ == pytest.approx(clean.margin_, rel=0.03)
    wrong = precision(OASIS(margin=1.0).fit(triplets).metric_, questions)
    right, kept = precision(clean.metric_, questions), precision(odd.metric_, questions)
    assert abs(kept - right) < 0.5 and kept > wrong + 1.5


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_rows_far_from_unit_length_are_named(learner, kind):
    X = unit(0, 300)
    rows = ([0, 1], [2, 3], [4, 5])
    given = X.copy()
    given[7] *= 3.0
    with pytest.warns(SamewiseWarning, match=r"Most rows have unit length, but 1 of 300 have not"):
        odd = learner(init="identity").fit(Triplets(kind(given), *rows))
    clean = learner(init="identity").fit(Triplets(kind(X), *rows))
    assert odd.margin_ == pytest.approx(clean.margin_, rel=0.02)
    with pytest.warns(SamewiseWarning, match=r"nearly the same length, 127, .* but not unit"):
        assert learner(init="identity").fit(Triplets(kind(127 * X), *rows)).margin_ == 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # Lengths that differ are no embeddings, and rows far from the origin are not either.
        learner(init="identity").fit(Triplets(X * np.linspace(1, 5, 300)[:, None], *rows))
        learner(init="identity").fit(Triplets(X + 100.0, *rows))
        learner(init="zero").fit(Triplets(kind(127 * X), *rows))
        # Nothing depends on the lengths.
        learner(init="identity", margin=1.0).fit(Triplets(kind(127 * X), *rows))


def events(X, y, n):
    """Triplets of n events, each with vectors of its own."""
    triplets = Triplets.from_labels(X, y, n, random_state=0)
    rows = np.stack([triplets.anchor, triplets.positive, triplets.negative], axis=1)
    return [Triplets.from_arrays(X[row][None]) for row in rows]


def test_a_stream_that_begins_with_one_event_finds_its_margin(questions):
    # Before: the first event's related rows settled it for good, at 0.11 or 0.06 instead of 0.18.
    X, y, _, _ = questions
    wanted = OASIS().fit(Triplets(X, [0], [1], [2])).margin_
    learner = OASIS()
    found = [learner.partial_fit(event).margin_ for event in events(X, y, 150)]
    assert all(0.7 * wanted < margin < 1.4 * wanted for margin in found)
    assert found[60] == pytest.approx(wanted, rel=0.12)
    # By then 200 rows were seen.
    assert len(set(found[75:])) == 1
    whole = OASIS().partial_fit(Triplets(X, [0], [1], [2]))
    assert whole.partial_fit(events(X, y, 1)[0]).margin_ == wanted


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("options", [{}, {"init": 2 * np.eye(20)}, {"rank": 2}])
def test_a_saved_stream_goes_on_to_find_its_margin(kind, options, tmp_path):
    X = unit(1, 300)
    portions = [Triplets(kind(X[i : i + 6]), [0, 3], [1, 4], [2, 5]) for i in range(0, 300, 6)]
    learner = OASIS(**options)
    for n, portion in enumerate(portions):
        learner.partial_fit(portion)
        learner.save(tmp_path / "learner")
        learner = samewise.load(tmp_path / "learner") if n % 3 == 0 else learner
    other = OASIS(**options)
    for portion in portions:
        other.partial_fit(portion)
    assert learner.margin_ == other.margin_
    np.testing.assert_array_equal(learner.get_bilinear_matrix(), other.get_bilinear_matrix())
    if "rank" not in options:
        whole = OASIS(**options).fit(Triplets(X, [0], [1], [2]))
        assert learner.margin_ == pytest.approx(whole.margin_, rel=0.1)


def test_portions_over_one_small_matrix_equal_one_fit():
    X = unit(2, 60)
    y = np.arange(60) % 3
    triplets = Triplets.from_labels(X, y, 200, random_state=0)
    whole = FactoredAROMA().fit(triplets)
    parts = FactoredAROMA()
    for start in range(0, 200, 50):
        parts.partial_fit(triplets[start : start + 50])
    assert parts.margin_ == whole.margin_ < 1
    np.testing.assert_allclose(parts.get_bilinear_matrix(), whole.get_bilinear_matrix(), rtol=1e-9)


def test_a_refused_portion_does_not_move_the_margin():
    X = unit(3, 30)
    learner = OASIS().partial_fit(Triplets(X[:6], [0], [1], [2]))
    before = learner.margin_
    huge = X.copy()
    huge[2] *= 1e80
    with pytest.raises(ValueError, match="scale the features"):
        learner.partial_fit(Triplets(huge, [0], [1], [2]))
    assert learner.margin_ == before
    assert learner.partial_fit(Triplets(X, [0], [1], [2])).margin_ != before


# The start


@pytest.mark.parametrize("learner", [DiagonalAROMA, FactoredAROMA])
def test_from_unit_vectors_aroma_starts_at_the_dot_product(learner, questions):
    # From zero, the first triplets undo what the dot product knows already.
    X, y, _, _ = questions
    triplets = Triplets.from_labels(X, y, 50, random_state=0)
    start = precision(samewise.Bilinear(np.eye(X.shape[1])), questions, 1)
    now = precision(learner().fit(triplets).metric_, questions, 1)
    before = precision(learner(init="zero").fit(triplets).metric_, questions, 1)
    assert now > start - 1.0
    assert before < start - 30.0


@pytest.mark.parametrize("learner", LEARNERS)
def test_the_automatic_start(learner):
    X, rows = unit(4, 30), ([0, 1], [2, 3], [4, 5])

    def begun(*given, init="auto", **more):
        fitted = learner(init=init, **more).fit(Triplets(*given))
        return fitted.get_bilinear_matrix(), fitted.margin_

    def same(one, other):
        assert one[1] == other[1]
        np.testing.assert_array_equal(one[0], other[0])

    same(begun(X, *rows), begun(X, *rows, init="identity"))
    same(begun(X, *rows, rank=3), begun(X, *rows, rank=3, init="identity"))
    # As in the paper: other lengths, and items of other features.
    uneven = X * np.linspace(1, 5, 30)[:, None]
    same(begun(uneven, *rows), begun(uneven, *rows, init="zero"))
    items = X[:, :7] / np.linalg.norm(X[:, :7], axis=1, keepdims=True)
    same(begun(X, *rows, items), begun(X, *rows, items, init="zero"))
    zeros = np.zeros_like(X)
    same(begun(zeros, *rows), begun(zeros, *rows, init="zero"))


# Forgetting


@pytest.mark.parametrize("learner", LEARNERS)
def test_an_average_that_forgets_follows_new_preferences(learner, questions):
    # After 3 000 preferences, the opposite 3 000. Before: 17 to 20 % of the new ones were ranked
    # right by "survival", and there was no other average over rounds; now 93 to 96 %.
    X, y, _, _ = questions
    triplets = Triplets.from_labels(X, y, 3000, random_state=0)
    reversed_ = Triplets(X, triplets.anchor, triplets.negative, triplets.positive)

    def right(average):
        return (
            learner(average=average).partial_fit(triplets).partial_fit(reversed_).score(reversed_)
        )

    assert right("survival") < 0.25
    assert right(("decay", 500)) > 0.85


# Questions


@pytest.mark.parametrize("learner", [DiagonalAROMA, FactoredAROMA])
def test_what_is_asked_depends_on_the_query(learner, questions):
    # Before: f-AROMA asked 97 % of the same items for one query and the next.
    X, y, test, _ = questions
    fitted = learner().fit(Triplets.from_labels(X, y, 500, random_state=0))
    asked = fitted.ask(test[:60:3], X, n=8)
    both = [len(set(one) & set(two)) / 8 for one, two in itertools.pairwise(asked.tolist())]
    assert np.mean(both) < 0.2
    np.testing.assert_array_equal(asked[3], fitted.ask(test[9], X, n=8))


@pytest.mark.parametrize("learner", [DiagonalAROMA, FactoredAROMA])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_asked_are_items_whose_order_is_least_sure(learner, kind):
    X, y = unit(5, 40, 6), np.arange(40) % 4
    fitted = learner().fit(Triplets.from_labels(X, y, 100, random_state=0))
    Q, P = X[:5], np.vstack([X[5:], X[5:]])
    asked = fitted.ask(kind(Q), kind(P), n=len(P))
    for q, order in zip(Q, asked, strict=True):
        scores = P @ fitted.metric_.matrix.T @ q
        best = np.argmax(scores)
        sure = np.full(len(P), np.inf)
        for j, p in enumerate(P):
            variance = fitted.score_variance(q[None], (P[best] - p)[None])[0, 0]
            if variance > 0:
                sure[j] = (scores[best] - scores[j]) / np.sqrt(variance)
        assert np.all(np.diff(sure[order[:-2]]) >= -1e-9)
        # The best one, and its copy, last.
        assert set(order[-2:]) == {best, (best + 35) % 70}


# Negatives without labels


def test_semi_hard_negatives_without_labels_leave_out_what_is_as_good(questions):
    # Before there were none. Taken as with labels, 43 % of them are of the query's own intent; now
    # 30 %.
    X, y, _, _ = questions
    liked = Triplets.from_labels(X, y, 2000, random_state=0)
    grades = sp.csr_array(
        (np.ones(2000), (liked.anchor, liked.positive)), shape=(len(y), len(y))
    ).minimum(1.0)
    drawn = Triplets.from_grades(X, X, grades, 2000, random_state=0)
    mined = Triplets.from_grades(X, X, grades, 2000, negatives="semi-hard", random_state=0)
    reached = np.sum(X[mined.anchor] * X[mined.positive], axis=1)
    closest = np.sum(X[mined.anchor] * X[mined.negative], axis=1)
    assert np.mean(closest) > np.mean(np.sum(X[drawn.anchor] * X[drawn.negative], axis=1)) + 0.2
    assert np.mean(closest < reached) > 0.9
    wrong = np.mean(y[mined.negative] == y[mined.anchor])
    pool = np.random.RandomState(0).permutation(len(y))[:256]
    scores = X[mined.anchor] @ X[pool].T
    usable = (scores < reached[:, None]) & (pool != mined.anchor[:, None])
    naive = pool[np.argmax(np.where(usable, scores, -np.inf), axis=1)]
    plain = np.mean(y[naive] == y[mined.anchor])
    assert wrong < 0.75 * plain
