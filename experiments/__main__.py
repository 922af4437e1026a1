"""Run one experiment: `python -m experiments NAME [--quick] [--jobs N] [--only A] [--out DIR]`."""

from __future__ import annotations

import argparse
import inspect
import sys
import tempfile
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from samewise.exceptions import DatasetNotFoundError

HERE = Path(__file__).parent
NAMES = sorted(path.stem for path in HERE.glob("[!_]*.py"))


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments", description=__doc__)
    parser.add_argument("name", nargs="?", choices=NAMES)
    parser.add_argument("--quick", action="store_true", help="a small version; keeps no results")
    parser.add_argument("--jobs", type=int, default=1, help="processes, one BLAS thread each")
    parser.add_argument("--only", help="parts to do anew, with commas between; not all have parts")
    parser.add_argument("--out", type=Path, default=HERE / "results")
    chosen = parser.parse_args(arguments)
    if chosen.name is None:
        for name in NAMES:
            print(f"{name:17s} {import_module(f'experiments.{name}').__doc__.splitlines()[0]}")
        return
    run = import_module(f"experiments.{chosen.name}").run
    options: dict[str, Any] = {"jobs": chosen.jobs}
    if chosen.only is not None:
        if "only" not in inspect.signature(run).parameters:
            parser.error(f"{chosen.name} is done as a whole: it does not take --only.")
        options["only"] = tuple(part.strip() for part in chosen.only.split(","))
    try:
        _run(run, chosen, options)
    except DatasetNotFoundError as error:
        sys.exit(f"{chosen.name} needs data that are not there. {error}")


def _run(run: Callable[..., Any], chosen: argparse.Namespace, options: dict[str, Any]) -> None:
    if chosen.quick:
        with tempfile.TemporaryDirectory() as folder:
            run(Path(folder), quick=True, **options)
            print("A small version. Notes in the text are about the whole one.\n")
            print((Path(folder) / "summary.md").read_text(encoding="utf-8"))
        return
    out = chosen.out / chosen.name
    out.mkdir(parents=True, exist_ok=True)
    run(out, quick=False, **options)
    print(f"written to {out}")


if __name__ == "__main__":
    main()
