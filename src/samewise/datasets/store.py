"""Find named data sets in one directory and read them, without pickle."""

from __future__ import annotations

import difflib
import io
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from sklearn.utils import Bunch

from samewise.datasets._parameter_checks import check_float_dtype
from samewise.datasets._text_files import read_texts
from samewise.datasets.known import OPENML, SHIPPED
from samewise.exceptions import DatasetNotFoundError, FileFormatError
from samewise.files.npz_archive import CSR_PARTS, csr_rows, read_npz

VARIABLE = "SAMEWISE_DATA"
"""The environment variable that names the directory of data sets."""

_SUFFIXES = (".npz", ".jsonl.gz")


def available() -> list[str]:
    """Names of the data sets that `load` finds, sorted.

    Returns
    -------
    list of str
        Those of the directory, and those that come with scikit-learn.

    See Also
    --------
    load : Where the directory is looked for.

    Examples
    --------
    >>> import os, tempfile
    >>> from unittest import mock
    >>> from samewise.datasets import available
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.savez(os.path.join(folder, "tiny.npz"), X=[[0, 1]], y=[0], classes=["a"])
    ...     with mock.patch.dict(os.environ, SAMEWISE_DATA=folder):
    ...         available()
    ['breast_cancer', 'digits', 'iris', 'tiny', 'wine']
    """
    return sorted({*stored_names(), *SHIPPED})


def stored_names() -> list[str]:
    """Names of the data sets that the directory has files of, sorted."""
    return sorted(_files(directory()))


def load(name: str, *, dtype: DTypeLike = np.float64) -> Bunch:
    """Load one data set by name.

    The file is looked for in the directory that the environment variable ``SAMEWISE_DATA``
    names, and only there; if the variable is not set (or empty), in ``datasets`` of the user's
    cache directory for samewise, where `fetch` puts files. The directory holds, side by side,

    - ``<name>.npz``, arrays without pickles: `X` of shape (n, d), or the CSR parts `data`,
      `indices`, `indptr`, `shape`; `y`, the class number of each row from 0; `classes`, the name
      of each class; where a standard split exists the boolean `train`; and any further arrays;
    - ``<name>.jsonl.gz``, one JSON object per line and document with the field `text`, or `title`
      and `body`; if every document has one class, its name in `group`; if a standard split
      exists, `split` ("train" or "test").

    Where the directory has no file of the name, "breast_cancer", "digits", "iris" and "wine" are
    those that come with scikit-learn.

    Parameters
    ----------
    name : str
        A name that `available` lists.
    dtype : float32 or float64, default=float64
        Type of the features. Text sets have none, and do not heed it.

    Returns
    -------
    Bunch
        `name`; `data`, an array or CSR array of shape (n, d), or the list of n texts; `target`,
        int64 class numbers of shape (n,), absent where documents have several labels;
        `target_names`, array of the class names; `train`, boolean of shape (n,), where a standard
        split exists; `records`, the list of all fields of each document, for texts; and every
        further array of the file under its own name.

    Raises
    ------
    DatasetNotFoundError
        If there is no such file; the message says where it was looked for.
    FileFormatError
        If the file is damaged or is laid out otherwise.

    Examples
    --------
    >>> import os, tempfile
    >>> from unittest import mock
    >>> from samewise.datasets import load
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "tiny.npz")
    ...     np.savez(path, X=[[0, 1], [2, 3]], y=[0, 1], classes=["a", "b"])
    ...     with mock.patch.dict(os.environ, SAMEWISE_DATA=folder):
    ...         tiny = load("tiny")
    >>> tiny.data
    array([[0., 1.],
           [2., 3.]])
    >>> tiny.target_names[tiny.target]
    array(['a', 'b'], dtype='<U1')
    """
    known = check_float_dtype(dtype)
    if name in SHIPPED and name not in stored_names():
        content = _shipped(name, known)
    else:
        path = _find(name)
        content = _read_arrays(path, known) if path.suffix == ".npz" else read_texts(path)
    return Bunch(**{**content, "name": name})


def _shipped(name: str, dtype: np.dtype[Any]) -> dict[str, Any]:
    """A data set that comes with scikit-learn."""
    # Loaded when needed: scikit-learn's data sets take a while to import.
    from sklearn import datasets

    found = getattr(datasets, f"load_{name}")()
    return {
        "data": found.data.astype(dtype),
        "target": found.target.astype(np.int64),
        "target_names": np.asarray(found.target_names).astype(str),
        "feature_names": np.asarray(found.feature_names).astype(str),
    }


