"""Learning goes on: portions, refused input, weights of a stream, Ctrl-C and progress."""

from __future__ import annotations

import _thread
import itertools
import pickle
import signal
import threading
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from samewise import POLA, KernelPOLA, Pairs, PassiveAggressive, Triplets
from samewise.engine.progress import Progress
from samewise.supervision.purposes import sampled_pairs
from tests.pairwise import pairwise

RULES = ["pa", "pa1", "pa2", "pals"]
POLICIES = ["each", "end", 7]
AVERAGES = ["last", "uniform", "survival", ("suffix", 5), ("cutoff", 2), ("decay", 30)]

LEARNERS = {
    "pa1 each": lambda **given: PassiveAggressive("pa1", 0.05, **given),
    "pa1 each uniform": lambda **given: PassiveAggressive(average="uniform", **given),
    "pa2 end": lambda **given: PassiveAggressive("pa2", psd="end", **given),
    "pa2 end suffix": lambda **given: PassiveAggressive(
        "pa2", psd="end", average=("suffix", 3), **given
    ),
    "pals 7": lambda **given: PassiveAggressive("pals", psd=7, **given),
    "pola": lambda **given: POLA(**given),
    "kernel": lambda **given: KernelPOLA("rbf", {"gamma": 0.1}, **given),
}


@pytest.fixture(params=LEARNERS)
def make(request):
    return LEARNERS[request.param]


def assert_same(one, other, tolerance=0.0):
    """The same metric, threshold, counters and learning curve."""
    # An average may be zero up to the rounding of the matrices it was made from.
    scale = max(np.abs(one.metric_.matrix).max(), 1e-3)
    np.testing.assert_allclose(
        one.metric_.matrix, other.metric_.matrix, rtol=0, atol=tolerance * scale
    )
    assert one.threshold_ == pytest.approx(other.threshold_, rel=tolerance, abs=tolerance)
    assert one.loss_ == pytest.approx(other.loss_, rel=tolerance, abs=0)
    for count in ("n_seen_", "n_updates_", "n_mistakes_"):
        assert getattr(one, count) == getattr(other, count)
    for field, values in one.history_.items():
        np.testing.assert_allclose(values, other.history_[field], rtol=tolerance)


def portions(pairs, seed, n=9):
    cuts = np.sort(np.random.default_rng(seed).integers(0, len(pairs), n))
    edges = [0, *np.unique(cuts[cuts > 0]), len(pairs)]
    return [pairs[a:b] for a, b in itertools.pairwise(edges)]


# Portions


# Thinned from 60 cases to 20.
@pairwise(rule=RULES, psd=POLICIES, average=AVERAGES)
def test_portions_give_what_one_fit_gives(rule, psd, average, sparse_pairs):
    for seed, pairs in enumerate(sparse_pairs):
        learner = PassiveAggressive(rule, 0.1, psd=psd, average=average)
        whole = PassiveAggressive(rule, 0.1, psd=psd, average=average).fit(pairs)
        for part in portions(pairs, seed):
            learner.partial_fit(part)
        assert 0 < whole.n_updates_
        assert_same(whole, learner, 1e-10)


@pytest.mark.parametrize("path", ["auto", "compiled", "blocked", "plain"])
def test_portions_on_every_path(path, pairs, seed):
    for psd in POLICIES:
        learner = PassiveAggressive("pa2", psd=psd, path=path)
        for part in portions(pairs, seed):
            learner.partial_fit(part)
        assert_same(PassiveAggressive("pa2", psd=psd).fit(pairs), learner, 1e-10)


def test_portions_of_every_learner(make, pairs, seed):
    learner = make()
    for part in portions(pairs, seed):
        learner.partial_fit(part)
        learner.metric_  # noqa: B018 - looking at it on the way changes nothing.
    assert learner.n_seen_ == len(pairs)
    assert_same(make().fit(pairs), learner, 1e-10)


def test_single_pairs(make, pairs):
    learner = make()
    for i in range(60):
        learner.partial_fit(pairs[i : i + 1])
    assert_same(make().fit(pairs[:60]), learner, 1e-10)


def test_portions_as_arrays(make, pairs):
    learner = make()
    for part in portions(pairs, 0):
        learner.partial_fit(np.stack([part.X[part.left], part.X[part.right]], axis=1), part.y)
    assert_same(make().fit(pairs), learner, 1e-10)


