"""How data in parts come in, and what is refused."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from samewise import LDA, LMNN, MMC, NCA, PCA, RCA, Covariance
from samewise.exceptions import InvalidInputError
from samewise.scale import (
    DaskCovariance,
    DaskITML,
    DaskLDA,
    DaskLMNN,
    DaskMCML,
    DaskMMC,
    DaskNCA,
    DaskPCA,
    DaskRCA,
)
from tests.scale.parts import in_parts

NAMES = ["x", "y", "z"]


@pytest.fixture(scope="module")
def rows():
    """(X, y): 90 rows of two classes, in float32."""
    random = np.random.default_rng(0)
    y = np.array(["near", "far"])[random.integers(2, size=90)]
    X = random.normal(size=(90, 3)) + np.where(y == "near", 1.0, 0.0)[:, None]
    return X.astype(np.float32), y


@pytest.fixture(scope="module")
def whole(rows):
    return LDA().fit(*rows)


def same(found, whole):
    np.testing.assert_allclose(found.metric_.matrix, whole.metric_.matrix, rtol=1e-5)
    assert found.components_.dtype == np.float32
    return True


def test_a_dataframe_whose_sizes_are_not_known(client, rows, whole):
    pandas = pytest.importorskip("pandas")
    frames = pytest.importorskip("dask.dataframe")
    table = frames.from_pandas(
        pandas.DataFrame(rows[0], columns=NAMES).assign(kind=rows[1]), npartitions=4
    )
    found = DaskLDA(client).fit(table[NAMES], table["kind"]).to_local()
    assert same(found, whole)
    assert found.feature_names_in_.tolist() == NAMES
    assert found.classes_.tolist() == ["far", "near"]
    again = DaskMCML(client).fit(table[NAMES], table["kind"]).to_local()
    assert again.feature_names_in_.tolist() == NAMES


def test_parts_without_rows_are_passed_over(client, rows, whole):
    pandas, da = pytest.importorskip("pandas"), pytest.importorskip("dask.array")
    frames = pytest.importorskip("dask.dataframe")
    Z = rows[0].astype(np.float64)
    table = pandas.DataFrame(Z, columns=NAMES).assign(kind=rows[1], row=np.arange(90))
    late = frames.from_pandas(table, npartitions=4)
    late = late[late["row"] >= 30]
    sizes = (0, 40, 0, 50)
    X, y = da.from_array(rows[0], chunks=(sizes, 3)), da.from_array(rows[1], chunks=90)
    assert same(DaskLDA(client).fit(X, y).to_local(), whole)
    random = {"random_state": 0}
    for dask_kind, plain, parameters in (
        (DaskLDA, LDA, {}),
        (DaskRCA, RCA, random),
        (DaskLMNN, LMNN, {}),
        (DaskNCA, NCA, {}),
    ):
        found = dask_kind(client, **parameters).fit(late[NAMES], late["kind"]).to_local()
        M = plain(**parameters).fit(Z[30:], rows[1][30:]).metric_.matrix
        np.testing.assert_allclose(found.metric_.matrix, M, atol=1e-6 * np.abs(M).max())
    with pytest.raises(InvalidInputError, match="X has no rows"):
        DaskLDA(client).fit(late[late["row"] > 99][NAMES], late[late["row"] > 99]["kind"])


def test_small_files_that_dask_reads_together(client, rows, whole, tmp_path):
    """It puts more files into a partition of one column than into one of many."""
    pandas = pytest.importorskip("pandas")
    frames = pytest.importorskip("dask.dataframe")
    wide = pandas.DataFrame(rows[0], columns=NAMES).assign(kind=rows[1])
    wide = wide.assign(**{f"other{number}": 0.0 for number in range(9)})
    for part in range(6):
        wide.iloc[15 * part : 15 * part + 15].to_parquet(tmp_path / f"{part}.parquet")
    table = frames.read_parquet(tmp_path)
    assert same(DaskLDA(client).fit(table[NAMES], table["kind"]).to_local(), whole)


def test_columns_that_hold_no_numbers(client, rows):
    pandas = pytest.importorskip("pandas")
    frames = pytest.importorskip("dask.dataframe")
    table = pandas.DataFrame(rows[0], columns=NAMES).assign(
        kind=pandas.Categorical(rows[1]), color=pandas.Categorical(rows[1])
    )
    table = frames.from_pandas(table, npartitions=2)
    with pytest.raises(InvalidInputError, match=r"Column 'color' of X holds category, not numbers"):
        DaskLDA(client).fit(table[["x", "color"]], table["kind"])
    # Categories are labels as others are.
    assert DaskLDA(client).fit(table[NAMES], table["kind"]).classes_.tolist() == ["far", "near"]


def test_parquet_files_of_vectors_and_of_pairs(client, rows, whole, tmp_path):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    pairs = np.stack([rows[0][:45], rows[0][45:]], axis=1)
    y = np.where(rows[1][:45] == rows[1][45:], 1, -1)
    for folder in ("vectors", "pairs"):
        (tmp_path / folder).mkdir()
    for part in range(3):
        some, few = slice(30 * part, 30 * part + 30), slice(15 * part, 15 * part + 15)
        table = pa.table({"vector": list(rows[0][some]), "kind": rows[1][some]})
        parquet.write_table(table, tmp_path / "vectors" / f"{part}.parquet")
        sides = {"left": list(pairs[few, 0]), "right": list(pairs[few, 1]), "same": y[few]}
        parquet.write_table(pa.table(sides), tmp_path / "pairs" / f"{part}.parquet")
    assert same(DaskLDA(client).fit(tmp_path / "vectors", "kind").to_local(), whole)
    one = MMC().fit(pairs, y).metric_.matrix
    found = DaskMMC(client).fit(tmp_path / "pairs", "same").metric_.matrix
    np.testing.assert_allclose(found, one, rtol=1e-4, atol=1e-5 * np.abs(one).max())
    frames = pytest.importorskip("dask.dataframe")
    table = frames.read_parquet(tmp_path / "pairs")
    again = DaskMMC(client).fit(table[["left", "right"]], table["same"]).metric_.matrix
    np.testing.assert_allclose(again, found, rtol=1e-6, atol=1e-6 * np.abs(one).max())
    with pytest.raises(InvalidInputError, match=r"columns left, right\. It lacks left, right"):
        DaskITML(client).fit(tmp_path / "vectors", "kind")


def test_a_file_that_is_damaged_is_named(client, rows, tmp_path):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    (tmp_path / "arrays").mkdir()
    np.save(tmp_path / "arrays" / "0.npy", rows[0])
    (tmp_path / "arrays" / "1.npy").write_bytes(b"nonsense")
    with pytest.raises(InvalidInputError, match=r"1\.npy cannot be read as an array"):
        DaskCovariance(client).fit(tmp_path / "arrays")
    table = pa.table({"x": [1.0, 2.0], "y": [1.0, 3.0]})
    parquet.write_table(table, tmp_path / "0.parquet")
    parquet.write_table(table.drop(["y"]), tmp_path / "1.parquet")
    with pytest.raises(InvalidInputError, match=r"1\.parquet: it must have .* It lacks y"):
        DaskCovariance(client).fit(tmp_path)
    (tmp_path / "1.parquet").write_bytes(b"nonsense")
    with pytest.raises(InvalidInputError, match=r"1\.parquet cannot be read as a Parquet file"):
        DaskCovariance(client).fit(tmp_path)


def test_a_folder_of_parquet_files(client, rows, whole, tmp_path):
    pandas, _ = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    table = pandas.DataFrame(rows[0], columns=NAMES).assign(kind=rows[1])
    for part in range(3):
        table.iloc[30 * part : 30 * part + 30].to_parquet(tmp_path / f"{part}.parquet")
    found = DaskLDA(client).fit(str(tmp_path), "kind").to_local()
    assert same(found, whole)
    assert found.feature_names_in_.tolist() == NAMES
    with pytest.raises(InvalidInputError, match=r"y must be a column .*, x, y, z, kind\. Got 'cl'"):
        DaskLDA(client).fit(tmp_path, "cl")


def test_a_folder_of_arrays(client, rows, whole, tmp_path):
    for name, values in zip(("X", "y"), rows, strict=True):
        (tmp_path / name).mkdir()
        for part, some in enumerate(np.array_split(values, 3)):
            np.save(tmp_path / name / f"{part}.npy", some)
    assert same(DaskLDA(client).fit(tmp_path / "X", tmp_path / "y").to_local(), whole)
    many = DaskCovariance(client).fit(tmp_path / "X").to_local()
    np.testing.assert_allclose(many.metric_.matrix, Covariance().fit(rows[0]).metric_.matrix, 1e-5)
    (tmp_path / "y" / "2.npy").unlink()
    with pytest.raises(InvalidInputError, match=r"3 \.npy files y must .* Got 2 files"):
        DaskLDA(client).fit(tmp_path / "X", tmp_path / "y")
    with pytest.raises(InvalidInputError, match=r"nowhere is not a folder\. Give a Dask array"):
        DaskLDA(client).fit(tmp_path / "nowhere", "kind")
    (tmp_path / "none").mkdir()
    with pytest.raises(InvalidInputError, match="no blocks of rows"):
        DaskCovariance(client).fit(tmp_path / "none")


def test_columns_in_chunks_are_put_together(client, rows):
    X = in_parts(2, rows[0])[0].rechunk({1: 2})
    many = DaskPCA(client).fit(X).to_local()
    np.testing.assert_allclose(
        many.explained_variance_, PCA().fit(rows[0]).explained_variance_, rtol=1e-6
    )


def test_what_is_refused(client, rows):
    X, y = in_parts(3, *rows)
    learner = DaskLDA(client).fit(X, y)
    before = learner.components_
    odd = np.array(rows[0])
    odd[70, 1] = np.nan
    cases = [
        ((rows[0], y), r"X is a ndarray\. Give a Dask array"),
        ((X, rows[1]), r"y must be in blocks as X is\. Got a ndarray"),
        ((X, None), r"y is needed"),
        ((X, y[:80]), r"as many rows\. Got 90 and 80"),
        ((in_parts(3, odd)[0], y), r"In block 2 of X: Input X contains NaN"),
        ((X[:, :, None, None], y), r"rows and features\. Got 4 dimensions"),
        ((X, in_parts(3, np.array(["one"] * 90))[0]), "at least two classes"),
        ((X, in_parts(3, np.append(rows[1][1:], None))[0]), r"In block 2 .* Got NoneType and str"),
        ((X, in_parts(3, np.append(np.arange(89.0) % 2, np.nan))[0]), r"2 of X: Input y contains"),
        ((X[:0], y[:0]), "X has no rows"),
    ]
    for given, message in cases:
        with pytest.raises(ValueError, match=message):
            learner.fit(*given)
        assert learner.components_ is before
    with pytest.raises(ValueError, match=r"n_components must be at most 1, .* Got 2 instead\."):
        DaskLDA(client, n_components=2).fit(X, y)
    with pytest.raises(InvalidInputError, match=r"DaskLDA takes a number as shrinkage"):
        DaskLDA(client, shrinkage="auto").fit(X, y)
    with pytest.raises(ValueError, match=r"'shrinkage' parameter of LDA must be"):
        DaskLDA(client, shrinkage=3.0).fit(X, y)
    with pytest.raises(InvalidInputError, match=r"DaskNCA takes validation_fraction=None only"):
        DaskNCA(client, validation_fraction=0.1).fit(X, y)
    with pytest.raises(InvalidInputError, match=r"more rows than features\. Got 3 rows of 3"):
        DaskLMNN(client).fit(X[:3], y[:3])


def test_pairs_that_are_none(client, rows):
    X, y = in_parts(2, *rows)
    with pytest.raises(InvalidInputError, match=r"array of shape \(n, 2, d\).*Pairs\.from_labels"):
        DaskMMC(client).fit(X, y)
    pairs = np.stack([rows[0][:45], rows[0][45:]], axis=1)
    for learner in (DaskMMC(client), DaskITML(client)):
        with pytest.raises(InvalidInputError, match=r"\+1 \(similar\) or -1 .* Got \[0, 1\]"):
            learner.fit(*in_parts(2, pairs, np.arange(45) % 2))
    with pytest.raises(InvalidInputError, match="Got no dissimilar pair"):
        DaskMMC(client).fit(*in_parts(2, pairs, np.ones(45, dtype=int)))


def test_a_client_is_needed(rows, client):
    with pytest.raises(InvalidInputError, match=r"client must be .* Got 'tcp://here'"):
        DaskCovariance("tcp://here").fit(in_parts(2, rows[0])[0])
    with client.as_current():
        assert DaskCovariance().fit(in_parts(2, rows[0])[0]).metric_
    other = type(client)(client.scheduler.address, set_as_default=False)
    other.close()
    with pytest.raises(InvalidInputError, match=r"client is closed\. Give one that is connected"):
        DaskCovariance(other).fit(in_parts(2, rows[0])[0])


def test_without_dask_a_sentence_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ImportError, match=r"samewise\.scale needs Dask: pip install 'samewise\[sc"):
        DaskCovariance().fit(None)
