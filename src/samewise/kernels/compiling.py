"""Where loops become machine code, and the folder of the user's where it is kept.

numba compiles a function anew when its own file has changed, but not when another file has, whose
functions it calls. So the folder is named by the version and by a hash of all files with loops:
after an upgrade in place nothing old is found.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from numba import config, njit
from numba.core import event

from samewise.kernels.compile_clock import CLOCK

_KERNELS = Path(__file__).parent


def compiled(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """`numba.njit`, whose machine code is kept in `code_directory`.

    Where no folder can be written to, code is compiled in every process.

    Parameters
    ----------
    function : callable, default=None
        The loop; without it, a decorator with these options.
    **options
        Of `numba.njit`.

    Examples
    --------
    >>> @compiled
    ... def add(a, b):
    ...     return a + b
    >>> add(1, 2)
    3
    """
    if function is None:
        return lambda given: compiled(given, **options)
    # numba says where when it decorates, for all that is decorated then.
    settings: Any = config
    before = settings.CACHE_DIR
    settings.CACHE_DIR = str(code_directory())
    try:
        return njit(function, cache=True, **options)
    except RuntimeError as error:
        if "locator" not in str(error):
            raise
        return njit(function, **options)
    finally:
        settings.CACHE_DIR = before


@cache
def code_directory() -> Path:
    """The folder of this version's machine code: below NUMBA_CACHE_DIR, or the user's cache."""
    import platformdirs

    version = import_module("samewise").__version__
    files = sorted(_KERNELS.glob("*.py"))
    marks = hashlib.sha256()
    for path in files:
        marks.update(path.read_bytes())
    kept = os.environ.get("NUMBA_CACHE_DIR") or platformdirs.user_cache_path("samewise", False)
    return Path(kept, "compiled", f"{version}-{marks.hexdigest()[:12]}")


class _Listener(event.Listener):
    def on_start(self, event: Any) -> None:
        CLOCK.start()

    def on_end(self, event: Any) -> None:
        CLOCK.end()


event.register("numba:compile", _Listener())