def test_weighted_portions(make, pairs, seed):
    weight = np.random.default_rng(seed).uniform(0, 2, len(pairs))
    weighted = Pairs(pairs.X, pairs.left, pairs.right, pairs.y, weight)
    learner = make()
    for part in portions(weighted, seed):
        learner.partial_fit(part)
    assert_same(make().fit(weighted), learner, 1e-10)


def test_fit_begins_anew(make, pairs):
    learner = make().partial_fit(pairs[:100]).fit(pairs)
    assert_same(make().fit(pairs), learner)
    assert learner.n_seen_ == len(pairs)


def test_n_passes_are_that_many_partial_fits(make, pairs):
    learner = make()
    for _ in range(3):
        learner.partial_fit(pairs)
    assert_same(make(n_passes=3).fit(pairs), learner, 1e-10)


def test_shuffling_shows_the_same_pairs_in_another_order_each_pass(make, pairs):
    learner = make(n_passes=2, shuffle=True, random_state=3).fit(pairs)
    rng = np.random.RandomState(3)
    expected = make()
    for _ in range(2):
        expected.partial_fit(pairs[rng.permutation(len(pairs))])
    assert_same(expected, learner, 1e-10)


# Labels draw from one stream of random numbers


def test_labels_go_on_drawing_from_the_same_generator(make, labeled):
    learner = make(purpose="verification", n_pairs=80, random_state=5)
    expected = make()
    rng = np.random.RandomState(5)
    for _ in range(3):
        learner.partial_fit(*labeled)
        drawn, _ = sampled_pairs(
            *labeled, purpose="verification", n_neighbors=1, n_pairs=80, random_state=rng
        )
        expected.partial_fit(drawn)
    np.testing.assert_array_equal(expected.metric_.matrix, learner.metric_.matrix)
    assert expected.loss_ == learner.loss_
    for count in ("n_seen_", "n_updates_", "n_mistakes_"):
        assert getattr(expected, count) == getattr(learner, count)


def test_labels_are_deterministic_given_the_seed(make, labeled):
    def learned(random_state):
        learner = make(n_pairs=80, random_state=random_state)
        return learner.partial_fit(*labeled).partial_fit(*labeled)

    assert_same(learned(5), learned(5))
    assert learned(5).loss_ != learned(6).loss_
    # The generator given as an object is the user's, and goes on.
    rng = np.random.RandomState(5)
    assert_same(learned(rng), learned(5))
    assert learned(rng).loss_ != learned(5).loss_


# Refused input


def refusals(X, y):
    """What partial_fit refuses, by name."""
    bad = X.copy()
    bad[3, 1] = np.nan
    A = X.reshape(30, 2, 5)
    ones = np.ones(30)
    return {
        "NaN": (bad, y),
        "infinity": (np.where(np.isnan(bad), np.inf, bad), y),
        "NaN in pairs": (bad.reshape(30, 2, 5), ones),
        "features": (X[:, :4], y),
        "features of Pairs": (Pairs(X[:, :4], [0], [1], [1]),),
        "features of an array": (X[:, :4].reshape(30, 2, 4), ones),
        "one class": (X, y * 0),
        "one class by weight": (X, y, (y == 1).astype(float)),
        "singletons": (X[:6], np.arange(6)),
        "no labels": (X,),
        "continuous labels": (X, X[:, 0]),
        "lengths": (X, y[:-1]),
        "negative weights": (X, y, -np.ones(60)),
        "labels of pairs": (A, ones * 0),
        "weights of pairs": (A, ones, ones[:-1]),
        "y with Pairs": (Pairs(X, [0], [1], [1]), [-1]),
        "triplets": (Triplets(X, [0], [1], [2]),),
        "nothing": (Pairs(X, [], [], []),),
        "shape": (X.reshape(20, 3, 5), ones[:20]),
    }


def state(learner):
    return pickle.dumps(vars(learner))


def test_refused_input_leaves_no_trace(make, labeled):
    X, y = labeled
    learner = make(n_pairs=80, random_state=5).partial_fit(X, y)
    untouched = make(n_pairs=80, random_state=5).partial_fit(X, y)
    for name, given in refusals(X, y).items():
        before = state(learner)
        with pytest.raises(ValueError):
            learner.partial_fit(*given)
        assert state(learner) == before, name
    # The random numbers too: the next pairs drawn are those without the refused calls.
    assert_same(untouched.partial_fit(X, y), learner.partial_fit(X, y))


