"""Arrays of an .npz archive, checked before there is room made for them."""

from __future__ import annotations

import math
import os
import zipfile
from typing import IO, Any

import scipy.sparse as sp
from numpy.lib import format as npy
from numpy.typing import NDArray

from samewise.exceptions import TooLargeError

CSR_PARTS = ("data", "indices", "indptr", "shape")
"""Names of the arrays that make a matrix of sparse rows."""

_MOST_COLUMNS = 2**27
_HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}


def read_npz(file: str | os.PathLike[str] | IO[bytes], source: str) -> dict[str, NDArray[Any]]:
    """The plain arrays of an archive; members of other kinds are left out.

    What is wrong with the archive is a ValueError, whatever zipfile and NumPy raise for it.

    Parameters
    ----------
    file : path or binary file
        The archive.
    source : str
        Its name, for the message if it is too large.

    Returns
    -------
    dict of str to array
        The arrays by their names.

    Examples
    --------
    >>> import io
    >>> import numpy as np
    >>> file = io.BytesIO()
    >>> np.savez(file, X=[[1.0]])
    >>> read_npz(file, "it")
    {'X': array([[1.]])}
    """
    try:
        with zipfile.ZipFile(file) as archive:
            members = [info for info in archive.infolist() if info.filename.endswith(".npy")]
            for info in members:
                _check(archive, info)
            size, room = sum(info.file_size for info in members), _memory() // 2
            if size > room:
                # Half of the memory: whatever is done with the arrays takes a copy.
                raise TooLargeError(
                    f"The arrays of {source} take {size:,} bytes, more than half of the memory of "
                    f"this machine ({room:,} bytes). Give fewer rows or columns."
                )
            return {info.filename.removesuffix(".npy"): _array(archive, info) for info in members}
    except (MemoryError, FileNotFoundError, PermissionError):
        raise
    except Exception as error:
        # Damaged bytes make zipfile and NumPy raise errors of a dozen kinds.
        raise ValueError(str(error).rstrip(".") or type(error).__name__) from error


def csr_rows(arrays: dict[str, NDArray[Any]]) -> sp.csr_array:
    """The matrix of the CSR parts; if they are not sound, a ValueError.

    Examples
    --------
    >>> import numpy as np
    >>> parts = {"data": [1.0], "indices": [2], "indptr": [0, 1], "shape": [1, 3]}
    >>> csr_rows({name: np.array(part) for name, part in parts.items()}).toarray()
    array([[0., 0., 1.]])
    """
    data, indices, indptr, shape = (arrays[part] for part in CSR_PARTS)
    if shape.shape != (2,) or any(part.dtype.kind not in "iu" for part in (indices, indptr, shape)):
        raise ValueError("indices, indptr and the two numbers of shape must be whole numbers.")
    n, d = shape.tolist()
    # The rows are as many as indptr says; columns could be any number, and each costs memory.
    if d > _MOST_COLUMNS:
        raise ValueError(f"shape claims {d:,} columns; at most {_MOST_COLUMNS:,} are read.")
    X = sp.csr_array((data, indices, indptr), shape=(n, d))
    X.check_format(full_check=True)
    return X


def _check(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> None:
    """That an array is plain, and has as many bytes as its shape and type say."""
    with archive.open(info) as file:
        version = npy.read_magic(file)
        if version not in _HEADERS:
            raise ValueError(f"{info.filename} has the version {version} of the format .npy.")
        shape, _, dtype = _HEADERS[version](file)
        if dtype.hasobject:
            raise ValueError(f"{info.filename} holds pickled objects.")
        claimed, there = math.prod(shape) * dtype.itemsize, info.file_size - file.tell()
        # Elements without bytes could be any number of them.
        if claimed != there or not dtype.itemsize or min(shape, default=0) < 0:
            raise ValueError(f"{info.filename} claims {claimed:,} bytes and has {there:,}.")


def _array(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> NDArray[Any]:
    with archive.open(info) as file:
        return npy.read_array(file, allow_pickle=False)


def _memory() -> int:
    """Bytes of memory of the machine; 16 GiB where the system does not tell."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return 2**34
