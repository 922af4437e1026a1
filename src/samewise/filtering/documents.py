"""Documents of a stream, and judgments about them, as they are read from files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from samewise.exceptions import FileFormatError, InvalidInputError
from samewise.files.json_lines import LONGEST, check_length, check_text, lines_of, objects


@dataclass(frozen=True)
class Document:
    """A text of the stream.

    Attributes
    ----------
    id : str
        The id of the document.
    text : str
        The text.
    where : str, default=""
        File and line it came from, for messages.
    """

    id: str
    text: str
    where: str = ""


class Documents:
    """The documents of a source, one after the other, in bounded memory.

    Parameters
    ----------
    source : str or path
        A file of JSON lines (gzipped if its name ends in ``.gz``); a folder, whose files, sorted
        by name, are one document each; or "-" for JSON lines on standard input. A line is an
        object with ``text``, or ``title`` and ``body``, and perhaps ``id``; without one the id is
        the number of the line. In a folder it is the path within.
    on_error : {"skip", "raise"}, default="skip"
        What to do with a line that is malformed or longer than 64 MiB, or a file of a folder that
        is not UTF-8 or that long. A damaged gzip file is always an error, after its documents
        before the damage.
    report : callable, default=None
        Called with a sentence about each that is skipped.

    Attributes
    ----------
    n_skipped : int
        Documents that were skipped.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "docs.jsonl"
    ...     _ = path.write_text('{"id": "a", "text": "one"}\\n{"id": \\n')
    ...     documents = Documents(path)
    ...     [document.id for document in documents], documents.n_skipped
    (['a'], 1)
    """

    def __init__(
        self,
        source: str | os.PathLike[str],
        on_error: str = "skip",
        report: Callable[[str], None] | None = None,
    ) -> None:
        if on_error not in ("skip", "raise"):
            raise InvalidInputError(f"on_error must be 'skip' or 'raise'. Got {on_error!r}.")
        self.source, self.on_error, self.report = str(source), on_error, report
        self.n_skipped = 0
        if self.source != "-" and not os.path.exists(self.source):
            raise FileNotFoundError(f"There are no documents at {self.source}; check the path.")

    def __iter__(self) -> Iterator[Document]:
        return (document for document in self.stream() if document is not None)

    def stream(self) -> Iterator[Document | None]:
        """The documents, and None where standard input has no more for the moment.

        Yields
        ------
        Document or None
            The next document; None where standard input has no more for the moment.
        """
        if self.source == "-":
            lines = lines_of("-")
            yield from objects(lines, "standard input", self.skip, _document)
        elif os.path.isdir(self.source):
            yield from self._folder(Path(self.source))
        else:
            lines = lines_of(self.source)
            yield from objects(lines, self.source, self.skip, _document)

    def skip(self, sentence: str) -> None:
        """Report and count a document that cannot be used, or raise a FileFormatError.

        Parameters
        ----------
        sentence : str
            What is wrong with the document.
        """
        if self.on_error == "raise":
            raise FileFormatError(sentence)
        self.n_skipped += 1
        if self.report is not None:
            self.report(sentence)

    def _folder(self, folder: Path) -> Iterator[Document]:
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            id, where = path.relative_to(folder).as_posix(), str(path)
            try:
                with path.open("rb") as file:
                    content = file.read(LONGEST + 1)
                check_length(content, where)
                yield Document(_id(id, where), content.decode("utf-8"), where)
            except UnicodeDecodeError as error:
                self.skip(f"{where} is not UTF-8 ({error.reason} at byte {error.start}).")
            except FileFormatError as error:
                self.skip(str(error))


class Judgments:
    """Which documents are relevant to which topics: a judge for filters and scores.

    Read from JSON lines, either ``{"document": id, "topic": topic, "relevant": true}``, or
    ``{"document": id, "topics": [topic, …]}`` with all topics that a document is relevant to: it
    is then irrelevant to all others. ``id`` may stand for ``document``, so that a file of documents
    with their topics is a file of judgments.

    Parameters
    ----------
    judged : dict, default=None
        For each document the topics that it was judged for, and whether it is relevant to them;
        None for a document that was judged for none.

    Examples
    --------
    >>> judge = Judgments({"d1": {"cocoa": True}, "d2": None})
    >>> judge("d1", "cocoa"), judge("d1", "gold"), judge("d2", "gold")
    (True, None, None)
    """

    def __init__(self, judged: dict[str, dict[str, bool] | None] | None = None) -> None:
        self._judged = {doc: dict(topics or {}) for doc, topics in (judged or {}).items()}
        self._whole: set[str] = set()

    def __call__(self, document: str, topic: str) -> bool | None:
        """Whether it is relevant, or None if nobody judged."""
        default = False if document in self._whole else None
        return self._judged.get(document, {}).get(topic, default)

    def __len__(self) -> int:
        return len(self._judged)

    def __contains__(self, document: object) -> bool:
        return document in self._judged

    @property
    def topics(self) -> set[str]:
        """Topics that some document was judged for."""
        return {topic for judged in self._judged.values() for topic in judged}

    @classmethod
    def read(
        cls,
        path: str | os.PathLike[str],
        on_error: str = "raise",
        report: Callable[[str], None] | None = None,
    ) -> Judgments:
        """Read a file of judgments.

        Parameters
        ----------
        path : str or path
            File of JSON lines, gzipped if its name ends in ``.gz``.
        on_error : {"skip", "raise"}, default="raise"
            What to do with a line that is malformed.
        report : callable, default=None
            Called with a sentence about each that is skipped.

        Returns
        -------
        Judgments
            The judgments of the file.
        """
        source = Documents(path, on_error, report)
        judge = cls()
        for _ in objects(lines_of(source.source), source.source, source.skip, judge._add):
            pass
        return judge

    def _add(self, entry: dict[str, Any], where: str) -> None:
        id = _id(entry.get("document", entry.get("id")), where)
        if "topics" in entry:
            topics = entry["topics"]
            if not isinstance(topics, list) or not all(isinstance(t, str) for t in topics):
                raise FileFormatError(f"{where} should have the topics as a list of texts.")
            check_text("".join(topics), where)
            self._judged.setdefault(id, {}).update(dict.fromkeys(topics, True))
            self._whole.add(id)
            return
        if not isinstance(entry.get("topic"), str) or not isinstance(entry.get("relevant"), bool):
            raise FileFormatError(f"{where} should have a topic, and true or false as relevant.")
        check_text(entry["topic"], where)
        self._judged.setdefault(id, {})[entry["topic"]] = entry["relevant"]


def _document(entry: dict[str, Any], where: str) -> Document:
    names = ("text",) if "text" in entry else ("title", "body")
    texts = [entry.get(name) for name in names]
    if not all(isinstance(text, str) for text in texts):
        raise FileFormatError(f"{where} should have a text, or a title and a body.")
    text = "\n".join(filter(None, texts))
    check_text(text, where)
    id = entry.get("id", where.rpartition(":")[2])
    return Document(_id(id, where), text, where)


def _id(id: Any, where: str) -> str:
    if isinstance(id, bool) or not isinstance(id, str | int) or id == "":
        raise FileFormatError(f"{where} should have a text or a whole number as id.")
    check_text(str(id), where)
    return str(id)
