"""Items as an Arrow table: the columns ``id`` and ``vector``; the others are fields of payloads.

What is sent is small, and must stay small once it is read: compressed batches, dictionaries and
views, which can stand for much more than their bytes, are refused before anything is decoded.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import orjson

from samewise._typing import Array
from samewise.exceptions import InvalidInputError
from samewise.serve.http_guarding import RequestLimits, TooMuchError

_MAGIC = b"ARROW1\0\0"
_COMPRESSION = 3
"""The place of the compression among the fields of a record batch."""


def read_table(
    body: bytes, limits: RequestLimits
) -> tuple[list[str], Array | None, list[dict[str, Any]]]:
    """Ids, vectors and payloads of an Arrow stream or file."""
    try:
        import pyarrow as pa
    except ModuleNotFoundError as error:
        raise InvalidInputError(
            "The service cannot read Arrow: it needs pip install pyarrow. Send JSON."
        ) from error
    # A file is a stream between its magic number and an index.
    data = pa.py_buffer(body.removeprefix(_MAGIC))
    try:
        for message in pa.ipc.MessageReader.open_stream(data):
            _check_plain(message)
        table = pa.ipc.open_stream(data).read_all()
        table.validate(full=True)
    except (pa.ArrowException, OSError, struct.error, ValueError) as error:
        raise InvalidInputError(f"The body is no Arrow table: {error}.") from error
    if not 0 < len(table) <= limits.items:
        raise TooMuchError(f"1 to {limits.items} items in a request. Got {len(table)}.")
    names = table.column_names
    if len(set(names)) < len(names) or "id" not in names:
        raise InvalidInputError(f"The table needs different columns, one of them id. Got {names}.")
    ids = _scalars(table, "id")
    if any(type(id) not in (str, int) for id in ids):
        raise InvalidInputError("The column id must have a text or an integer in each row.")
    vectors = _vectors(table["vector"], limits) if "vector" in names else None
    payloads: list[dict[str, Any]] = [{} for _ in ids]
    for name in names:
        if name not in ("id", "vector"):
            for payload, value in zip(payloads, _scalars(table, name), strict=True):
                payload[name] = value
    return [str(id) for id in ids], vectors, payloads


def _check_plain(message: Any) -> None:
    """That a message is a schema, or a record batch that is not compressed."""
    if message.type == "schema":
        return
    if message.type != "record batch":
        raise InvalidInputError("Arrow dictionaries are not taken; send plain columns.")
    flat = message.metadata.to_pybytes()
    root = struct.unpack_from("<I", flat, 0)[0]
    at = _field(flat, root, 2)
    if _field(flat, at + struct.unpack_from("<I", flat, at)[0], _COMPRESSION):
        raise InvalidInputError("Compressed Arrow batches are not taken; send plain ones.")


def _field(flat: bytes, table: int, number: int) -> int:
    """Where a field of a flatbuffers table is; 0 if it has none."""
    fields = table - struct.unpack_from("<i", flat, table)[0]
    (size,) = struct.unpack_from("<H", flat, fields)
    place = 4 + 2 * number
    found = struct.unpack_from("<H", flat, fields + place)[0] if place < size else 0
    return table + int(found) if found else 0


def _scalars(table: Any, name: str) -> list[Any]:
    """The values of a column, as JSON has them."""
    from pyarrow import types

    kind = table[name].type
    plain = (
        types.is_string,
        types.is_large_string,
        types.is_boolean,
        types.is_integer,
        types.is_floating,
        types.is_date,
        types.is_timestamp,
    )
    if not any(right(kind) for right in plain):
        raise InvalidInputError(
            f"The column {name!r} must have texts, numbers, true and false, dates or times. Got "
            f"{kind}; send such payloads as JSON."
        )
    try:
        values: list[Any] = orjson.loads(orjson.dumps(table[name].to_pylist()))
    except (ValueError, TypeError, OverflowError) as error:
        raise InvalidInputError(f"The column {name!r} cannot be JSON: {error}.") from error
    return values


def _vectors(column: Any, limits: RequestLimits) -> Array:
    from pyarrow import types

    kind = column.type
    lists = (types.is_list, types.is_large_list, types.is_fixed_size_list)
    if not any(right(kind) for right in lists) or not types.is_floating(kind.value_type):
        raise InvalidInputError(f"The column vector must have lists of floats. Got {kind}.")
    rows = column.combine_chunks()
    values = rows.flatten()
    width = len(values) // len(rows)
    if rows.null_count or values.null_count or width < 1 or len(values) != width * len(rows):
        raise InvalidInputError("All items of a table need vectors of one length, without nulls.")
    if width > limits.width:
        raise TooMuchError(f"Vectors have at most {limits.width} numbers. Got {width}.")
    lengths = {width} if types.is_fixed_size_list(kind) else set(np.diff(np.asarray(rows.offsets)))
    if lengths != {width}:
        raise InvalidInputError("All items of a table need vectors of one length, without nulls.")
    with np.errstate(over="ignore"):
        # What is too large becomes infinite, and is refused as such.
        return np.asarray(values).reshape(len(rows), width).astype(np.float32)
