import numpy as np
import pytest
from sklearn.metrics import fbeta_score, roc_auc_score, roc_curve

from samewise.exceptions import InvalidInputError
from samewise.scores import (
    balanced_error,
    choose_threshold,
    equal_error_rate,
    fnmr_at_fmr,
    roc,
    verification_error,
)

CRITERIA = ["accuracy", "balanced_accuracy", "f_beta", "far", "frr"]


def draw(seed, n=60, levels=None):
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < 0.4, 1, -1)
    y[:2] = 1, -1
    c = rng.normal(size=n) + 0.8 * y
    return (np.round(c * levels) / levels if levels else c), y


def naive_value(c, y, w, threshold, criterion, beta, rate):
    """The criterion at one threshold, counted one pair at a time."""
    tp = fp = fn = tn = 0.0
    for value, sign, weight in zip(c, y, w, strict=True):
        if value >= threshold and sign > 0:
            tp += weight
        elif value >= threshold:
            fp += weight
        elif sign > 0:
            fn += weight
        else:
            tn += weight
    if criterion == "accuracy":
        return (tp + tn) / (tp + fp + fn + tn)
    if criterion == "balanced_accuracy":
        return (tp / (tp + fn) + tn / (tn + fp)) / 2
    if criterion == "f_beta":
        return (1 + beta**2) * tp / ((1 + beta**2) * tp + beta**2 * fn + fp)
    if criterion == "far":
        return tp / (tp + fn) if fp / (fp + tn) <= rate else -1.0
    return tn / (tn + fp) if fn / (fn + tp) <= rate else -1.0


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("levels", [None, 2])
@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("seed", range(4))
def test_no_other_threshold_is_better(seed, criterion, levels, weighted):
    c, y = draw(seed, levels=levels)
    # Eighths add up without rounding, so that the two ways of counting agree exactly.
    w = np.random.default_rng(seed).integers(1, 16, c.size) / 8 if weighted else np.ones(c.size)
    beta, rate = 0.7, 0.1
    threshold = choose_threshold(
        c, y, criterion, beta=beta, rate=rate, sample_weight=w if weighted else None
    )
    reached = naive_value(c, y, w, threshold, criterion, beta, rate)
    every = np.concatenate([c, np.nextafter(c, np.inf)])
    best = max(naive_value(c, y, w, t, criterion, beta, rate) for t in every)
    assert reached >= 0
    np.testing.assert_allclose(reached, best, rtol=1e-12)


@pytest.mark.parametrize("rate", [0.0, 0.01, 0.05, 0.3, 1.0])
@pytest.mark.parametrize("seed", range(3))
def test_promised_rates_hold(seed, rate):
    c, y = draw(seed, n=200)
    far = np.mean(c[y < 0] >= choose_threshold(c, y, "far", rate=rate))
    frr = np.mean(c[y > 0] < choose_threshold(c, y, "frr", rate=rate))
    assert far <= rate
    assert frr <= rate


def test_far_is_not_more_careful_than_needed():
    y = np.r_[np.ones(5, int), -np.ones(100, int)]
    c = np.r_[[-0.5, -0.4, -0.3, -0.2, -0.1], -np.arange(100.0)]
    threshold = choose_threshold(c, y, "far", rate=0.01)
    assert np.sum(c[y < 0] >= threshold) == 1
    assert np.all(c[y > 0] >= threshold)


def test_separable_pairs_are_cut_in_the_middle():
    c, y = [-1.0, -2.0, -5.0, -7.0], [1, 1, -1, -1]
    for criterion in CRITERIA:
        assert choose_threshold(c, y, criterion) == -3.5


def test_equally_good_thresholds_give_the_highest():
    assert choose_threshold([3.0, 2.0, 1.0], [1, -1, 1], "accuracy") == 2.5


def test_adjacent_floats_are_told_apart():
    low = 1.0
    high = np.nextafter(low, 2.0)
    threshold = choose_threshold([high, low], [1, -1])
    assert low < threshold <= high


def test_accepting_none_or_all_is_possible_even_for_equal_values():
    for value in (0.0, 5.0, -1e300, 1e-300):
        curve = roc([value, value], [1, -1])
        np.testing.assert_array_equal(curve.tpr, [0.0, 1.0])
        assert curve.thresholds[0] > value > curve.thresholds[-1]


@pytest.mark.parametrize("levels", [None, 2])
@pytest.mark.parametrize("weighted", [False, True])
def test_roc_agrees_with_scikit_learn(levels, weighted):
    c, y = draw(7, levels=levels)
    w = np.random.default_rng(1).random(c.size) if weighted else None
    curve = roc(c, y, w)
    fpr, tpr, _ = roc_curve(y, c, sample_weight=w, drop_intermediate=False)
    np.testing.assert_allclose(curve.fpr, fpr, rtol=1e-12)
    np.testing.assert_allclose(curve.tpr, tpr, rtol=1e-12)
    np.testing.assert_allclose(curve.auc, roc_auc_score(y, c, sample_weight=w), rtol=1e-12)
    for t, expected in zip(curve.thresholds, tpr, strict=True):
        accepted = np.average(c[y > 0] >= t, weights=None if w is None else w[y > 0])
        np.testing.assert_allclose(accepted, expected, rtol=1e-12)


