"""What the AROMA paper states about its two learners, and how far it goes.

A bound that holds for every V holds for the V it is hardest for. Of both theorems that V is known:
hinges are at least 1 − qᵀVp, with equality for a small V, so that with G = Σ q_i p_iᵀ the theorems
say ⟨V, G⟩ ≤ ‖V‖ · √(…) in a norm of V that the covariances give; its dual norm is attained at
G / (1 + S/r) entry by entry (Theorem 1) and at Λ_N G Ω_N (Theorem 2).

As printed the theorems are not true of every sequence; the last tests have the exceptions.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np
import pytest
import scipy.sparse as sp

from samewise import DiagonalAROMA, FactoredAROMA, Triplets
from tests.reference.triplets import diagonal_aroma, factored_aroma

RS = (0.01, 0.1, 1.0, 10.0)
MAKE = {
    "diagonal": partial(DiagonalAROMA, init="zero"),
    "factored": partial(FactoredAROMA, init="zero"),
    "mistake": partial(FactoredAROMA, update="mistake", init="zero"),
}
LOOP = {
    "diagonal": diagonal_aroma,
    "factored": factored_aroma,
    "mistake": partial(factored_aroma, update="mistake"),
}


# Sequences of (q, p), p = p⁺ − p⁻


def as_triplets(q, p) -> Triplets:
    """The positives are p, the negative is zero."""
    rows = np.arange(len(q))
    items = np.vstack([p, np.zeros_like(p[:1])])
    return Triplets(q, rows, rows, np.full(len(q), len(q)), items=items)


def loop(kind, q, p, r):
    t = as_triplets(q, p)
    return LOOP[kind](t.X, t.items, t.anchor, t.positive, t.negative, r)


def scores(q, W, p):
    return np.einsum("ik,kl,il->i", q, W, p)


def labeled(rng, n_rounds, m, n, noise, spread=0.0):
    """Directions that a hidden V ranks right, but for the noise; lengths vary by the spread."""
    q, p, V = rng.randn(n_rounds, m), rng.randn(n_rounds, n), rng.randn(m, n)
    q *= np.exp(spread * rng.randn(n_rounds, 1))
    p *= np.exp(spread * rng.randn(n_rounds, 1))
    p *= np.where(scores(q, V, p) < 0, -1, 1)[:, None]
    return q, p * np.where(rng.rand(n_rounds) < noise, -1, 1)[:, None], V


def adversary(choose, kind, r, m, n, n_rounds):
    """A sequence whose every round is chosen knowing the model."""
    q, p = np.empty((0, m)), np.empty((0, n))
    for _ in range(n_rounds):
        W = loop(kind, q, p, r).M if len(q) else np.zeros((m, n))
        one = choose(W)
        q, p = np.vstack([q, one[0]]), np.vstack([p, one[1]])
    return q, p


def most_wrong(q, p, W):
    """Of a pool of triplets the one that the model is most wrong about."""
    i = scores(q, W, p).argmin()
    return q[i], p[i]


def contradiction(rng, W):
    """Of all unit vectors those that the model is most wrong about, with any length."""
    if not W.any():
        return rng.randn(W.shape[0]), rng.randn(W.shape[1])
    left, _, right = np.linalg.svd(W)
    return left[:, 0], -right[0] * np.exp(rng.randn())


@lru_cache
def sequences(kind, r):
    """Random and adversarial, with and without noise: a list of (q, p, V)."""
    made = []
    for seed in range(16):
        rng = np.random.RandomState(seed)
        m, n = rng.randint(1, 8, 2)
        made.append(labeled(rng, 120, m, n, noise=(0.0, 0.2)[seed % 2], spread=seed % 3 / 2))
    for seed in range(4):
        rng = np.random.RandomState(seed)
        m, n = rng.randint(2, 7, 2)
        q, p, V = labeled(rng, 300, m, n, noise=(0.0, 0.1)[seed % 2], spread=seed % 3 / 2)
        made.append((*adversary(partial(most_wrong, q, p), kind, r, m, n, 30), V))
        made.append((*adversary(partial(contradiction, rng), kind, r, m, n, 30), V))
    return made


# What comes of them, by the plain loop and by the learner


@dataclass
class Played:
    """The directions of the rounds that updated, the mistakes, and the state at the end."""

    q: np.ndarray
    p: np.ndarray
    mistakes: int
    W: np.ndarray
    covariances: list[np.ndarray]


def by_loop(kind, q, p, r) -> Played:
    run = loop(kind, q, p, r)
    end = [run.Sigma] if kind == "diagonal" else [run.Lambda, run.Omega]
    return Played(q[run.rounds], p[run.rounds], run.mistakes, run.M, end)


def covariances(learner):
    if isinstance(learner, DiagonalAROMA):
        return [learner.variance_]
    return [learner.query_covariance_, learner.item_covariance_]


def by_learner(kind, q, p, r) -> Played:
    learner = MAKE[kind](r, 1.0).fit(as_triplets(q, p))
    played = by_loop(kind, q, p, r)
    assert learner.n_updates_ == len(played.q)
    return Played(
        played.q, played.p, learner.n_mistakes_, learner.metric_.matrix, covariances(learner)
    )


@pytest.fixture(params=[by_loop, by_learner])
def play(request):
    return request.param


def comparators(q, p, V, W, worst):
    """Several V, all kinds of scale among them; the hardest one so small that no hinge is idle."""
    yield np.zeros_like(W)
    size = np.abs(scores(q, V, p))
    for scale in (1 / size.min(), 1 / np.median(size), 0.1 / size.max()):
        yield V * scale
    yield from (W, 3 * W, 0.1 * W)
    yield np.random.RandomState(len(q)).randn(*W.shape)
    yield worst / max(np.abs(scores(q, worst, p)).max(), 1e-300)


# Theorem 1


def theorem_1(played: Played, r: float, V, per_update: float) -> float:
    """The bound on mistakes; the paper prints a per_update of 2."""
    q, p = played.q, played.p
    n_updates = len(q) - played.mistakes
    S = (q**2).T @ p**2
    hinge = np.maximum(0, 1 - scores(q, V, p)).sum()
    size = np.sqrt(np.sum(V**2 * (1 + S / r)))
    return hinge - n_updates + size * np.sqrt(r * np.log1p(S / r).sum() + per_update * n_updates)


def hardest_1(q, p, r):
    return (q.T @ p) / (1 + (q**2).T @ p**2 / r)


@pytest.mark.parametrize("r", RS)
def test_theorem_1(play, r):
    """As printed up to r = 2. Above, 2|U| is too small, and r|U| is what AROW's theorem has."""
    for q, p, V in sequences("diagonal", r):
        played = play("diagonal", q, p, r)
        worst = hardest_1(played.q, played.p, r)
        for U in comparators(played.q, played.p, V, played.W, worst):
            bound = theorem_1(played, r, U, per_update=2.0 if r <= 2 else r)
            assert played.mistakes <= bound * (1 + 1e-9) + 1e-9


