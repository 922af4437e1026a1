"""Scores of filters, against counts made by hand."""

from __future__ import annotations

import numpy as np
import pytest

from samewise.exceptions import InvalidInputError
from samewise.scores import (
    FilteringTally,
    detection_cost,
    f_measure,
    filtering_evolution,
    filtering_scores,
    linear_utility,
    scaled_utility,
)


def drawn(seed, n=80, topics=5):
    rng = np.random.default_rng(seed)
    relevant = rng.random((n, topics)) < 0.2
    retrieved = np.where(rng.random((n, topics)) < 0.7, relevant, rng.random((n, topics)) < 0.2)
    relevant[:, -1] = False
    return retrieved, relevant


def by_hand(retrieved, relevant):
    """(a, b, c, d) and the anticipation of one topic, document by document."""
    a = b = c = d = seen = 0
    anticipation = 0.0
    for got, wanted in zip(retrieved, relevant, strict=True):
        seen += wanted
        a, b = a + (got and wanted), b + (got and not wanted)
        c, d = c + (wanted and not got), d + (not got and not wanted)
        if got and wanted and not anticipation:
            anticipation = 1 / seen
    return (a, b, c, d), anticipation


def plain_scores(a, b, c, d):
    P, R = a / (a + b) if a + b else 0.0, a / (a + c)
    u = a - 0.5 * b
    return {
        "precision": P,
        "recall": R,
        "f": 2 * P * R / (P + R) if P + R else 0.0,
        "utility": u,
        "scaled_utility": (max(u / (a + c), -0.5) + 0.5) / 1.5,
        "detection_cost": 10 * c / (a + c) * 0.001 + 0.1 * b / (b + d) * 0.999,
        "balanced_error": (c / (a + c) + b / (b + d)) / 2,
    }


def test_scores_of_topics_micro_and_macro(seed):
    retrieved, relevant = drawn(seed)
    scores = filtering_scores(retrieved, relevant)
    counts, anticipations = zip(
        *(by_hand(retrieved[:, i], relevant[:, i]) for i in range(5)), strict=True
    )
    for name, values in scores.topics.items():
        expected = (
            anticipations[:4]
            if name == "anticipation"
            else [plain_scores(*c)[name] for c in counts[:4]]
        )
        np.testing.assert_allclose(values[:4], expected, rtol=1e-12)
        assert np.isnan(values[4])
        np.testing.assert_allclose(scores.macro[name], np.mean(expected), rtol=1e-12)
    assert scores.micro == pytest.approx(plain_scores(*np.sum(counts, axis=0)))
    assert scores.n_documents == 80


def test_blocks_add_up(seed):
    retrieved, relevant = drawn(seed)
    tally = FilteringTally(5)
    for start in range(0, 80, 7):
        tally.add(retrieved[start : start + 7], relevant[start : start + 7])
    tally.add(retrieved[:0], relevant[:0])
    assert tally.scores().macro == filtering_scores(retrieved, relevant).macro


def test_relevant_documents_of_earlier_blocks_count_for_the_anticipation():
    tally = FilteringTally(1)
    tally.add([[False]], [[True]])
    tally.add([[False], [True]], [[True], [True]])
    tally.add([[True]], [[True]])
    assert tally.scores().topics["anticipation"] == pytest.approx(1 / 3)


def test_evolution(seed):
    retrieved, relevant = drawn(seed)
    found = filtering_evolution(retrieved, relevant, 30)
    assert [scores.n_documents for scores in found] == [30, 60, 80]
    for scores in found:
        n = scores.n_documents
        assert scores.macro == filtering_scores(retrieved[:n], relevant[:n]).macro
    windows = filtering_evolution(retrieved, relevant, 30, cumulative=False, alpha=0.3)
    assert windows[1].macro == filtering_scores(retrieved[30:60], relevant[30:60], alpha=0.3).macro


def test_the_costs_are_added_not_multiplied():
    # Nothing missed: a product would be 0 whatever the false alarms cost.
    assert detection_cost([5], [10], [0], [90])[0] == pytest.approx(0.1 * 0.1 * 0.999)


def test_special_values():
    np.testing.assert_allclose(f_measure([0.5], [1.0], alpha=1.0), 0.5)
    np.testing.assert_allclose(f_measure([0.5], [1.0], alpha=0.0), 1.0)
    np.testing.assert_allclose(f_measure([0.0], [0.0]), 0.0)
    np.testing.assert_allclose(linear_utility(2, 3, w1=2, w2=1), 1.0)
    np.testing.assert_allclose(scaled_utility([0], [0], [7]), 1 / 3)
    assert np.isnan(scaled_utility([0], [3], [0])).all()


def test_a_topic_without_relevant_documents_does_not_count():
    none = np.zeros((3, 2), dtype=bool)
    scores = filtering_scores(none, none)
    assert all(np.isnan(value) for value in scores.macro.values())


@pytest.mark.parametrize(
    "call",
    [
        lambda: filtering_scores([True], [True]),
        lambda: filtering_scores([[1]], [[1]]),
        lambda: filtering_scores([[True]], [[True, False]]),
        lambda: filtering_evolution([[True]], [[True]], 0),
        lambda: f_measure(1, 1, alpha=2),
        lambda: scaled_utility(1, 1, 1, least=1.0),
    ],
)
def test_bad_input(call):
    with pytest.raises(InvalidInputError, match="must be"):
        call()
