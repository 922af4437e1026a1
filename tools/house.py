"""How large the house is, and how much of it repeats itself: `make house`.

Each number is printed with its goal, and with `--list` the places it counts. What is counted:

code lines
    Lines of `src` with at least one token of code. Docstrings, comments and blank lines are not.
long functions
    Functions whose body has more than 50 code lines. Decorators, signature and docstring are not
    the body; a function within another counts in both.
many arguments
    Functions with more than ten arguments, `self` and `cls` not counted. Left out are `__init__`
    of estimators (classes that descend from `BaseEstimator`) and commands (functions of `cli/`
    with an argument annotated by typer).
names twice
    File names other than `__init__.py`, and class names, that occur more than once, without
    `compat`, whose names are those of other packages.
type: ignore, cast
    Comments `type: ignore` and calls of `typing.cast`, in each folder.
walk
    Files and calls that `fit(Pairs)` passes before the engine's loop (`tools/walk.py`).
duplicates
    Pairs of places that share six or more lines, in a copy of `src` without docstrings, as the
    command `duplicates` counts them, where it is installed.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import shutil
import subprocess
import tempfile
import tokenize
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

__all__ = ["Measure", "Source", "main", "measures", "read_sources", "without_docstrings"]

ROOT = Path(__file__).parents[1]
MOST_CODE_LINES = 21_000 + 1_400 + 1_200 + 2_200 + 2_900 + 1_800 + 1_900 + 2_100 + 5_300 + 700
"""What the rebuilt house had, and what came since: checks of hostile input; thresholds that follow
a collection; pairs for a purpose, and gains; the live adapter; the service; exports of the adapter,
comparisons by feedback, replays of logs and the warm start; the service's other bodies, stores and
copies; its page, graphs and readers, cards of results, LFDA and forms for other programs; learners
on Dask, metric-learn's names and learners, clients, users' own lists, compiling ahead and cards;
topics sharded over workers, tests of decisions on pairs, and metric-learn's former names."""
MOST_BODY_LINES = 50
MOST_ARGUMENTS = 10
NOT_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}
STRICT = ("engine", "solvers", "learners")
"""Folders that go without `type: ignore` and `cast`."""
Function = ast.FunctionDef | ast.AsyncFunctionDef
_WITH_BODY = ast.Module | ast.ClassDef | Function


@dataclass(frozen=True)
class Source:
    """A file of the package, parsed once."""

    path: Path
    text: str
    tree: ast.Module
    code: frozenset[int]
    """Numbers of the lines that have code."""


@dataclass(frozen=True)
class Measure:
    """A number, its goal, and what was counted."""

    name: str
    value: int | None
    goal: int | None = None
    places: Sequence[str] = ()
    note: str = ""

    def __str__(self) -> str:
        value = "-" if self.value is None else f"{self.value}"
        goal = "" if self.goal is None else f"at most {self.goal}"
        missed = None not in (self.value, self.goal) and int(self.value or 0) > int(self.goal or 0)
        return f"{self.name:<46} {value:>6}  {goal:<13} {'OVER ' if missed else ''}{self.note}"


def _docstrings(tree: ast.Module) -> Iterator[ast.Expr]:
    """Statements that are docstrings, of modules, classes, functions and attributes."""
    for node in ast.walk(tree):
        for statement in getattr(node, "body", ()) if isinstance(node, _WITH_BODY) else ():
            if (
                isinstance(statement, ast.Expr)
                and isinstance(statement.value, ast.Constant)
                and isinstance(statement.value.value, str)
            ):
                yield statement


def _lines(node: ast.stmt) -> range:
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)


def _code_lines(text: str, tree: ast.Module) -> frozenset[int]:
    found: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in NOT_CODE:
            found.update(range(token.start[0], token.end[0] + 1))
    for docstring in _docstrings(tree):
        found.difference_update(_lines(docstring))
    return frozenset(found)


def read_sources(folder: Path) -> list[Source]:
    """The Python files below a folder."""
    sources = []
    for path in sorted(folder.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
        sources.append(Source(path.relative_to(folder), text, tree, _code_lines(text, tree)))
    return sources


def without_docstrings(source: Source) -> str:
    """The text of a file, its docstrings made blank lines: line numbers stay."""
    lines = source.text.splitlines(keepends=True)
    for docstring in _docstrings(source.tree):
        for number in _lines(docstring):
            lines[number - 1] = "\n"
    return "".join(lines)


def _functions(source: Source) -> Iterator[tuple[Function, ast.ClassDef | None]]:
    """Each function, and the class it is a method of."""
    for node in ast.walk(source.tree):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, Function):
                yield child, node if isinstance(node, ast.ClassDef) else None


def _classes(sources: Sequence[Source]) -> Iterator[tuple[Source, ast.ClassDef]]:
    for source in sources:
        for node in ast.walk(source.tree):
            if isinstance(node, ast.ClassDef):
                yield source, node


def _estimators(sources: Sequence[Source]) -> set[str]:
    """Names of the classes that descend from `BaseEstimator`."""
    bases: dict[str, set[str]] = {}
    for _, node in _classes(sources):
        names = {ast.unparse(base).split("[")[0].rpartition(".")[2] for base in node.bases}
        bases.setdefault(node.name, set()).update(names)
    found = {"BaseEstimator"}
    while more := {name for name, above in bases.items() if above & found} - found:
        found |= more
    return found


def _arguments(function: Function) -> list[ast.arg]:
    spec = function.args
    return [
        argument
        for argument in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)
        if argument.arg not in ("self", "cls")
    ]


