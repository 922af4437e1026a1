"""What an adapter serves, in the hands of other programs."""

from __future__ import annotations

import pickle
import sys

import numpy as np
import pytest

from samewise import Bilinear, LiveAdapter
from samewise.exceptions import InvalidInputError, TooLargeError
from samewise.files import tensor_files
from tests.reference import feedback as reference

FORMS = ("start", "live", "served")


@pytest.fixture
def adapter(world):
    """Three forms that differ, and a first place of its own."""
    W = np.eye(12) + 0.05 * np.random.RandomState(1).randn(12, 12)
    adapter = LiveAdapter(
        items=world.items, half_life=60.0, initial=Bilinear(W), random_state=0
    ).fit(world.items)
    for t in range(90):
        q, shown, y = world.judged()
        adapter.feedback(world.items[q], shown, y, weight=1.0 + t % 2)
        if t == 40:
            adapter.promote()
        if t == 60:
            course = adapter._fitted
            course.serve(("rest",), course.freeze(), "promote")
    return adapter


@pytest.mark.parametrize("which", FORMS)
@pytest.mark.parametrize("place", ["rest", "first"])
def test_the_function_is_the_plain_loop(adapter, world, which, place):
    mapped = getattr(adapter, which).to_numpy(place)
    window = adapter._fitted.form(which, place)[1]
    state = adapter._fitted.memory.state().arrays
    events = [
        (query, v, weight * 0.5 ** ((window[2] - number) / 60.0))
        for query, v, number, weight, ended in zip(
            *(
                state[name].astype(float)
                for name in ("queries", "directions", "numbers", "weights", "ended")
            ),
            strict=True,
        )
        if window[0] <= number < window[1] <= ended
    ]
    units = adapter._fitted.units
    kernel = (2.0, 14 / units.gap, units.mean_similarity + 0.95 * units.gap)
    matrix, bias = (part.astype(float) for part in getattr(adapter, which).to_matrix(place))
    expected = [
        reference.mapped(q, matrix, bias, events, *kernel) for q in world.items[:40].astype(float)
    ]
    np.testing.assert_allclose(mapped(world.items[:40]), expected, atol=1e-4)
    np.testing.assert_allclose(mapped(world.items[3]), expected[3], atol=1e-4)
    assert (
        len(mapped.queries)
        == {"start": 0, "live": 90 - 4, "served": 61 - 2 if place == "rest" else 41 - 2}[which]
        == len(events)
    )


def test_it_is_the_form_where_all_lists_are_near(world):
    """With few cells the form looks at all remembered lists too."""
    adapter = LiveAdapter(items=world.items, random_state=0).fit(world.items[:8])
    for _ in range(60):
        q, shown, y = world.judged()
        adapter.feedback(world.items[q], shown, y)
    mapped = adapter.live.to_numpy()
    np.testing.assert_allclose(
        mapped(world.items), adapter.live.embed_query(world.items), atol=1e-4
    )


def test_the_function_stays_as_it_is(adapter, world):
    mapped = adapter.live.to_numpy()
    before = mapped(world.items)
    q, shown, y = world.judged()
    adapter.feedback(world.items[q], shown, y)
    np.testing.assert_array_equal(mapped(world.items), before)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(mapped))(world.items), before)
    assert repr(mapped) == "QueryMap(12 features, 86 remembered lists)"
    with pytest.raises(InvalidInputError, match="12 features"):
        mapped(np.ones((2, 5)))


@pytest.mark.parametrize("which", FORMS)
def test_without_the_memory_it_is_the_matrix(adapter, world, which):
    form = getattr(adapter, which)
    matrix, bias = form.to_matrix()
    mapped = form.to_numpy(memory=False)
    np.testing.assert_allclose(mapped(world.items), world.items @ matrix + bias, atol=1e-6)
    with pytest.raises(InvalidInputError, match="memory must be"):
        form.to_numpy(memory=3)


@pytest.mark.parametrize("which", FORMS)
@pytest.mark.parametrize("memory", [True, False])
def test_onnx(adapter, world, tmp_path, which, memory):
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    form = getattr(adapter, which)
    form.to_onnx(tmp_path / "map.onnx", memory=memory)
    session = runtime.InferenceSession(tmp_path / "map.onnx")
    found = session.run(None, {"query": world.items})
    names = [output.name for output in session.get_outputs()]
    recalls = memory and which != "start"
    assert names == (["linear", "mapped"] if recalls else ["linear"])
    linear = form.to_numpy(memory=False)(world.items)
    np.testing.assert_allclose(found[0], linear, atol=1e-5)
    if recalls:
        np.testing.assert_allclose(found[1], form.to_numpy()(world.items), atol=1e-4)
    about = session.get_modelmeta().custom_metadata_map
    assert about == {"form": which, "place": "rest", "events": "90"}


