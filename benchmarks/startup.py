"""How long `import samewise` takes, and the first fit with a cold and a warm cache."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

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
