"""Tables that are read wrongly, or cost far more memory than they have bytes, unless refused."""

from __future__ import annotations

import io
import json
import tracemalloc
import zipfile

import numpy as np
import pytest

pytest.importorskip("typer")
pytest.importorskip("pandas")
import pandas as pd

from samewise.cli.options import Columns
from samewise.cli.tables import read_table
from samewise.datasets import load
from samewise.exceptions import FileFormatError, InvalidInputError, TooLargeError
from samewise.files import npz_archive
from samewise.model import row_marks


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def read(source="t.csv", label="class", **columns):
    return read_table(source, Columns(label=label, **columns))


def refused(source="t.csv", label="class", **columns):
    with pytest.raises(InvalidInputError) as caught:
        read(source, label, **columns)
    return str(caught.value)


def csv(text):
    with open("t.csv", "w", encoding="utf-8") as file:
        file.write(text)


# Rows that are longer or shorter than the names of the columns.


@pytest.mark.parametrize(
    ("rows", "line"),
    [
        (["1,2,3,0", "1,2,3,1"], 2),
        (["1,2,0", "1,2,1", "1,2,3,0"], 4),
        (["1,2,0", "", "1,2,3,0"], 4),
        (["1,2,0,", "1,2,1,5"], 2),
        (["1,2", "1,2,3,0"], 3),
        (["1,2,0,9,9"], 2),
    ],
)
def test_longer_rows_are_refused_with_their_line(rows, line, monkeypatch):
    text = "\n".join(["a,b,class", *rows])
    csv(text)
    found = refused()
    assert f"t.csv cannot be read as CSV: Expected 3 fields in line {line}, saw" in found
    assert "Each row needs as many fields as there are names" in found
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    assert f"Expected 3 fields in line {line}, saw" in refused("-")


def test_a_separator_at_the_end_of_each_row_shifts_nothing():
    csv("a,b,class\n1,2,0,\n3,4,1,\n")
    table = read()
    assert table.names == ("a", "b") and table.X.tolist() == [[1, 2], [3, 4]]
    assert table.y.tolist() == [0, 1]


def test_shorter_rows_are_missing_values():
    csv("a,b,class\n1,2,0\n3\n")
    assert "'b' of t.csv has 1 missing or infinite values, the first (missing) in line 3" in (
        refused()
    )
    csv("a,b,class\n1,2,0\n3,4\n")
    assert "'class' of t.csv is empty in 1 rows, first in line 3" in refused()


@pytest.mark.parametrize("feature", ["", "text"])
def test_a_bad_value_on_standard_input_names_its_line(feature, monkeypatch):
    rows = ["1,0", "2,1", f"{feature},1"]
    monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(["a,class", *rows])))
    assert "in line 4" in refused("-")


def test_equal_names_of_columns():
    csv("a,a,b,class\n1,2,3,0\n4,5,6,1\n")
    assert "t.csv has two columns named 'a'; rename one." in refused()
    assert "two columns named 'a'" in refused(features="b,a")
    assert read(drop="a").X.tolist() == read(features="b").X.tolist() == [[3], [6]]
    csv("a,class,class\n1,0,1\n2,1,0\n")
    assert "two columns named 'class'" in refused()
    csv("a,a.1,,class\n1,2,3,0\n4,5,6,1\n")
    assert read().names == ("a", "a.1", "Unnamed: 2")
    X, y = np.arange(6.0).reshape(2, 3), [0, 1]
    np.savez("t.npz", X=X, y=y, feature_names=["a", "b", "a"])
    assert "t.npz has two columns named 'a'" in refused("t.npz", None)
    assert read("t.npz", None, drop="a").X.tolist() == [[1], [4]]


def test_columns_of_an_archive_come_in_the_order_asked_for():
    np.savez("t.npz", X=[[1.0, 2.0, 3.0]], y=[0], feature_names=["a", "b", "c"])
    table = read("t.npz", None, features="c,a")
    assert table.X.tolist() == [[3, 1]] and table.names == ("c", "a")


def test_a_byte_order_mark_is_no_part_of_a_name(folder, monkeypatch):
    (folder / "t.csv").write_text("a,class\n1,0\n2,1\n", encoding="utf-8-sig")
    assert read().names == ("a",)
    line = '{"vector": [1], "class": 0}\n'
    (folder / "t.jsonl").write_text(line, encoding="utf-8-sig")
    assert read("t.jsonl").X.tolist() == [[1]]
    monkeypatch.setattr("sys.stdin", io.StringIO("\ufeff" + line))
    assert read("-").X.tolist() == [[1]]


