"""Every estimator, whatever is handed in: a finite result or a sentence, and nothing half done."""

from __future__ import annotations

import copy
import pickle
from functools import cache, partial

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone, is_regressor

import samewise
from samewise import load
from samewise.catalog import LEARNERS, WHERE
from samewise.learners.online.online_learner import OnlineLearner
from tests.hostile.outcomes import Refusal, attempt, bits, check_finite, saved
from tests.hostile.strategies import (
    CHEAP,
    USUAL,
    labels,
    malformed,
    n_rows,
    parameters,
    rows,
    supervision,
    tame_rows,
)

LEARNS_FROM = {entry.name: entry.learns_from for entry in LEARNERS}
DECIDERS = [name for name, place in WHERE.items() if place == "samewise.decide"]
ESTIMATORS = {name: getattr(samewise, name) for name in (*LEARNS_FROM, *DECIDERS)}
ONLINE = [name for name, cls in ESTIMATORS.items() if issubclass(cls, OnlineLearner)]
PAIRS_ONLY = ("Verifier",)

several = st.integers(4, 12)
two = st.just(2)


def every(names):
    return pytest.mark.parametrize("name", names)


def for_(name, **how):
    """Supervision for the estimator of that name."""
    decides = ("pairs",) if name in PAIRS_ONLY else ("labels",)
    return supervision(LEARNS_FROM.get(name, decides), **how)


def attributes(learner):
    return bits(sorted(vars(learner).items()))


def kept(learner, folder):
    """All that a learner knows, as bytes; what decides has no file."""
    return saved(learner, folder) if hasattr(learner, "save") else pickle.dumps(learner)


def check_uses(learner, X, *shown):
    """Ask a fitted learner whatever it can be asked about rows."""
    y = np.arange(n_rows(X)) % 2
    calls = {"transform": (X,), "predict": (X,), "pair_score": (X,), "score": (X, y)}
    for name, arguments in calls.items():
        if hasattr(learner, name):
            outcome = attempt(partial(getattr(learner, name), *arguments), name, *shown)
            if not isinstance(outcome, Refusal):
                check_finite(outcome)


def check_fit(name, options, given):
    """Fit and use: finite or refused; the input is as it was, and what refused it too."""
    learner = ESTIMATORS[name](**options)
    before = bits(given.arrays), attributes(learner)
    outcome = attempt(lambda: given.to(learner.fit), name, options, given)
    assert bits(given.arrays) == before[0], "the input was changed"
    if isinstance(outcome, Refusal):
        assert attributes(learner) == before[1], "a refused call changed something"
        return
    check_finite(getattr(learner, "metric_", None) or 0.0)
    if given.kind != "array":
        check_uses(learner, given.X, name, options, given)


@every(ESTIMATORS)
@given(data=st.data())
def test_any_input(name, data):
    options = data.draw(parameters(ESTIMATORS[name], most=1))
    check_fit(name, options, data.draw(for_(name)))


@every(ESTIMATORS)
@given(data=st.data())
def test_any_parameters(name, data):
    options = data.draw(parameters(ESTIMATORS[name], most=4))
    check_fit(name, options, data.draw(for_(name, wild=False)))


@every(ESTIMATORS)
@given(data=st.data())
def test_malformed_sparse_rows(name, data):
    options = data.draw(parameters(ESTIMATORS[name], most=0))
    check_fit(name, options, data.draw(for_(name, X=malformed(several), wild=False)))


