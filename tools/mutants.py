"""Errors written into the code, and whether the tests notice them: `make mutants`.

Of each folder some mutations (`tools/mutations.py`) are drawn, and the tests that reach the changed
statement are run until one fails. The table has how many were noticed; those that were not follow,
with file, line and change. `tools/mutants_explained.toml` lists changes that no test can notice,
and why: they are not tried, and printed apart.

Nothing is changed in the checkout. Everything happens in copies of it (`build/mutants`), one for
each process. At first the tests of the folders that are asked for run there once, to see which of
them reach which lines, and how long they take; what they do not notice is tried by all other tests,
which run once for this too. With `--near` that is left out: it takes a small part of the time, and
what is printed as noticed is fewer, never more. What was seen is kept, part by part, until a file
changes that is no test; of tests that change, only those run again. Tests that fail then are left
out.

A change counts as noticed if a test fails, if the tests take far longer than they should, or if
nothing runs at all. Before, those for the first change of each folder run without it; what fails in
that order is left out, and one in twenty may. Not all tests that reach a statement are run where
there are very many: short ones and those of different functions come first, up to `BUDGET` seconds.
So what is printed as not noticed might be noticed by a test that was not run.

Seconds are those of the processor, so that a busy machine changes nothing: what loops for ever is
ended by its own limit. What waits for ever uses none, and is ended by the clock, `HANGING` times
later.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import accumulate, groupby
from pathlib import Path
from queue import Queue

from coverage import CoverageData

from tools.mutations import Mutation, mutations

__all__ = ["Explained", "Found", "Reached", "Trial", "main", "sample", "try_all"]

ROOT = Path(__file__).parents[1]
FOLDERS = ("engine", "learners", "decide", "scores", "supervision", "filtering", "files", "adapt")
EXPLAINED = Path(__file__).with_name("mutants_explained.toml")
LEFT_OUT = (
    *("browser", "cli", "datasets", "demo", "docs", "experiments", "infrastructure"),
    *("plots", "report", "serve", "tools"),
)
"""Folders of tests that say little about these folders, or run for long."""
TEXTS = ("tests/contracts/test_parameter_texts.py", "tests/contracts/test_public.py")
"""Tests of what is known at import, without reaching a line."""
NEAR = {
    "engine": ("tests/kernels/", "tests/theory/"),
    "decide": ("tests/search/",),
    "files": (
        *("tests/forms/test_files.py", "tests/hostile/test_files_fuzz.py"),
        *("tests/learners/test_saved.py", "tests/learners/test_saved_batch.py"),
    ),
    "adapt": ("tests/hostile/test_adapters.py",),
}
"""Where tests of a folder are besides the folder of its name."""
BUDGET = 40.0
"""Seconds of tests for one change: of its own folders, and of the others."""
PATIENCE = 5.0
"""Times that tests may take longer than before, besides `START` seconds."""
START = 300.0
"""Imports, and compiling anew what a change has made another."""
HANGING = 8.0
"""Times that the clock may show more than the processor."""


@dataclass(frozen=True)
class Trial:
    """A mutation of a file; the file is named within the package."""

    folder: str
    file: str
    mutation: Mutation

    def __str__(self) -> str:
        return f"{self.file}:{self.mutation.line}: {self.mutation.change}"


@dataclass(frozen=True)
class Explained:
    """Why a change of a line, or any change of it, cannot be noticed."""

    file: str
    line: str
    reason: str
    change: str | None = None

    def covers(self, trial: Trial) -> bool:
        """Whether it is about that mutation."""
        mutation = trial.mutation
        return (self.file, self.line) == (trial.file, mutation.text) and (
            self.change is None or self.change == mutation.change
        )


@dataclass
class Found:
    """What became of the mutations that were drawn."""

    noticed: list[Trial]
    survived: list[tuple[Trial, str]]
    explained: list[tuple[Trial, Explained]]


def read_explained(path: Path = EXPLAINED) -> list[Explained]:
    """The changes that are known to make no difference."""
    with open(path, "rb") as file:
        return [Explained(**entry) for entry in tomllib.load(file).get("explained", [])]


def sample(package: Path, folders: Iterable[str], n: int, seed: int) -> list[Trial]:
    """So many mutations of each folder, drawn at random; all if there are no more."""
    drawn = []
    for folder in folders:
        files = sorted((package / folder).rglob("*.py"))
        trials = [
            Trial(folder, path.relative_to(package).as_posix(), mutation)
            for path in files
            for mutation in mutations(path.read_text(encoding="utf-8"))
        ]
        random.Random(f"{seed} {folder}").shuffle(trials)
        drawn += trials[:n]
    return drawn


class Reached:
    """Which tests reach which lines, and the seconds they take.

    Parameters
    ----------
    data : Path
        The file of coverage, with a context for each test.
    seconds : dict
        Of each test that passed.
    """

    def __init__(self, data: Path, seconds: dict[str, float]) -> None:
        self._data = CoverageData(str(data))
        self._data.read()
        self._seconds = seconds
        self._lines: dict[str, dict[int, set[str]]] = {}

    def _contexts(self, file: str) -> dict[int, set[str]]:
        """The tests that reach each line; the empty name is the import."""
        if file not in self._lines:
            found: dict[int, set[str]] = defaultdict(set)
            # More than one if the checkout was moved.
            for name in self._data.measured_files():
                if Path(name).as_posix().endswith(f"/{file}"):
                    for line, contexts in self._data.contexts_by_lineno(name).items():
                        found[line] |= {context.split("|")[0] for context in contexts}
            self._lines[file] = found
        return self._lines[file]

    def tests(self, file: str, mutation: Mutation, passed: Set[str] = frozenset()) -> list[str]:
        """Those to run, in their order: short ones, and one of each function, first."""
        lines = self._contexts(file)
        reaching = range(mutation.first, mutation.last + 1)
        names = set().union(*(lines.get(line, set()) for line in reaching))
        if mutation.outside or names == {""}:
            names = set().union(*lines.values())
            names |= {name for name in self._seconds if name.split("::")[0] in TEXTS}
        ordered = sorted((s, name) for name, s in self._seconds.items() if name in names - passed)
        rank: Counter[str] = Counter()
        keyed = []
        for seconds, name in ordered:
            function = name.split("[")[0]
            keyed.append((rank[function], seconds, name))
            rank[function] += 1
        keyed.sort()
        spent = accumulate((seconds for _, seconds, _ in keyed), initial=0.0)
        return [name for (_, _, name), before in zip(keyed, spent, strict=False) if before < BUDGET]

    def without(self, tests: Iterable[str]) -> None:
        """Leave tests out from now on."""
        for test in tests:
            del self._seconds[test]

    def expected(self, tests: Iterable[str]) -> float:
        """The seconds of these tests."""
        return sum(self._seconds[test] for test in tests)


class Copy:
    """A copy of the checkout in which one change at a time is tried."""

    def __init__(self, root: Path, package: str) -> None:
        self.root = root
        self.package = root / package

    def run(self, *arguments: str, timeout: float | None = None, **environment: str) -> int:
        """The exit code of pytest in the copy; −1 if it took too long."""
        everything = {
            **os.environ,
            # A changed file may be as long and as old as it was, by the second.
            "PYTHONDONTWRITEBYTECODE": "1",
            # Two seconds of imports, as long as most changes take otherwise.
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "PYTHONPATH": os.pathsep.join([str(self.package.parent), str(ROOT)]),
            "OMP_NUM_THREADS": "1",
            **environment,
        }
        plugins = ("tools.mutant_tests", "_hypothesis_pytestplugin", "no:cacheprovider")
        command = [sys.executable, "-m", "pytest", *(f"-p{name}" for name in plugins)]
        command += ["--basetemp", str(self.root / "tmp"), *arguments]
        with open(self.root / "log", "w", encoding="utf-8") as log:
            process = subprocess.Popen(
                command,
                cwd=self.root,
                env=everything,
                stdout=log,
                stderr=subprocess.STDOUT,
                # A group of its own, so that what the tests have started ends with them.
                start_new_session=True,
            )
            try:
                return process.wait(timeout)
            except subprocess.TimeoutExpired:
                return -1
            finally:
                _end(process)

    def fails(self, tests: Sequence[str], expected: float) -> bool:
        """Whether one of the tests fails, or they take far too long."""
        chosen = self.root.with_suffix(".json")
        chosen.write_text(json.dumps(tests), encoding="utf-8")
        files = sorted({test.split("::")[0] for test in tests})
        limit = round(START + PATIENCE * expected)
        bounds = {"MUTANTS_RUN": str(chosen), "MUTANTS_SECONDS": str(limit)}
        return self.run("-x", *files, timeout=HANGING * limit, **bounds) != 0

    def failing(self, tests: Sequence[str]) -> set[str]:
        """Which of the tests fail as things are."""
        chosen, passed = self.root.with_suffix(".json"), self.root.with_suffix(".passed")
        chosen.write_text(json.dumps(tests), encoding="utf-8")
        files = sorted({test.split("::")[0] for test in tests})
        code = self.run(
            *files,
            MUTANTS_RUN=str(chosen),
            MUTANTS_SECONDS=str(round(PATIENCE * (START + BUDGET))),
            MUTANTS_NOTE=str(passed),
        )
        if code not in (0, 1):
            raise RuntimeError(f"The tests did not run; {self.root / 'log'} has their output.")
        return {*tests} - json.loads(passed.read_text(encoding="utf-8")).keys()

    @contextmanager
    def changed(self, trial: Trial) -> Iterator[None]:
        """With that change inside."""
        path = self.package / trial.file
        before = path.read_bytes()
        path.write_text(trial.mutation.source(), encoding="utf-8")
        try:
            yield
        finally:
            path.write_bytes(before)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process and all that it has started."""
    if hasattr(os, "killpg"):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.wait()


