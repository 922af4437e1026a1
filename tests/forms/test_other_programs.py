"""A distance in the hands of other programs: safetensors and ONNX."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from samewise import Bilinear, Cosine, GeneralizedCosine, Index, Mahalanobis, NormalizedBilinear
from samewise.exceptions import InvalidInputError, TooLargeError
from samewise.files import tensor_files
from samewise.search import to_onnx

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


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_cosines_in_onnx(dtype, tmp_path):
    """Also of rows that are zero, or that A maps to zero."""
    A = RNG.normal(size=(3, 5)).astype(dtype)
    A[:, 4] = 0
    form = GeneralizedCosine(A.T @ A, on_zero="zero")
    left, right = X.astype(dtype), Y.astype(dtype)
    left[3], left[5, :4] = 0, 0
    tolerance = {"rtol": 1e-4 if dtype == np.float32 else 1e-12, "atol": 1e-5}
    form.to_onnx(tmp_path / "map.onnx")
    mapped = ran(tmp_path / "map.onnx", rows=left)["mapped"]
    assert mapped.dtype == dtype
    np.testing.assert_allclose(mapped, form.embed(left), **tolerance)
    np.testing.assert_array_equal(mapped[[3, 5]], 0)
    form.to_onnx(tmp_path / "pairs.onnx", pairs=True)
    closeness = ran(tmp_path / "pairs.onnx", left=left, right=right)["closeness"]
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


W = RNG.normal(size=(5, 7))
ITEMS = RNG.normal(size=(20, 7))
DOTS = {
    "full": lambda dtype: Bilinear(W.astype(dtype)),
    "low rank": lambda dtype: Bilinear(W.astype(dtype)).reduce(3),
}


def ran(path, **inputs):
    """What onnxruntime makes of a file."""
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(path)
    names = [side.name for side in session.get_outputs()]
    return dict(zip(names, session.run(names, inputs), strict=True))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kind", DOTS)
def test_similarities_in_onnx(kind, dtype, tmp_path):
    pytest.importorskip("onnx")
    form = DOTS[kind](dtype)
    queries, items = X.astype(dtype), ITEMS.astype(dtype)
    tolerance = {"rtol": 1e-4 if dtype == np.float32 else 1e-12, "atol": 1e-5}
    paths = {output: tmp_path / f"{output}.onnx" for output in ("query", "item", "pairs")}
    for output, path in paths.items():
        form.to_onnx(path, output=output)
    Q = ran(paths["query"], queries=queries)["mapped_queries"]
    P = ran(paths["item"], items=items)["mapped_items"]
    assert Q.dtype == P.dtype == dtype
    np.testing.assert_allclose(Q, form.embed_query(queries), **tolerance)
    np.testing.assert_allclose(Q @ P.T, form.cross(queries, items), **tolerance)
    closeness = ran(paths["pairs"], queries=queries, items=items)["closeness"]
    np.testing.assert_allclose(closeness, form.pairs(queries, items), **tolerance)
    with pytest.raises(InvalidInputError, match="output must be one of 'query', 'item', 'pairs'"):
        form.to_onnx(tmp_path / "other", output="both")
    with pytest.raises(InvalidInputError, match="divides by the lengths of rows"):
        NormalizedBilinear(np.eye(5)).to_onnx(tmp_path / "other")


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kind", ["distance", *DOTS])
def test_neighbors_in_onnx(kind, dtype, tmp_path):
    pytest.importorskip("onnx")
    L = RNG.normal(size=(3, 5)).astype(dtype)
    form = Mahalanobis.from_components(L) if kind == "distance" else DOTS[kind](dtype)
    stored = (50 + X if kind == "distance" else ITEMS).astype(dtype)
    queries = (50 + Y if kind == "distance" else Y).astype(dtype)
    to_onnx(form, stored, tmp_path / "search.onnx", 4)
    found = ran(tmp_path / "search.onnx", queries=queries)
    closeness, rows = Index(form, stored).query(queries, 4)
    assert found["rows"].dtype == np.int64
    np.testing.assert_array_equal(found["rows"], rows)
    atol = 1e-2 if dtype == np.float32 else 1e-6
    np.testing.assert_allclose(found["closeness"], closeness, rtol=1e-3, atol=atol)
    for call, said in (
        (lambda: to_onnx(form, stored, tmp_path / "no", 21), "from 1 to the 20 stored rows"),
        (lambda: to_onnx(form, stored[:, :2], tmp_path / "no"), "2 features"),
        (lambda: to_onnx(Cosine().fit(X).metric_, X, tmp_path / "no"), "Got a GeneralizedCosine"),
    ):
        with pytest.raises(InvalidInputError, match=said):
            call()
    assert not (tmp_path / "no").exists()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kind", DOTS)
def test_maps_of_similarities_as_layers(kind, dtype, tmp_path):
    safetensors = pytest.importorskip("safetensors")
    form, path = DOTS[kind](dtype), tmp_path / "map.safetensors"
    queries, items = X.astype(dtype), ITEMS.astype(dtype)
    form.to_safetensors(path)
    with safetensors.safe_open(path, "np") as file:
        Q = queries @ file.get_tensor("weight").T
        assert file.get_tensor("weight").dtype == dtype
        assert file.metadata()["output"] == "query"
    P = items
    if kind == "low rank":
        form.to_safetensors(path, output="item")
        with safetensors.safe_open(path, "np") as file:
            P = items @ file.get_tensor("weight").T
    else:
        with pytest.raises(InvalidInputError, match="Under a Bilinear items stay as they are"):
            form.to_safetensors(tmp_path / "other", output="item")
    rtol = 1e-4 if dtype == np.float32 else 1e-12
    np.testing.assert_allclose(Q @ P.T, form.cross(queries, items), rtol=rtol, atol=1e-5)
    with pytest.raises(InvalidInputError, match="output must be one of 'query', 'item'"):
        form.to_safetensors(tmp_path / "other", output="pairs")
    with pytest.raises(InvalidInputError, match="divides by the lengths of rows"):
        NormalizedBilinear(np.eye(5)).to_safetensors(tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_a_layer_of_torch_maps_as_the_form_does(form, tmp_path):
    pytest.importorskip("safetensors")
    torch = pytest.importorskip("torch")
    from safetensors.torch import load_file

    form.to_safetensors(tmp_path / "map.safetensors")
    layer = torch.nn.Linear(5, 3, bias=False, dtype=torch.float64)
    layer.load_state_dict(load_file(tmp_path / "map.safetensors"))
    with torch.no_grad():
        mapped = layer(torch.from_numpy(X)).numpy()
    np.testing.assert_allclose(mapped, form.embed(X), rtol=1e-5, atol=1e-6)