@cache
def fitted(name):
    """Something of that name that has learned, with random numbers of its own."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(12, 2)), np.arange(12) % 2
    options = {"random_state": np.random.RandomState(0), "n_triplets": 30, "n_pairs": 30}
    known = ESTIMATORS[name]._get_param_names()
    learner = ESTIMATORS[name](
        **{key: value for key, value in (CHEAP | options).items() if key in known},
        **{key: samewise.LDA() for key in ("metric", "learner") if key in known},
    )
    if name in PAIRS_ONLY:
        learner.set_params(metric=samewise.POLA())
        return learner.fit(samewise.Pairs.from_labels(X, y, 30, random_state=0))
    return learner.fit(X, y)


@every(ESTIMATORS)
@given(data=st.data())
def test_what_refuses_goes_on_from_where_it_was(name, data, tmp_path):
    learner = copy.deepcopy(fitted(name))
    given = data.draw(for_(name, X=rows(d=two)))
    learn = data.draw(st.sampled_from(["fit", *["partial_fit"] * (2 * (name in ONLINE))]))
    before = kept(learner, tmp_path), attributes(learner)
    outcome = attempt(lambda: given.to(getattr(learner, learn)), name, learn, given)
    if isinstance(outcome, Refusal):
        assert attributes(learner) == before[1], "a refused call changed attributes"
        assert kept(learner, tmp_path) == before[0], "a refused call changed the state"
    else:
        check_finite(getattr(learner, "metric_", None) or 0.0)
        kept(learner, tmp_path)


@every(ONLINE)
@given(data=st.data())
def test_portions_are_one_fit(name, data, tmp_path):
    cls = ESTIMATORS[name]
    kinds = [kind for kind in LEARNS_FROM[name] if kind != "labels"]
    stream = data.draw(supervision(kinds, X=tame_rows(several), wild=False))
    # What "auto" stands for is settled by the first portion.
    fixed = {"path": "plain", "margin": 0.5, "bounds": (0.5, 2.0), "random_state": 0}
    make = cls(**{key: value for key, value in fixed.items() if key in cls._get_param_names()})
    whole = attempt(lambda: stream.to(clone(make).partial_fit), name, stream)
    if isinstance(whole, Refusal):
        return
    container, parts = [], clone(make)
    stream.to(lambda *given: container.extend(given))
    cut = data.draw(st.integers(0, len(container[0])))
    for part in (slice(0, cut), slice(cut, None)):
        some = [each[part] for each in container]
        if len(some[0]):
            assert not isinstance(attempt(lambda some=some: parts.partial_fit(*some)), Refusal)
    if name == "KernelPOLA":
        # The coefficients of a kernel's support are as badly conditioned as points are close.
        rows = np.reshape(stream.X, (-1, np.shape(stream.X)[-1]))
        one, other = (each.metric_.cross(rows) for each in (parts, whole))
        near = 1e-6
    else:
        one, other = parts.metric_.matrix, whole.metric_.matrix
        near = 1e-9
    # Steps may cancel: what is left of M is then small beside 1/‖x‖², the size of a step.
    X = stream.X if sp.issparse(stream.X) else np.asarray(stream.X, dtype=np.float64)
    longest = abs(X).max() if X.size else 0.0
    size = max(np.abs(other).max(), 1e-6 / longest**2 if longest else 0.0)
    np.testing.assert_allclose(one, other, rtol=near, atol=near * size)
    assert parts.n_seen_ == whole.n_seen_ and parts.n_updates_ == whole.n_updates_


@every(LEARNS_FROM)
@given(data=st.data())
def test_copies_are_the_same_and_learn_the_same(name, data, tmp_path):
    options = data.draw(parameters(ESTIMATORS[name], most=1, legal=True))
    given = data.draw(for_(name, wild=False))
    learner = ESTIMATORS[name](**options)
    if isinstance(attempt(lambda: given.to(learner.fit), name, options, given), Refusal):
        return
    bytes_ = saved(learner, tmp_path)
    copies = [pickle.loads(pickle.dumps(learner)), copy.deepcopy(learner), load(tmp_path / "file")]
    for each in copies:
        assert saved(each, tmp_path) == bytes_
    assert given.to(clone(learner).fit).metric_ == learner.metric_
    if name in ONLINE:
        outcomes = [
            attempt(lambda each=each: given.to(each.partial_fit), name, options, given)
            for each in [learner, *copies]
        ]
        assert len({isinstance(outcome, Refusal) for outcome in outcomes}) == 1
        assert len({saved(each, tmp_path) for each in [learner, *copies]}) == 1


@every([n for n in DECIDERS if n not in PAIRS_ONLY and hasattr(ESTIMATORS[n], "predict")])
@given(data=st.data())
def test_answers_are_classes_and_do_not_depend_on_the_order_of_questions(name, data):
    d = data.draw(st.integers(1, 3))
    X = data.draw(tame_rows(several, st.just(d), layouts=("C", "CSR", "Fortran")))
    y = data.draw(labels(n_rows(X), USUAL, st.integers(2, 3)))
    options = data.draw(parameters(ESTIMATORS[name], legal=True))
    model = ESTIMATORS[name](**options)
    if isinstance(attempt(lambda: model.fit(X, y), name, options, X, y), Refusal):
        return
    answers = attempt(lambda: model.predict(X), name, options, X, y)
    if isinstance(answers, Refusal):
        return
    if is_regressor(model):
        numbers = np.asarray(y, dtype=np.float64)
        assert np.all(np.abs(answers - np.median(numbers)) <= np.ptp(numbers))
        return
    assert set(np.asarray(answers).tolist()) <= set(np.asarray(y).tolist())
    one_by_one = [model.predict(X[[i]])[0] for i in range(n_rows(X))]
    if np.all(X == np.round(X.toarray() if hasattr(X, "toarray") else X)):
        # Whole numbers: no rounding that could break a tie.
        np.testing.assert_array_equal(answers, one_by_one)
