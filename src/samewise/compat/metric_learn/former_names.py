"""Arguments by the names that they had in older versions of metric-learn."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def formerly(**names: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Take arguments also by former names, ``former="present"``, with a FutureWarning.

    Examples
    --------
    >>> import warnings
    >>> @formerly(k="n_neighbors")
    ... def twice(n_neighbors=3):
    ...     return 2 * n_neighbors
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     twice(k=5)
    10
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        if isinstance(function, type):
            # Then it is what makes an object that takes the names.
            kind: Any = function
            kind.__init__ = decorate(kind.__init__)
            return function

        @wraps(function)
        def renaming(*args: P.args, **given: P.kwargs) -> R:
            for former, present in names.items():
                if former in given:
                    if present in given:
                        raise TypeError(
                            f"{former} is the former name of {present}. Give only {present}."
                        )
                    message = f"{former} is now called {present}; give it by that name."
                    warnings.warn(message, FutureWarning, stacklevel=2)
                    given[present] = given.pop(former)
            return function(*args, **given)

        return renaming

    return decorate
