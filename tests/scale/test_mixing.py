"""Streams learned side by side: precisions add, and the step is as long as recent triplets say."""

from __future__ import annotations

import numpy as np
import pytest

import samewise
from samewise import OASIS, POLA, DiagonalAROMA, FactoredAROMA, PassiveAggressive, Triplets
from samewise.engine.gaussian_merge import merged_diagonal, merged_factored
from samewise.engine.gaussian_mover import DiagonalGaussian, FactoredGaussian
from samewise.engine.stores import Symmetric
from samewise.exceptions import InvalidInputError
from samewise.scale import mix
from samewise.scale.mixing import least_hinge

LEARNERS = [DiagonalAROMA, FactoredAROMA]


@pytest.fixture(scope="module")
def streams():
    """Four streams of 300 triplets of unit vectors, as shifted as streams of users may be."""
    random = np.random.default_rng(4)
    y = np.repeat(np.arange(6), 40)
    X = random.normal(size=(6, 8))[y] + random.normal(size=(240, 8))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return [Triplets.from_labels(X, y, n_triplets=300, random_state=seed) for seed in range(4)]


def covariance(random, d):
    A = random.normal(size=(d, d))
    values, axes = np.linalg.eigh(A @ A.T)
    return (axes * (0.1 + 0.9 * values / values[-1])) @ axes.T


def shrunk(C, random):
    """A covariance below C."""
    v = random.normal(size=len(C))
    return np.linalg.inv(np.linalg.inv(C) + np.outer(v, v))


