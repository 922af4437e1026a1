"""Every estimator, whatever is handed in: a finite result or a sentence, and nothing half done."""

from __future__ import annotations

import copy
import pickle
from functools import partial

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, clone

import samewise
from samewise.catalog import LEARNERS, WHERE
from samewise.learners.online.online_learner import OnlineLearner
from tests.hostile.outcomes import Refusal, attempt, bits, check_finite, saved
from tests.hostile.strategies import (
    labels,
    malformed,
    parameters,
    rows,
    supervision,
    tame_rows,
)

LEARNS_FROM = {entry.name: entry.learns_from for entry in LEARNERS}
DECIDERS = [name for name, place in WHERE.items() if place == "samewise.decide"]
ESTIMATORS = {name: getattr(samewise, name) for name in (*LEARNS_FROM, *DECIDERS)}
ONLINE = {name: cls for name, cls in ESTIMATORS.items() if issubclass(cls, OnlineLearner)}


def learns_from(name):
    return LEARNS_FROM.get(name, ("pairs",) if name == "Verifier" else ("labels",))


def every(estimators):
    return pytest.mark.parametrize("name", estimators)


def uses(learner, X):
    """What can be asked of something fitted."""
    pairs = [X, X] if not hasattr(X, "tocsr") else None
    calls = {
        "transform": (X,),
        "predict": (X,),
        "score": (X, np.arange(len(X)) % 2 if isinstance(X, list) else np.arange(X.shape[0]) % 2),
        "pair_score": (None if pairs is None else np.stack([np.asarray(X)] * 2, axis=1),),
    }
    for name, arguments in calls.items():
        if hasattr(learner, name) and arguments[0] is not None:
            yield partial(getattr(learner, name), *arguments)


def check_fit(name, options, given):
    """Fit and use: finite or refused; the input is as it was, and a refused learner too."""
    learner = ESTIMATORS[name](**options)
    before = bits(given.arrays), bits(list(vars(learner).items()))
    outcome = attempt(lambda: given.to(learner.fit), name, options, given)
    assert bits(given.arrays) == before[0], "the input was changed"
    if isinstance(outcome, Refusal):
        assert bits(list(vars(learner).items())) == before[1], "the refused call changed something"
        return
    metric = attempt(lambda: learner.metric_, name, options, given)
    if not isinstance(metric, Refusal) and metric is not None:
        check_finite(metric)
    if given.kind not in ("array",):
        for use in uses(learner, given.X):
            outcome = attempt(use, name, options, given)
            if not isinstance(outcome, Refusal):
                check_finite(outcome)


@every(ESTIMATORS)
@given(data=st.data())
def test_any_input(name, data):
    options = data.draw(parameters(ESTIMATORS[name]))
    check_fit(name, options, data.draw(supervision(learns_from(name))))


@every(ESTIMATORS)
@given(data=st.data())
def test_any_parameters(name, data):
    options = data.draw(parameters(ESTIMATORS[name], most=4))
    check_fit(name, options, data.draw(supervision(learns_from(name), wild=False)))


@every(ESTIMATORS)
@given(data=st.data())
def test_malformed_sparse_rows(name, data):
    options = data.draw(parameters(ESTIMATORS[name], most=0))
    X = malformed(st.integers(4, 12))
    check_fit(name, options, data.draw(supervision(learns_from(name), X, wild=False)))
