"""Hostile input for as long as is wanted: `python -m tests.hostile.fuzz --minutes 15 --seed 0`.

The properties of this folder run in rounds, each in a process of its own, in another order and from
another seed. What fails is shrunk to a small input; if the interpreter dies or hangs, the input of
its last call is shown. Give what is found a test in `test_found_by_fuzzing.py`.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

HERE = Path(__file__).parent
GRACE = 300
"""Seconds that a round may go on after the time is over, to shrink what it has found."""


def run_round(folder: Path, seed: int, end: float) -> tuple[list[str], list[str]]:
    """One round: the properties that failed, and the texts about them."""
    for name in ("ended", "last", "hanging"):
        (folder / name).unlink(missing_ok=True)
    properties = map(str, sorted(HERE.glob("test_*_fuzz.py")))
    command = [sys.executable, "-X", "faulthandler", "-m", "pytest", *properties]
    options = ["-p", "no:cacheprovider", "--tb=short", f"--hypothesis-seed={seed}"]
    log = folder / f"round_{seed}.log"
    with open(log, "w") as file:
        child = subprocess.Popen(
            command + options,
            env=os.environ | {"SAMEWISE_FUZZ": str(folder), "OMP_NUM_THREADS": "1"},
            stdout=file,
            stderr=subprocess.STDOUT,
        )
        try:
            child.wait(max(end - time.time(), 0) + GRACE)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
    if (folder / "ended").exists():
        found = json.loads((folder / "ended").read_text())
        return list(found), [f"{name}\n{text}" for name, text in found.items()]
    last = (folder / "last").read_text() if (folder / "last").exists() else "(before the first)"
    hanging = (folder / "hanging").read_text() if (folder / "hanging").exists() else ""
    text = f"The interpreter ended with {child.returncode} in {last}\n{hanging}See {log}."
    return [last.splitlines()[0]], [text]


def main() -> int:
    """Fuzz, print the counts and the defects, and say by the exit code whether there are any."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=15.0)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    folder = Path("build", "fuzz").absolute()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    end = time.time() + 60 * given.minutes
    (folder / "end").write_text(str(end))
    seed, texts, defects = given.seed, [], Counter()
    counts: Counter[tuple[str, str]] = Counter()
    while time.time() < end:
        failed, about = run_round(folder, seed, end)
        defects.update(name.split("[")[0] for name in failed)
        texts += about
        for name, outcome, number in json.loads((folder / "counts").read_text()):
            counts[name.split("[")[0], outcome] += number
        seed += 1
    print(f"{'property':72} {'calls':>8} {'done':>8} {'refused':>8} {'defects':>8}")
    for name in sorted({name for name, _ in counts} | set(defects)):
        done, refused = counts[name, "done"], counts[name, "refused"]
        print(f"{name:72} {done + refused:8} {done:8} {refused:8} {defects[name]:8}")
    print(f"{seed - given.seed} rounds, {counts.total()} calls, {defects.total()} defects")
    print("\n\n".join(texts))
    return int(bool(texts))


if __name__ == "__main__":
    sys.exit(main())