def _is_command(source: Source, function: Function) -> bool:
    return source.path.parts[0] == "cli" and any(
        argument.annotation is not None and "typer." in ast.unparse(argument.annotation)
        for argument in _arguments(function)
    )


def _long_functions(sources: Sequence[Source]) -> list[str]:
    found = []
    for source in sources:
        for function, _ in _functions(source):
            body = range(function.body[0].lineno, _lines(function)[-1] + 1)
            n = len(source.code.intersection(body))
            if n > MOST_BODY_LINES:
                found.append((n, f"{n:>4} {source.path}: {function.name}"))
    return [place for _, place in sorted(found, reverse=True)]


def _many_arguments(sources: Sequence[Source]) -> list[str]:
    estimators = _estimators(sources)
    found = []
    for source in sources:
        for function, owner in _functions(source):
            n = len(_arguments(function))
            constructs = owner is not None and owner.name in estimators
            left_out = (function.name == "__init__" and constructs) or _is_command(source, function)
            if n > MOST_ARGUMENTS and not left_out:
                found.append((n, f"{n:>4} {source.path}: {function.name}"))
    return [place for _, place in sorted(found, reverse=True)]


def _twice(named: Sequence[tuple[str, Path]]) -> list[str]:
    """The names that occur more than once, with their files."""
    counts = Counter(name for name, _ in named)
    return [
        f"{name}: {', '.join(sorted(str(path) for other, path in named if other == name))}"
        for name, n in sorted(counts.items())
        if n > 1
    ]


def _excuses(sources: Sequence[Source]) -> Counter[str]:
    """In each folder, how many `type: ignore` and calls of `cast` there are."""
    found: Counter[str] = Counter()
    for source in sources:
        folder = source.path.parts[0]
        for token in tokenize.generate_tokens(io.StringIO(source.text).readline):
            if token.type == tokenize.COMMENT and re.search(r"type:\s*ignore", token.string):
                found[folder] += 1
        for node in ast.walk(source.tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("cast", "typing.cast"):
                found[folder] += 1
    return found


def _walk() -> list[Measure]:
    """Files and calls before the engine's loop."""
    if find_spec("tools.walk") is None:
        return [Measure("walk of fit(Pairs)", None, note="there is no tools/walk.py")]
    files, calls = import_module("tools.walk").walk()
    return [
        Measure("walk of fit(Pairs): files", len(files), 8, [str(file) for file in files]),
        Measure("walk of fit(Pairs): calls", len(calls), 15, [str(call) for call in calls]),
    ]


def _duplicates(sources: Sequence[Source], seconds: int = 120) -> Measure:
    command = shutil.which("duplicates")
    if command is None:
        return _read_duplicates("incomplete: the command duplicates is not installed")
    # Not below build/: the command leaves out what git ignores.
    with tempfile.TemporaryDirectory() as folder:
        for source in sources:
            copy = Path(folder) / source.path
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(without_docstrings(source), encoding="utf-8")
        options = ["--repo", folder, "--most", "200", "--seconds", str(seconds)]
        done = subprocess.run([command, *options], capture_output=True, text=True, check=False)
    return _read_duplicates(done.stdout)


def _read_duplicates(printed: str) -> Measure:
    """The number of pairs, which the command prints first, and what it left out."""
    first, *rows = printed.splitlines() or [""]
    number = re.match(r"\d+", first)
    value = int(number[0]) if number else 0 if first.startswith("no duplicates") else None
    cut = next((line for line in (first, *rows) if line.startswith("incomplete:")), "")
    return Measure("pairs of duplicates, docstrings left out", value, 120, rows, cut)


def measures(folder: Path) -> list[Measure]:
    """The numbers that are read from the files of a package."""
    sources = read_sources(folder)
    long, many = _long_functions(sources), _many_arguments(sources)
    # Names that another package has given are no choice.
    own = [source for source in sources if "compat" not in source.path.parts]
    files = _twice([(s.path.name, s.path) for s in own if s.path.name != "__init__.py"])
    classes = _twice([(node.name, source.path) for source, node in _classes(own)])
    found = [
        Measure(
            "code lines",
            sum(len(source.code) for source in sources),
            MOST_CODE_LINES,
            _per_folder(sources, lambda source: len(source.code)),
        ),
        Measure(f"functions with a body over {MOST_BODY_LINES} lines", len(long), 8, long),
        Measure(f"functions with more than {MOST_ARGUMENTS} arguments", len(many), 8, many),
        Measure("file names twice", len(files), 0, files),
        Measure("class names twice", len(classes), 0, classes),
    ]
    excuses = _excuses(sources)
    for name in dict.fromkeys((*STRICT, *sorted(excuses))):
        goal = 0 if name in STRICT else None
        found.append(Measure(f"type: ignore and cast in {name}", excuses[name], goal))
    return found


def _per_folder(sources: Sequence[Source], count: Callable[[Source], int]) -> list[str]:
    totals: Counter[str] = Counter()
    for source in sources:
        totals[source.path.parts[0]] += count(source)
    return [f"{n:>6} {name}" for name, n in totals.most_common()]


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the numbers."""
    parser = argparse.ArgumentParser(description="The numbers of the house, with their goals.")
    parser.add_argument(
        "--list", action="store_true", help="Show what was counted, place by place."
    )
    parser.add_argument("--source", type=Path, default=ROOT / "src" / "samewise")
    options = parser.parse_args(arguments)
    duplicates = _duplicates(read_sources(options.source))
    for measure in (*measures(options.source), *_walk(), duplicates):
        print(measure)
        for place in measure.places if options.list else ():
            print(f"    {place}")


if __name__ == "__main__":
    main()
