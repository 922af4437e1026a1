"""Run one experiment: `python -m experiments NAME [--quick] [--jobs N] [--out DIR]`."""

from __future__ import annotations

import argparse
import tempfile
from importlib import import_module
from pathlib import Path

NAMES = ("pa_study", "pola_mnist", "newsgroups", "banking77")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments", description=__doc__)
    parser.add_argument("name", nargs="?", choices=NAMES)
    parser.add_argument("--quick", action="store_true", help="a small version; keeps no results")
    parser.add_argument("--jobs", type=int, default=1, help="processes, one BLAS thread each")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    chosen = parser.parse_args()
    if chosen.name is None:
        for name in NAMES:
            print(f"{name:12s} {import_module(f'experiments.{name}').__doc__.splitlines()[0]}")
        return
    run = import_module(f"experiments.{chosen.name}").run
    if chosen.quick:
        with tempfile.TemporaryDirectory() as folder:
            run(Path(folder), quick=True, jobs=chosen.jobs)
            print("A small version. Notes in the text are about the whole one.\n")
            print((Path(folder) / "summary.md").read_text(encoding="utf-8"))
        return
    out = chosen.out / chosen.name
    out.mkdir(parents=True, exist_ok=True)
    run(out, quick=False, jobs=chosen.jobs)
    print(f"written to {out}")


if __name__ == "__main__":
    main()
