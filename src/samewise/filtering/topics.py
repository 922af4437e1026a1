"""Topics: what a user is interested in, and how it is read from files."""

from __future__ import annotations

import json
import os
import re
from codecs import BOM_UTF8
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.parsers import expat

from samewise.exceptions import FileFormatError
from samewise.files.container import unique_names
from samewise.files.json_lines import check_text, objects

_FIELDS = {
    "title": "title",
    "desc": "description",
    "description": "description",
    "narr": "narrative",
    "narrative": "narrative",
    "sample": "sample",
}
_LISTS = ("keywords", "keyword")
_IDS = ("id", "num")
_KNOWN = {*_FIELDS, *_LISTS, "num"}


@dataclass(frozen=True)
class Topic:
    """A topic, or profile: an id, and some sentences on what is relevant.

    Parameters
    ----------
    id : str
        Name of the topic.
    title : str, default=""
        A few words.
    description : str, default=""
        A sentence.
    narrative : str, default=""
        What is relevant and what is not.
    keywords : tuple of str, default=()
        Words that belong to the topic.
    sample : str, default=""
        A text that is relevant.

    Examples
    --------
    >>> Topic("110", title="Diversity in politics", keywords=("parity", "integration")).text
    'Diversity in politics\\nparity\\nintegration'
    """

    id: str
    title: str = ""
    description: str = ""
    narrative: str = ""
    keywords: tuple[str, ...] = ()
    sample: str = ""

    @property
    def text(self) -> str:
        """All fields, which together describe the topic."""
        parts = (self.title, self.description, self.narrative, *self.keywords, self.sample)
        return "\n".join(part for part in parts if part)


def read_topics(path: str | os.PathLike[str]) -> list[Topic]:
    """Read topics from a file, by its suffix: ``.xml``, ``.json`` or ``.jsonl``.

    XML has an element ``<top>`` for each topic with ``<num>``, the id, and any of ``<title>``,
    ``<desc>``, ``<narr>``, ``<keywords>`` with ``<keyword>`` in it, and ``<sample>``. A root
    element around them is not needed; other elements are read as part of the one they are in.
    A file with a document type or entity declarations is refused: topics need none, and they can
    make a small file huge or read other files.

    JSON is a list of objects, or one object with such a list as ``topics``; JSONL one object per
    line. They have ``id`` (or ``num``), and ``text`` or the same fields as in XML.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    list of Topic
        The topics, in the order of the file.

    Raises
    ------
    FileFormatError
        If the file is malformed, with the line; if a topic has no id or no text, or an id twice.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "topics.xml"
    ...     _ = path.write_text("<top><num>7</num><title>Cocoa</title></top>")
    ...     read_topics(path)
    [Topic(id='7', title='Cocoa', description='', narrative='', keywords=(), sample='')]
    """
    path = Path(path)
    readers = {".xml": _from_xml, ".json": _from_json, ".jsonl": _from_lines}
    if path.suffix.lower() not in readers:
        raise FileFormatError(
            f"{path} should be .xml, .json or .jsonl, which says how topics are written in it."
        )
    topics: dict[str, Topic] = {}
    for where, topic in readers[path.suffix.lower()](path, path.read_bytes()):
        check_text(f"{topic.id}{topic.text}", where)
        if not topic.id:
            raise FileFormatError(f"{where} has a topic without an id; give it a num.")
        if topic.id in topics:
            raise FileFormatError(f"{where} has the topic {topic.id!r} a second time.")
        if not topic.text.strip():
            raise FileFormatError(f"{where} has the topic {topic.id!r} without any text.")
        topics[topic.id] = topic
    if not topics:
        raise FileFormatError(f"{path} holds no topics.")
    return list(topics.values())


def _from_xml(path: Path, data: bytes) -> Iterator[tuple[str, Topic]]:
    try:
        try:
            found = _Tops(path).parse(data)
        except expat.ExpatError as error:
            if error.code != expat.errors.codes[expat.errors.XML_ERROR_JUNK_AFTER_DOC_ELEMENT]:
                raise
            # Several elements <top> after each other, without one around them.
            found = _Tops(path).parse(_rooted(data))
    except (expat.ExpatError, ValueError, LookupError) as error:
        where = f"{path}:{error.lineno}" if isinstance(error, expat.ExpatError) else path
        raise FileFormatError(f"{where} is not well-formed XML ({error}).") from error
    yield from found