def test_refused_input_leaves_a_fresh_learner_unfitted(make, labeled):
    X, y = labeled
    learner = make(n_pairs=80, random_state=np.random.RandomState(5))
    for name, given in refusals(X, y).items():
        # The first portion may have any number of features.
        if not name.startswith("features"):
            with pytest.raises(ValueError):
                learner.partial_fit(*given)
            assert not hasattr(learner, "n_seen_"), name
    assert_same(make(n_pairs=80, random_state=5).partial_fit(X, y), learner.partial_fit(X, y))


def test_a_refused_fit_leaves_what_was_learned(make, labeled):
    X, y = labeled
    learner = make(n_pairs=80, random_state=5).fit(X, y)
    expected = learner.transform(X)
    for given in (
        (X[:, :3], y * 0),
        (X[:, :3], y, -np.ones(60)),
        (X[:, :3].reshape(30, 2, 3), np.zeros(30)),
        (X.astype(np.float32), y * 0),
    ):
        with pytest.raises(ValueError):
            learner.fit(*given)
        np.testing.assert_array_equal(learner.transform(X), expected)


def test_a_refused_kernel_matrix_leaves_no_trace(labeled):
    X, y = labeled
    K = rbf_kernel(X)
    learner = KernelPOLA("precomputed", n_pairs=80, random_state=5).partial_fit(K, y)
    untouched = KernelPOLA("precomputed", n_pairs=80, random_state=5).partial_fit(K, y)
    for given in ((K[:40], y[:40]), (K[:40, :40], y[:40]), (Pairs(K[:40], [0], [1], [1]),)):
        before = state(learner)
        with pytest.raises(ValueError, match=r"square|features"):
            learner.partial_fit(*given)
        assert state(learner) == before
    assert_same(untouched.partial_fit(K, y), learner.partial_fit(K, y))


def test_a_kernel_that_fails_leaves_no_trace(labeled):
    X, y = labeled
    learner = LEARNERS["kernel"](n_pairs=80, random_state=5).fit(X, y)
    pairs = Pairs.from_labels(X, y, 80, random_state=0)
    before = state(learner)
    learner.kernel_params["gama"] = 1.0
    with pytest.raises(TypeError, match="gama"):
        learner.partial_fit(pairs)
    del learner.kernel_params["gama"]
    assert state(learner) == before


# Ctrl-C


@pytest.fixture
def long_stream(labeled):
    rng = np.random.RandomState(0)
    left, right = rng.randint(0, 60, (2, 40_000))
    X, y = labeled
    return Pairs(X, left, right, np.where(y[left] == y[right], 1, -1))


def interrupt_at(monkeypatch, call):
    """Ctrl-C during the given call of Progress.report."""
    calls = itertools.count(1)
    report = Progress.report

    def report_and_press(self, history):
        report(self, history)
        if next(calls) == call:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(Progress, "report", report_and_press)


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_an_interrupted_run_keeps_what_it_learned(make, long_stream, monkeypatch, method):
    interrupt_at(monkeypatch, 2)
    handler = signal.getsignal(signal.SIGINT)
    learner = make()
    if isinstance(learner, KernelPOLA):
        long_stream = long_stream[:1000]
    with pytest.raises(
        KeyboardInterrupt, match=f"{type(learner).__name__} was interrupted; what it had learned"
    ):
        getattr(learner, method)(long_stream)
    assert signal.getsignal(signal.SIGINT) is handler
    seen = learner.n_seen_
    assert 0 < seen < len(long_stream)
    assert_same(make().fit(long_stream[:seen]), learner, 1e-10)
    # And it goes on from there.
    learner.partial_fit(long_stream[seen : seen + 500])
    assert_same(make().fit(long_stream[: seen + 500]), learner, 1e-10)


def test_interrupted_passes(make, pairs, monkeypatch):
    interrupt_at(monkeypatch, 20)
    learner = make(n_passes=10_000, shuffle=True, random_state=0)
    with pytest.raises(KeyboardInterrupt):
        learner.fit(pairs)
    assert 0 < learner.n_seen_ <= 20 * len(pairs)
    assert set(learner.predict(pairs)) <= {1, -1}


