import numpy as np
import pytest
from scipy import stats

from samewise.exceptions import InvalidInputError
from samewise.scores import friedman, holm, holm_pairwise, s_test, verdict


@pytest.mark.parametrize("decimals", [1, 8])
def test_friedman_agrees_with_scipy(decimals):
    table = np.random.default_rng(0).random((12, 5)).round(decimals)
    result = friedman(table)
    statistic, p_value = stats.friedmanchisquare(*table.T)
    np.testing.assert_allclose(result.statistic, statistic, rtol=1e-12)
    np.testing.assert_allclose(result.p_value, p_value, rtol=1e-12)
    np.testing.assert_allclose(result.mean_ranks.sum(), 5 * 6 / 2)


def test_the_lowest_gets_rank_one_unless_higher_is_better():
    table = [[0.1, 0.2, 0.2], [0.3, 0.5, 0.4]]
    np.testing.assert_array_equal(friedman(table).mean_ranks, [1, 2.75, 2.25])
    np.testing.assert_array_equal(
        friedman(table, higher_is_better=True).mean_ranks, [3, 1.25, 1.75]
    )


def test_methods_that_never_differ_are_alike():
    result = friedman(np.ones((4, 3)))
    assert (result.statistic, result.p_value) == (0.0, 1.0)


def test_holm_by_hand():
    # Sorted .005 .01 .03 .04 times 4 3 2 1 = .02 .03 .06 .04, and the last is lifted to .06.
    np.testing.assert_allclose(holm([0.01, 0.04, 0.03, 0.005]), [0.03, 0.06, 0.06, 0.02])
    np.testing.assert_array_equal(holm([0.9, 0.8]), [1.0, 1.0])
    assert holm([]).shape == (0,)


def test_holm_pairwise_by_hand():
    # k = 4 methods, N = 15 data sets: standard error sqrt(4·5/90) = 0.4714.
    ranks = [1.2, 2.0, 3.0, 3.8]
    p = {
        (i, j): 2 * stats.norm.sf(abs(ranks[i] - ranks[j]) / np.sqrt(20 / 90))
        for i in range(4)
        for j in range(i + 1, 4)
    }
    adjusted, worst = holm_pairwise(ranks, 15), 0.0
    for step, pair in enumerate(sorted(p, key=p.get)):
        worst = max(worst, min(1.0, (6 - step) * p[pair]))
        np.testing.assert_allclose(adjusted[pair], worst, rtol=1e-12)
    np.testing.assert_array_equal(adjusted, adjusted.T)
    np.testing.assert_array_equal(np.diag(adjusted), np.ones(4))


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: friedman(np.ones((4, 2))), r"3 columns \(methods\). Got shape \(4, 2\)"),
        (lambda: friedman(np.ones((1, 3))), "at least 2 rows"),
        (lambda: friedman([[1, 2, np.nan], [1, 2, 3]]), "table must be finite"),
        (lambda: holm([0.5, 1.2]), r"values in \[0, 1\]"),
        (lambda: holm([0.5, np.nan]), r"values in \[0, 1\]"),
        (lambda: holm_pairwise([1.0], 5), "at least 2"),
        (lambda: holm_pairwise([1.0, 2.0], 0), "n_datasets must be at least 1. Got 0"),
    ],
)
def test_bad_input_is_named(call, text):
    with pytest.raises(ValueError, match=text):
        call()


# The s-test


def decisions(better, worse, both=3, neither=2):
    a = [1] * better + [0] * worse + [1] * both + [0] * neither
    b = [0] * better + [1] * worse + [1] * both + [0] * neither
    return np.array(a), np.array(b)


MANY = [(10, 3), (7, 6), (0, 13), (300, 240), (5000, 5200)]


@pytest.mark.parametrize(
    "better, worse", [*((k, m - k) for m in range(14) for k in range(m + 1)), *MANY]
)
def test_the_binomial_distribution_on_both_sides(better, worse):
    result = s_test(*decisions(better, worse))
    m = better + worse
    expected = stats.binomtest(better, m).pvalue if m else 1.0
    assert result.p_value == pytest.approx(expected, rel=1e-10)
    assert (result.n_better, result.n_worse) == (better, worse)


@pytest.mark.parametrize("better", range(13))
def test_the_thesis_counts_few_differences_on_one_side(better):
    for worse in range(13 - better):
        result = s_test(*decisions(better, worse), method="thesis")
        m = better + worse
        side = "greater" if better >= worse else "less"
        expected = stats.binomtest(better, m, alternative=side).pvalue if m else 1.0
        assert result.p_value == pytest.approx(expected, rel=1e-12)
        assert (result.n_better, result.n_worse) == (better, worse)


@pytest.mark.parametrize("better, worse", MANY)
def test_the_thesis_takes_the_normal_distribution_for_many(better, worse):
    result = s_test(*decisions(better, worse), method="thesis")
    m = better + worse
    z = abs(better - m / 2) / (np.sqrt(m) / 2)
    assert result.p_value == pytest.approx(stats.norm.sf(z), rel=1e-12)
    # Half a decision, which the thesis does not correct for, is all that is between the two.
    side = "greater" if better >= worse else "less"
    exact = stats.binomtest(better, m, alternative=side).pvalue
    assert abs(result.p_value - exact) <= 1.05 * stats.binom.pmf(better, m, 0.5)


@pytest.mark.parametrize(
    "better, worse, mark",
    [
        *[(6, 0, ">"), (0, 6, "<"), (8, 0, "≫"), (0, 8, "≪"), (5, 0, "="), (0, 0, "=")],
        *[(100, 50, "≫"), (50, 100, "≪"), (90, 64, ">"), (64, 90, "<"), (90, 68, "=")],
    ],
)
def test_marks(better, worse, mark):
    assert s_test(*decisions(better, worse)).mark == mark


@pytest.mark.parametrize(
    "better, worse, mark",
    [
        *[(5, 0, ">"), (0, 5, "<"), (7, 0, "≫"), (0, 7, "≪"), (4, 0, "="), (0, 0, "=")],
        *[(100, 50, "≫"), (50, 100, "≪"), (90, 68, ">"), (68, 90, "<"), (80, 78, "=")],
    ],
)
def test_marks_of_the_thesis(better, worse, mark):
    assert s_test(*decisions(better, worse), method="thesis").mark == mark


@pytest.mark.parametrize(
    "mark, p_value, said",
    [
        ("≫", 0.0009, "better, p < 0.001"),
        (">", 0.001, "better, p = 0.001"),
        ("=", 0.0625, "no difference shown, p = 0.062"),
        ("<", 0.0312, "worse, p = 0.031"),
        ("≪", 0.01, "worse, p = 0.010"),
    ],
)
def test_verdicts(mark, p_value, said):
    assert verdict(mark, p_value) == said


def test_decisions_of_any_shape():
    a, b = decisions(7, 0)
    grid = s_test(a.reshape(4, 3).astype(bool), b.reshape(4, 3).astype(float))
    assert grid == s_test(a, b)


def test_what_are_not_decisions():
    with pytest.raises(InvalidInputError, match="same decisions"):
        s_test([1, 0], [1])
    for wrong in ([0.5, 1], ["yes", "no"], [2, 1]):
        with pytest.raises(InvalidInputError, match="correct_b must hold booleans"):
            s_test([1, 0], wrong)
    with pytest.raises(InvalidInputError, match=r"method must be 'exact' or 'thesis'\. Got 'z'"):
        s_test([1, 0], [1, 1], method="z")
