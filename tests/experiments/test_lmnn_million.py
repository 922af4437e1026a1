"""The million deformed digits: the deformations, and a small run from end to end."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.ndimage import map_coordinates
from sklearn.utils import Bunch

from experiments import lmnn_million


@pytest.fixture
def blots(monkeypatch):
    """In the place of MNIST: 300 images of two kinds of blots, a third of them to test on."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 300)
    at = np.arange(28)
    rows, columns = rng.uniform(9, 19, (2, 300, 1))
    high = np.exp(-((at - rows) ** 2) / (8 + 40 * y[:, None]))
    wide = np.exp(-((at - columns) ** 2) / (48 - 40 * y[:, None]))
    images = (255 * high[:, :, None] * wide[:, None, :]).reshape(300, -1).astype(np.float32)
    data = Bunch(data=images, target=y, train=np.arange(300) >= 100)
    monkeypatch.setattr(lmnn_million, "load", lambda name, dtype: data)
    return data


def test_places_between_pixels_are_interpolated(seed):
    rng = np.random.default_rng(seed)
    images = rng.random((3, 784)).astype(np.float32)
    down, right = rng.uniform(-3, 30, (2, 5, 784)).astype(np.float32)
    which = np.array([2, 0, 1, 1, 0])
    out = np.empty((5, 784), dtype=np.float32)
    lmnn_million.resample(images, which, down, right, out)
    for i, image in enumerate(images[which].reshape(5, 28, 28)):
        padded = np.pad(image, 5)
        wanted = map_coordinates(padded, [down[i] + 5, right[i] + 5], order=1)
        np.testing.assert_allclose(out[i], wanted, atol=1e-5)


def test_without_strength_nothing_is_deformed(monkeypatch):
    for name in ("TURN", "SHEAR", "SHIFT", "BEND"):
        monkeypatch.setattr(lmnn_million, name, 0.0)
    rng = np.random.default_rng(0)
    images = rng.random((4, 784)).astype(np.float32)
    copies = lmnn_million.deformed(images, np.array([3, 1]), rng)
    np.testing.assert_allclose(copies, images[[3, 1]], atol=1e-5)


def test_bends_are_linear_between_the_points_of_the_grid():
    W = lmnn_million.between().reshape(lmnn_million.GRID, lmnn_million.GRID, 28, 28)
    np.testing.assert_allclose(W.sum(axis=(0, 1)), 1)
    slope = np.arange(lmnn_million.GRID)
    np.testing.assert_allclose(
        np.tensordot(slope, W.sum(axis=1), 1), np.linspace(0, 4, 28)[:, None].repeat(28, 1)
    )


def test_the_digits_do_not_depend_on_the_threads(blots, monkeypatch):
    monkeypatch.setattr(lmnn_million, "BLOCK", 100)
    few, million, test = lmnn_million.digits(1000, None, 1)
    again = lmnn_million.digits(1000, None, 2)[1]
    np.testing.assert_array_equal(million[0], again[0])
    np.testing.assert_array_equal(million[0][:200], few[0])
    np.testing.assert_array_equal(million[1], np.tile(few[1], 5))
    assert test[0].shape == (100, 50) and million[0].dtype == np.float32
    assert not np.allclose(million[0][200:400], few[0], atol=0.1)


def test_a_small_run_says_the_same_twice(blots, tmp_path, monkeypatch):
    for name, value in (("N", 1000), ("N_ANCHORS", 150), ("N_CHECKED", 100)):
        monkeypatch.setattr(lmnn_million, name, value)
    texts = []
    for name in ("first", "second"):
        out = tmp_path / name
        out.mkdir()
        lmnn_million.run(out, quick=False, jobs=1)
        texts.append({path.name: path.read_text() for path in sorted(out.iterdir())})
        assert "make the digits" in texts[-1].pop("times.csv")
    assert texts[0] == texts[1]
    assert set(texts[0]) == {"errors.csv", "losses.csv", "steps.csv", "summary.md"}
    assert "| LMNN on 1,000 | 1000 |" in texts[0]["summary.md"]


def test_compared_counts_who_is_wrong_alone():
    wrong = {("a", 1): np.array([1, 1, 1, 0], bool), ("b", 2): np.array([0, 0, 1, 1], bool)}
    row = lmnn_million.compared("step", wrong, ("a", 1), ("b", 2))
    assert (row["only first wrong"], row["only second wrong"]) == (2, 1)
    assert row["standard errors better"] == pytest.approx(1 / np.sqrt(3))
