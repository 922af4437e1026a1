"""Keep other processes away from an open file."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def lock(file: Any) -> bool | None:
    """Lock an open file against other processes until it is closed, also by a kill.

    Returns
    -------
    bool or None
        Whether it is locked now: False if another process has locked it; None where the system
        has no such locks (Windows, some network folders).

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryFile() as file:
    ...     lock(file) is False
    False
    """
    if (fcntl := optional_module("fcntl")) is None:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def optional_module(name: str) -> Any:
    """A module that only some systems have, or None.

    Examples
    --------
    >>> optional_module("sys") is None
    False
    """
    try:
        return import_module(name)
    except ImportError:
        return None
