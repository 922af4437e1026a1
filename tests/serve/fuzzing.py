"""The service under generated requests: `python -m tests.serve.fuzzing --minutes 10 --seed 0`.

schemathesis reads /openapi.json and sends what fits it and what does not. Each answer must have a
status and a body that the text names, and none may be an error of the service. In the end the
folder must pass `--check`.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import httpx
import numpy as np

from samewise.serve.checking import check_folder
from samewise.serve.http_app import make_app
from samewise.serve.http_guarding import RequestLimits
from samewise.serve.service import Service
from tests.serve.conftest import running

LEFT_OUT = ("positive_data_acceptance", "ensure_resource_availability", "use_after_free")
"""Whether a request is accepted depends on what was put before, which the text cannot say."""


def fill(http: httpx.Client) -> list[str]:
    """A collection of vectors and one of texts; impressions of both."""
    X = np.random.RandomState(0).randn(50, 4)
    impressions = []
    for name, settings, query in (
        ("c", {}, {"vector": X[0].tolist()}),
        ("t", {"encoder": "text"}, {"text": "one1"}),
    ):
        http.put(f"/collections/{name}", json=settings).raise_for_status()
        items: list[dict[str, object]] = [
            {"id": f"i{i}", "payload": {"text": f"one{i % 7} two{i % 3} three"}} for i in range(50)
        ]
        if name == "c":
            items = [{**item, "vector": x.tolist()} for item, x in zip(items, X, strict=True)]
        http.put(f"/collections/{name}/items", json={"items": items}).raise_for_status()
        for _ in range(3):
            found = http.post(f"/collections/{name}/search", json=query)
            impressions.append(found.raise_for_status().json()["impression"])
    return impressions


def fuzz(url: str, impressions: list[str], seconds: int, seed: int) -> int:
    """Run schemathesis; its exit code."""
    command = [sys.executable, "-m", "schemathesis.cli", "run", f"{url}/openapi.json"]
    options = ["--phases", "coverage,fuzzing,stateful", "--seed", str(seed)]
    options += ["--max-time", str(seconds), "--max-failures", "20", "--request-timeout", "30"]
    # Without it the two collections last to the end.
    options += ["--exclude-name", "DELETE /collections/{collection}"]
    options += ["--exclude-checks", ",".join(LEFT_OUT), "--suppress-health-check", "all"]
    more = {
        "SCHEMATHESIS_HOOKS": "tests.serve.fuzz_hooks",
        "SAMEWISE_IMPRESSIONS": " ".join(impressions),
        "NO_PROXY": "127.0.0.1",
    }
    with tempfile.TemporaryDirectory() as place:
        # It keeps what it found in the folder where it runs.
        more["PYTHONPATH"] = str(Path(__file__).parents[2])
        environment = {**os.environ, **more}
        done = subprocess.run(command + options, env=environment, cwd=place, check=False)
    return done.returncode


def answered(metrics: str) -> Counter[int]:
    """How many requests got which status."""
    counts: Counter[int] = Counter()
    for status, n in re.findall(r'samewise_requests_total\{.*status="(\d+)"\} (\d+)', metrics):
        counts[int(status)] += int(n)
    return counts


def main() -> int:
    """Fuzz, and print what was answered; the exit code is 1 if anything was wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "data"
        app = make_app(Service(folder, snapshot_every=200), limits=RequestLimits(items=200))
        with running(app) as url, httpx.Client(base_url=url, trust_env=False, timeout=120) as http:
            code = fuzz(url, fill(http), int(60 * given.minutes), given.seed)
            counts = answered(http.get("/metrics").text)
        found, problems = check_folder(folder)
    print(
        f"{counts.total():,} requests: "
        + ", ".join(f"{s}: {n:,}" for s, n in sorted(counts.items()))
    )
    n_records = sum(each["records"] for each in found.values())
    print(f"{n_records:,} records, checked: {problems or 'all right'}")
    return int(bool(code or problems or any(status >= 500 for status in counts)))


if __name__ == "__main__":
    sys.exit(main())