def test_f_beta_agrees_with_scikit_learn():
    c, y = draw(3)
    threshold = choose_threshold(c, y, "f_beta", beta=2.0)
    reached = fbeta_score(y, np.where(c >= threshold, 1, -1), beta=2.0)
    others = [fbeta_score(y, np.where(c >= t, 1, -1), beta=2.0) for t in c]
    np.testing.assert_allclose(reached, max(others), rtol=1e-12)


def test_errors_are_counted():
    c, y = np.array([3.0, 2.0, 1.0, 0.0]), np.array([-1, 1, 1, -1])
    assert verification_error(c, y, 1.0) == 0.25
    assert verification_error(c, y, 1.5) == 0.5
    assert verification_error(c, y, 1.0, [3, 1, 1, 1]) == 0.5
    assert balanced_error(c, y, 1.5) == 0.5
    assert balanced_error(c, y, 1.0, [3, 1, 1, 1]) == 0.375


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (([1.0, 2.0], [1, 1]), "no dissimilar"),
        (([1.0, 2.0], [-1, -1]), "no similar"),
        (([1.0, np.nan], [1, -1]), "closeness must be finite"),
        (([1.0, 2.0], [1, 0]), r"\+1 \(similar\) or -1"),
        (([1.0, 2.0, 3.0], [1, -1]), r"Got shapes \(3,\) and \(2,\)"),
        (([], []), "not empty"),
        (([1.0, 2.0], [1, -1], [1.0]), "2 finite, non-negative weights"),
        (([1.0, 2.0], [1, -1], [1.0, -1.0]), "2 finite, non-negative weights"),
        (([1.0, 2.0], [1, -1], [0.0, 0.0]), "must not be zero for every pair"),
        (([1.0, 2.0], [1, -1], [1.0, 0.0]), "no dissimilar"),
    ],
)
def test_bad_input_is_named(arguments, text):
    with pytest.raises(ValueError, match=text):
        roc(*arguments)


@pytest.mark.parametrize(
    ("keywords", "text"),
    [
        ({"criterion": "best"}, "criterion must be 'accuracy'.*Got 'best'"),
        ({"criterion": "far", "rate": 1.5}, r"rate must be in \[0, 1\]. Got 1.5"),
        ({"criterion": "f_beta", "beta": 0.0}, "beta must be a positive number. Got 0.0"),
    ],
)
def test_bad_parameters_are_named(keywords, text):
    with pytest.raises(ValueError, match=text):
        choose_threshold([1.0, 2.0], [1, -1], **keywords)


def naive_rates(closeness, y, weight):
    """(false-match, false-non-match) rates when pairs above each threshold are accepted."""
    closeness, y, weight = map(np.asarray, (closeness, y, weight))
    found = []
    for threshold in [np.inf, *sorted(set(closeness.tolist()), reverse=True)]:
        accepted = closeness >= threshold
        false_match = weight[accepted & (y < 0)].sum() / weight[y < 0].sum()
        found.append((false_match, weight[~accepted & (y > 0)].sum() / weight[y > 0].sum()))
    return found


@pytest.mark.parametrize("levels", [0, 2, 5])
@pytest.mark.parametrize("weighted", [False, True])
def test_rates_that_are_equal_and_rates_at_a_rate(levels, weighted, seed):
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(60) < 0.4, 1, -1)
    closeness = rng.normal(size=60) + y
    if levels:
        closeness = np.round(closeness * levels) / levels
    weight = rng.random(60) + 0.1 if weighted else np.ones(60)
    given = weight if weighted else None
    rates = naive_rates(closeness, y, weight)
    for fmr in (0.0, 0.05, 0.3, 1.0):
        best = min(missed for matched, missed in rates if matched <= fmr)
        assert fnmr_at_fmr(closeness, y, fmr, given) == pytest.approx(best, abs=1e-12)
    matched, missed = np.array(rates).T
    # Along the curve, finely.
    steps = np.linspace(0, len(rates) - 1, 200_001)
    places = np.arange(len(rates))
    at = np.argmin(np.abs(np.interp(steps, places, matched) - np.interp(steps, places, missed)))
    expected = np.interp(steps, places, matched)[at]
    assert equal_error_rate(closeness, y, given) == pytest.approx(expected, abs=1e-3)


def test_error_rates_at_the_ends():
    y = [1, 1, -1, -1]
    assert equal_error_rate([4.0, 3.0, 2.0, 1.0], y) == 0.0
    assert equal_error_rate([1.0, 2.0, 3.0, 4.0], y) == 1.0
    assert equal_error_rate([5.0, 5.0, 5.0, 5.0], y) == 0.5
    assert fnmr_at_fmr([5.0, 5.0, 5.0, 5.0], y, 0.4) == 1.0
    for fmr in (-0.1, 1.5, np.nan):
        with pytest.raises(InvalidInputError, match="fmr must be a rate from 0 to 1"):
            fnmr_at_fmr([1.0, 2.0, 3.0, 4.0], y, fmr)
    with pytest.raises(InvalidInputError):
        equal_error_rate([1.0, 2.0], [1, 1])
