"""A distance in the hands of other programs: safetensors and ONNX."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from samewise import Mahalanobis
from samewise.exceptions import TooLargeError
from samewise.files import tensor_files

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(2, 20, 5))


@pytest.fixture(params=[np.float64, np.float32])
def form(request):
    return Mahalanobis.from_components(RNG.normal(size=(3, 5)).astype(request.param))


def test_onnx(form, tmp_path):
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    left, right = (rows.astype(form.components.dtype) for rows in (X, Y))
    tolerance = {"rtol": 1e-5 if left.dtype == np.float32 else 1e-12, "atol": 1e-6}
    form.to_onnx(tmp_path / "map.onnx")
    session = runtime.InferenceSession(tmp_path / "map.onnx")
    for n in (20, 1):
        (mapped,) = session.run(["mapped"], {"rows": left[:n]})
        assert mapped.dtype == left.dtype
        np.testing.assert_allclose(mapped, form.embed(left[:n]), **tolerance)
    assert session.get_modelmeta().custom_metadata_map == {"form": "Mahalanobis"}
    form.to_onnx(tmp_path / "pairs.onnx", pairs=True)
    session = runtime.InferenceSession(tmp_path / "pairs.onnx")
    (closeness,) = session.run(["closeness"], {"left": left, "right": right})
    np.testing.assert_allclose(closeness, form.pair_closeness(left, right), **tolerance)


def test_safetensors(form, tmp_path):
    safetensors = pytest.importorskip("safetensors")
    form.to_safetensors(tmp_path / "map.safetensors")
    with safetensors.safe_open(tmp_path / "map.safetensors", "np") as file:
        assert list(file.keys()) == ["weight"]
        np.testing.assert_array_equal(file.get_tensor("weight"), form.components)
        assert file.get_tensor("weight").dtype == form.components.dtype
        assert file.metadata()["format"] == "pt"
    # Also where the array does not lie row by row in memory.
    turned = Mahalanobis.from_components(np.asfortranarray(form.components))
    turned.to_safetensors(tmp_path / "turned.safetensors")
    with safetensors.safe_open(tmp_path / "turned.safetensors", "np") as file:
        np.testing.assert_array_equal(file.get_tensor("weight"), form.components)


@pytest.mark.parametrize(
    ("method", "module", "extra"),
    [("to_onnx", "onnx", "onnx"), ("to_safetensors", "safetensors.numpy", "safetensors")],
)
def test_a_missing_package_is_named(form, tmp_path, monkeypatch, method, module, extra):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=rf"pip install 'samewise\[{extra}\]'"):
        getattr(form, method)(tmp_path / "map")
    assert not list(tmp_path.iterdir())


def test_a_map_that_is_too_large(form, tmp_path, monkeypatch):
    pytest.importorskip("onnx")
    monkeypatch.setattr(tensor_files, "LARGEST_MODEL", 50)
    with pytest.raises(TooLargeError, match="Reduce the form first"):
        form.to_onnx(tmp_path / "map.onnx")
    assert not list(tmp_path.iterdir())
