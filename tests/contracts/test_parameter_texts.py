"""A parameter that several learners share has the same text in each."""

from __future__ import annotations

import inspect
import re
from collections import defaultdict

import pytest
from sklearn.base import BaseEstimator

import samewise
from samewise import learners

docscrape = pytest.importorskip("numpydoc.docscrape")

SHARED_START = {
    "C": "what it does not apply to",
    "average": "which averages are not offered",
    "bounds": "where the default comes from",
    "callback": "what the dict holds",
    "init": "what can be given",
    "kernel": "pairs name rows of a precomputed matrix",
    "max_iter": "what an iteration is",
    "n_components": "the default",
    "n_neighbors": "what happens in small classes",
    "n_pairs": "the default",
    "n_triplets": "the default",
    "normalizer": "what None means",
    "path": "paths that are the same here",
    "psd": "what is restored",
    "shrinkage": "which matrix it makes regular",
    "structure": "how it is learned",
    "targets": "the default",
    "tol": "which stopping rule",
    "validation_fraction": "how it is measured",
    "warm_start": "from which attribute",
}
"""Parameters of which only the first sentence is shared, and what the others say."""

OTHER_MEANING = {
    ("C", "HIER"): "inverse strength of a penalty, as in scikit-learn",
    ("beta", "SCML"): "a cost, not the sharpness of a margin",
    ("gamma", "LSML"): "the cost of residuals, not of slack",
    ("margin", "GCosLA"): "a margin of cosines, which are bounded",
    ("purpose", "LSML"): "quadruplets in place of pairs",
    ("solver", "SRBS"): "other solvers than LMNN's",
    ("update", "GCosLA"): "other variants than those of FactoredAROMA",
}
"""Parameters that share nothing but the name."""


def texts():
    """Of each parameter, the text in each learner."""
    found = defaultdict(dict)
    for learner in learners.__all__:
        cls = getattr(learners, learner)
        if not (inspect.isclass(cls) and issubclass(cls, BaseEstimator)):
            continue
        for parameter in docscrape.NumpyDocString(inspect.getdoc(cls))["Parameters"]:
            for name in parameter.name.split(", "):
                found[name][learner] = " ".join(" ".join(parameter.desc).split())
    return found


TEXTS = texts()


def first_sentence(text):
    return re.split(r"(?<=\.) (?=[A-Z\"])", text)[0]


@pytest.mark.parametrize("name", sorted(TEXTS))
def test_a_shared_parameter_has_one_text(name):
    said = {
        first_sentence(text) if name in SHARED_START else text: learner
        for learner, text in TEXTS[name].items()
        if (name, learner) not in OTHER_MEANING
    }
    assert len(said) <= 1, said


def test_no_exception_is_left_over():
    assert set(SHARED_START) <= set(TEXTS)
    for name in SHARED_START:
        same = {text for key, text in TEXTS[name].items() if (name, key) not in OTHER_MEANING}
        assert len(same) > 1, f"{name} has one text everywhere: it is no exception."
    for name, learner in OTHER_MEANING:
        assert len(TEXTS[name]) > 1, name
        assert learner in TEXTS[name], (name, learner)


@pytest.mark.parametrize("learner", [n for n in learners.__all__ if n in samewise.__all__])
def test_help_is_complete_by_itself(learner):
    parameters = inspect.signature(getattr(learners, learner)).parameters
    assert [name for name in parameters if not TEXTS[name].get(learner)] == []
