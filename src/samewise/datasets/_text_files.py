"""Read texts and their labels from gzipped JSON lines."""

from __future__ import annotations

import gzip
import json
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from samewise.exceptions import FileFormatError


def read_texts(path: Path) -> dict[str, Any]:
    """Return `data`, `records`, and `target`, `target_names`, `train` where the fields allow."""
    records = _records(path)
    try:
        content: dict[str, Any] = {"data": [_text(record) for record in records]}
        content.update(_labels(records), records=records)
    except (KeyError, TypeError) as error:
        raise FileFormatError(
            f"{path} should have the same fields in every line: text, or title and body; "
            f"but one line differs ({error!r}). Fetch or write the file again."
        ) from error
    return content


def _records(path: Path) -> list[dict[str, Any]]:
    try:
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            records = [json.loads(line) for line in lines]
    except (ValueError, EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise FileFormatError(
            f"{path} should be gzipped JSON lines in UTF-8, but cannot be read ({error}). "
            "Fetch the file again."
        ) from error
    if not all(isinstance(record, dict) for record in records):
        raise FileFormatError(f"{path} should hold one JSON object per line, with named fields.")
    return records


def _text(record: dict[str, Any]) -> str:
    if "text" in record:
        return _string(record["text"])
    return "\n".join(filter(None, (_string(record["title"]), _string(record["body"]))))


def _string(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"a text is {value!r}")
    return value


def _labels(records: list[dict[str, Any]]) -> dict[str, Any]:
    labels: dict[str, Any] = {}
    if any("split" in record for record in records):
        labels["train"] = np.array([record["split"] == "train" for record in records], dtype=bool)
    if any("group" in record for record in records):
        groups = np.array([_string(record["group"]) for record in records], dtype=np.str_)
        names, target = np.unique(groups, return_inverse=True)
        labels.update(target=target.astype(np.int64), target_names=names)
    elif any("topics" in record for record in records):
        topics = {topic for record in records for topic in record["topics"]}
        labels["target_names"] = np.array(sorted(topics), dtype=np.str_)
    return labels