@pytest.mark.parametrize("r", RS)
def test_theorem_1_is_proved_where_triplets_touch_one_entry(play, r):
    """There d-AROMA is AROW, entry by entry, and r|U| holds whatever the sequence.

    With D = 1/Σ and θ = D W an update is θ += g/r, D += g²/r, so that θ²/D grows by
    (2y − y² + s/r)/(r + s) ≤ (s/(r + s) + [y > 0]) / r, where y < 1 is the score.
    """
    for seed in range(5):
        rng = np.random.RandomState(seed)
        V = rng.randn(2, 3)
        pool = [rng.randint(0, size, 60) for size in V.shape]
        q, p = (np.eye(len(of))[rows] for of, rows in zip((V, V.T), pool, strict=True))
        p *= np.exp(rng.randn(60, 1)) * np.where(scores(q, V, p) < 0, -1, 1)[:, None]
        p[rng.rand(60) < 0.1] *= -1
        for Q, P in ((q, p), adversary(partial(most_wrong, q, p), "diagonal", r, 2, 3, 40)):
            played = play("diagonal", Q, P, r)
            worst = hardest_1(played.q, played.p, r)
            for U in comparators(played.q, played.p, V, played.W, worst):
                bound = theorem_1(played, r, U, per_update=r)
                assert played.mistakes <= bound * (1 + 1e-9) + 1e-9


# Theorem 2 and Lemma 3


def logarithms(Lambda, Omega) -> tuple[float, float]:
    """m log det Ω⁻¹ and n log det Λ⁻¹."""
    m, n = len(Lambda), len(Omega)
    return -m * np.linalg.slogdet(Omega)[1], -n * np.linalg.slogdet(Lambda)[1]


def size_2(V, Lambda, Omega) -> float:
    """√Tr(V Ω⁻¹ Vᵀ Λ⁻¹)."""
    return np.sqrt(np.sum(V * np.linalg.solve(Lambda, np.linalg.solve(Omega, V.T).T)))


def theorem_2(played: Played, r: float, V) -> float:
    Lambda, Omega = played.covariances
    hinge = np.maximum(0, 1 - scores(played.q, V, played.p)).sum()
    return hinge + 2 * size_2(V, Lambda, Omega) * np.sqrt(r * min(logarithms(Lambda, Omega)))


def hardest_2(played: Played):
    Lambda, Omega = played.covariances
    return Lambda @ (played.q.T @ played.p) @ Omega


