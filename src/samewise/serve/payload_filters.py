"""Conditions on the fields of a payload: equal to, one of, or within a range."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

from samewise.exceptions import InvalidInputError

Accept = Callable[[Mapping[str, Any]], bool]
_RANGES = {"gt": operator.gt, "gte": operator.ge, "lt": operator.lt, "lte": operator.le}
_MISSING = object()


def accepts(filters: Mapping[str, Any]) -> Accept:
    """Whether a payload meets all conditions.

    Parameters
    ----------
    filters : mapping
        For each field a value, ``{"in": [values]}``, or bounds ``{"gt", "gte", "lt", "lte"}``. A
        payload without the field does not meet the condition.

    Examples
    --------
    >>> right = accepts({"kind": {"in": ["book", "film"]}, "year": {"gte": 1990}})
    >>> right({"kind": "film", "year": 1994}), right({"kind": "film"})
    (True, False)
    """
    tests = [(field, _test(field, wanted)) for field, wanted in filters.items()]
    return lambda payload: all(test(payload.get(field, _MISSING)) for field, test in tests)


def _test(field: str, wanted: Any) -> Callable[[Any], bool]:
    if not isinstance(wanted, Mapping):
        return lambda value: _same(value, wanted)
    if wanted.keys() == {"in"} and isinstance(wanted["in"], list):
        return lambda value: any(_same(value, one) for one in wanted["in"])
    if wanted and wanted.keys() <= _RANGES.keys():
        return lambda value: all(_within(value, name, bound) for name, bound in wanted.items())
    raise InvalidInputError(
        f'The filter on {field!r} must be a value, {{"in": [values]}}, or bounds named gt, gte, lt '
        f"or lte. Got {wanted!r}."
    )


def _same(value: Any, wanted: Any) -> bool:
    # In Python True == 1; in JSON they differ.
    return isinstance(value, bool) == isinstance(wanted, bool) and value == wanted


def _within(value: Any, name: str, bound: Any) -> bool:
    numbers = all(isinstance(v, int | float) and not isinstance(v, bool) for v in (value, bound))
    texts = isinstance(value, str) and isinstance(bound, str)
    return (numbers or texts) and _RANGES[name](value, bound)
