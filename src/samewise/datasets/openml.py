"""Get well-known data sets from OpenML."""

from __future__ import annotations

import difflib
import io
from http.client import HTTPException
from pathlib import Path

import numpy as np

from samewise.datasets.store import OPENML, directory
from samewise.exceptions import DatasetNotFoundError
from samewise.files.writing import write_atomically


def fetch(name: str) -> Path:
    """Get a data set from OpenML and store it where `load` finds it.

    Rows with missing values are left out. Values of categorical features become numbers, in the
    order in which OpenML lists them. A file of the same name is replaced.

    Parameters
    ----------
    name : str
        One of the names in `samewise.datasets.OPENML`.

    Returns
    -------
    Path
        The file that was written: ``<name>.npz`` in the directory of data sets.

    Raises
    ------
    DatasetNotFoundError
        If the name is not known, or OpenML cannot be reached.

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
    if name not in OPENML:
        near = difflib.get_close_matches(str(name), OPENML, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else "."
        raise DatasetNotFoundError(
            f"There is no data set {name!r} that can be fetched{hint} There are: "
            f"{', '.join(OPENML)}."
        )
    # Loaded when needed: scikit-learn's data sets take a while to import.
    from sklearn.datasets import fetch_openml

    folder = directory()
    try:
        # Read without pandas, which is not installed everywhere.
        found = fetch_openml(data_id=OPENML[name], as_frame=False, parser="liac-arff", cache=False)
    except (OSError, HTTPException) as error:
        raise DatasetNotFoundError(
            f"The data set {name!r} could not be fetched from OpenML ({error}). Check the network "
            f"connection, or put {name}.npz into {folder}."
        ) from error
    complete = np.isfinite(found.data).all(axis=1)
    classes, y = np.unique(np.asarray(found.target[complete], dtype=str), return_inverse=True)
    archive = io.BytesIO()
    np.savez_compressed(archive, X=found.data[complete], y=y.astype(np.int64), classes=classes)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.npz"
    write_atomically(path, [archive.getvalue()])
    return path