@pytest.mark.parametrize("r", RS)
def test_theorem_2(play, r):
    for q, p, V in sequences("mistake", r):
        played = play("mistake", q, p, r)
        assert len(played.q) == played.mistakes
        for U in comparators(played.q, played.p, V, played.W, hardest_2(played)):
            assert played.mistakes <= theorem_2(played, r, U) * (1 + 1e-9) + 1e-9


def states(kind, q, p, r, play):
    """(W, covariances) before each update and after the last, with the rounds that updated."""
    if play is by_loop:
        run = loop(kind, q, p, r)
        made = run.Sigmas if kind == "diagonal" else run.factors
        made = [[Sigma] for Sigma in made] if kind == "diagonal" else made
        return run.rounds, [W for W, _ in run.hypotheses], made
    learner, triplets = MAKE[kind](r, 1.0), as_triplets(q, p)
    rounds, Ws, made = [], [np.zeros((q.shape[1], p.shape[1]))], []
    for i in range(len(q)):
        before = covariances(learner) if i else None
        learner.partial_fit(triplets[i : i + 1])
        if learner.n_updates_ > len(rounds):
            rounds.append(i)
            Ws.append(learner.metric_.matrix)
            made.append(before or starts(kind, q, p))
    return rounds, Ws, [*made, covariances(learner)]


def starts(kind, q, p):
    m, n = q.shape[1], p.shape[1]
    return [np.ones((m, n))] if kind == "diagonal" else [np.eye(m), np.eye(n)]


def any_sequences(kind, r):
    """A few of each sort, and one built to break Theorem 2."""
    made = [(q[:60], p[:60]) for q, p, _ in sequences(kind, r)[:6]]
    return [*made, *(of[:2] for of in sequences(kind, r)[-4:]), uneven(30, 4)]


@pytest.mark.parametrize("r", RS)
@pytest.mark.parametrize("kind", ["factored", "mistake"])
def test_lemma_3(kind, play, r):
    """Σ (qᵀΛ_iq)(pᵀΩ_ip) ≤ r · m log det Ω_N⁻¹ and ≤ r · n log det Λ_N⁻¹, on any sequence."""
    for q, p in any_sequences(kind, r):
        rounds, _, made = states(kind, q, p, r, play)
        total = sum(
            (q[i] @ Lambda @ q[i]) * (p[i] @ Omega @ p[i])
            for i, (Lambda, Omega) in zip(rounds, made[1:], strict=True)
        )
        assert 0 < total <= r * min(logarithms(*made[-1])) * (1 + 1e-9)


@pytest.mark.parametrize("r", RS)
def test_theorem_2_with_the_steps_as_weights(play, r):
    """What holds of any sequence. With τ = ℓ/(r + st), B = Σ τ_i q_i p_iᵀ and W = Λ B Ω,

        Σ τ_i ≤ Σ τ_i [1 − q_iᵀVp_i]₊ + √Tr(VΩ_N⁻¹VᵀΛ_N⁻¹) √(Σ τ_i² (q_iᵀΛ_iq_i)(p_iᵀΩ_ip_i)):

    Tr(BΩBᵀΛ) falls with Λ and Ω, and on a mistake B's own step adds at most the last term, as
    Λ_i q_i and Ω_i p_i are shorter, but no other than Λ_{i−1} q_i and Ω_{i−1} p_i. The unweighted
    Theorem 2 follows only where the steps τ do not differ too much.
    """
    for q, p in any_sequences("mistake", r):
        rounds, Ws, made = states("mistake", q, p, r, play)
        tau, squares = np.empty(len(rounds)), 0.0
        for k, i in enumerate(rounds):
            (L0, O0), (L1, O1) = made[k], made[k + 1]
            tau[k] = (1 - q[i] @ Ws[k] @ p[i]) / (r + (q[i] @ L0 @ q[i]) * (p[i] @ O0 @ p[i]))
            squares += tau[k] ** 2 * (q[i] @ L1 @ q[i]) * (p[i] @ O1 @ p[i])
        q, p = q[rounds], p[rounds]
        V = np.random.RandomState(len(q)).randn(*Ws[0].shape)
        # W itself is the hardest V, because it is Λ B Ω.
        for U in comparators(q, p, V, Ws[-1], Ws[-1]):
            hinge = tau @ np.maximum(0, 1 - scores(q, U, p))
            assert tau.sum() <= (hinge + size_2(U, *made[-1]) * np.sqrt(squares)) * (1 + 1e-9)


# The covariances


@pytest.mark.parametrize("r", RS)
@pytest.mark.parametrize("kind", ["factored", "mistake"])
def test_covariances_stay_psd_and_never_grow(kind, play, r):
    """0 ≺ Λ_i ⪯ Λ_{i−1} ⪯ I, and Ω likewise."""
    for q, p in any_sequences(kind, r):
        _, _, made = states(kind, q, p, r, play)
        for side in (0, 1):
            path = np.array([both[side] for both in made])
            np.testing.assert_array_equal(path, path.swapaxes(1, 2))
            assert np.linalg.eigvalsh(path).min() > 0
            assert np.linalg.eigvalsh(path[:-1] - path[1:]).min() >= -1e-14
            assert np.linalg.eigvalsh(path[0] - path[-1]).max() > 1e-3 * min(1, 1 / r)


