"""The oldest versions that `pyproject.toml` allows, as constraints for pip: `make test-oldest`.

Every lower bound of the dependencies and of all extras becomes a pin: `numpy>=1.26` is written as
`numpy==1.26`, and `dask[array]>=2025.7` as `dask==2025.7`, because constraints name no extras.
Dependencies of dependencies are pip's to choose.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

__all__ = ["main", "pinned"]

ROOT = Path(__file__).parents[1]


def pinned(project: dict[str, Any]) -> list[str]:
    """The constraints, one for each requirement of a `[project]` table.

    Examples
    --------
    >>> pinned({"dependencies": ["numpy>=1.26"], "optional-dependencies": {"cli": ["rich>=13"]}})
    ['numpy==1.26', 'rich==13']
    """
    extras: dict[str, list[str]] = project.get("optional-dependencies", {})
    return sorted({_pin(one) for one in _all(project["dependencies"], *extras.values())})


def _all(*groups: Iterable[str]) -> Iterable[str]:
    return (requirement for group in groups for requirement in group)


def _pin(requirement: str) -> str:
    bound = re.fullmatch(r"([\w.-]+)(?:\[[\w,]+\])?>=([\w.]+)", requirement.replace(" ", ""))
    if bound is None:
        raise ValueError(f"{requirement!r} has no lower bound of the form name>=version.")
    return f"{bound[1]}=={bound[2]}"


def main() -> None:
    """Print the constraints."""
    with open(ROOT / "pyproject.toml", "rb") as file:
        print("\n".join(pinned(tomllib.load(file)["project"])))


if __name__ == "__main__":
    main()
