"""What the properties of this folder found, each with its smallest input."""

from __future__ import annotations

import numpy as np
import pytest

import samewise
from samewise import KNNClassifier, MultiMetric, Pairs, PerClassClassifier, Verifier
from samewise.catalog import LEARNERS
from samewise.exceptions import InvalidInputError

X, y = np.arange(8.0).reshape(4, 2) ** 2, np.array([0, 0, 1, 1])


def test_nothing_is_chosen_by_an_empty_list():
    pairs = Pairs(X, [0, 1], [1, 2], [1, -1])
    assert len(pairs[[]]) == len(pairs[[]].differences()) == 0


@pytest.mark.parametrize(
    ("model", "given"),
    [
        (KNNClassifier(n_neighbors=5), (X, y)),
        (PerClassClassifier(samewise.LDA(), n_neighbors=5), (X, y)),
        (Verifier(samewise.Mahalanobis.identity(3)), (Pairs(X, [0, 1], [1, 2], [1, -1]),)),
    ],
    ids=lambda each: type(each).__name__,
)
def test_a_refused_fit_leaves_nothing_behind(model, given):
    before = list(vars(model))
    with pytest.raises(InvalidInputError):
        model.fit(*given)
    assert list(vars(model)) == before


def test_a_class_whose_label_is_a_python_object_is_named():
    labels = np.array(["y", "y", "y", "x"], dtype=object)
    with pytest.raises(InvalidInputError, match="more than the class 'x' has members"):
        KNNClassifier(n_neighbors=2, rule="sknn").fit(X, labels)
    form = MultiMetric([np.eye(2)], classes=["x"])
    with pytest.raises(InvalidInputError, match="The class 'y' is not one of the 1 classes"):
        form.bind(X, labels)


ARRAYS = [
    (name, parameter)
    for name in (entry.name for entry in LEARNERS)
    for parameter, allowed in getattr(samewise, name)._parameter_constraints.items()
    if "array-like" in allowed
]


@pytest.mark.parametrize(("name", "parameter"), ARRAYS)
@pytest.mark.parametrize("value", [["x"], [[1.0], [1.0, 2.0]]], ids=repr)
def test_arrays_of_parameters_hold_numbers(name, parameter, value):
    learner = getattr(samewise, name)(**{parameter: value})
    said = f"The '{parameter}' parameter of {name} must be a rectangular array of numbers, but"
    with pytest.raises(InvalidInputError, match=said):
        learner.fit(X, y)
