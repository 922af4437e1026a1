"""One sentence form for every complaint about a parameter."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from samewise.exceptions import InvalidInputError


def check_count(name: str, value: Any, low: int, high: int | None = None) -> int:
    """Return `value` as an int in [low, high], or say what was expected."""
    fits = isinstance(value, Integral) and not isinstance(value, bool | np.bool_)
    if fits and value >= low and (high is None or value <= high):
        return int(value)
    span = f"at least {low}" if high is None else f"between {low} and {high}"
    raise InvalidInputError(f"{name!r} must be an integer {span}. Got {value!r} instead.")


def check_real(
    name: str, value: Any, low: float, high: float = math.inf, *, open_low: bool
) -> float:
    """Return `value` as a finite float in the interval, or say what was expected."""
    fits = isinstance(value, Real) and not isinstance(value, bool | np.bool_)
    if fits and math.isfinite(value) and value <= high:
        if value > low or (value == low and not open_low):
            return float(value)
    left = "(" if open_low else "["
    right = ")" if math.isinf(high) else "]"
    span = f"{left}{low:g}, {high:g}{right}"
    raise InvalidInputError(f"{name!r} must be a number in {span}. Got {value!r} instead.")


def check_float_dtype(dtype: DTypeLike) -> np.dtype[Any]:
    """Return float32 or float64 as a NumPy dtype, or say that only these are known."""
    try:
        known = np.dtype(dtype)
    except TypeError:
        # Not None: NumPy holds it equal to float64.
        known = np.dtype(object)
    if known not in (np.dtype(np.float32), np.dtype(np.float64)):
        raise InvalidInputError(f"'dtype' must be float32 or float64. Got {dtype!r} instead.")
    return known
