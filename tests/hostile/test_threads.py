"""Threads that share a learner: readers meet a whole state, writers take turns."""

from __future__ import annotations

import copy
import pickle
import sys
import threading
import time

import numpy as np
import pytest
from sklearn.base import clone

import samewise
from samewise import (
    LEGO,
    OASIS,
    POLA,
    DiagonalAROMA,
    FactoredAROMA,
    GCosLA,
    KernelPOLA,
    Pairs,
    PassiveAggressive,
    SiLA,
    Triplets,
)
from samewise.catalog import LEARNERS

CASES = {
    "PassiveAggressive": PassiveAggressive,
    "PassiveAggressive average": lambda: PassiveAggressive("pa2", psd="end", average="uniform"),
    "POLA": POLA,
    "KernelPOLA": KernelPOLA,
    "LEGO": LEGO,
    "GCosLA": GCosLA,
    "OASIS": OASIS,
    "OASIS suffix": lambda: OASIS(average=("suffix", 3)),
    "DiagonalAROMA": DiagonalAROMA,
    "FactoredAROMA": FactoredAROMA,
}
N, D, PORTION, PORTIONS = 60, 12, 40, 24
ROWS = np.random.default_rng(0).normal(size=(N, D))
LABELS = np.arange(N) % 3
PAIRS = Pairs.from_labels(ROWS, LABELS, PORTION * PORTIONS, random_state=0)
TRIPLETS = Triplets.from_labels(ROWS, LABELS, PORTION * PORTIONS, random_state=0)


@pytest.fixture(params=CASES)
def make(request):
    return CASES[request.param]


@pytest.fixture(autouse=True)
def often():
    """Threads take turns a thousand times as often as usual."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(5e-6)
    yield
    sys.setswitchinterval(before)


def stream(learner):
    return TRIPLETS if isinstance(learner, OASIS | DiagonalAROMA | FactoredAROMA) else PAIRS


def portions(learner):
    given = stream(learner)
    return [given[start : start + PORTION] for start in range(0, len(given), PORTION)]


def seen(learner):
    """What a reader reads, in parts that must be of one state each."""
    form = learner.metric_
    rows = form.coefficients if isinstance(learner, KernelPOLA) else form.matrix
    found = [rows.tobytes()]
    if hasattr(learner, "threshold_"):
        found.append(learner.decision_function(ROWS.reshape(-1, 2, D)).tobytes())
    if isinstance(learner, DiagonalAROMA | FactoredAROMA):
        found.append(learner.score_variance(ROWS[:4], ROWS).tobytes())
    curve = learner.history_
    found.append(b"".join(curve[name].tobytes() for name in curve))
    found.append(samewise_state(learner))
    found.append(samewise_state(pickle.loads(pickle.dumps(learner))))
    return found


def samewise_state(learner):
    with _file_lock:
        learner.save(_path)
        with open(_path, "rb") as file:
            return file.read()


_file_lock = threading.Lock()
_path = ""


@pytest.fixture(autouse=True)
def path(tmp_path):
    global _path
    _path = str(tmp_path / "learner")


def run(*tasks, done=None):
    """Each task in a thread of its own; the first error of any of them.

    `done` is set when the first task to end has ended, with or without an error.
    """
    errors = []

    def guarded(task):
        try:
            task()
        except BaseException as error:
            errors.append(error)
        finally:
            if done is not None:
                done.set()

    threads = [threading.Thread(target=guarded, args=(task,)) for task in tasks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def test_every_online_learner_is_here():
    online = {entry.name for entry in LEARNERS if entry.family == "online"}
    assert {name.split()[0] for name in CASES} == online


def test_readers_meet_a_state_before_or_after_a_portion(make):
    parts = portions(make())
    alone = make()
    states = [seen(alone.partial_fit(part)) for part in parts]
    learner = make().partial_fit(parts[0])
    done, read = threading.Event(), []

    def write():
        for n, part in enumerate(parts[1:]):
            learner.partial_fit(part)
            while len(read) < n and not done.is_set():
                time.sleep(1e-4)

    def look():
        while not done.is_set():
            read.append(seen(learner))

    run(write, look, look, done=done)
    read.append(seen(learner))
    for k in range(len(states[0])):
        whole = {state[k] for state in states}
        assert all(found[k] in whole for found in read)
    assert read[-1] == states[-1]


def test_writers_take_turns(make):
    learner = make().partial_fit(stream(make())[:PORTION])
    parts = portions(learner)
    run(*[lambda mine=parts[i::3]: [learner.partial_fit(part) for part in mine] for i in range(3)])
    assert learner.n_seen_ == PORTION * (PORTIONS + 1)
    learner.save(_path)
    assert samewise.load(_path).n_seen_ == learner.n_seen_


def test_readers_of_updates_that_fail_meet_the_state_before(make):
    learner = make().fit(stream(make())[:PORTION])
    expected, done, read = seen(learner), threading.Event(), []
    bad = copy.copy(stream(learner))
    X = ROWS.copy()
    members = [getattr(bad, name) for name in bad._members]
    bad = type(bad)(X, *members, **({"y": bad.y} if isinstance(bad, Pairs) else {}))
    X[-1] = np.nan

    def fail():
        while len(read) < 10 and not done.is_set():
            with pytest.raises(ValueError, match="NaN"):
                learner.partial_fit(bad)

    def look():
        while not done.is_set():
            read.append(seen(learner))

    run(fail, look, done=done)
    assert all(found == expected for found in read)


def test_the_first_portion_from_many_threads(make):
    learner = make()
    parts = portions(learner)[:6]
    run(*[lambda part=part: learner.partial_fit(part) for part in parts])
    assert learner.n_seen_ == PORTION * len(parts)


def test_sila_from_many_threads():
    learner = SiLA(n_passes=1, warm_start=True).fit(ROWS, LABELS)
    run(*[lambda: learner.fit(ROWS, LABELS) for _ in range(4)])
    assert learner.n_seen_ == 5 * N


def test_copies_have_turns_of_their_own(make):
    learner = make().fit(stream(make())[:PORTION])
    part = stream(learner)[PORTION : 2 * PORTION]
    copies = [copy.deepcopy(learner), pickle.loads(pickle.dumps(learner)), clone(learner)]
    copies[2].fit(stream(learner)[:PORTION])
    run(*[lambda each=each: each.partial_fit(part) for each in [learner, *copies]])
    assert len({samewise_state(each) for each in [learner, *copies]}) == 1
