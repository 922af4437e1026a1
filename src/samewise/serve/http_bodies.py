"""Bodies of items and feedback: JSON, lines of JSON, a NumPy array or an Arrow table."""

from __future__ import annotations

import io
from typing import Any, TypeVar

import numpy as np
import orjson
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, TypeAdapter, ValidationError

from samewise._typing import Array
from samewise.exceptions import InvalidInputError
from samewise.serve.collection_stores import NewItem
from samewise.serve.http_arrow_items import read_table
from samewise.serve.http_context import ARROWS, NDJSON, NPY
from samewise.serve.http_guarding import RequestLimits, TooMuchError
from samewise.serve.http_models import FeedbackBody, FeedbackEvent, ItemBody, ItemsBody, Name

_NAMES = TypeAdapter(list[Name])
Model = TypeVar("Model", bound=BaseModel)


class WrongTypeError(InvalidInputError):
    """A body of a type that is not taken here."""


def parsed(model: type[Model], body: bytes) -> Model:
    """A model from JSON; what does not fit is refused as FastAPI refuses it."""
    try:
        # The parser of orjson refuses NaN, and numbers beyond 64 bits.
        return model.model_validate(orjson.loads(body))
    except orjson.JSONDecodeError as error:
        raise InvalidInputError(f"The body is not JSON: {error}.") from error
    except ValidationError as error:
        raise RequestValidationError(error.errors(include_input=False)) from error


def _lines(model: type[Model], body: bytes) -> list[Model]:
    lines = [parsed(model, line) for line in body.splitlines() if line.strip()]
    if not lines:
        raise InvalidInputError("The body has no lines.")
    return lines


def read_feedback(
    body: bytes, kind: str, limits: RequestLimits, weight: float
) -> list[FeedbackEvent]:
    """Events of a body, of which none may have more than that weight."""
    if kind == NDJSON:
        events = _lines(FeedbackEvent, body)
    elif kind == "application/json":
        events = parsed(FeedbackBody, body).events
    else:
        raise WrongTypeError(f"Feedback is sent as application/json or {NDJSON}.")
    if len(events) > limits.events:
        raise TooMuchError(f"At most {limits.events} events in a request. Got {len(events)}.")
    for event in events:
        if event.weight > min(limits.weight, weight):
            most = min(limits.weight, weight)
            raise InvalidInputError(f"The weight of an event is {most:g} at most.")
    return events


def read_items(
    body: bytes, kind: str, limits: RequestLimits, prefix: str, first: int
) -> tuple[list[NewItem], Array | None]:
    """Items of a body, and their vectors, if they have any."""
    if kind == NPY:
        rows = _array(body, limits)
        return [NewItem(f"{prefix}{first + i}", {}) for i in range(len(rows))], rows
    if kind in ARROWS:
        return _table(body, limits)
    if kind == NDJSON:
        items = _lines(ItemBody, body)
    elif kind == "application/json":
        items = parsed(ItemsBody, body).items
    else:
        raise WrongTypeError(
            f"Items are sent as application/json, {NDJSON}, {NPY} or {' or '.join(ARROWS)}."
        )
    if len(items) > limits.items:
        raise TooMuchError(f"At most {limits.items} items in a request. Got {len(items)}.")
    new = [NewItem(item.id, item.payload) for item in items]
    _check_payloads(new, limits)
    return new, _vectors([item.vector for item in items], limits)


def _table(body: bytes, limits: RequestLimits) -> tuple[list[NewItem], Array | None]:
    ids, vectors, payloads = read_table(body, limits)
    try:
        _NAMES.validate_python(ids)
    except ValidationError as error:
        raise RequestValidationError(error.errors(include_input=False)) from error
    new = [NewItem(id, payload) for id, payload in zip(ids, payloads, strict=True)]
    _check_payloads(new, limits)
    return new, vectors


def _check_payloads(items: list[NewItem], limits: RequestLimits) -> None:
    for item in items:
        try:
            size = len(orjson.dumps(item.payload))
        except TypeError as error:
            raise InvalidInputError(
                f"The payload of {item.id!r} cannot be kept: {error}."
            ) from error
        if size > limits.payload:
            raise TooMuchError(f"The payload of {item.id!r} has more than {limits.payload} bytes.")


def _vectors(given: list[list[float] | None], limits: RequestLimits) -> Array | None:
    if all(vector is None for vector in given):
        return None
    widths = {0 if vector is None else len(vector) for vector in given}
    if len(widths) > 1:
        raise InvalidInputError("All items of a request need vectors of one length, or none.")
    _check_width(widths.pop(), limits)
    return _floats(np.array(given, dtype=np.float64))


def _check_width(width: int, limits: RequestLimits) -> None:
    if width > limits.width:
        raise TooMuchError(f"Vectors have at most {limits.width} numbers. Got {width}.")


def _array(body: bytes, limits: RequestLimits) -> Array:
    """The matrix of an .npy file. Its header is a literal; nothing in it is executed."""
    file = io.BytesIO(body)
    try:
        version = np.lib.format.read_magic(file)
        read: Any = {(1, 0): np.lib.format.read_array_header_1_0}.get(
            version, np.lib.format.read_array_header_2_0
        )
        shape, fortran, dtype = read(file)
    except (ValueError, SyntaxError) as error:
        raise InvalidInputError(f"The body is not a .npy file: {error}.") from error
    if len(shape) != 2 or dtype.kind != "f" or dtype.itemsize not in (4, 8) or 0 in shape:
        raise InvalidInputError(
            f"An array of float32 or float64 with a row for each item was expected. Got the shape "
            f"{shape} and the type {dtype}."
        )
    if shape[0] > limits.items:
        raise TooMuchError(f"At most {limits.items} items in a request. Got {shape[0]}.")
    _check_width(shape[1], limits)
    data = body[file.tell() :]
    if len(data) != shape[0] * shape[1] * dtype.itemsize:
        raise InvalidInputError("The array has another length than its header says.")
    order: Any = "F" if fortran else "C"
    return _floats(np.frombuffer(data, dtype).reshape(shape, order=order))


def _floats(rows: Array) -> Array:
    with np.errstate(over="ignore"):
        # What is too large becomes infinite, and is refused as such.
        return rows.astype(np.float32)
