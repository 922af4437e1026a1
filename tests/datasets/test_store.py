import io

import numpy as np
import pytest
import sklearn.datasets
from scipy import sparse

from samewise.datasets import available, load
from samewise.datasets.known import KNOWN, SHIPPED
from samewise.datasets.store import stored_names
from samewise.exceptions import DatasetNotFoundError, FileFormatError, InvalidInputError


def test_arrays_come_back_cast_and_named(folder, tiny):
    np.savez(folder / "tiny.npz", **tiny, train=[True, False], group=[7, 9])
    bunch = load("tiny")
    np.testing.assert_array_equal(bunch.data, [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]])
    assert bunch.data.dtype == np.float64
    assert bunch.target.tolist() == [1, 0]
    assert bunch.target.dtype == np.int64
    assert bunch.target_names.tolist() == ["no", "yes"]
    assert bunch.train.tolist() == [True, False]
    assert bunch.group.tolist() == [7, 9]
    assert bunch.name == "tiny"
    assert set(bunch) == {"data", "target", "target_names", "train", "group", "name"}


def test_float32_on_request(folder, tiny):
    np.savez(folder / "tiny.npz", **tiny)
    assert load("tiny", dtype=np.float32).data.dtype == np.float32
    assert load("tiny", dtype="float32").data.dtype == np.float32


@pytest.mark.parametrize("dtype", [np.int64, "float16", "nonsense", object])
def test_other_dtypes_are_refused(folder, tiny, dtype):
    np.savez(folder / "tiny.npz", **tiny)
    with pytest.raises(InvalidInputError, match="'dtype' must be float32 or float64"):
        load("tiny", dtype=dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sparse_parts_become_csr(folder, tiny, dtype):
    dense = np.array([[0, 2, 0], [1, 0, 3]])
    parts = sparse.csr_array(dense)
    np.savez(
        folder / "bow.npz",
        data=parts.data.astype(np.uint8),
        indices=parts.indices.astype(np.uint16),
        indptr=parts.indptr,
        shape=parts.shape,
        terms=["a", "b", "c"],
        y=tiny["y"],
        classes=tiny["classes"],
    )
    bunch = load("bow", dtype=dtype)
    assert isinstance(bunch.data, sparse.csr_array)
    assert bunch.data.dtype == dtype
    assert bunch.data.indices.dtype == np.int32
    np.testing.assert_array_equal(bunch.data.toarray(), dense)
    assert bunch.terms.tolist() == ["a", "b", "c"]
    assert "indptr" not in bunch


def test_available_lists_both_kinds_sorted(folder, tiny):
    np.savez(folder / "zeta.npz", **tiny)
    (folder / "alpha.jsonl.gz").write_bytes(b"")
    (folder / "README.md").write_text("not a data set")
    assert stored_names() == ["alpha", "zeta"]


def test_available_is_empty_without_a_directory(monkeypatch, tmp_path):
    monkeypatch.setenv("SAMEWISE_DATA", str(tmp_path / "nowhere"))
    assert stored_names() == []


@pytest.fixture
def cache(monkeypatch, tmp_path):
    """A cache directory of the user, with a place for data sets; SAMEWISE_DATA is not set."""
    platformdirs = pytest.importorskip("platformdirs")
    monkeypatch.setattr(platformdirs, "user_cache_dir", lambda *_, **__: str(tmp_path / "cache"))
    monkeypatch.delenv("SAMEWISE_DATA", raising=False)
    return tmp_path / "cache" / "datasets"


@pytest.mark.parametrize("value", [None, ""])
def test_default_is_the_cache_of_the_user(cache, monkeypatch, tiny, value):
    if value is not None:
        monkeypatch.setenv("SAMEWISE_DATA", value)
    cache.mkdir(parents=True)
    np.savez(cache / "tiny.npz", **tiny)
    assert stored_names() == ["tiny"]
    assert load("tiny").data.shape == (2, 3)


def test_the_variable_does_not_fall_through_to_the_default(cache, monkeypatch, tmp_path, tiny):
    cache.mkdir(parents=True)
    (tmp_path / "empty").mkdir()
    np.savez(cache / "tiny.npz", **tiny)
    monkeypatch.setenv("SAMEWISE_DATA", str(tmp_path / "empty"))
    with pytest.raises(DatasetNotFoundError, match=r"empty \(from SAMEWISE_DATA\), which holds no"):
        load("tiny")


def test_without_a_directory_the_error_says_where_and_how(cache):
    with pytest.raises(DatasetNotFoundError) as caught:
        load("coil20")
    text = str(caught.value)
    assert str(cache) in text
    assert "(SAMEWISE_DATA is not set), which is not a directory" in text
    assert "Set SAMEWISE_DATA to a directory that holds coil20.npz" in text
    assert "samewise.datasets.load" in text


def test_what_can_be_fetched_is_said(cache):
    with pytest.raises(DatasetNotFoundError, match="Get it with samewise datasets fetch mnist, or"):
        load("mnist")


def test_a_misspelt_name_gets_near_names(folder, tiny):
    for name in ("letter", "wine", "glass"):
        np.savez(folder / f"{name}.npz", **tiny)
    with pytest.raises(DatasetNotFoundError, match=r"'leter'.*; similar names: letter\."):
        load("leter")


@pytest.mark.parametrize("name", ["zzz", "../sets/wine", "", 3])
def test_a_strange_name_gets_all_names(folder, tiny, name):
    for known in ("wine", "glass"):
        np.savez(folder / f"{known}.npz", **tiny)
    with pytest.raises(DatasetNotFoundError, match=r"(there are: glass, wine|names: wine)\."):
        load(name)


def _npz(**arrays):
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def _npy(array):
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"plainly not an archive",
        b"PK\x03\x04 cut short",
        _npy(np.arange(3)),
        _npz(X=np.array([[{}]], dtype=object), y=[0], classes=["a"]),
    ],
    ids=["empty", "text", "truncated", "npy", "pickle"],
)
def test_a_file_that_cannot_be_read(folder, content):
    (folder / "bad.npz").write_bytes(content)
    with pytest.raises(FileFormatError, match=r"bad\.npz should be an \.npz archive"):
        load("bad")


