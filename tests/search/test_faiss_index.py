"""FAISS under a learned distance: the lists of our exact search."""

from __future__ import annotations

import gc
import sys

import numpy as np
import pytest

from samewise import Bilinear, Index, Mahalanobis
from samewise.exceptions import InvalidInputError
from samewise.search import to_faiss

RNG = np.random.default_rng(0)
X = RNG.normal(size=(500, 8)).astype(np.float32)
Q = RNG.normal(size=(40, 8)).astype(np.float32)
FORM = Mahalanobis.from_components(RNG.normal(size=(3, 8)))


def test_its_lists_are_those_of_the_exact_search(tmp_path):
    faiss = pytest.importorskip("faiss")
    index = to_faiss(FORM)
    gc.collect()
    index.add(X)
    distances, found = index.search(Q, 5)
    closeness, expected = Index(FORM, X).query(Q, 5)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_allclose(np.sqrt(distances), -closeness, rtol=1e-3, atol=1e-3)
    faiss.write_index(index, str(tmp_path / "index"))
    np.testing.assert_array_equal(faiss.read_index(str(tmp_path / "index")).search(Q, 5)[1], found)


def test_an_inner_index_that_is_trained():
    faiss = pytest.importorskip("faiss")
    index = to_faiss(FORM, faiss.index_factory(3, "IVF8,Flat"))
    index.train(X)
    index.add(X)
    faiss.extract_index_ivf(index).nprobe = 8
    np.testing.assert_array_equal(index.search(Q, 5)[1], Index(FORM, X).query(Q, 5)[1])


def test_what_is_refused():
    faiss = pytest.importorskip("faiss")
    full = faiss.IndexFlatL2(3)
    full.add(X[:, :3].copy())
    for form, inner, said in (
        (Bilinear(np.eye(8)), None, "to_faiss needs a Mahalanobis distance"),
        (FORM, faiss.IndexFlatL2(8), "must be of 3 dimensions"),
        (FORM, faiss.IndexFlatIP(3), "under the L2"),
        (FORM, full, "The inner index must be empty"),
    ):
        with pytest.raises(InvalidInputError, match=said):
            to_faiss(form, inner)


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(ImportError, match=r"pip install 'samewise\[search\]'"):
        to_faiss(FORM)
