"""What a notebook shows of a form."""

from __future__ import annotations

import re
from html import unescape

import numpy as np
import pytest

from samewise import Bilinear, GeneralizedCosine, LowRankBilinear, Mahalanobis, Model
from samewise._cards import sparkline
from samewise.forms import form as forms

RNG = np.random.default_rng(0)


def cells(shown):
    """Names and texts of a card."""
    found = re.findall(r"<th[^>]*>(.*?)</th><td[^>]*>(.*?)</td>", shown._repr_html_())
    return {name: unescape(text) for name, text in found}


def test_the_spectrum_is_that_of_the_matrix():
    A = RNG.normal(size=(4, 4))
    spectra = [
        (Mahalanobis(np.diag([9.0, 4.0, 0.01])), [9, 4, 0.01]),
        (Mahalanobis.from_components(A), np.linalg.svd(A)[1] ** 2),
        (Bilinear(A), np.linalg.svd(A)[1]),
        (LowRankBilinear(A[:, :2], A[:, 2:]), np.linalg.svd(A[:, :2] @ A[:, 2:].T)[1][:2]),
        (GeneralizedCosine(np.diag([2.0, 1.0])), [2, 1]),
    ]
    for form, expected in spectra:
        np.testing.assert_allclose(form._spectrum(), expected, rtol=1e-8)
        shown = cells(form)
        assert shown["spectrum"] == sparkline(np.asarray(expected))
        assert shown["effective rank"].endswith("(above 1 % of the largest)")
    assert cells(Mahalanobis(np.diag([9.0, 4.0, 0.01])))["effective rank"].startswith("2 of 3")


def test_a_large_form_costs_nothing(monkeypatch):
    monkeypatch.setattr(np.linalg, "svd", pytest.fail)
    large = Mahalanobis.from_components(np.zeros((2, forms.LITTLE)))
    assert "spectrum" not in cells(large)
    assert cells(large)["n features in"] == str(forms.LITTLE)
    assert "spectrum" not in cells(Bilinear(np.zeros((2, forms.LITTLE))))


def test_bars():
    assert sparkline(np.array([8.0, 4.0, 0.0])) == "█▅▁"
    assert sparkline(np.zeros(3)) == "▁▁▁"
    assert len(sparkline(np.arange(1000.0))) == 32


def test_a_model_shows_it_with_its_threshold():
    model = Model(Mahalanobis.identity(3), threshold=-1.5)
    assert cells(model)["spectrum"] == "███"
    assert cells(model)["same if"] == "closeness ≥ -1.5"
