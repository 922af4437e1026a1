"""`python -m demo`: start a service, let simulated users teach it, print what came of it."""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from demo import live_report, tables
from demo.process import service
from demo.session import Course, fill, run
from demo.shelves import Shelf, digits, help_desk
from samewise import Client

MOST_SECONDS = 95
"""From the start of the service to the last line; less than two minutes."""


def main(argv: Sequence[str] | None = None) -> list[Course]:
    """Run the demo with the given arguments."""
    options = _parser().parse_args(argv)
    shelves = [help_desk(), digits()]
    with tempfile.TemporaryDirectory() as folder, service(Path(folder) / "data") as url:
        # From here on it takes less than two minutes; before, the first start compiles.
        began = time.monotonic()
        print(f"samewise serves two collections at {url}/", flush=True)
        for shelf in shelves:
            with Client(url, shelf.name, timeout=120.0) as client:
                fill(client, shelf)
        courses = [_course(url, k, shelves, began, options) for k in range(len(shelves))]
        for course in courses:
            print(f"\n{course.shelf.about}\n{tables.plain_table(course)}")
            print("\n".join(tables.facts(course)))
        seconds = time.monotonic() - began
        live_report.write(courses, seconds, options.out)
        print(f"\n{seconds:.0f} s; report written to {options.out}", flush=True)
        if options.serve:
            _stay(url)
    return courses


def _course(
    url: str, k: int, shelves: list[Shelf], began: float, options: argparse.Namespace
) -> Course:
    """The session of one collection, in its part of the time that is left."""
    left = options.seconds - (time.monotonic() - began)
    return run(url, shelves[k], options.seed + k, left / (len(shelves) - k), _say)


def _say(text: str) -> None:
    print(text, flush=True)


def _stay(url: str) -> None:
    print(f"look at {url}/ and end it with Ctrl-C", flush=True)
    try:
        while True:
            time.sleep(3600)
    except KeyboardInterrupt:
        print()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m demo", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("report.html"), help="file to write")
    parser.add_argument("--serve", action="store_true", help="leave the service running")
    parser.add_argument(
        "--seconds",
        type=float,
        default=MOST_SECONDS,
        help=f"how long it may take (default: {MOST_SECONDS})",
    )
    parser.add_argument("--seed", type=int, default=0, help="of the users (default: 0)")
    return parser


if __name__ == "__main__":
    main()
