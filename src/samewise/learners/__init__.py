"""Algorithms that learn a form, in folders by how they learn; `samewise.catalog` lists them."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from samewise.catalog import LEARNERS

_MODULES = {entry.name: entry.module for entry in LEARNERS}

__all__ = sorted(_MODULES)


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'samewise.learners' has no attribute {name!r}")
    return getattr(import_module(f"samewise.learners.{_MODULES[name]}"), name)