def test_interrupted_batch_mode(pairs, monkeypatch):
    interrupt_at(monkeypatch, 3)
    learner = POLA(epsilon=1e-9, max_passes=10_000)
    with pytest.raises(KeyboardInterrupt):
        learner.fit(pairs)
    assert learner.n_passes_ == 3 and learner.n_seen_ == 3 * len(pairs)


def test_a_real_interrupt_from_outside(long_stream):
    learner = PassiveAggressive(n_passes=2_000)
    timer = threading.Timer(0.3, _thread.interrupt_main)
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            learner.fit(long_stream)
    finally:
        timer.cancel()
        timer.join()
    assert 0 < learner.n_seen_ < 2_000 * len(long_stream)
    assert learner.metric_.matrix.shape == (5, 5)


def test_the_handler_of_the_user_comes_back(pairs):
    def mine(signum, frame):
        raise AssertionError("not pressed")

    before = signal.signal(signal.SIGINT, mine)
    try:
        PassiveAggressive().fit(pairs)
        assert signal.getsignal(signal.SIGINT) is mine
    finally:
        signal.signal(signal.SIGINT, before)


def test_an_error_on_the_way_brings_the_handler_back_too(pairs, monkeypatch):
    def fail(self, history):
        raise RuntimeError("on the way")

    monkeypatch.setattr(Progress, "report", fail)
    handler = signal.getsignal(signal.SIGINT)
    with pytest.raises(RuntimeError, match="on the way"):
        PassiveAggressive().fit(pairs)
    assert signal.getsignal(signal.SIGINT) is handler


def test_other_threads_learn_too(make, pairs):
    learned = []
    thread = threading.Thread(target=lambda: learned.append(make().fit(pairs)))
    thread.start()
    thread.join()
    assert_same(make().fit(pairs), learned[0], 1e-12)


# Progress


@pytest.fixture
def slow_clock(monkeypatch):
    """A clock on which every look takes two seconds."""
    seconds = itertools.count(0.0, 2.0)
    monkeypatch.setattr(
        "samewise.engine.progress.time", SimpleNamespace(monotonic=lambda: next(seconds))
    )


def test_verbose_runs_say_where_they_are(make, pairs, slow_clock, capsys):
    learner = make(verbose=True, n_passes=3).fit(pairs)
    out, err = capsys.readouterr()
    lines = err.splitlines()
    assert out == "" and len(lines) >= 3
    assert lines[-1] == (
        f"{type(learner).__name__}: 1,200 examples seen (at most 1,200 in this run), "
        f"{learner.n_mistakes_:,} mistakes, {learner.n_updates_:,} updates, "
        f"mean loss {learner.loss_ / 1200:.4g}, {2 * len(lines)} s"
    )


def test_quiet_runs_say_nothing(make, pairs, slow_clock, capsys):
    make(n_passes=3).fit(pairs).partial_fit(pairs)
    assert capsys.readouterr() == ("", "")


def test_a_line_comes_at_most_once_a_second(pairs, monkeypatch, capsys):
    seconds = itertools.count(0.0, 0.3)
    monkeypatch.setattr(
        "samewise.engine.progress.time", SimpleNamespace(monotonic=lambda: next(seconds))
    )
    PassiveAggressive(verbose=True, n_passes=12).fit(pairs)
    assert len(capsys.readouterr().err.splitlines()) == 3


def test_a_short_verbose_run_says_how_it_ended(make, pairs, capsys):
    make(verbose=True).fit(pairs[:50])
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1 and ": 50 examples seen (at most 50 in this run)" in lines[0]


@pytest.mark.parametrize("first", ["dense", "sparse"])
def test_a_kernel_stream_may_change_between_dense_and_sparse(sparse_pairs, first):
    dense, sparse = sparse_pairs
    pairs = (dense, sparse) if first == "dense" else (sparse, dense)
    whole = KernelPOLA("rbf").fit(dense)
    learner = KernelPOLA("rbf").partial_fit(pairs[0][:120]).partial_fit(pairs[1][120:])
    assert learner.n_seen_ == whole.n_seen_ == 300
    np.testing.assert_allclose(
        learner.pair_distance(dense), whole.pair_distance(dense), rtol=1e-7, atol=1e-9
    )
