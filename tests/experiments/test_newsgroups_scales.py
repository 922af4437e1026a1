import numpy as np
import pytest
from scipy import sparse

pytest.importorskip("joblib")

from experiments import newsgroups_scales as scales
from experiments._news_data import Split


@pytest.fixture
def split():
    random = np.random.RandomState(0)
    y = np.arange(120) % 3
    X = random.poisson(0.3 + 2.0 * (np.arange(9) % 3 == y[:, None])) + 0.1
    X = sparse.csr_matrix((X / np.linalg.norm(X, axis=1, keepdims=True)).astype(np.float32))
    return Split("toy", 0, (X[:60], y[:60]), (X[60:], y[60:]), np.ones(60), (0, 0))


def test_rows_have_their_scale(split):
    lengths = {
        scale: sparse.linalg.norm(scales.rescaled(split, scale).train[0], axis=1)
        for scale in ("unit length", "length 3")
    }
    np.testing.assert_allclose(lengths["unit length"], 1, rtol=1e-6)
    np.testing.assert_allclose(lengths["length 3"], 3, rtol=1e-6)
    summed = scales.rescaled(split, "sum one")
    for part in (summed.train[0], summed.test[0]):
        assert part.dtype == np.float32
        np.testing.assert_allclose(np.asarray(part.sum(axis=1)).ravel(), 1, rtol=1e-5)


def test_a_small_run_writes_every_case(split, tmp_path, monkeypatch):
    monkeypatch.setattr(scales._news_data, "documents", lambda *_: iter([split]))
    scales.run(tmp_path, quick=True, jobs=1)
    lines = (tmp_path / "scores.csv").read_text().splitlines()
    assert len(lines) == 1 + len(scales.SCALES) * sum(map(len, scales.VALUES.values()))
    leads = (tmp_path / "leads.csv").read_text().splitlines()
    assert len(leads) == 1 + 2 * len(scales.SCALES)
    assert "precision@10" in (tmp_path / "summary.md").read_text()
