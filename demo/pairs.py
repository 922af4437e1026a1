"""`python -m demo.pairs`: learn from pairs of digits, print the table, write the report."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from demo.page import write
from demo.study import Study, run
from demo.text import plain_table

FEWEST, MOST = 1_000, 40_000


def main(argv: Sequence[str] | None = None) -> Study:
    """Run the demo with the given arguments."""
    options = _parser().parse_args(argv)
    study = run(options.pairs)
    print(plain_table(study))
    write(study, options.out)
    print(f"report written to {options.out}")
    return study


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m demo.pairs", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("pairs.html"), help="file to write")
    parser.add_argument(
        "--pairs",
        type=_stream_length,
        default=20_000,
        help=f"length of the stream, {FEWEST} to {MOST} (default: 20000)",
    )
    return parser


def _stream_length(argument: str) -> int:
    if not argument.isdecimal() or not FEWEST <= int(argument) <= MOST:
        raise argparse.ArgumentTypeError(
            f"expected a whole number from {FEWEST} to {MOST}, got {argument!r}"
        )
    return int(argument)


if __name__ == "__main__":
    main()
