import gzip
import json

import pytest

from samewise.datasets import load
from samewise.exceptions import FileFormatError


def _write(path, records):
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(record) + "\n" for record in records)


def test_one_group_per_text(folder):
    records = [
        {"id": 1, "group": "sci.space", "split": "train", "text": "Ariane"},
        {"id": 2, "group": "alt.atheism", "split": "test", "text": "naïve"},
        {"id": 3, "group": "sci.space", "split": "train", "text": ""},
    ]
    _write(folder / "news.jsonl.gz", records)
    bunch = load("news")
    assert bunch.data == ["Ariane", "naïve", ""]
    assert bunch.target_names.tolist() == ["alt.atheism", "sci.space"]
    assert bunch.target.tolist() == [1, 0, 1]
    assert bunch.train.tolist() == [True, False, True]
    assert bunch.records == records
    assert bunch.name == "news"


def test_several_topics_per_text(folder):
    records = [
        {"title": "WHEAT UP", "body": "Prices rose.", "topics": ["wheat", "grain"]},
        {"title": "", "body": "No title.", "topics": []},
        {"title": "NO BODY", "body": "", "topics": ["acq"]},
    ]
    _write(folder / "wire.jsonl.gz", records)
    bunch = load("wire")
    assert bunch.data == ["WHEAT UP\nPrices rose.", "No title.", "NO BODY"]
    assert bunch.target_names.tolist() == ["acq", "grain", "wheat"]
    assert "target" not in bunch
    assert "train" not in bunch


def test_texts_without_labels(folder):
    _write(folder / "plain.jsonl.gz", [{"text": "a"}])
    assert set(load("plain")) == {"data", "records", "name"}


@pytest.mark.parametrize(
    "content",
    [
        b"not gzip",
        gzip.compress(b'{"text": "a"}\n' * 100)[:-12],
        gzip.compress(b"not JSON\n"),
        gzip.compress(b'{"text": "\xff"}\n'),
    ],
    ids=["plain", "truncated", "no-json", "no-utf8"],
)
def test_unreadable_texts(folder, content):
    (folder / "bad.jsonl.gz").write_bytes(content)
    with pytest.raises(FileFormatError, match=r"bad\.jsonl\.gz should be gzipped JSON lines"):
        load("bad")


def test_a_line_that_is_no_object(folder):
    _write(folder / "bad.jsonl.gz", [{"text": "a"}, [1]])
    with pytest.raises(FileFormatError, match="one JSON object per line"):
        load("bad")


@pytest.mark.parametrize(
    "records",
    [
        [{"text": "a", "group": "x"}, {"text": "b"}],
        [{"text": "a", "split": "train"}, {"text": "b"}],
        [{"text": "a", "group": "x"}, {"text": "b", "group": None}],
        [{"body": "no title"}],
        [{"text": 5}],
        [{"text": "a", "topics": ["x"]}, {"text": "b", "topics": 3}],
    ],
)
def test_fields_that_differ_from_line_to_line(folder, records):
    _write(folder / "bad.jsonl.gz", records)
    with pytest.raises(FileFormatError, match="same fields in every line"):
        load("bad")
