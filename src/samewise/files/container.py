"""The container: arrays and a JSON header, no pickle, nothing that runs.

    magic (10 bytes) | length of the header (uint64) | SHA-256 of the header | header | payload

All numbers are little-endian. The header is a JSON object with the keys of `_HEADER`: the format
version, the samewise version that wrote it, the kind (a class name), its values, the arrays (name,
dtype, shape, offset), and the length and SHA-256 of the payload. The payload holds the arrays in C
order, in the order of the header, each starting at the next multiple of 8 bytes.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import stat
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any, BinaryIO, NoReturn

import numpy as np
from numpy.typing import NDArray

from samewise.exceptions import FileFormatError, InvalidInputError
from samewise.files.writing import write_atomically

FORMAT = 1
_MAGIC = b"samewise\x1a\n"
_PREFIX = struct.Struct("<Q32s")
_ALIGN = 8
# A header holds names and a few numbers; this bounds what parsing a hostile one can cost.
_MAX_HEADER = 2**20
# An empty side lets the other one be any number; beyond this NumPy makes no array.
_MAX_SIDE = 2**31
_DTYPES = {"float32": "<f4", "float64": "<f8", "int64": "<i8", "uint8": "|u1", "bool": "|b1"}
_HEADER = {
    "format": int,
    "samewise": str,
    "kind": str,
    "params": dict,
    "arrays": list,
    "payload_bytes": int,
    "payload_sha256": str,
}
_ARRAY = {"name": str, "dtype": str, "shape": list, "offset": int}


@dataclass(frozen=True)
class Content:
    """What a file holds, undamaged but not yet understood; its arrays are read-only."""

    path: str
    kind: str
    arrays: dict[str, NDArray[Any]]
    params: dict[str, Any]


def write(
    path: str | os.PathLike[str],
    kind: str,
    arrays: dict[str, NDArray[Any]],
    params: dict[str, Any],
    *,
    owner: str,
) -> None:
    """Write a file; an older one at that path is replaced whole or not at all.

    Parameters
    ----------
    path : str or path
        A link is followed; its folder must exist. While it is written, a temporary file lies
        beside it.
    kind : str
    arrays : dict of arrays
        Of the types float32, float64, int64, uint8 or bool.
    params : dict
        Of JSON values.
    owner : str
        What is saved, for the messages.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "file"
    ...     write(path, "point", {"x": np.array([1.0, 2.0])}, {"name": "p"}, owner="a point")
    ...     content = read(path)
    >>> content.kind, content.arrays["x"], content.params
    ('point', array([1., 2.]), {'name': 'p'})
    """
    chunks = list(_payload(arrays))
    digest = hashlib.sha256()
    for chunk in chunks:
        digest.update(chunk)
    header = {
        "format": FORMAT,
        "samewise": import_module("samewise").__version__,
        "kind": kind,
        "params": params,
        "arrays": _table(arrays),
        "payload_bytes": sum(memoryview(chunk).nbytes for chunk in chunks),
        "payload_sha256": digest.hexdigest(),
    }
    text = _encode(header, owner)
    prefix = _PREFIX.pack(len(text), hashlib.sha256(text).digest())
    write_atomically(path, [_MAGIC, prefix, text, *chunks])


def read(path: str | os.PathLike[str]) -> Content:
    """Read a file that `write` wrote; the arrays come back with the same bits.

    Nothing in the file is executed, and a file that is foreign, damaged or newer than this version
    raises a FileFormatError.
    """
    shown = os.fspath(path)
    # Asked before opening: a pipe would block, and a device has no end.
    if not stat.S_ISREG(os.stat(path).st_mode) and not os.path.isdir(path):
        refuse(shown, "is not a regular file")
    with open(path, "rb") as file:
        header, payload = _read(file, shown)
    arrays = _arrays(header["arrays"], payload, shown)
    return Content(shown, header["kind"], arrays, header["params"])


def parse(text: bytes) -> Any:
    """The value of a JSON text; what is not plain JSON (NaN, a name twice) is a ValueError."""
    try:
        return json.loads(
            text.decode(),
            parse_constant=_no_constant,
            parse_float=_finite,
            object_pairs_hook=unique_names,
        )
    except RecursionError as error:
        raise ValueError(str(error)) from error


def _payload(arrays: dict[str, NDArray[Any]]) -> Iterator[Any]:
    for values in arrays.values():
        stored = np.ascontiguousarray(values, dtype=_DTYPES[values.dtype.name])
        yield stored.reshape(-1).view(np.uint8)
        yield bytes(-stored.nbytes % _ALIGN)


def _table(arrays: dict[str, NDArray[Any]]) -> list[dict[str, Any]]:
    table, offset = [], 0
    for name, values in arrays.items():
        shape = list(values.shape)
        table.append({"name": name, "dtype": values.dtype.name, "shape": shape, "offset": offset})
        offset = _next_offset(offset + values.nbytes)
    return table


def _next_offset(end: int) -> int:
    return end + -end % _ALIGN


def _encode(header: dict[str, Any], owner: str) -> bytes:
    try:
        text = json.dumps(header, allow_nan=False, ensure_ascii=False).encode()
    except (TypeError, ValueError) as error:
        raise InvalidInputError(
            f"A parameter of {owner} cannot be saved ({error}); files hold finite numbers, texts, "
            "booleans and None."
        ) from error
    if len(text) > _MAX_HEADER:
        raise InvalidInputError(
            f"The parameters of {owner} take {len(text)} bytes, but a file holds at most "
            f"{_MAX_HEADER}."
        )
    return text


def refuse(path: str | bytes, reason: str) -> NoReturn:
    """Raise a FileFormatError that names the file."""
    raise FileFormatError(f"{path!s} {reason}.")


def _read(file: BinaryIO, path: str) -> tuple[dict[str, Any], bytes]:
    size = os.fstat(file.fileno()).st_size
    magic = file.read(len(_MAGIC))
    if magic != _MAGIC[: len(magic)]:
        refuse(path, "is not a samewise file")
    prefix = file.read(_PREFIX.size)
    if len(prefix) < _PREFIX.size:
        refuse(path, "is truncated")
    length, digest = _PREFIX.unpack(prefix)
    if length > _MAX_HEADER:
        refuse(path, f"is damaged: its header claims {length} bytes")
    text = file.read(length)
    if len(text) < length:
        refuse(path, "is truncated")
    if hashlib.sha256(text).digest() != digest:
        refuse(path, "is damaged: the checksum of its header does not match")
    header = _decode(text, path)
    rest = size - file.tell()
    if rest < header["payload_bytes"]:
        refuse(path, "is truncated")
    if rest > header["payload_bytes"]:
        refuse(path, "has trailing bytes after the last array")
    payload = file.read(rest)
    if hashlib.sha256(payload).hexdigest() != header["payload_sha256"]:
        refuse(path, "is damaged: the checksum of its arrays does not match")
    return header, payload


def _decode(text: bytes, path: str) -> dict[str, Any]:
    try:
        header = parse(text)
    except ValueError as error:
        raise FileFormatError(f"{path} has a header that is not plain JSON: {error}.") from error
    if not isinstance(header, dict):
        refuse(path, "has a header that is not a JSON object")
    version = header.get("format")
    if type(version) is not int or version < 1:
        refuse(path, "has a header without a format version")
    if version > FORMAT:
        refuse(path, f"has format {version}: written by a newer version; upgrade samewise")
    _check_fields(header, _HEADER, "header", path)
    return header


def _arrays(table: list[Any], payload: bytes, path: str) -> dict[str, NDArray[Any]]:
    arrays: dict[str, NDArray[Any]] = {}
    offset = 0
    for entry in table:
        if not isinstance(entry, dict):
            refuse(path, "has an array entry that is not a JSON object")
        _check_fields(entry, _ARRAY, "array entry", path)
        if entry["name"] in arrays:
            refuse(path, f"lists the array {entry['name']!r} twice")
        if entry["offset"] != offset:
            refuse(path, f"does not place the array {entry['name']!r} where it belongs")
        arrays[entry["name"]], end = _array(entry, payload, path)
        offset = _next_offset(end)
    if offset != len(payload):
        refuse(path, "holds bytes that belong to no array")
    return arrays


def _array(entry: dict[str, Any], payload: bytes, path: str) -> tuple[NDArray[Any], int]:
    name, shape, offset = entry["name"], entry["shape"], entry["offset"]
    if entry["dtype"] not in _DTYPES:
        refuse(path, f"holds an array of the type {entry['dtype']!r}, which is not allowed")
    if len(shape) > 2 or any(type(n) is not int or not 0 <= n < _MAX_SIDE for n in shape):
        refuse(path, f"gives the array {name!r} an impossible shape")
    dtype, size = np.dtype(_DTYPES[entry["dtype"]]), math.prod(shape)
    end = offset + size * dtype.itemsize
    if end > len(payload):
        refuse(path, f"gives the array {name!r} more bytes than there are")
    # A view of the bytes as they were read; only a big-endian machine needs a copy.
    flat: NDArray[Any] = np.frombuffer(memoryview(payload)[offset:end], dtype)
    return flat.astype(dtype.newbyteorder("="), copy=False).reshape(shape), end


def _check_fields(entry: dict[str, Any], fields: dict[str, type], what: str, path: str) -> None:
    if entry.keys() != fields.keys():
        refuse(path, f"has unexpected or missing names in its {what}")
    for name, kind in fields.items():
        if type(entry[name]) is not kind:
            refuse(path, f"has a {name!r} of the wrong type in its {what}")


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError("a number is too large")
    return value


def unique_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object of these names and values: JSON leaves open which of two with one name counts."""
    if len({name for name, _ in pairs}) < len(pairs):
        raise ValueError("a name occurs twice")
    return dict(pairs)