def _copied(root: Path, to: Path) -> None:
    """Copy all that the tests need; what numba has compiled stays, and counts by content."""
    for path in to.rglob("*.py"):
        path.unlink()
    ignored = shutil.ignore_patterns("build", ".*", "tmp", "log")
    shutil.copytree(root, to, ignore=ignored, symlinks=True, dirs_exist_ok=True)


def _digests(root: Path, package: str) -> tuple[dict[str, str], str]:
    """What each file with tests is, in short, and all other files together."""
    digests, others = {}, hashlib.sha256()
    for path in sorted(path for name in ("src", "tests") for path in (root / name).rglob("*.py")):
        name, content = path.relative_to(root).as_posix(), path.read_bytes()
        tests = path.name.startswith("test_")
        if tests or (name.startswith(f"{package}/") and b">>> " in content):
            digests[name] = hashlib.sha256(content).hexdigest()
        if not tests:
            others.update(name.encode() + b"\n" + content)
    return digests, others.hexdigest()


def _near(folders: Iterable[str], package: str) -> tuple[str, ...]:
    """Where the tests of these folders are."""
    return tuple(
        place
        for folder in folders
        for place in (f"tests/{folder}/", f"{package}/{folder}/", *NEAR.get(folder, ()))
    )


def reached(root: Path, package: str, to: Path, jobs: int, places: tuple[str, ...]) -> Reached:
    """Run the tests of some places in a copy; those of files that have not changed only once."""
    copy = Copy(to / "0", package)
    _copied(root, copy.root)
    noted, data, before, seconds = to / "noted.json", to / "coverage", {}, {}
    now, others = _digests(root, package)
    if noted.exists():
        before, seconds = json.loads(noted.read_text(encoding="utf-8"))
    if others != before.get("others"):
        data.unlink(missing_ok=True)
        before, seconds = {"others": others}, {}
    seconds = {name: s for name, s in seconds.items() if _same(name.split("::")[0], before, now)}
    left_out = tuple(f"tests/{folder}/" for folder in LEFT_OUT)
    paths = [
        name
        for name in now
        if name.startswith(places)
        and not name.startswith(left_out)
        and not _same(name, before, now)
    ]
    for _, part in groupby(paths, lambda name: name.split("/")[:2]):
        # Noted part by part: a run that is broken off goes on from there.
        names, new = [*part], to / "new.json"
        cover = [
            "-ppytest_cov",
            f"--cov={package}",
            "--cov-context=test",
            "--cov-report=",
            "--cov-append",
        ]
        parallel = ["-pxdist", "-n", str(jobs), "--dist", "worksteal"] if jobs > 1 else []
        code = copy.run(
            *(*cover, *parallel, *names), MUTANTS_NOTE=str(new), COVERAGE_FILE=str(data)
        )
        if code not in (0, 1, 5):
            raise RuntimeError(f"The tests did not run; {copy.root / 'log'} has their output.")
        seconds |= json.loads(new.read_text(encoding="utf-8"))
        before |= {name: now[name] for name in names}
        noted.write_text(json.dumps([before, seconds]), encoding="utf-8")
    return Reached(data, {k: s for k, s in seconds.items() if k.startswith(places)})


