"""Modules that load when something of them is used, for commands that start quickly."""

from __future__ import annotations

import importlib
import sys
from importlib.util import find_spec
from types import ModuleType
from typing import Any


class _Deferred(ModuleType):
    """Stands for a module until one of its names is asked for, and then makes way for it."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name != "__path__":
            # Those who look at all modules, as inspect and warnings do, need nothing of this one.
            raise AttributeError(name)
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(importlib.import_module(self.__name__), name)


def defer(name: str) -> None:
    """Let a module within a package load at its first use, unless it is loaded or not there.

    scikit-learn imports scipy.stats, a third of its own start, for what samewise never calls.

    Examples
    --------
    >>> import sys
    >>> defer("wsgiref.util")
    >>> import wsgiref.util
    >>> wsgiref.util.guess_scheme({})
    'http'
    """
    if name in sys.modules:
        return
    spec = find_spec(name)
    if spec is None:
        return
    package, _, child = name.rpartition(".")
    deferred = _Deferred(name)
    deferred.__spec__ = spec
    sys.modules[name] = deferred
    setattr(sys.modules[package], child, deferred)
