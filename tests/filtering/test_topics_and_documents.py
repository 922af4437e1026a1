"""Files of topics, documents and judgments, good and bad."""

from __future__ import annotations

import gzip
import io
import json

import pytest

from samewise.exceptions import FileFormatError, InvalidInputError
from samewise.filtering import Document, Documents, Judgments, Topic, read_topics

TOP = """<top>
<num>110</num>
<title>The diversity
 in politics</title>
<desc>About &lt;diversity&gt;</desc><narr>A <b>relevant</b> one</narr>
<keywords><keyword>parity</keyword><keyword> integration </keyword></keywords>
<sample>In the arena</sample>
</top>"""
WANTED = Topic(
    "110",
    "The diversity in politics",
    "About <diversity>",
    "A relevant one",
    ("parity", "integration"),
    "In the arena",
)
SECOND = "<top><num> 111 </num><title>Caf\u00e9</title></top>"


def written(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize(
    "text",
    [
        f"<topics>{TOP}\n{SECOND}</topics>",
        f"{TOP}\n{SECOND}",
        f'<?xml version="1.0" encoding="utf-8"?>\n{TOP}\n{SECOND}',
        f"\ufeff{TOP}\n{SECOND}",
        f'<?xml version="1.0" encoding="iso-8859-1"?>\n{TOP}{SECOND}'.encode("latin-1"),
    ],
    ids=["rooted", "one after the other", "declared", "byte order mark", "latin-1"],
)
def test_topics_from_xml(tmp_path, text):
    assert read_topics(written(tmp_path, "t.xml", text)) == [
        WANTED,
        Topic("111", "Caf\u00e9"),
    ]


def test_topics_from_json(tmp_path):
    entries = [
        {"id": 110, "title": "Politics", "keywords": ["parity"], "desc": "of people"},
        {"num": "b", "text": "gold"},
    ]
    wanted = [Topic("110", "Politics", "of people", "", ("parity",)), Topic("b", "", "gold")]
    lines = "\n".join(map(json.dumps, entries)) + "\n\n"
    assert read_topics(written(tmp_path, "t.jsonl", lines)) == wanted
    assert read_topics(written(tmp_path, "t.json", json.dumps(entries))) == wanted
    assert read_topics(written(tmp_path, "u.json", json.dumps({"topics": entries}))) == wanted


LAUGHS = """<?xml version="1.0"?>
<!DOCTYPE lolz [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">]>
<top><num>1</num><title>&b;</title></top>"""
EXTERNAL = """<!DOCTYPE top [<!ENTITY x SYSTEM "file:///etc/passwd">]>
<top><num>1</num><title>&x;</title></top>"""
DTD = """<!DOCTYPE top SYSTEM "http://localhost/topics.dtd"><top><num>1</num></top>"""
LATE = """<top><num>1</num><title>a</title></top><!DOCTYPE top [<!ENTITY a "b">]>"""


@pytest.mark.parametrize("text", [LAUGHS, EXTERNAL, DTD], ids=["entities", "external", "dtd"])
def test_hostile_xml_is_refused(tmp_path, text):
    with pytest.raises(FileFormatError, match=r"t\.xml:\d.*document type or an entity.*refused"):
        read_topics(written(tmp_path, "t.xml", text))


@pytest.mark.parametrize(
    ("name", "text", "match"),
    [
        ("t.xml", "<top><num>1</num>\n<title>a</top>", r"t\.xml:2 is not well-formed"),
        ("t.xml", f"{TOP}<top><num>2", "is not well-formed"),
        ("t.xml", LATE, "is not well-formed"),
        ("t.xml", "<top><num>1</num><title>&what;</title></top>", "is not well-formed"),
        ("t.xml", "", "is not well-formed"),
        ("t.xml", "<a></a>", "holds no topics"),
        ("t.xml", "<top><title>a</title></top>", r"t\.xml:1 has a topic without an id"),
        ("t.xml", "<top><num>1</num></top>", "'1' without any text"),
        ("t.xml", f"<a>{TOP}\n{TOP}</a>", r"t\.xml:9 has the topic '110' a second time"),
        ("t.jsonl", '{"id": 1, "text": "a"}\n{"id"', r"t\.jsonl:2 is not JSON"),
        ("t.jsonl", "[1]", r"t\.jsonl:1 should be an object"),
        ("t.jsonl", '{"id": true, "text": "a"}', "whole number as id"),
        ("t.jsonl", '{"id": "a", "text": 3}', "should have texts"),
        ("t.jsonl", '{"id": "a", "keywords": "b"}', "as a list of texts"),
        ("t.json", "{", "is not JSON"),
        ("t.json", "[" * 100_000, "is not JSON"),
        ("t.json", "3", "list of topics"),
        ("t.json", "[]", "holds no topics"),
        ("t.txt", "a", r"should be \.xml, \.json or \.jsonl"),
    ],
)
def test_bad_files_of_topics(tmp_path, name, text, match):
    with pytest.raises(FileFormatError, match=match):
        read_topics(written(tmp_path, name, text))


LINES = b"""{"id": "a", "text": "one"}
not json

{"id": 2, "title": "two", "body": "more"}
{"text": "no id"}
[1, 2]
{"id": "b"}
{"id": "c", "text": 7}
{"id": true, "text": "x"}
{"id": "", "text": "x"}
{"id": "e", "title": null, "body": "x"}
{"id": "\xff", "text": "x"}
{"id": "d", "text": ""}"""
GOOD = [("a", "one"), ("2", "two\nmore"), ("5", "no id"), ("d", "")]


def test_malformed_lines_are_reported_and_counted(tmp_path):
    path = written(tmp_path, "d.jsonl", LINES)
    said = []
    documents = Documents(path, report=said.append)
    assert [(d.id, d.text) for d in documents] == GOOD
    assert documents.n_skipped == len(said) == 8
    assert said[0].startswith(f"{path}:2 is not JSON")
    assert [sentence.split()[0].rpartition(":")[2] for sentence in said] == [
        "2", "6", "7", "8", "9", "10", "11", "12",
    ]  # fmt: skip


def test_malformed_lines_can_be_fatal(tmp_path):
    documents = iter(Documents(written(tmp_path, "d.jsonl", LINES), on_error="raise"))
    assert next(documents).id == "a"
    with pytest.raises(FileFormatError, match=r"d\.jsonl:2 is not JSON"):
        next(documents)
    with pytest.raises(InvalidInputError, match="on_error must be 'skip' or 'raise'"):
        Documents("-", on_error="ignore")


def test_documents_from_a_folder_and_from_gzip(tmp_path):
    (tmp_path / "sub").mkdir()
    for name, content in {"b.txt": b"two", "a.txt": b"one", "sub/c": b"\xff"}.items():
        (tmp_path / name).write_bytes(content)
    documents = Documents(tmp_path)
    assert [(d.id, d.text) for d in documents] == [("a.txt", "one"), ("b.txt", "two")]
    assert documents.n_skipped == 1
    packed = tmp_path / "d.jsonl.gz"
    packed.write_bytes(gzip.compress(LINES))
    assert [(d.id, d.text) for d in Documents(packed)] == GOOD


def test_documents_from_standard_input(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(LINES)))
    assert [(d.id, d.text) for d in Documents("-")] == GOOD


