"""The function of a user's that makes vectors of texts."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

from samewise.exceptions import InvalidInputError


def text_function(name: str) -> Any:
    """The function that MODULE:FUNCTION names; modules of the current folder are found.

    Parameters
    ----------
    name : str

    Examples
    --------
    >>> text_function("math:sqrt")(4.0)
    2.0
    """
    module, colon, function = name.partition(":")
    if not colon or not module or not function:
        raise InvalidInputError(f"--encoder must be MODULE:FUNCTION. Got {name!r}.")
    sys.path.insert(0, "")
    try:
        found = getattr(import_module(module), function)
    except (ImportError, AttributeError) as error:
        raise InvalidInputError(f"--encoder {name!r} was not found: {error}.") from error
    if not callable(found):
        raise InvalidInputError(f"--encoder {name!r} is not a function.")
    return found