@pytest.mark.parametrize("r", RS)
def test_variances_stay_in_their_interval_and_never_grow(play, r):
    """0 < Σ_i ≤ Σ_{i−1} ≤ 1."""
    for q, p in any_sequences("diagonal", r):
        _, _, made = states("diagonal", q, p, r, play)
        path = np.array([Sigma for (Sigma,) in made])
        assert path.min() > 0 and path.max() <= 1
        assert np.all(path[1:] <= path[:-1]) and np.any(path[-1] < path[0])


@pytest.mark.parametrize("path", ["compiled", "blocked", "plain"])
@pytest.mark.parametrize("kind", MAKE)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("length", [1.0, 1e3, 1e5])
def test_long_vectors_and_single_precision(kind, path, dtype, length):
    """Rounding must not turn variances negative: features as they come may be in the thousands."""
    q, p, _ = labeled(np.random.RandomState(0), 600, 10, 10, noise=0.1)
    triplets = as_triplets((length * q).astype(dtype), (length * p).astype(dtype))
    learner = MAKE[kind](1.0, 1.0, path=path).fit(triplets)
    assert np.abs(learner.metric_.matrix).max() < 100 / length**2
    for covariance in covariances(learner):
        assert covariance.max() <= 1
        values = covariance if kind == "diagonal" else np.linalg.eigvalsh(covariance)
        # As handed out, they are rounded once more.
        assert values.min() >= -np.finfo(dtype).eps * values.max()
    assert learner.score_variance(q, p).min() >= 0


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("path", ["compiled", "plain"])
def test_a_variance_never_becomes_zero(path, sparse):
    """Of one entry a long triplet leaves less than rounding can tell from nothing."""
    lengths = 1e5 * (1 + np.random.RandomState(0).rand(2, 40))
    q, p = (np.diag(some) for some in lengths)
    triplets = as_triplets(q, p)
    if sparse:
        members = (triplets.anchor, triplets.positive, triplets.negative)
        triplets = Triplets(sp.csr_array(q), *members, items=sp.csr_array(triplets.items))
    learner = DiagonalAROMA(1.0, 1.0, path=path).fit(triplets)
    assert learner.n_updates_ == 40
    variances = np.diagonal(learner.variance_)
    assert variances.max() < 1e-15
    assert variances.min() > 0


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e3])
def test_a_mistake_is_what_the_mistake_driven_update_learns_from(scale):
    q, p, _ = labeled(np.random.RandomState(0), 500, 5, 5, noise=0.1)
    learner = FactoredAROMA(1.0, 1.0, update="mistake").fit(as_triplets(scale * q, scale * p))
    assert learner.n_mistakes_ == learner.n_updates_


# Where the theorems as printed end


def uneven(n_rounds, d):
    """Along one direction: long vectors one way, short ones the other way."""
    q, p = np.zeros((n_rounds, d)), np.zeros((n_rounds, d))
    q[:, 0], p[::2, 0], p[1::2, 0] = 1.0, 2.4, -0.46
    return q, p


def test_theorem_1_as_printed_fails_for_large_r(play):
    """One and the same triplet again and again: the loss shrinks and never ends."""
    q = p = np.ones((100, 1))
    played = play("diagonal", q, p, 10.0)
    assert (played.mistakes, len(played.q)) == (1, 100)
    V = np.full((1, 1), 0.5)
    assert theorem_1(played, 10.0, V, per_update=2.0) < 0
    assert theorem_1(played, 10.0, V, per_update=10.0) > 1


def test_theorem_1_as_printed_fails_for_dense_vectors(play):
    """One triplet of ten features, twice.

    The theorem counts on Σ⁻¹ growing by G²/r; it grows by G² / (r + s − ΣG²) only, which is less
    where G has more than one entry.
    """
    q = p = np.ones((2, 10))
    played = play("diagonal", q, p, 1.0)
    assert (played.mistakes, len(played.q)) == (1, 2)
    assert theorem_1(played, 1.0, np.full((10, 10), 0.005), per_update=2.0) < 0.92


def test_theorem_2_as_printed_fails_for_uneven_steps(play):
    """Short vectors take long steps τ, so that few of them keep W wrong about many long ones."""
    played = play("mistake", *uneven(80, 100), 1.0)
    V = hardest_2(played)
    V /= np.abs(scores(played.q, V, played.p)).max()
    assert theorem_2(played, 1.0, V) < played.mistakes - 1