def _rooted(data: bytes) -> bytes:
    declaration = re.match(rb"(?:\xef\xbb\xbf)?<\?xml[^>]*\?>", data)
    head = declaration.group() if declaration else b""
    # The declaration must come first; its lines stay, so that later ones keep their numbers.
    return head + b"<topics>" + data.removeprefix(head or BOM_UTF8) + b"</topics>"


class _Tops:
    """Collects the elements <top>, and refuses whatever could expand or fetch."""

    def __init__(self, path: Path) -> None:
        self._path, self._found = path, list[tuple[str, Topic]]()
        # For each field its elements, and of each element the pieces of its text.
        self._fields: dict[str, list[list[str]]] | None = None
        # For each open element the innermost known one that it is or is in; it gets the text.
        self._open: list[str | None] = []
        self._line = 0
        self._parser = expat.ParserCreate()
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._text
        self._parser.StartDoctypeDeclHandler = self._refuse
        self._parser.EntityDeclHandler = self._refuse
        self._parser.ExternalEntityRefHandler = self._refuse  # type: ignore[assignment]

    def parse(self, data: bytes) -> list[tuple[str, Topic]]:
        self._parser.Parse(data, True)
        return self._found

    def _refuse(self, *_: Any) -> None:
        raise FileFormatError(
            f"{self._path}:{self._parser.CurrentLineNumber} has a document type or an entity "
            "declaration, which is refused: it could expand without end or read other files. "
            "Remove it."
        )

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "top":
            self._fields, self._open = {}, []
            self._line = self._parser.CurrentLineNumber
        elif self._fields is not None:
            if name in _KNOWN:
                self._open.append(name)
                self._fields.setdefault(name, []).append([])
            else:
                self._open.append(self._open[-1] if self._open else None)

    def _text(self, text: str) -> None:
        name = self._open[-1] if self._open else None
        if self._fields is not None and name is not None:
            self._fields[name][-1].append(text)

    def _end(self, name: str) -> None:
        if name != "top":
            if self._fields is not None:
                self._open.pop()
            return
        fields, self._fields = self._fields or {}, None
        where = f"{self._path}:{self._line}"
        self._found.append((where, _topic(fields)))


def _topic(fields: dict[str, list[list[str]]]) -> Topic:
    """The topic of an element: white space in a field is one blank."""
    clean = {name: [" ".join("".join(t).split()) for t in texts] for name, texts in fields.items()}
    named = {_FIELDS[name]: " ".join(clean[name]) for name in clean if name in _FIELDS}
    keywords = tuple(word for name in _LISTS for word in clean.get(name, []) if word)
    return Topic(" ".join(clean.get("num", [])), keywords=keywords, **named)


def _from_json(path: Path, data: bytes) -> Iterator[tuple[str, Topic]]:
    try:
        content = json.loads(data.decode("utf-8-sig"), object_pairs_hook=unique_names)
    except (ValueError, RecursionError) as error:
        raise FileFormatError(f"{path} is not JSON ({error}).") from error
    if isinstance(content, dict):
        content = content.get("topics")
    if not isinstance(content, list):
        raise FileFormatError(f"{path} should hold a list of topics, or an object with 'topics'.")
    for i, entry in enumerate(content):
        where = f"{path}, topic number {i + 1},"
        yield where, _of_object(entry, where)


def _from_lines(path: Path, data: bytes) -> Iterator[tuple[str, Topic]]:
    def refuse(sentence: str) -> None:
        raise FileFormatError(sentence)

    def topic(entry: Any, where: str) -> tuple[str, Topic]:
        return where, _of_object(entry, where)

    lines = data.removeprefix(BOM_UTF8).split(b"\n")
    return filter(None, objects(lines, str(path), refuse, topic))


def _of_object(entry: Any, where: str) -> Topic:
    if not isinstance(entry, dict):
        raise FileFormatError(f"{where} should be an object with id and text.")
    id = next((entry[name] for name in _IDS if name in entry), "")
    texts = {_FIELDS[name]: entry[name] for name in _FIELDS if name in entry}
    if "text" in entry:
        texts["description"] = entry["text"]
    keywords = entry.get("keywords", [])
    right = isinstance(keywords, list) and all(isinstance(word, str) for word in keywords)
    if not right or not all(isinstance(text, str) for text in texts.values()):
        raise FileFormatError(f"{where} should have texts, and keywords as a list of texts.")
    if isinstance(id, bool) or not isinstance(id, str | int):
        raise FileFormatError(f"{where} should have a text or a whole number as id.")
    return Topic(str(id).strip(), keywords=tuple(keywords), **texts)
