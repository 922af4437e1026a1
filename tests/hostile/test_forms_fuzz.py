"""Every form: its ways to compare rows agree, or refuse, whatever the form and the rows hold."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import samewise
from samewise import forms, load
from samewise.catalog import WHERE
from samewise.forms.distance_form import EuclideanForm
from tests.hostile.outcomes import Refusal, attempt, bits, check_finite, saved
from tests.hostile.strategies import malformed, n_rows, rows, tame_rows

FORMS = sorted(
    name for name, place in WHERE.items() if place == "samewise.forms" and name != "Form"
)
D = 3
LAYOUTS = ("C", "Fortran", "float32", "every second row", "CSR", "CSR unsorted", "list")


@st.composite
def arguments(draw, name, wild=True):
    """What a form of that name is made of: right in shape, of any values if `wild`."""

    def matrix(n, d=D):
        n, d = st.just(n), st.just(d)
        return draw(rows(n, d, layouts=LAYOUTS[:4]) if wild else tame_rows(n, d, layouts=("C",)))

    square = matrix(D)
    if name in ("Mahalanobis", "GeneralizedCosine"):
        L = np.asarray(square, dtype=float)
        with np.errstate(all="ignore"):
            return (L.T @ L,)
    if name == "Bilinear":
        return (square,)
    if name == "NormalizedBilinear":
        return square, draw(st.sampled_from([None, "cosine", "dice", "jaccard"]))
    if name == "LowRankBilinear":
        return matrix(D, 2), matrix(D, 2)
    if name == "KernelMahalanobis":
        kernel = draw(st.sampled_from(["rbf", "poly", "linear", "sigmoid", "cosine"]))
        return matrix(2, 4), matrix(4), kernel
    if name == "MultiMetric":
        return ([square, matrix(D)],)
    if name == "NeuralSimilarity":
        return matrix(2), matrix(2), matrix(1, 2)[0], matrix(1, 2)[0], draw(st.floats())
    if name == "PosteriorSimilarity":
        return matrix(2), matrix(1, 2)[0], matrix(2, 2)
    raise NotImplementedError(f"say what a {name} is made of")


def made(draw, name, wild=True):
    options = {"centers": [[0.0] * D, [1.0] * D]} if name == "MultiMetric" else {}
    given = draw(arguments(name, wild))
    before = bits(given)
    form = attempt(lambda: getattr(samewise, name)(*given, **options), name, given)
    assert bits(given) == before
    return form


every_form = pytest.mark.parametrize("name", FORMS)


@every_form
@given(data=st.data())
def test_any_values(name, data):
    form = made(data.draw, name)
    if isinstance(form, Refusal):
        return
    check_finite(form)
    X = data.draw(rows(d=st.just(D) | st.integers(1, 4)) | malformed(d=st.just(D)))
    before = bits(X)
    calls = [lambda: form.cross(X), lambda: form.pairs(X, X), lambda: form.closeness(X)]
    for name in ("embed", "embed_query", "embed_item"):
        if hasattr(form, name):
            calls.append(lambda name=name: getattr(form, name)(X))
    for call in calls:
        outcome = attempt(call, form.state(), X)
        if not isinstance(outcome, Refusal):
            check_finite(outcome)
    assert bits(X) == before


@every_form
@given(data=st.data())
def test_the_ways_to_compare_agree(name, data, tmp_path):
    form = made(data.draw, name, wild=False)
    if isinstance(form, Refusal):
        return
    X = data.draw(tame_rows(d=st.just(D), layouts=LAYOUTS))
    cross = attempt(lambda: form.cross(X), form.state(), X)
    if isinstance(cross, Refusal):
        return
    n, exact = n_rows(X), cross.dtype == np.float64
    scale = 1.0 + np.abs(cross).max()
    tolerance = {"rtol": 1e-6 if exact else 2e-3, "atol": (1e-6 if exact else 2e-3) * scale}
    at = np.arange(n)[::-1]
    Y = [X[i] for i in at] if isinstance(X, list) else X[at]
    np.testing.assert_allclose(form.pairs(X, Y), cross[np.arange(n), at], **tolerance)
    closeness = -cross if form.is_distance else cross
    np.testing.assert_array_equal(form.closeness(X), closeness)
    blocks = [block for _, block in form.blocks(X, block_bytes=1)]
    np.testing.assert_allclose(np.concatenate(blocks), closeness, **tolerance)
    if form.is_distance:
        assert np.all(cross >= 0)
    if isinstance(form, EuclideanForm):
        assert not cross.diagonal().any() and not form.pairs(X, X).any()
        np.testing.assert_array_equal(cross, cross.T) if n == 1 else None
        np.testing.assert_allclose(cross, cross.T, **tolerance)
        Z = form.embed(X)
        distances = np.linalg.norm(Z[:, None] - Z[None], axis=2)
        np.testing.assert_allclose(distances, cross, **tolerance)
    if isinstance(form, forms.GeneralizedCosine):
        assert np.all(np.abs(cross) <= 1)
        np.testing.assert_allclose(cross, cross.T, **tolerance)


@every_form
@given(data=st.data())
def test_copies_are_the_same(name, data, tmp_path):
    form = made(data.draw, name)
    if isinstance(form, Refusal):
        return
    bytes_ = saved(form, tmp_path)
    copies = [load(tmp_path / "file"), pickle.loads(pickle.dumps(form)), copy.deepcopy(form)]
    for each in copies:
        assert each == form and saved(each, tmp_path) == bytes_