def test_thousands_of_columns():
    names = [f"x{j}" for j in range(2000)]
    row = ",".join(map(str, range(2000)))
    csv(",".join([*names, "class"]) + f"\n{row},0\n{row},1\n")
    table = read()
    assert table.X.shape == (2, 2000) and table.names == tuple(names)


# Labels.


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["inf", "1"], "holds numbers as large as inf, too large to be distinguished"),
        (["-inf", "1"], "holds numbers as large as inf"),
        (["1e300", "2e300", "3e300"], "holds numbers as large as 3e+300, too large to be dist"),
        (["9007199254740993.0", "9007199254740992.0"], "Write them as whole numbers or as text"),
        (["0.5", "1"], "holds fractions"),
    ],
)
def test_numbers_that_are_no_classes(labels, message):
    csv("\n".join(["a,class", *(f"1,{label}" for label in labels)]))
    assert message in refused()
    # Python's JSON knows infinity by another name.
    entries = [f'{{"vector": [1], "class": {v.replace("inf", "Infinity")}}}\n' for v in labels]
    with open("t.jsonl", "w") as file:
        file.writelines(entries)
    assert message in refused("t.jsonl")
    np.savez("t.npz", X=np.eye(len(labels)), y=np.array(labels, dtype=float))
    assert message in refused("t.npz", None)


@pytest.mark.parametrize("first", [2**53, 2**63, 2**64, 10**399])
def test_large_whole_numbers_stay_different_classes(first):
    labels = [first, first + 1, 7]
    csv("\n".join(["a,class", *(f"1,{label}" for label in labels)]))
    assert [int(v) for v in read().y] == labels
    with open("t.jsonl", "w") as file:
        file.writelines(json.dumps({"vector": [1], "class": v}) + "\n" for v in labels)
    assert [int(v) for v in read("t.jsonl").y] == labels


def frame(**columns):
    return pd.DataFrame({"a": [1.0, 2.0], "class": ["x", "y"]} | columns)


DAYS = pd.date_range("2020-01-01", periods=2)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (DAYS, "datetime64"),
        (DAYS.tz_localize("UTC"), "UTC"),
        (DAYS - DAYS[0], "timedelta64"),
        (pd.Categorical(DAYS), "datetime64"),
        (pd.period_range("2020-01-01", periods=2, freq="D"), "period"),
    ],
    ids=["datetime", "timezone", "timedelta", "categorical", "period"],
)
@pytest.mark.parametrize("column", ["a", "class"])
def test_times_are_no_numbers_and_no_classes(values, kind, column):
    frame(**{column: values}).to_parquet("t.parquet")
    text = refused("t.parquet")
    assert f"The column '{column}' of t.parquet holds times (" in text and kind in text
    assert "neither numbers nor classes. Make numbers of them, such as the days" in text


def test_columns_of_other_kinds():
    for values, numbers in (
        ([True, False], [1, 0]),
        (pd.array([1, 2], dtype="Int64"), [1, 2]),
        (pd.Categorical([3, 4]), [3, 4]),
        ([2**62, 1], [2**62, 1]),
    ):
        frame(a=values).to_parquet("t.parquet")
        assert read("t.parquet").X.ravel().tolist() == numbers
    frame(a=[[1], [2]]).to_parquet("t.parquet")
    assert "'a' of t.parquet holds text, where numbers are needed: '[1]'" in refused("t.parquet")
    frame(a=pd.array([1, None], dtype="Int64")).to_parquet("t.parquet")
    assert "1 missing or infinite values, the first (missing) in row 1" in refused("t.parquet")
    frame(**{"class": [["x"], ["y"]]}).to_parquet("t.parquet")
    assert "'class' of t.parquet holds lists, which cannot be classes" in refused("t.parquet")
    frame(**{"class": pd.Categorical([5, 6])}).to_parquet("t.parquet")
    assert read("t.parquet").y.tolist() == [5, 6]


def test_numbers_of_hundreds_of_digits(folder):
    csv(f"a,class\n{'1' * 400},0\n2,1\n")
    assert "has 1 missing or infinite values, the first (infinite) in line 2" in refused()
    for vector in ("[1, " + "1" * 400 + "]", "[1, 1e999]", "[1, [2]]", "[[1], [2]]"):
        (folder / "t.jsonl").write_text(f'{{"vector": {vector}, "class": 0}}\n')
        assert "line 1: 'vector' holds something that is no finite number" in refused("t.jsonl")


