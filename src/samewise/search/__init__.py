"""Exact nearest neighbors under any form."""

from __future__ import annotations

from samewise.search.class_index import ClassIndex
from samewise.search.index import Index
from samewise.search.margins import margins

__all__ = ["ClassIndex", "Index", "margins"]
