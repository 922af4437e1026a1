"""What results show of themselves."""

from __future__ import annotations

import re
from html import unescape

import numpy as np
import pytest
from sklearn.datasets import load_wine

from samewise import Mahalanobis, Model, choose_learner, compare, evaluate, fit_model


@pytest.fixture(scope="module")
def wine():
    return load_wine(return_X_y=True, as_frame=True)


@pytest.fixture(scope="module")
def model(wine):
    return fit_model(*wine, learner="lda", random_state=0)


@pytest.fixture(
    scope="module", params=["model", "choice", "evaluation", "measured", "comparison", "form only"]
)
def shown(request, model, wine):
    X, y = wine[0].to_numpy(), wine[1].to_numpy()
    if request.param == "model":
        return model
    if request.param == "choice":
        return choose_learner(X, y)
    if request.param == "comparison":
        return compare(X, y, ["lda", "sila"])
    if request.param == "form only":
        return Model(Mahalanobis.identity(4))
    evaluation = evaluate(model, X, y)
    return evaluation.measured[0] if request.param == "measured" else evaluation


def test_one_screen_without_arrays(shown):
    text = repr(shown)
    assert text.startswith(type(shown).__name__ + "\n")
    assert len(text.splitlines()) <= 15
    assert "array(" not in text


def test_a_notebook_shows_the_same(shown):
    cells = re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", shown._repr_html_())
    assert (
        "".join(map(unescape, cells)).split()
        == "".join(name + text for name, text in shown._card()).split()
    )


def test_a_model_says_what_it_is(model):
    text = repr(model)
    assert "Mahalanobis(n_features_in=13, rank=2)" in text
    assert "columns           alcohol, malic_acid, ash, " in text and ", …" in text
    assert f"closeness ≥ {model.threshold:.6g}" in text
    errors = model.measured["errors"]
    assert f"euclidean {100 * errors['euclidean']:.2f} %" in text


def test_names_are_not_markup():
    model = Model(Mahalanobis.identity(1), ("<script>",), label="<b>")
    assert "<script>" in repr(model)
    assert "<script>" not in model._repr_html_() and "<b>" not in model._repr_html_()


def test_a_learner_that_refused_says_why():
    X = np.random.RandomState(0).rand(60, 3)
    y = np.arange(60) % 2
    X[:, 0] += y
    found = compare(X, y, ["lda"])
    line = found.lines[-1]
    object.__setattr__(line, "refused", "It cannot.")
    assert "lda" in repr(found) and "It cannot." in repr(found)