def test_any_damaged_byte_is_harmless_or_reported(folder, tiny):
    path = folder / "bad.npz"
    np.savez_compressed(path, **tiny)
    whole = path.read_bytes()
    reported = 0
    for at in range(0, len(whole), 2):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x5A]) + whole[at + 1 :])
        try:
            bunch = load("bad")
        except FileFormatError:
            reported += 1
        else:
            np.testing.assert_array_equal(bunch.data, tiny["X"])
    assert reported > 50


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"X": None}, "has no data, indices, indptr, shape; it holds classes, y"),
        ({"y": None}, "has no y; it holds X, classes"),
        ({"classes": None}, "has no classes; it holds X, y"),
        ({"X": np.arange(2)}, r"holds X of shape \(2,\)"),
        ({"X": np.array([["a"], ["b"]])}, "holds no usable features"),
        ({"y": np.array([0])}, r"holds 2 rows but y of shape \(1,\)"),
        ({"y": np.array([0.0, 1.0])}, "y of shape .* and type float64"),
        ({"y": np.array([0, 2])}, "class numbers outside its 2 classes"),
        ({"y": np.array([-1, 0])}, "class numbers outside its 2 classes"),
        ({"train": np.array([True])}, r"holds 2 rows but train of shape \(1,\)"),
        ({"train": np.array([1, 0])}, r"train of shape \(2,\) and int64"),
    ],
)
def test_a_file_laid_out_otherwise(folder, tiny, change, match):
    arrays = {key: value for key, value in {**tiny, **change}.items() if value is not None}
    np.savez(folder / "odd.npz", **arrays)
    with pytest.raises(FileFormatError, match=match):
        load("odd")


@pytest.mark.parametrize("indices", [[0, 7], [0, -1]])
def test_csr_columns_out_of_range(folder, tiny, indices):
    np.savez(
        folder / "odd.npz",
        data=[1, 2],
        indices=indices,
        indptr=[0, 1, 2],
        shape=[2, 3],
        y=tiny["y"],
        classes=tiny["classes"],
    )
    with pytest.raises(FileFormatError, match="holds no usable features"):
        load("odd")


@pytest.mark.parametrize("name", SHIPPED)
def test_sets_of_scikit_learn_need_no_file(folder, name):
    found = load(name, dtype=np.float32)
    expected = getattr(sklearn.datasets, f"load_{name}")()
    np.testing.assert_array_equal(found.data, expected.data.astype(np.float32))
    np.testing.assert_array_equal(found.target, expected.target)
    assert found.target_names.tolist() == [str(each) for each in expected.target_names]
    assert len(found.feature_names) == KNOWN[name].features == found.data.shape[1]
    assert KNOWN[name].rows == len(found.data) and KNOWN[name].classes == len(found.target_names)


def test_a_file_comes_before_the_set_of_that_name(folder, tiny):
    np.savez(folder / "wine.npz", **tiny)
    assert load("wine").data.shape == (2, 3)
    assert available() == ["breast_cancer", "digits", "iris", "wine"]


def test_sizes_that_are_listed_are_those_of_the_files():
    for name in stored_names():
        if name in KNOWN and not name.startswith(("news20", "reuters")):
            found = load(name, dtype=np.float32)
            known = KNOWN[name]
            assert found.data.shape == (known.rows, known.features)
            assert len(found.target_names) == known.classes