def test_safetensors(adapter, world, tmp_path):
    safetensors = pytest.importorskip("safetensors")
    adapter.served.to_safetensors(tmp_path / "map.safetensors", "first")
    with safetensors.safe_open(tmp_path / "map.safetensors", "np") as file:
        arrays = {name: file.get_tensor(name) for name in file.keys()}
        about = file.metadata()
    assert about["kind"] == "samewise query map" and about["place"] == "first"
    matrix, bias = adapter.served.to_matrix("first")
    # As torch.nn.Linear has it: x @ weight.T + bias.
    np.testing.assert_array_equal(arrays["weight"].T, matrix)
    np.testing.assert_array_equal(arrays["bias"], bias)
    kernel = (float(about[f"memory.{name}"]) for name in ("alpha", "beta", "center"))
    events = zip(
        *(arrays[f"memory.{name}"] for name in ("queries", "directions", "weights")), strict=True
    )
    q = world.items[0].astype(float)
    expected = reference.mapped(q, matrix, bias, list(events), *kernel)
    np.testing.assert_allclose(adapter.served.to_numpy("first")(q), expected, atol=1e-4)
    adapter.served.to_safetensors(tmp_path / "map.safetensors", memory=False)
    with safetensors.safe_open(tmp_path / "map.safetensors", "np") as file:
        assert sorted(file.keys()) == ["bias", "weight"]


@pytest.mark.parametrize(
    ("method", "module", "extra"),
    [("to_onnx", "onnx", "onnx"), ("to_safetensors", "safetensors.numpy", "safetensors")],
)
def test_a_missing_package_is_named(adapter, tmp_path, monkeypatch, method, module, extra):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=rf"pip install 'samewise\[{extra}\]'"):
        getattr(adapter.live, method)(tmp_path / "map")
    assert not list(tmp_path.iterdir())


def test_a_file_is_written_whole_or_not_at_all(adapter, tmp_path, monkeypatch):
    onnx = pytest.importorskip("onnx")
    (tmp_path / "map.onnx").write_bytes(b"before")

    def refuse(model):
        raise ValueError("refused")

    monkeypatch.setattr(onnx.checker, "check_model", refuse)
    with pytest.raises(ValueError, match="refused"):
        adapter.live.to_onnx(tmp_path / "map.onnx")
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"before"]


def test_an_onnx_file_has_its_limit(adapter, tmp_path, monkeypatch):
    pytest.importorskip("onnx")
    monkeypatch.setattr(tensor_files, "LARGEST_MODEL", 4000)
    with pytest.raises(TooLargeError, match="memory=False"):
        adapter.live.to_onnx(tmp_path / "map.onnx")
    adapter.live.to_onnx(tmp_path / "map.onnx", memory=False)


def test_items_are_mapped_by_the_nearest_symmetric_map(adapter, world):
    form = adapter.live.to_items()
    M = adapter.live.to_matrix()[0].astype(float)
    values, V = np.linalg.eigh((M + M.T) / 2)
    A = (V * np.maximum(values, 0)) @ V.T
    np.testing.assert_allclose(form.matrix, A, atol=1e-6)
    P = form.embed(world.items, symmetric=True)
    scores = world.items @ A @ world.items.T
    sizes = np.sqrt(np.diag(scores))
    np.testing.assert_allclose(P @ P.T, scores / np.outer(sizes, sizes), atol=1e-5)
    start = LiveAdapter().fit(world.items).start.to_items()
    np.testing.assert_allclose(start.embed(world.items, symmetric=True), world.items, atol=1e-5)


def test_items_indexed_again_have_exactly_the_scores(adapter, world):
    """Queries stay as they are: what `to_items` says about `to_matrix`."""
    matrix, bias = adapter.served.to_matrix()
    items = np.column_stack([world.items @ matrix.T, world.items @ bias])
    queries = np.column_stack([world.items, np.ones(len(world.items))])
    expected = adapter.served.to_numpy(memory=False)(world.items) @ world.items.T
    np.testing.assert_allclose(queries @ items.T, expected, atol=1e-5)
