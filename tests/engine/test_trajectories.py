"""The fast paths take the same steps as the plain loop, round by round."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from samewise import KernelPOLA, Mahalanobis, Pairs
from samewise.engine.directions import pair_difference
from tests.last_hypothesis import POLA, PassiveAggressive
from tests.pairwise import SEEDS, pairwise
from tests.reference import pairs as reference

RULES = ("pa", "pa1", "pa2", "pals")
POLICIES = ("each", "end", 7)
PATHS = ("auto", "compiled", "blocked", "plain")


def make_pairs(d: int, n: int, seed: int, *, sparse: bool = False, dtype=np.float64) -> Pairs:
    rng = np.random.RandomState(seed)
    labels = rng.randint(0, 4, 120)
    X = rng.randn(120, d) * 1.5 / np.sqrt(d)
    X[:, :3] += 1.5 * np.eye(4)[labels][:, :3]
    if sparse:
        X[rng.rand(*X.shape) > 0.15] = 0.0
    X = X.astype(dtype)
    pairs = Pairs.from_labels(X, labels, n_pairs=n, random_state=seed)
    return Pairs(sp.csr_array(X), pairs.left, pairs.right, pairs.y) if sparse else pairs


def dense_rows(pairs: Pairs) -> np.ndarray:
    return pairs.X.toarray() if sp.issparse(pairs.X) else pairs.X


def assert_same(learner, run, *, tol: float = 1e-10) -> None:
    M, b = reference.average(run, "last")
    assert learner.n_updates_ == len(run.rounds)
    assert learner.n_mistakes_ == run.mistakes
    scale = max(np.abs(M).max(), 1e-300)
    np.testing.assert_allclose(learner.metric_.matrix, M, rtol=0, atol=tol * scale)
    assert learner.threshold_ == pytest.approx(b, abs=tol)
    assert learner.loss_ == pytest.approx(sum(run.losses), rel=tol)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("psd", POLICIES)
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_every_rule_policy_and_path_equals_the_loop(rule, psd, path, sparse):
    pairs = make_pairs(19, 400, seed=1, sparse=sparse)
    run = reference.passive_aggressive(
        dense_rows(pairs), pairs.left, pairs.right, pairs.y, rule, 0.05, psd
    )
    learner = PassiveAggressive(rule, 0.05, psd=psd, path=path).fit(pairs)
    assert_same(learner, run)
    assert learner.history_["updates"].tolist() == [
        np.searchsorted(run.rounds, i, side="right") for i in range(len(pairs))
    ]


# Thinned from 63 cases to 21.
@pairwise(seed=SEEDS, psd=POLICIES, d=[1, 2, 3, 5, 33, 64, 150])
def test_every_dimension(d, psd, seed):
    pairs = make_pairs(max(d, 3), 250, seed)
    pairs = Pairs(pairs.X[:, :d].copy(), pairs.left, pairs.right, pairs.y)
    run = reference.passive_aggressive(pairs.X, pairs.left, pairs.right, pairs.y, "pa1", 0.3, psd)
    assert_same(PassiveAggressive("pa1", 0.3, psd=psd).fit(pairs), run)


def test_large_dimension_with_wide_blocks():
    pairs = make_pairs(520, 600, seed=0)
    run = reference.passive_aggressive(pairs.X, pairs.left, pairs.right, pairs.y, "pa1", 0.3, "end")
    assert_same(PassiveAggressive("pa1", 0.3, psd="end").fit(pairs), run)


@pytest.mark.parametrize("psd", POLICIES)
def test_duplicated_pairs_sit_on_the_border(psd):
    """An uncapped step leaves loss 0 exactly; a repeated pair must not update by rounding."""
    pairs = make_pairs(12, 150, seed=3)
    twice = pairs[np.repeat(np.arange(150), 2)]
    run = reference.passive_aggressive(twice.X, twice.left, twice.right, twice.y, "pa", 0.0, psd)
    assert_same(PassiveAggressive("pa", psd=psd).fit(twice), run)


@pytest.mark.parametrize("psd", POLICIES)
def test_pairs_of_a_point_with_itself(psd):
    """v = 0 moves only b."""
    pairs = make_pairs(6, 60, seed=0)
    left = np.where(np.arange(60) % 3 == 0, pairs.right, pairs.left)
    pairs = Pairs(pairs.X, left, pairs.right, pairs.y)
    run = reference.passive_aggressive(pairs.X, left, pairs.right, pairs.y, "pa2", 0.5, psd)
    assert_same(PassiveAggressive("pa2", 0.5, psd=psd).fit(pairs), run)


# Thinned from 18 cases to 9.
@pairwise(seed=SEEDS, d=[8, 40], C=[1e-3, 0.03, 1.0])
def test_from_the_identity_in_and_out_of_the_calm_regime(C, d, seed):
    pairs = make_pairs(d, 500, seed)
    run = reference.passive_aggressive(
        pairs.X, pairs.left, pairs.right, pairs.y, "pa1", C, "each", M=np.eye(d)
    )
    assert_same(PassiveAggressive("pa1", C, init="identity").fit(pairs), run)


def test_init_from_a_form_or_an_array():
    pairs = make_pairs(5, 100, seed=0)
    A = np.random.RandomState(0).randn(5, 5)
    run = reference.passive_aggressive(
        pairs.X, pairs.left, pairs.right, pairs.y, "pa1", 0.1, "each", M=A.T @ A
    )
    for init in (A.T @ A, Mahalanobis(A.T @ A), Mahalanobis.from_components(A)):
        assert_same(PassiveAggressive("pa1", 0.1, init=init).fit(pairs), run)


@pytest.mark.parametrize("rule", ["pa1", "pa2", "pals"])
@pytest.mark.parametrize("path", PATHS)
def test_weights_scale_the_cost_of_slack(rule, path):
    pairs = make_pairs(7, 200, seed=0)
    weights = np.random.RandomState(1).choice([0.0, 0.5, 1.0, 3.0], 200)
    weighted = Pairs(pairs.X, pairs.left, pairs.right, pairs.y, sample_weight=weights)
    run = reference.passive_aggressive(
        pairs.X, pairs.left, pairs.right, pairs.y, rule, 0.02, "end", weights=weights
    )
    assert_same(PassiveAggressive(rule, 0.02, psd="end", path=path).fit(weighted), run)


@pytest.mark.parametrize("rule", RULES)
def test_tolerance_leaves_small_steps_out(rule):
    pairs = make_pairs(9, 300, seed=2)
    args = (pairs.X, pairs.left, pairs.right, pairs.y, rule, 0.05, "end")
    run = reference.passive_aggressive(*args, tolerance=0.01)
    assert 0 < len(run.rounds) < len(reference.passive_aggressive(*args).rounds)
    assert_same(PassiveAggressive(rule, 0.05, psd="end", tolerance=0.01).fit(pairs), run)


@pytest.mark.parametrize("gamma", [0.0, 0.7])
@pytest.mark.parametrize("sparse", [False, True])
def test_pola_equals_its_loop(gamma, sparse, seed):
    pairs = make_pairs(23, 400, seed, sparse=sparse)
    run = reference.passive_aggressive(
        dense_rows(pairs), pairs.left, pairs.right, pairs.y, "pa", 0, "each", b=1.0, gamma=gamma
    )
    assert_same(POLA(relaxation=gamma).fit(pairs), run)


def test_pola_is_pa2_with_gamma_for_one_over_two_c():
    pairs = make_pairs(10, 300, seed=0)
    pola = POLA(relaxation=0.25).fit(pairs)
    run = reference.passive_aggressive(
        pairs.X, pairs.left, pairs.right, pairs.y, "pa2", 2.0, "each", b=1.0
    )
    assert_same(pola, run)


@pytest.mark.parametrize("dtype", [np.float32])
@pytest.mark.parametrize("psd", POLICIES)
def test_float32_follows_float64(dtype, psd):
    """The state of "end" is float32, so agreement is to its rounding."""
    pairs = make_pairs(150, 500, seed=0)
    single = Pairs(pairs.X.astype(dtype), pairs.left, pairs.right, pairs.y)
    exact = PassiveAggressive("pa1", 0.05, psd=psd).fit(pairs)
    learner = PassiveAggressive("pa1", 0.05, psd=psd).fit(single)
    assert learner.metric_.matrix.dtype == dtype
    assert learner.n_updates_ == exact.n_updates_
    scale = np.abs(exact.metric_.matrix).max()
    np.testing.assert_allclose(
        learner.metric_.matrix, exact.metric_.matrix, rtol=0, atol=1e-4 * scale
    )


@pytest.mark.parametrize(
    "average",
    [
        "uniform",
        "survival",
        ("suffix", 1),
        ("suffix", 13),
        ("suffix", 9999),
        ("cutoff", 2),
        ("decay", 20),
    ],
)
@pytest.mark.parametrize("psd", POLICIES)
@pytest.mark.parametrize("path", ["auto", "blocked", "plain"])
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_averages_equal_the_mean_over_kept_hypotheses(average, psd, path, sparse):
    pairs = make_pairs(11, 260, seed=4, sparse=sparse)
    run = reference.passive_aggressive(
        dense_rows(pairs), pairs.left, pairs.right, pairs.y, "pa1", 0.1, psd
    )
    M, b = reference.average(run, *(average if isinstance(average, tuple) else (average,)))
    learner = PassiveAggressive("pa1", 0.1, psd=psd, path=path, average=average)
    for start, stop in ((0, 3), (3, 100), (100, 260)):
        learner.partial_fit(pairs[start:stop])
    np.testing.assert_allclose(learner.metric_.matrix, M, rtol=0, atol=1e-10 * np.abs(M).max())
    assert learner.threshold_ == pytest.approx(b, abs=1e-10)


def test_survival_average_is_the_mean_over_rounds():
    pairs = make_pairs(5, 100, seed=0)
    learner = PassiveAggressive("pa1", 0.1, psd="each", average="survival")
    met = []
    probe = PassiveAggressive("pa1", 0.1, psd="each").partial_fit(pairs[:1])
    met.append(np.zeros((5, 5)))
    for i in range(1, 100):
        met.append(probe.metric_.matrix)
        probe.partial_fit(pairs[i : i + 1])
    np.testing.assert_allclose(
        learner.fit(pairs).metric_.matrix, np.mean(met, axis=0), rtol=0, atol=1e-10
    )


@pytest.mark.parametrize(("d", "n"), [(4, 300), (30, 300), (90, 200)])
def test_kernel_pola_with_a_linear_kernel_is_pola(d, n, seed):
    pairs = make_pairs(d, n, seed)
    pola = POLA(relaxation=0.3).fit(pairs)
    for learner, given in (
        (KernelPOLA("linear", relaxation=0.3), pairs),
        (
            KernelPOLA("precomputed", relaxation=0.3),
            Pairs(pairs.X @ pairs.X.T, pairs.left, pairs.right, pairs.y),
        ),
        (
            KernelPOLA("linear", relaxation=0.3),
            Pairs(sp.csr_array(pairs.X), pairs.left, pairs.right, pairs.y),
        ),
    ):
        learner.fit(given)
        assert learner.n_updates_ == pola.n_updates_
        assert learner._online.mover.cone.recent, "no projection was needed: the test shows nothing"
        np.testing.assert_allclose(
            learner.pair_distance(given), pola.pair_distance(pairs), rtol=0, atol=1e-9
        )
        assert learner.threshold_ == pytest.approx(pola.threshold_, abs=1e-10)


def test_kernel_pola_remembers_only_what_moved_it():
    pairs = make_pairs(6, 300, seed=0)
    learner = KernelPOLA("linear").fit(pairs)
    assert len(learner._span) == 6


def test_polynomial_kernel_is_pola_on_its_explicit_features():
    pairs = make_pairs(4, 250, seed=0)
    rows, columns = np.triu_indices(4)
    explicit = pairs.X[:, rows] * pairs.X[:, columns] * np.where(rows == columns, 1, np.sqrt(2))
    pola = POLA().fit(Pairs(explicit, pairs.left, pairs.right, pairs.y))
    learner = KernelPOLA("poly", {"degree": 2, "gamma": 1.0, "coef0": 0.0}).fit(pairs)
    assert learner.n_updates_ == pola.n_updates_
    np.testing.assert_allclose(
        learner.pair_distance(pairs),
        pola.pair_distance(Pairs(explicit, pairs.left, pairs.right, pairs.y)),
        rtol=0,
        atol=1e-9,
    )


def test_pair_differences_are_gathered_for_every_memory_layout():
    pairs = make_pairs(8, 50, seed=0)
    expected = pairs.X[pairs.left] - pairs.X[pairs.right]
    for X in (pairs.X, np.asfortranarray(pairs.X), np.repeat(pairs.X, 2, axis=1)[:, ::2]):
        given = Pairs(X, pairs.left, pairs.right, pairs.y)
        np.testing.assert_array_equal(pair_difference(given).right, expected)
