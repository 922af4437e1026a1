"""How long `import samewise` takes, the first fit with a cold and a warm cache, and each command.

CPU seconds of the commands, the least of three runs, with everything compiled. `before` is what a
command takes until its libraries are loaded; the rest is its own work on 178 rows of wine. `cold`
is one run with an empty cache, in which the command compiles what it needs.
"""

from __future__ import annotations

import os
import resource
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

FIT = """
import time, numpy as np
from samewise import Pairs, PassiveAggressive
X = np.random.RandomState(0).randn(200, 16)
pairs = Pairs.from_labels(X, np.arange(200) % 3, n_pairs=500, random_state=0)
start = time.perf_counter()
PassiveAggressive().fit(pairs)
print(time.perf_counter() - start)
"""


def _python(code: str, **env: str) -> float:
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        check=True,
    )
    return float(done.stdout.strip().splitlines()[-1])


def run() -> list[dict[str, object]]:
    timed = (
        "import time; start = time.perf_counter(); {}; print(time.perf_counter() - start)"
    ).format
    imports = [_python(timed("import samewise")) for _ in range(5)]
    used = [_python(timed("from samewise import PassiveAggressive, Pairs")) for _ in range(3)]
    with tempfile.TemporaryDirectory() as cache:
        cold = _python(FIT, NUMBA_CACHE_DIR=cache)
        warm = min(_python(FIT, NUMBA_CACHE_DIR=cache) for _ in range(3))
    return [
        {
            "import samewise": round(sorted(imports)[2], 3),
            "wanted": 1.2,
            "with a learner": round(min(used), 2),
            "first fit, compiling": round(cold, 2),
            "first fit, cached on disk": round(warm, 2),
        }
    ]


COMMANDS = (
    "--help",
    "learners",
    "datasets",
    "fit wine.csv --label class --learner lmnn --out lmnn.sw",
    "fit wine.csv --label class --learner lda --out lda.sw",
    "inspect lmnn.sw",
    "search lmnn.sw wine.csv --row 17",
    "transform lmnn.sw wine.csv --out z.csv",
    "evaluate lmnn.sw wine.csv",
)
CALL = "import sys; from samewise.cli import main; sys.argv[0] = 'samewise'; main()"
LOADED = """
import sys
from samewise.cli import app
name = sys.argv[1]
if name != "--help":
    app._loaded(name)
"""


def _cpu(code: str, *arguments: str, folder: str, runs: int = 3, **env: str) -> float:
    """CPU seconds of a process, the least of some runs."""
    found = []
    for _ in range(runs):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(
            [sys.executable, "-c", code, *arguments],
            cwd=folder,
            env={**os.environ, **env},
            stdout=subprocess.DEVNULL,
            check=True,
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        found.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return round(min(found), 2)


def run_commands() -> list[dict[str, object]]:
    _python("import samewise; print(samewise.warm_up())")
    rows: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            [
                sys.executable,
                "-c",
                CALL,
                "datasets",
                "export",
                "wine",
                str(Path(folder, "wine.csv")),
            ],
            check=True,
        )
        for command in COMMANDS:
            words = shlex.split(command)
            before = _cpu(LOADED, words[0], folder=folder)
            warm = _cpu(CALL, *words, folder=folder)
            with tempfile.TemporaryDirectory() as empty:
                cold = _cpu(CALL, *words, folder=folder, runs=1, NUMBA_CACHE_DIR=empty)
            rows.append(
                {
                    "samewise": command,
                    "before": before,
                    "wanted": 1.0,
                    "in all": warm,
                    "cold": cold,
                }
            )
    return rows