def directory() -> Path:
    """Where data sets are looked for: `$SAMEWISE_DATA`, else the user's cache directory."""
    chosen = os.environ.get(VARIABLE)
    if chosen:
        return Path(chosen)
    import platformdirs

    return Path(platformdirs.user_cache_dir("samewise", appauthor=False), "datasets")


def _files(directory: Path) -> dict[str, Path]:
    if not directory.is_dir():
        return {}
    # An .npz wins over texts of the same name, hence the reversed order.
    return {
        path.name.removesuffix(suffix): path
        for suffix in reversed(_SUFFIXES)
        for path in directory.glob(f"?*{suffix}")
    }


def _find(name: str) -> Path:
    folder = directory()
    files = _files(folder)
    if name in files:
        return files[name]
    if os.environ.get(VARIABLE):
        where = f"{folder} (from {VARIABLE})"
        remedy = f"Point {VARIABLE} at a directory that holds {name}.npz"
    else:
        where = f"{folder} ({VARIABLE} is not set)"
        remedy = f"Set {VARIABLE} to a directory that holds {name}.npz"
    if name in OPENML:
        remedy = f"Get it with samewise datasets fetch {name}, or {remedy[0].lower()}{remedy[1:]}"
    raise DatasetNotFoundError(
        f"There is no data set {name!r} in {where}{_hint(name, folder, files)}. "
        f"{remedy}; help(samewise.datasets.load) describes the layout."
    )


def _hint(name: str, directory: Path, files: dict[str, Path]) -> str:
    if not directory.is_dir():
        return ", which is not a directory"
    if not files:
        return ", which holds no data sets"
    near = difflib.get_close_matches(str(name), files, n=3)
    if near:
        return f"; similar names: {', '.join(near)}"
    return f"; there are: {', '.join(sorted(files))}"


def _read_arrays(path: Path, dtype: np.dtype[Any]) -> dict[str, Any]:
    # From memory, so that an OSError of the disk is not taken for damage.
    content = io.BytesIO(path.read_bytes())
    try:
        arrays = read_npz(content, str(path))
    except ValueError as error:
        raise FileFormatError(
            f"{path} should be an .npz archive of plain arrays, but cannot be read ({error}). "
            "Fetch the file again; object arrays (pickles) are never loaded."
        ) from error
    return _arranged(path, arrays, dtype)


def _arranged(path: Path, arrays: dict[str, NDArray[Any]], dtype: np.dtype[Any]) -> dict[str, Any]:
    parts = ("X",) if "X" in arrays else CSR_PARTS
    missing = [key for key in (*parts, "y", "classes") if key not in arrays]
    if missing:
        raise _misfit(path, f"has no {', '.join(missing)}; it holds {', '.join(sorted(arrays))}")
    try:
        X = (arrays["X"] if "X" in arrays else csr_rows(arrays)).astype(dtype)
    except (ValueError, TypeError, IndexError) as error:
        raise _misfit(path, f"holds no usable features ({str(error).rstrip('.')})") from error
    y, classes = arrays["y"], arrays["classes"]
    train = arrays.get("train")
    if X.ndim != 2:
        raise _misfit(path, f"holds X of shape {X.shape}")
    n = X.shape[0]
    if y.shape != (n,) or not np.issubdtype(y.dtype, np.integer):
        raise _misfit(path, f"holds {n} rows but y of shape {y.shape} and type {y.dtype}")
    if classes.ndim != 1 or (n and not 0 <= y.min() <= y.max() < len(classes)):
        raise _misfit(path, f"holds class numbers outside its {classes.size} classes")
    if train is not None and (train.shape != (n,) or train.dtype != np.bool_):
        raise _misfit(path, f"holds {n} rows but train of shape {train.shape} and {train.dtype}")
    extras = {key: value for key, value in arrays.items() if key not in (*parts, "y", "classes")}
    return {**extras, "data": X, "target": y.astype(np.int64), "target_names": classes}


def _misfit(path: Path, what: str) -> FileFormatError:
    return FileFormatError(
        f"{path} {what}. Expected X of shape (n, d) or CSR parts, whole numbers y of shape (n,) "
        "below the number of classes, and a boolean train of shape (n,) if any; "
        "help(samewise.datasets.load) describes the layout."
    )