def test_a_product_of_factored_gaussians(seed):
    """Beside the linear system with all m·n entries of W in one vector."""
    random = np.random.default_rng(seed)
    start = FactoredGaussian(random.normal(size=(4, 3)), 1.0)
    start.left, start.right = (Symmetric(np.tril(covariance(random, d))) for d in (4, 3))
    streams = []
    for _ in range(3):
        own = FactoredGaussian(random.normal(size=(4, 3)), 1.0)
        own.left = Symmetric(np.tril(shrunk(start.left.matrix, random)))
        own.right = Symmetric(np.tril(shrunk(start.right.matrix, random)))
        streams.append(own)
    found = merged_factored(start, streams)

    def precision(one):
        return np.kron(np.linalg.inv(one.left.matrix), np.linalg.inv(one.right.matrix))

    P0, W0 = precision(start), start.mean.array.ravel()
    P = sum(precision(one) for one in streams) - 2 * P0
    right = sum(precision(one) @ (one.mean.array.ravel() - W0) for one in streams)
    expected = W0 + np.linalg.solve(P, right)
    np.testing.assert_allclose(found.mean.array.ravel(), expected, rtol=1e-7, atol=1e-9)
    inverse = sum(np.linalg.inv(one.left.matrix) for one in streams)
    inverse -= 2 * np.linalg.inv(start.left.matrix)
    np.testing.assert_allclose(np.linalg.inv(found.left.matrix), inverse, rtol=1e-8, atol=1e-9)
    # One stream alone is itself.
    alone = merged_factored(start, streams[:1])
    np.testing.assert_allclose(alone.mean.array, streams[0].mean.array, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(alone.right.matrix, streams[0].right.matrix, atol=1e-9)


def test_a_product_of_independent_entries(seed):
    random = np.random.default_rng(seed)
    start = DiagonalGaussian(random.normal(size=(3, 2)), 1.0)
    start.variances[...] = random.uniform(0.5, 1.0, size=(3, 2))
    streams = [DiagonalGaussian(random.normal(size=(3, 2)), 1.0) for _ in range(2)]
    for one in streams:
        one.variances[...] = start.variances * random.uniform(0.1, 1.0, size=(3, 2))
    found = merged_diagonal(start, streams)
    for at in np.ndindex(3, 2):
        w0, p0 = start.both.real[at], 1 / start.variances[at]
        p = p0 + sum(1 / one.variances[at] - p0 for one in streams)
        w = w0 + sum((one.both.real[at] - w0) / one.variances[at] for one in streams) / p
        assert found.variances[at] == pytest.approx(1 / p)
        assert found.both.real[at] == pytest.approx(w)


def test_the_least_hinge_beside_a_grid(seed):
    random = np.random.default_rng(seed)
    grid = np.linspace(0, 1, 2001)
    for _ in range(40):
        n = random.integers(1, 9)
        lacking, steps = random.normal(size=(2, n)).round(1)
        weights = random.uniform(size=n)
        losses = weights @ np.maximum(0, lacking[:, None] - steps[:, None] * grid)
        t = least_hinge(lacking, steps, weights)
        assert 0 <= t <= 1
        loss = weights @ np.maximum(0, lacking - steps * t)
        assert loss <= losses.min() + 1e-9


@pytest.mark.parametrize("learner", LEARNERS)
def test_one_stream_is_the_learner_itself(streams, learner):
    alone = learner().partial_fit(streams[0])
    mixed = mix(learner(), streams[:1], n_merges=3)
    np.testing.assert_allclose(mixed.metric_.matrix, alone.metric_.matrix, atol=1e-9)
    assert mixed.n_seen_ == 300 and mixed.n_updates_ == alone.n_updates_
    assert mixed.margin_ == alone.margin_
    curves = (one.history_["loss"] for one in (mixed, alone))
    np.testing.assert_allclose(*curves, rtol=1e-9)


@pytest.mark.parametrize("learner", LEARNERS)
def test_streams_are_mixed_and_learning_goes_on(streams, learner, tmp_path):
    started = learner().partial_fit(streams[0][:200])
    before = started.metric_.matrix.copy()
    mixed = mix(started, streams, n_merges=4)
    assert np.array_equal(started.metric_.matrix, before)
    assert mixed.n_seen_ == 200 + 1200
    assert started.n_updates_ < mixed.n_updates_ <= 1400
    assert mixed.history_["rounds"].size == 0
    # What four streams know beats what one does, on triplets of a fifth.
    test = Triplets.from_labels(
        streams[0].X, np.repeat(np.arange(6), 40), n_triplets=3000, random_state=9
    )
    one = learner().partial_fit(streams[0])
    assert mixed.score(test) >= one.score(test) - 0.01
    queries = streams[0].X[:5]
    assert np.all(mixed.score_variance(queries, queries) < one.score_variance(queries, queries))
    mixed.save(tmp_path / "mixed.sw")
    loaded = samewise.load(tmp_path / "mixed.sw")
    assert np.array_equal(loaded.metric_.matrix, mixed.metric_.matrix)
    both = [each.partial_fit(streams[1]).metric_.matrix for each in (mixed, loaded)]
    assert np.array_equal(*both)


def test_workers_learn_the_same(client, streams):
    here = mix(FactoredAROMA(), streams, n_merges=2)
    there = mix(FactoredAROMA(), streams, n_merges=2, client=client)
    np.testing.assert_allclose(there.metric_.matrix, here.metric_.matrix, atol=1e-12)
    futures = [client.submit(lambda part: part, part) for part in streams]
    again = mix(FactoredAROMA(), futures, n_merges=2, client=client)
    assert np.array_equal(again.metric_.matrix, there.metric_.matrix)


def test_what_is_refused(streams):
    for learner in (OASIS(), POLA(), PassiveAggressive()):
        name = type(learner).__name__
        said = (
            rf"Got a {name}: .* one core learns .* 10+ ?000 (triplets|pairs) a second.* one stream"
        )
        with pytest.raises(InvalidInputError, match=said):
            mix(learner, streams)
    with pytest.raises(InvalidInputError, match=r"average='last'.* Got 'survival'"):
        mix(DiagonalAROMA(average="survival"), streams)
    with pytest.raises(InvalidInputError, match=r"update='margin'.* Got 'mistake'"):
        mix(FactoredAROMA(update="mistake"), streams)
    with pytest.raises(InvalidInputError, match=r"n_merges must be .* Got 0"):
        mix(DiagonalAROMA(), streams, n_merges=0)
    with pytest.raises(InvalidInputError, match="one stream or more"):
        mix(DiagonalAROMA(), [])