def _same(file: str, before: dict[str, str], now: dict[str, str]) -> bool:
    """Whether what was noted about the tests of a file still holds."""
    return file in now and now[file] == before.get(file)


class Copies:
    """Copies of the checkout, one for each process."""

    def __init__(self, to: Path, package: str, jobs: int) -> None:
        self._free: Queue[Copy] = Queue()
        for k in range(jobs):
            if k:
                _copied(to / "0", to / str(k))
            self._free.put(Copy(to / str(k), package))

    @contextmanager
    def one(self) -> Iterator[Copy]:
        """One that nobody else uses."""
        copy = self._free.get()
        try:
            yield copy
        finally:
            self._free.put(copy)


@dataclass
class _Open:
    """A mutation that was not noticed yet, and the tests that have passed with it."""

    trial: Trial
    passed: set[str] = field(default_factory=set)


def _stage(left: list[_Open], known: Reached, copies: Copies, jobs: int) -> Iterator[bool]:
    """Whether some tests notice the mutations that are left, one after the other."""

    def tests_of(one: _Open) -> list[str]:
        return known.tests(one.trial.file, one.trial.mutation, one.passed)

    def tried(one: _Open) -> bool:
        tests = tests_of(one)
        if not tests:
            return False
        with copies.one() as copy, copy.changed(one.trial):
            noticed = copy.fails(tests, known.expected(tests))
        one.passed.update(tests)
        return noticed

    def failing(one: _Open) -> set[str]:
        tests = tests_of(one)
        if not tests:
            return set()
        with copies.one() as copy:
            failed = copy.failing(tests)
        if len(failed) > 0.05 * len(tests):
            raise RuntimeError(f"Tests fail without any change: {', '.join(sorted(failed)[:5])}.")
        return failed

    firsts = {one.trial.folder: one for one in reversed(left)}.values()
    with ThreadPoolExecutor(jobs) as pool:
        unsteady = set().union(*pool.map(failing, firsts))
        known.without(unsteady)
        for test in sorted(unsteady):
            print(f"left out {test}", file=sys.stderr, flush=True)
        for one, noticed in zip(left, pool.map(tried, left), strict=True):
            print(
                f"{'noticed ' if noticed else 'not yet '} {one.trial}", file=sys.stderr, flush=True
            )
            yield noticed


