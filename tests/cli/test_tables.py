"""Reading DATA in every format, and what is said of data that cannot be used."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest
import scipy.sparse as sp

pytest.importorskip("typer")
pytest.importorskip("pandas")
from samewise.cli.exports import write_table
from samewise.cli.options import Columns
from samewise.cli.tables import check_classes
from samewise.cli.tables import read_table as read_columns
from samewise.exceptions import InvalidInputError


def read_table(source, known_label=None, **columns):
    return read_columns(source, Columns(**columns), known_label)


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet", "npz", "jsonl"])
def test_every_format_gives_the_same_rows(files, wine, ending):
    label = None if ending == "npz" else "class"
    table = read_table(f"wine.{ending}", label=label)
    np.testing.assert_allclose(table.X, wine.drop(columns="class").to_numpy())
    assert table.y.tolist() == wine["class"].tolist()
    if ending == "jsonl":
        assert table.names is None and table.shown(3) == "w3"
    else:
        assert table.names == tuple(wine.columns[:-1]) and table.shown(3) == "3"


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_standard_input(files, wine, ending, monkeypatch):
    text = (files / f"wine.{ending}").read_text()
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    table = read_table("-", label="class")
    assert table.X.shape == (len(wine), 13) and table.source == "standard input"
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    with pytest.raises(InvalidInputError, match="Standard input is empty"):
        read_table("-")


def test_a_data_set_by_its_name(files):
    table = read_table("half")
    assert table.X.dtype == np.float32 and table.train.sum() == 59
    assert set(table.y) == {"class_0", "class_1", "class_2"} and table.label == "class"
    with pytest.raises(InvalidInputError, match="did you mean 'half'"):
        read_table("halv")


def test_columns_are_chosen_dropped_and_named(files):
    table = read_table("wine.csv", label="class", features="hue,alcohol")
    assert table.names == ("hue", "alcohol")
    table = read_table("wine.csv", label="class", drop="hue", id_column="magnesium")
    assert table.X.shape[1] == 11 and table.shown(0) == "127.0"
    assert read_table("wine.npz", features="hue").X.shape[1] == 1
    assert read_table("wine.csv", known_label="class").label == "class"
    assert read_table("wine.npz", known_label="class").label == "y"


def test_sparse_rows_stay_sparse(files):
    X = sp.random_array((20, 8), density=0.3, rng=np.random.default_rng(0), format="csr")
    write_table("sparse.npz", X, y=np.arange(20) % 2)
    table = read_table("sparse.npz")
    assert sp.issparse(table.X) and (table.X != X).nnz == 0 and table.y.tolist() == [0, 1] * 10
    with pytest.raises(InvalidInputError, match=r"Sparse rows go into an \.npz"):
        write_table("sparse.csv", X)


@pytest.mark.parametrize("ending", ["csv", "parquet", "npz", "jsonl"])
def test_what_is_written_is_read_again(files, ending):
    X = np.random.default_rng(0).normal(size=(6, 3)).astype(np.float32)
    write_table(f"out.{ending}", X, ["a", "b", "c"], y=np.array(list("xyxyxy")), label="kind")
    table = read_table(f"out.{ending}", known_label="kind")
    np.testing.assert_array_equal(table.X.astype(np.float32), X)
    assert "".join(table.y) == "xyxyxy"


def test_labels_of_several_kinds(files):
    for text, expected in (("1\n2", [1, 2]), ("1.0\n2.0", [1, 2]), ("a\n1", ["a", "1"])):
        (files / "t.csv").write_text("\n".join(["x,c", *(f"0,{v}" for v in text.split())]))
        assert read_table("t.csv", label="c").y.tolist() == expected


def bad(text, name="t.csv", **options):
    with open(name, "w") as file:
        file.write(text)
    with pytest.raises((InvalidInputError, OSError)) as caught:
        check_classes(read_table(name, **options))
    return str(caught.value)


def test_bad_tables_are_refused_with_a_remedy(files):
    text = bad("a,b,c\n1,2,x\n1,n/a?,y\n", label="c")
    assert "'b' of t.csv holds text" in text and "'n/a?' in line 3" in text and "--drop b" in text
    text = bad("a,b,c\n1,,x\n1,2,y\n", label="c")
    assert "'b' of t.csv has 1 missing" in text and "in line 2" in text and "--drop b" in text
    assert "infinite" in bad("a,c\n1,x\ninf,y\n", label="c")
    assert "is empty in 1 rows, first in line 3." in bad("a,c\n1,x\n2,\n", label="c")
    assert "no column 'clas'; did you mean 'class'?" in bad("a,class\n1,x\n", label="clas")
    assert "no column 'zzz'; there are: a, class" in bad("a,class\n1,x\n", label="zzz")
    assert "no column 'q'" in bad("a,c\n1,x\n", label="c", drop="q")
    assert "are all x: one class" in bad("a,c\n1,x\n2,x\n", label="c")
    assert "holds fractions" in bad("a,c\n1,0.5\n2,1.5\n", label="c")
    assert "--label NAME. Its columns: a, c" in bad("a,c\n1,1\n2,2\n")
    assert "has no rows" in bad("a,c\n", label="c")
    assert "t.csv is empty; a line with the names" in bad("")
    assert "cannot be read as CSV" in bad("a,c\n1,x\n1,2,3\n")
    assert "no columns of features" in bad("c\nx\ny\n", label="c")
    assert "none of the endings .csv" in bad("x", "t.xls")
    assert "cannot be read as Parquet" in bad("x", "t.parquet")


def test_bad_lines_are_refused_with_their_number(files):
    def lines(*entries):
        return bad("\n".join(map(json.dumps, entries)), "t.jsonl", label="c")

    assert "line 2: no JSON" in bad('{"vector": [1], "c": 1}\n{', "t.jsonl")
    assert "line 1: no JSON object" in lines([1])
    assert "no field 'vector', only 'v', 'c'" in lines({"v": [1], "c": 1})
    one = {"vector": [1, 2], "c": 1}
    assert "line 2: 'vector' must be a list of 2 numbers" in lines(one, {"vector": [1], "c": 2})
    assert "line 2: 'vector' must be a list" in lines(one, {"c": 2})
    assert "line 2: 'vector' holds something" in lines(one, {"vector": [1, "a"], "c": 2})
    assert "line 2: 'vector' holds something" in lines(one, {"vector": [1, None], "c": 2})
    assert "is empty in 1 rows" in lines(one, {"vector": [1, 2]})
    assert "has no rows" in bad("\n\n", "t.jsonl")


def test_bad_archives(files):
    def archive(**arrays):
        np.savez("t.npz", **arrays)
        with pytest.raises(InvalidInputError) as caught:
            check_classes(read_table("t.npz"))
        return str(caught.value)

    assert "neither X nor the CSR parts" in archive(Z=np.eye(2))
    assert "must be a matrix of numbers" in archive(X=np.array(["a"]))
    assert "missing or infinite" in archive(X=np.array([[np.nan]]), y=[0])
    assert "Say which column" in archive(X=np.eye(2))
    assert "pickled objects" in archive(X=np.array([{}], dtype=object))
    parts = {"data": [1.0], "indices": [7], "indptr": [0, 1], "shape": [1, 2]}
    assert "no sound CSR parts" in archive(**parts)
    assert "no .npz archive" in bad("nonsense", "t.npz")
    np.savez("t.npz", X=np.eye(2), y=[0, 1])
    with pytest.raises(InvalidInputError, match="names no columns"):
        read_table("t.npz", drop="a")
