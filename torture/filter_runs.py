"""`samewise filter --state` is killed again and again; all runs together are one run."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import TypeVar

import numpy as np

from samewise.cli.app import app
from torture.killing import Counts, Kind, killed, seconds_of

T = TypeVar("T")
MOST_DOCUMENTS = 3000
KEPT = ("decisions.jsonl", "filter")


def write_stream(folder: Path, n: int, rng: np.random.Generator) -> None:
    words = [f"word{k}" for k in range(300)]
    topics = [{"id": f"t{k}", "text": " ".join(words[8 * k : 8 * k + 8])} for k in range(6)]
    (folder / "topics.json").write_text(json.dumps(topics))
    documents, judged = [], []
    for k in range(n):
        topic = rng.integers(12)
        text = list(rng.choice(words, 6)) + list(rng.choice(words[8 * topic : 8 * topic + 8], 6))
        documents.append({"id": f"d{k}", "text": " ".join(text)})
        judged.append({"id": f"d{k}", "topics": [f"t{topic}"] if rng.random() < 0.8 else []})
    for name, entries in {"documents": documents, "judged": judged}.items():
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(e) + "\n" for e in entries))


def command(folder: Path, state: str) -> None:
    files = {"topics": "topics.json", "documents": "documents.jsonl", "feedback": "judged.jsonl"}
    given = [f"--{option}={folder / name}" for option, name in {**files, "state": state}.items()]
    app(["filter", *given, "--thresholds=0.2,0.7", "--initial=3", "--budget=200"])


def command_into(folder: Path, state: str, output: int) -> None:
    """The command, with its output to a descriptor."""
    os.dup2(output, 1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    command(folder, state)


@contextmanager
def output_to(path: Path, pipe: bool) -> Iterator[int]:
    """A descriptor: of a file, or of a pipe to one who appends all that comes to that file."""
    with path.open("ab") as file:
        if not pipe:
            yield file.fileno()
            return
        with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=file) as reader:
            yield reader.stdin.fileno()


def without_repeated(lines: list[bytes], n_kills: int) -> tuple[list[bytes], int]:
    """Lines without documents that are printed twice in a row, which a kill allows for once."""
    kept: list[bytes] = []
    repeated = 0
    for _, group in groupby(lines, key=lambda line: json.loads(line)["document"]):
        found = list(group)
        once = list(dict.fromkeys(found))
        repeated += len(found) > len(once)
        kept += once
    return (kept, repeated) if repeated <= n_kills else (lines, repeated)


def run(folder: Path, n_kills: int, seed: int, pipe: bool) -> Counts:
    rng, counts = np.random.default_rng(seed), Counts()
    write_stream(folder, min(MOST_DOCUMENTS, 200 * n_kills), rng)

    def work(state: str, do: Callable[[Callable[[], None]], T]) -> T:
        with output_to(folder / f"{state}.out", pipe) as output:
            return do(lambda: command_into(folder, state, output))

    # Once in this process: what is compiled is then there in those that are forked from it.
    with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere), redirect_stderr(nowhere):
        with suppress(SystemExit):
            command(folder, "first")
    whole_seconds = work("whole", seconds_of)
    wanted = (folder / "whole.out").read_bytes()
    number = 0
    while counts.trials < n_kills:
        state, kills, hit = f"run{number}", 0, True
        number += 1
        while hit and counts.trials + kills < n_kills:
            hit = work(state, partial(killed, seconds=rng.uniform(0, 1.5 * whole_seconds)))
            counts.amid_work += hit
            kills += 1
        counts.trials += kills
        work(state, seconds_of)
        lines = (folder / f"{state}.out").read_bytes().splitlines(keepends=True)
        counts.acknowledged += len(lines)
        if pipe:
            lines, repeated = without_repeated(lines, kills)
            counts.repeated += repeated
        counts.lost += len(set(wanted.splitlines(keepends=True)) - set(lines))
        same = all(
            (folder / state / name).read_bytes() == (folder / "whole" / name).read_bytes()
            for name in KEPT
        )
        counts.differing += b"".join(lines) != wanted or not same
    return counts


KINDS = (
    Kind("filter, output to a file", 30, lambda folder, n, seed: run(folder, n, seed, False)),
    Kind("filter, output to a pipe", 10, lambda folder, n, seed: run(folder, n, seed, True)),
)
