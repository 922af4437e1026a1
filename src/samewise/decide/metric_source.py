"""Where a decision gets its metric from."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone

from samewise.exceptions import InvalidInputError

__all__ = ["fitted_clone"]


def fitted_clone(learner: Any, X: Any, y: Any, parameter: str) -> Any:
    """A clone of the learner, fitted; `parameter` says where it came from, for the message."""
    fitted = clone(learner).fit(X, y)
    if not hasattr(fitted, "metric_"):
        raise InvalidInputError(
            f"The {parameter} must be a learner with a metric_ after fit. Got "
            f"{type(learner).__name__}, which learns no metric."
        )
    return fitted