def test_deep_json(folder):
    (folder / "t.jsonl").write_text('{"vector": [1], "class": 0}\n' + "[" * 100_000)
    assert "t.jsonl, line 2: no JSON (maximum recursion depth" in refused("t.jsonl")


def test_only_a_line_feed_ends_a_line(folder):
    names = ["a\u2028b", "a\u2029b", "a\x85b", "a\x1cb"]
    lines = [json.dumps({"vector": [1], "class": n}, ensure_ascii=False) for n in names[:3]]
    lines.append(json.dumps({"vector": [1], "class": names[3]}))
    (folder / "t.jsonl").write_bytes("\r\n".join(lines).encode())
    assert read("t.jsonl").y.tolist() == names


# Memory.


def peak(work):
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


LONG = 2_000_000


def test_a_long_label_costs_its_bytes(folder):
    rows = "\n".join(f"{i},{'x' * LONG if i == 7 else i % 2}" for i in range(100))
    csv("a,class\n" + rows)
    lines = (json.dumps({"vector": [i], "class": "x" * LONG if i == 7 else i}) for i in range(100))
    (folder / "t.jsonl").write_text("\n".join(lines))
    classes = np.array(["a", "x" * LONG])
    np.savez_compressed("t.npz", X=np.eye(100), y=np.arange(100) % 2, classes=classes)
    for source, label, where in (
        ("t.csv", "class", " in line 9"),
        ("t.jsonl", "class", " in row 7"),
        ("t.npz", None, " in row 1"),
    ):
        text = []
        # 100 rows with room for the longest label took 800 MB.
        assert peak(lambda: text.append(refused(source, label))) < 30 * LONG  # noqa: B023
        assert f"holds a text of 2,000,000 characters{where}; 1,000 are the most" in text[0]
    csv(f"a,class\n1,{'x' * 1000}\n")
    assert len(read().y[0]) == 1000


def test_a_long_id_or_value_costs_its_bytes():
    rows = "\n".join(f"{i},{'x' * LONG if i == 7 else i},{i % 2}" for i in range(100))
    csv("a,name,class\n" + rows)
    tables = []
    assert peak(lambda: tables.append(read(id_column="name"))) < 30 * LONG
    assert tables[0].shown(7) == "x" * LONG and tables[0].shown(8) == "8"
    text = refused()
    assert "'name' of t.csv holds text" in text and len(text) < 400


def npy(shape, dtype="<f8", content=b"", version=1):
    header = f"{{'descr': {dtype!r}, 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY" + bytes([version, 0]) + len(header).to_bytes(2, "little") + header + content


