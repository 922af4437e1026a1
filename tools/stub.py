"""Write ``src/samewise/__init__.pyi`` from `samewise.catalog`: `python -m tools.stub`."""

from __future__ import annotations

from pathlib import Path

from samewise.catalog import WHERE

STUB = Path(__file__).parents[1] / "src" / "samewise" / "__init__.pyi"


def text() -> str:
    """What the stub must say.

    Examples
    --------
    >>> "from samewise.search import Index as Index" in text()
    True
    """
    modules = [name for name, module in WHERE.items() if module == f"samewise.{name}"]
    lines = [f"from samewise import {name} as {name}" for name in modules]
    lines += [
        f"from {module} import {name} as {name}"
        for name, module in WHERE.items()
        if name not in modules
    ]
    listed = "\n".join(f'    "{name}",' for name in sorted(WHERE))
    return (
        '"""The public names, for type checkers; written by `python -m tools.stub`."""\n\n'
        + "\n".join(sorted(lines))
        + f"\n\n__version__: str\n\n__all__ = [\n{listed}\n]\n"
    )


if __name__ == "__main__":
    STUB.write_text(text(), encoding="utf-8")
