"""Kill, fill and collide: `python -m torture [--trials N] [--seed S] [--only NAME]`.

N is the number of kills in all. It prints for each kind of work how often it was killed, how often
amid the work, what had been acknowledged by then, and what of that was lost or came out otherwise
than in a run that nothing disturbed. The exit code is 1 if anything was. It needs a POSIX system.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from dataclasses import astuple, fields
from pathlib import Path

# Before NumPy is imported: children are forked, and should not share processors.
for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m torture", description=__doc__)
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="a part of the names of the kinds to run")
    given = parser.parse_args(arguments)
    from torture import filter_runs, power_losses, replays, saves, service_runs
    from torture.killing import Counts

    kinds = [*filter_runs.KINDS, *replays.KINDS, *saves.KINDS, *service_runs.KINDS]
    kinds += power_losses.KINDS
    share = sum(kind.share for kind in kinds)
    print("  ".join([f"{'':28}", *(f"{each.name:>12}" for each in fields(Counts))]), flush=True)
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        for k, kind in enumerate(kinds):
            if given.only not in kind.name:
                continue
            directory = Path(folder) / str(k)
            directory.mkdir()
            n = max(round(given.trials * kind.share / share), 1)
            counts = kind.run(directory, n, given.seed + k)
            print(
                "  ".join([f"{kind.name:28}", *(f"{n:12,}" for n in astuple(counts))]), flush=True
            )
            bad += counts.lost + counts.differing
    return min(bad, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