def test_standard_input_says_when_nothing_more_has_come(monkeypatch):
    import os

    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as end:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(end))
        stream = Documents("-").stream()
        os.write(writing, b'{"id": "a", "text": "x"}\n{"id": "b", ')
        assert next(stream).id == "a"
        assert next(stream) is None
        os.write(writing, b'"text": "y"}')
        os.close(writing)
        assert [d.id for d in stream if d is not None] == ["b"]


def test_no_such_documents(tmp_path):
    with pytest.raises(FileNotFoundError, match="no documents at"):
        Documents(tmp_path / "nothing")


def test_judgments(tmp_path):
    lines = (
        '{"id": 7, "topics": ["a"], "text": "x"}\n'
        '{"document": "d", "topic": "a", "relevant": true}\n'
        '{"document": "d", "topic": "b", "relevant": false}\n'
    )
    judge = Judgments.read(written(tmp_path, "j.jsonl", lines))
    assert judge("7", "a") is True and judge("7", "b") is False
    assert judge("d", "a") is True and judge("d", "b") is False and judge("d", "c") is None
    assert judge("e", "a") is None
    assert len(judge) == 2 and "d" in judge and judge.topics == {"a", "b"}


@pytest.mark.parametrize(
    "line",
    [
        "{",
        '{"topic": "a", "relevant": true}',
        '{"document": "d", "topic": "a", "relevant": 1}',
        '{"document": "d", "topics": "a"}',
    ],
)
def test_bad_judgments(tmp_path, line):
    path = written(tmp_path, "j.jsonl", line)
    with pytest.raises(FileFormatError, match=r"j\.jsonl:1"):
        Judgments.read(path)
    said = []
    assert len(Judgments.read(path, "skip", said.append)) == 0
    assert len(said) == 1


def test_a_document_is_its_id_and_text():
    assert Document("a", "b") == Document("a", "b", "")