def try_all(
    root: Path,
    package: str,
    trials: Sequence[Trial],
    explained: Sequence[Explained],
    jobs: int = 1,
    near: bool = False,
) -> Found:
    """Try mutations, and see which of them tests notice.

    Parameters
    ----------
    root : Path
        The checkout.
    package : str
        The folder of the package in it.
    near : bool
        By the tests of their own folders only.
    """
    to = root / "build" / "mutants"
    found = Found([], [], [])
    left = []
    for trial in trials:
        why = next((entry for entry in explained if entry.covers(trial)), None)
        if why is None:
            left.append(_Open(trial))
        else:
            found.explained.append((trial, why))
    folders = dict.fromkeys(one.trial.folder for one in left)
    for places in (_near(folders, package), ("",))[: 1 if near else 2]:
        if left:
            known = reached(root, package, to, jobs, places)
            noticed = [*_stage(left, known, Copies(to, package, jobs), jobs)]
            found.noticed += [one.trial for one, seen in zip(left, noticed, strict=True) if seen]
            left = [one for one, seen in zip(left, noticed, strict=True) if not seen]
    for one in left:
        n = len(one.passed)
        found.survived.append((one.trial, f"{n} tests pass" if n else "no test reaches it"))
    return found


def table(found: Found) -> str:
    """Noticed and tried by folder, and what was not noticed."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for trial in found.noticed:
        counts[trial.folder]["noticed"] += 1
    for trial, _ in found.survived:
        counts[trial.folder]["survived"] += 1
    for trial, _ in found.explained:
        counts[trial.folder]["explained"] += 1
    out = [f"{'folder':<12} noticed / tried        explained"]
    for folder, count in counts.items():
        tried = count["noticed"] + count["survived"]
        part = f"{count['noticed'] / tried:.0%}" if tried else "–"
        out.append(
            f"{folder:<12} {count['noticed']:>7} / {tried:<5} {part:>5} {count['explained']:>12}"
        )
    if found.survived:
        out += ["", "Not noticed:"]
        for trial, why_not in found.survived:
            out += [f"  {trial} ({why_not})", f"    {trial.mutation.text}"]
    if found.explained:
        out += ["", "Explained, and not tried:"]
        out += [f"  {trial} ({entry.reason})" for trial, entry in found.explained]
    return "\n".join(out)


def main(arguments: Sequence[str] | None = None) -> None:
    """Draw mutations, try them, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m tools.mutants", description=__doc__)
    parser.add_argument("--per-folder", type=int, default=12, help="mutations of each folder")
    parser.add_argument("--seed", type=int, default=0, help="which are drawn")
    parser.add_argument("--folder", action="append", choices=FOLDERS, help="only this one")
    parser.add_argument("--near", action="store_true", help="by their own folders' tests only")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    given = parser.parse_args(arguments)
    trials = sample(
        ROOT / "src" / "samewise", given.folder or FOLDERS, given.per_folder, given.seed
    )
    explained = read_explained()
    print(table(try_all(ROOT, "src/samewise", trials, explained, given.jobs, given.near)))


if __name__ == "__main__":
    main()
