"""Models: names, scaling, files, and rows they know again."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import scipy.sparse as sp

from samewise import load
from samewise.exceptions import FileFormatError, InvalidInputError
from samewise.files import container
from samewise.files.storable import made
from samewise.forms import Bilinear, GeneralizedCosine, Mahalanobis, MultiMetric
from samewise.model import Model, row_marks


@pytest.fixture
def model():
    return Model(
        Mahalanobis(np.diag([1.0, 4.0])),
        ("cm", "größe"),
        "class",
        np.array([1.0, 2.0]),
        np.array([2.0, 0.5]),
        learner="lmnn",
        params={"n_neighbors": 3},
        measured={"rows": 5, "errors": {"lmnn": 0.1}},
        threshold=-1.5,
        versions={"python": "3"},
        seen=row_marks(np.eye(2)),
    )


def test_a_file_gives_back_the_model(model, tmp_path):
    model.save(tmp_path / "m.sw")
    for back in (load(tmp_path / "m.sw"), load(tmp_path / "m.sw")):
        for field in dataclasses.fields(Model):
            np.testing.assert_equal(getattr(back, field.name), getattr(model, field.name))
    bare = Model(GeneralizedCosine(np.eye(2)))
    bare.save(tmp_path / "bare.sw")
    back = load(tmp_path / "bare.sw")
    assert back.form == bare.form and back.mean is None and back.feature_names is None


def test_rows_are_scaled_and_columns_found_by_name(model):
    X = np.array([[3.0, 2.5], [1.0, 2.0]])
    prepared = model.prepare(X)
    np.testing.assert_allclose(prepared, [[1.0, 1.0], [0.0, 0.0]])
    mixed = np.c_[X[:, 1], [9.0, 9.0], X[:, 0]]
    np.testing.assert_allclose(model.prepare(mixed, ["größe", "other", "cm"]), prepared)
    np.testing.assert_allclose(model.transform(mixed, ["größe", "other", "cm"]), [[2, 1], [0, 0]])
    np.testing.assert_allclose(model.closeness(X), [[0, -np.sqrt(5)], [-np.sqrt(5), 0]])
    assert model.prepare(X.astype(np.float32)).dtype == np.float32
    with pytest.raises(InvalidInputError, match=r"missing here: 'größe' \(there is 'grösse'\)"):
        model.prepare(X, ["cm", "grösse"])
    with pytest.raises(InvalidInputError, match=r"learned from 2 features\. Got 3"):
        model.prepare(mixed)
    with pytest.raises(InvalidInputError, match="would not stay sparse"):
        model.prepare(sp.csr_array(X))


def test_forms_without_coordinates_say_so():
    with pytest.raises(InvalidInputError, match="no coordinates"):
        Model(Bilinear(np.eye(2))).transform(np.eye(2))
    multi = Model(MultiMetric([np.eye(2), 2 * np.eye(2)], classes=["a", "b"]))
    closeness = multi.closeness([[0.0, 0.0]], [[1.0, 0.0], [1.0, 0.0]], ["a", "b"])
    np.testing.assert_allclose(closeness, [[-1.0, -2.0]])


def test_rows_are_known_again(model):
    assert model.has_seen([[1.0, 0.0], [1.0, 1e-3]]).tolist() == [True, False]
    X = np.random.default_rng(0).integers(-2, 3, size=(2000, 12)).astype(float)
    marks = row_marks(X)
    np.testing.assert_array_equal(marks, row_marks(sp.csr_array(X)))
    np.testing.assert_array_equal(marks, row_marks(X.astype(np.float32)))
    np.testing.assert_array_equal(marks, row_marks(np.where(X == 0, -0.0, X)))
    assert len(np.unique(marks)) == len(np.unique(X, axis=0))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"feature_names": ("a",)}, "name the 2 features"),
        ({"mean": None}, "together"),
        ({"scale": np.ones(3)}, "2 finite numbers"),
        ({"scale": np.array([1.0, 0.0])}, "positive"),
        ({"mean": np.array([1.0, np.nan])}, "2 finite numbers"),
    ],
)
def test_parts_that_do_not_fit(model, change, message):
    with pytest.raises(InvalidInputError, match=message):
        dataclasses.replace(model, **change)


def test_damaged_and_foreign_files(model, tmp_path):
    path = tmp_path / "m.sw"
    model.save(path)
    good = container.read(path)
    data = path.read_bytes()
    path.write_bytes(data[:-9])
    with pytest.raises(FileFormatError, match="truncated"):
        load(path)
    model.form.save(path)
    with pytest.raises(FileFormatError, match="holds a Mahalanobis, not a model"):
        made(container.read(path), Model, wanted="model")

    def forged(arrays=(), without=(), **params):
        kept = {k: v for k, v in {**good.arrays, **dict(arrays)}.items() if k not in without}
        container.write(path, "Model", kept, {**good.params, **params}, owner="it")
        with pytest.raises(FileFormatError, match="do not make a Model"):
            load(path)

    forged(form={"kind": "nothing", "params": {}})
    forged(form=3)
    forged(without=["form.components"])
    forged({"form.more": np.eye(2)})
    forged({"more": np.eye(2)})
    forged({"scale": np.array([1.0, -1.0])})
    forged({"seen": np.ones(2)})
    forged({"feature_names": np.frombuffer(b"[1, 2]", np.uint8).copy()})
    forged({"feature_names": np.frombuffer(b"{{", np.uint8).copy()})
    forged(params=[])
    forged(threshold="no")
    forged(versions={"python": 3})
    forged(label=7)
    forged(surprise=1)


def test_a_kernel_made_of_a_function_is_not_saved(tmp_path):
    from samewise.forms import KernelMahalanobis

    form = KernelMahalanobis(np.eye(2), np.eye(2), kernel=lambda a, b: float(a @ b))
    with pytest.raises(InvalidInputError, match="callable"):
        Model(form).save(tmp_path / "m.sw")
    assert not (tmp_path / "m.sw").exists()
