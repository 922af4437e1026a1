"""Parameters of filters: each with its default and the values it may have."""

from __future__ import annotations

import sys
from dataclasses import field
from numbers import Integral, Real
from typing import Any

from sklearn.utils._param_validation import Interval, StrOptions

# Lengths of queues are numbers of C.
COUNT = Interval(Integral, 1, sys.maxsize, closed="both")
FINITE = Interval(Real, None, None, closed="neither")
SHARE = Interval(Real, 0, 1, closed="both")
UTILITY = Interval(Real, 0, 1e6, closed="right"), StrOptions({"linear", "detection"})


def parameter(default: Any, *allowed: Any) -> Any:
    """A field of a dataclass; `allowed` are constraints of scikit-learn, one of which must hold."""
    return field(default=default, metadata={"allowed": list(allowed)})
