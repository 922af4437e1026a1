"""usearch and hnswlib under a learned form: nearly the lists of our exact search."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import scipy.sparse as sp

from samewise import Bilinear, Cosine, Index, Mahalanobis
from samewise.exceptions import InvalidInputError
from samewise.search import to_hnswlib, to_usearch

RNG = np.random.default_rng(0)
X = RNG.normal(size=(3000, 12)).astype(np.float32)
Q = RNG.normal(size=(60, 12)).astype(np.float32)
W = np.eye(12) + 0.3 * RNG.normal(size=(12, 12))
FORMS = {
    "distance": Mahalanobis.from_components(RNG.normal(size=(6, 12))),
    "similarity": Bilinear(W),
    "low rank": Bilinear(W).reduce(8),
}


@pytest.fixture(params=["usearch", "hnswlib"])
def package(request):
    pytest.importorskip(request.param, reason=f"{request.param} has no wheel here")
    return request.param


def made(package, form, inner=None):
    return {"usearch": to_usearch, "hnswlib": to_hnswlib}[package](form, inner)


def saved(package, index, path):
    """The inner index, written and read again by the package."""
    if package == "usearch":
        from usearch.index import Index as Inner

        index.inner.save(path)
        return Inner.restore(path)
    import hnswlib

    index.inner.save_index(str(path))
    inner = hnswlib.Index(space=index.inner.space, dim=index.inner.dim)
    inner.load_index(str(path))
    inner.set_ef(100)
    return inner


@pytest.mark.parametrize("name", FORMS)
def test_recall_and_the_way_through_a_file(package, name, tmp_path):
    form = FORMS[name]
    index = made(package, form)
    for part in (slice(0, 900), slice(900, 3000)):
        np.testing.assert_array_equal(index.add(X[part]), np.arange(3000)[part])
    assert len(index) == 3000
    closeness, found = index.query(Q, 10)
    exact, expected = Index(form, X).query(Q, 10)
    recall = np.mean([len({*a} & {*b}) / 10 for a, b in zip(found, expected, strict=True)])
    assert recall > 0.95
    same = found == expected
    np.testing.assert_allclose(closeness[same], exact[same], rtol=1e-3, atol=1e-3)
    assert np.all(np.diff(closeness, axis=1) <= 1e-4)
    again = made(package, form, saved(package, index, tmp_path / "index"))
    np.testing.assert_array_equal(again.query(Q, 10)[1], found)
    again.add(Q[:1], [7_000])
    if name == "distance":
        assert again.query(Q[:1], 1)[1].tolist() == [[7_000]]


def test_keys_sparse_rows_and_one_neighbor(package):
    index = made(package, FORMS["distance"])
    index.add(sp.csr_array(X[:50]), np.arange(100, 150))
    assert index.query(X[3:4])[1].tolist() == [[103]]
    assert index.query(X[:2], 50)[1].shape == (2, 50)


def test_what_is_refused(package):
    index = made(package, FORMS["distance"])
    other = made(package, FORMS["similarity"]).inner
    for call, said in (
        (lambda: made(package, Cosine().fit(X).metric_), "needs a Mahalanobis distance or a bilin"),
        (lambda: made(package, FORMS["distance"], other), "must be of 6 dimensions"),
        (lambda: made(package, Mahalanobis.identity(12), other), "and another metric"),
        (lambda: index.query(Q), "n_neighbors must be from 1 to the 0 rows"),
        (lambda: index.add(X[:2], [1]), "keys must be one whole number"),
        (lambda: index.add(X[:2], [-1, 2]), "keys must be one whole number"),
        (lambda: index.add(1e38 * X[:2]), "overflow float32"),
        (lambda: index.add(X[:, :3]), "3 features"),
    ):
        with pytest.raises(InvalidInputError, match=said):
            call()
    assert len(index) == 0


@pytest.mark.parametrize("make, module", [(to_usearch, "usearch.index"), (to_hnswlib, "hnswlib")])
def test_a_missing_package_is_named(make, module, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=r"pip install 'samewise\[search\]'"):
        make(FORMS["distance"])