def archive(**members):
    with zipfile.ZipFile("t.npz", "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(f"{name}.npy", content)


@pytest.mark.parametrize(
    ("member", "message"),
    [
        (npy((10**9, 8)), "X.npy claims 64,000,000,000 bytes and has 0"),
        (npy((10**6, 8), content=bytes(8)), "X.npy claims 64,000,000 bytes and has 8"),
        (npy((1, 1), content=bytes(16)), "X.npy claims 8 bytes and has 16"),
        (npy((-1, -1), content=bytes(8)), "X.npy claims 8 bytes and has 8"),
        (npy((10**12,), "<U0"), "X.npy claims 0 bytes and has 0"),
        (npy((1, 1), "|O", bytes(8)), "X.npy holds pickled objects"),
        (npy((1, 1), content=bytes(8), version=9), "X.npy has the version (9, 0)"),
        (b"\x93NUMPY\x01\x00\xff", "EOF"),
        (npy("((((1", content=bytes(8)), "EOF"),
    ],
    ids=range(9),
)
def test_members_that_claim_what_they_have_not(member, message):
    archive(X=member)
    found = []
    assert peak(lambda: found.append(refused("t.npz", None))) < 2**20
    assert "t.npz is no .npz archive of plain arrays (" in found[0] and message in found[0]
    assert "Write it with numpy.savez(file, X=..., y=...)" in found[0]


def test_arrays_that_do_not_fit_into_memory(monkeypatch):
    archive(X=npy((1000, 1000), content=bytes(8_000_000)), y=npy((1000,), content=bytes(8000)))
    monkeypatch.setattr(npz_archive, "_memory", lambda: 16_000_000)
    found = []

    def refuse():
        with pytest.raises(TooLargeError) as caught:
            read("t.npz", None)
        found.append(str(caught.value))

    assert peak(refuse) < 2**20
    assert "The arrays of t.npz take 8,008" in found[0] and "(8,000,000 bytes)" in found[0]
    monkeypatch.setattr(npz_archive, "_memory", lambda: 2 * 8_008_300)
    assert read("t.npz", None).X.shape == (1000, 1000)


def test_damaged_encrypted_and_foreign_members(folder):
    np.savez_compressed("t.npz", X=np.arange(400.0).reshape(200, 2), y=np.arange(200) % 2)
    whole = (folder / "t.npz").read_bytes()
    with zipfile.ZipFile("t.npz", "a") as file:
        file.writestr("README.txt", "not an array")
    assert read("t.npz", None).X.shape == (200, 2)
    start = whole.index(b"X.npy")
    damaged = bytearray(whole)
    damaged[start + 60 : start + 70] = b"\x55" * 10
    (folder / "t.npz").write_bytes(damaged)
    assert "t.npz is no .npz archive of plain arrays" in refused("t.npz", None)
    encrypted = bytearray(whole)
    # The flag of encryption stands in each member's header, and in the directory at the end.
    for mark, flag in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        encrypted[encrypted.index(mark) + flag] |= 1
    (folder / "t.npz").write_bytes(encrypted)
    assert "is encrypted, password required" in refused("t.npz", None)
    (folder / "t.npz").write_bytes(whole[:200])
    assert "is no .npz archive" in refused("t.npz", None)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"X": 1.0}, "X of t.npz must be a matrix of numbers, not float64 ()"),
        ({"X": np.ones((3, 0))}, "must be a matrix of numbers, not float64 (3, 0)"),
        ({"X": np.ones((2, 2), dtype=complex)}, "must be a matrix of numbers, not complex128"),
        (
            {"y": np.zeros(2, dtype=[("a", int)])},
            "holds [('a', '<i8')] of shape (2,), which cannot",
        ),
        ({"y": np.array([1j, 2])}, "holds complex128 of shape (2,), which cannot be classes"),
        ({"y": np.array(["2020", "2021"], dtype="M8[s]")}, "holds datetime64[s]"),
        ({"y": [0, 1], "classes": np.zeros(2, dtype=[("a", int)])}, "which cannot be classes"),
    ],
)
def test_arrays_of_other_kinds(arrays, message):
    np.savez("t.npz", **{"X": np.eye(2), **arrays})
    assert message in refused("t.npz", None)


def test_class_numbers_that_name_no_class():
    for classes in (["a", "b"], "a"):
        np.savez("t.npz", X=np.eye(2), y=[-1, 0], classes=classes)
        assert read("t.npz", None).y.tolist() == [-1, 0]


CSR = {"data": [1.0, 2.0], "indices": [0, 1], "indptr": [0, 1, 2], "shape": [2, 2]}


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"shape": [2, 2**40]}, "shape claims 1,099,511,627,776 columns; at most 134,217,728"),
        ({"shape": [2**40, 2]}, "index pointer size 3 should be 1099511627777"),
        ({"shape": [2.0, 2.0]}, "must be whole numbers"),
        ({"shape": 2}, "must be whole numbers"),
        ({"shape": [2, 2, 2]}, "must be whole numbers"),
        ({"shape": [-2, 2]}, "cannot be negative"),
        ({"indices": [0, 2**32]}, "indices must be < 2"),
        ({"indices": [0, -7]}, "indices must be >= 0"),
        ({"indices": [0.0, 1.0]}, "must be whole numbers"),
        ({"indptr": [0, 5, 2]}, "indptr must be a non-decreasing sequence"),
    ],
)
def test_csr_parts_that_claim_what_they_have_not(folder, monkeypatch, parts, message):
    np.savez("t.npz", **CSR, y=[0, 1])
    assert read("t.npz", None).X.toarray().tolist() == [[1, 0], [0, 2]]
    np.savez("t.npz", **(CSR | parts), y=[0, 1], classes=["a", "b"])
    text = refused("t.npz", None)
    assert "t.npz holds no sound CSR parts: " in text and message in text
    monkeypatch.setenv("SAMEWISE_DATA", str(folder))
    with pytest.raises(FileFormatError, match="holds no usable features"):
        load("t")


def test_lines_with_a_field_twice():
    lines = [f'{{"vector": [{i}, 1], "vector": [{i % 3}, 2], "class": {i % 2}}}' for i in range(9)]
    with open("t.jsonl", "w") as file:
        file.write("\n".join(lines))
    assert "line 1: no JSON (a name occurs twice)" in refused("t.jsonl")


def test_marks_of_values_beyond_single_precision_warn_of_nothing():
    # 1e50 is infinite there.
    marks = row_marks(np.array([[1e50, 1.0], [1e50, 2.0], [1.0, 1.0]]))
    assert len(np.unique(marks)) == 3
