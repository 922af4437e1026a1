"""samewise learns what *similar* means: distances and similarities from labels, pairs or streams.

Public names are imported when they are first used, so that `import samewise` is quick.
`samewise.catalog` lists them; ``__init__.pyi`` says the same to type checkers.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from samewise.catalog import WHERE

__version__ = "0.1.0"

__all__ = sorted(WHERE)


def __getattr__(name: str) -> Any:
    if name not in WHERE:
        raise AttributeError(f"module 'samewise' has no attribute {name!r}")
    module = import_module(WHERE[name])
    value = module if WHERE[name] == f"samewise.{name}" else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
