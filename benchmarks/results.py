"""`RESULTS.md`: the last run of each section, with what the machine was like."""

from __future__ import annotations

import os
import platform
import re
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from benchmarks.timing import gemm_speed

RESULTS = Path(__file__).with_name("RESULTS.md")
MARK = "<!-- From here on written by `python -m benchmarks`: the last run of each section. -->"


def machine() -> str:
    """Processors, how busy they are, and the speed of a product of one thread."""
    speeds = " / ".join(f"{gemm_speed(kind) / 1e9:.0f}" for kind in (np.float64, np.float32))
    load = f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"
    return (
        f"{datetime.now(UTC):%Y-%m-%d}. {os.cpu_count()} processors ({_processor()}), load {load}; "
        f"products of one thread: {speeds} GF/s in float64 / float32. Python "
        f"{platform.python_version()}, NumPy {np.__version__}."
    )


def _processor() -> str:
    known = Path("/proc/cpuinfo")
    if known.exists() and (named := re.search(r"model name\s*: (.+)", known.read_text())):
        return named[1].strip()
    return platform.machine()


def keep(section: str, about: str, tables: list[tuple[str, str]], path: Path = RESULTS) -> None:
    """Put the tables of a section in the place of those of its run before."""
    text = path.read_text(encoding="utf-8") if path.exists() else "# Results\n"
    head, _, written = text.partition(MARK)
    kept = dict(re.findall(r"^## (\S+)\n(.*?)(?=^## |\Z)", written, flags=re.MULTILINE | re.DOTALL))
    shown = "\n\n".join(f"{title}\n\n```text\n{table}\n```" for title, table in tables)
    kept[section] = f"\n{about}\n\n{shown}\n"
    parts = [f"## {name}\n\n{kept[name].strip()}\n" for name in sorted(kept)]
    path.write_text("\n".join([f"{head.rstrip()}\n\n{MARK}\n", *parts]), encoding="utf-8")
