"""Get well-known data sets from OpenML and from where scikit-learn finds them."""

from __future__ import annotations

import difflib
import gzip
import io
import json
from http.client import HTTPException
from pathlib import Path

import numpy as np

from samewise.datasets.known import OPENML
from samewise.datasets.store import directory
from samewise.exceptions import DatasetNotFoundError
from samewise.files.writing import write_atomically

FETCHED = sorted((*OPENML, "news20_bydate"))
"""The names that `fetch` takes."""


def fetch(name: str) -> Path:
    """Get a data set from OpenML or its home, and store it where `load` finds it.

    Rows with missing values are left out. Values of categorical features become numbers, in the
    order in which OpenML lists them. A file of the same name is replaced. Checksums are compared by
    scikit-learn, which downloads.

    Parameters
    ----------
    name : str
        One of the names in `samewise.datasets.OPENML`, or "news20_bydate".

    Returns
    -------
    Path
        The file that was written, in the directory of data sets.

    Raises
    ------
    DatasetNotFoundError
        If the name is not known, or the source cannot be reached.

    See Also
    --------
    load : Reads the file.

    Examples
    --------
    With a network connection:

    >>> from samewise.datasets import fetch, load
    >>> path = fetch("iris")  # doctest: +SKIP
    >>> load("iris").data.shape  # doctest: +SKIP
    (150, 4)
    """
    if name not in FETCHED:
        near = difflib.get_close_matches(str(name), FETCHED, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else "."
        raise DatasetNotFoundError(
            f"There is no data set {name!r} that can be fetched{hint} There are: "
            f"{', '.join(FETCHED)}."
        )
    texts = name not in OPENML
    path = directory() / (f"{name}.jsonl.gz" if texts else f"{name}.npz")
    try:
        content = _newsgroups() if texts else _arrays(OPENML[name])
    except (OSError, HTTPException) as error:
        source = "its home" if texts else "OpenML"
        raise DatasetNotFoundError(
            f"The data set {name!r} could not be fetched from {source} ({error}). Check the "
            f"network connection, or put {path.name} into {path.parent}."
        ) from error
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, [content])
    return path


# scikit-learn's data sets take a while to import, so they are imported when needed.


def _arrays(number: int) -> bytes:
    """A data set of OpenML as an .npz archive."""
    from sklearn.datasets import fetch_openml

    # Read without pandas, which is not installed everywhere.
    found = fetch_openml(data_id=number, as_frame=False, parser="liac-arff", cache=False)
    complete = np.isfinite(found.data).all(axis=1)
    classes, y = np.unique(np.asarray(found.target[complete], dtype=str), return_inverse=True)
    archive = io.BytesIO()
    np.savez_compressed(archive, X=found.data[complete], y=y.astype(np.int64), classes=classes)
    return archive.getvalue()


def _newsgroups() -> bytes:
    """20 Newsgroups, by date, as lines of JSON."""
    from sklearn.datasets import fetch_20newsgroups

    lines = []
    for split in ("train", "test"):
        found = fetch_20newsgroups(subset=split, shuffle=False)
        for text, target in zip(found.data, found.target, strict=True):
            group = found.target_names[target]
            lines.append(json.dumps({"group": group, "split": split, "text": text}))
    return gzip.compress("\n".join(lines).encode(), mtime=0)
