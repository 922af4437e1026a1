"""Whether the texts of the package are complete and plain: `make check`.

Every public name (of `samewise`, of its public modules, and the public methods of its classes) goes
through numpydoc's validation, with the checks that `[tool.numpydoc_validation]` of `pyproject.toml`
names. The checks of this file come on top:

SW01
    A parameter with a default has it in its type: `n_passes : int, default=1`.
SW02
    `fit`, `partial_fit` and `transform` document what they return.
SW03
    Examples import from `samewise` what it has, and nothing from a file of a package.
SW04
    No text refers to another for a parameter ("As for `POLA`").
SW05
    Comments, docstrings and messages use usual words; `IDIOMS` has those that are not.
SW06
    The message of an error or a warning ends with a period.
"""

from __future__ import annotations

import ast
import inspect
import io
import re
import sys
import tokenize
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from numpydoc.docscrape import NumpyDocString
from numpydoc.validate import get_validation_checks, validate

from tools.links import pages

__all__ = [
    "Violation",
    "api_violations",
    "main",
    "page_violations",
    "public_objects",
    "text_violations",
]

ROOT = Path(__file__).parents[1]
IDIOMS = {
    "unless said": "by default",
    "if not said": "by default",
    "handed out": "returned",
    "hand out": "return",
    "hands out": "returns",
    "by lot": "at random",
    "has not the": "does not have the",
    "have not the": "do not have the",
    "not to be had": "not available",
    "is told": "is given",
    "are told": "are given",
    "was told": "was given",
    "were told": "were given",
    "been told": "been given",
    "told apart": "distinguished",
    "done again": "repeated",
}
"""What does not occur in a text, and what is usual instead."""
DOCUMENTED_ONCE = ("state", "restore")
"""Methods of `Storable` that every kind overrides: what they take and return is said there."""
RETURNING = ("fit", "partial_fit", "transform")
FRAGMENTS = ("files/container.py", "files/state.py", "model.py")
"""Files whose ValueErrors and InvalidInputErrors become a part of the message about a file."""
REFERENCE = re.compile(r"\bAs (for|of) `")


@dataclass(frozen=True)
class Violation:
    """What is wrong with a text."""

    where: str
    code: str
    what: str

    def __str__(self) -> str:
        return f"{self.where}: {self.code} {self.what}"


def public_objects(package: str = "samewise") -> dict[str, Any]:
    """Public classes, functions and methods of a package, by the name of where each is defined."""
    top = import_module(package)
    values = [getattr(top, name) for name in top.__all__]
    for module in [value for value in values if isinstance(value, ModuleType)]:
        values += [getattr(module, name) for name in module.__all__]
    found: dict[str, Any] = {}
    for value in values:
        if inspect.isclass(value):
            found[_name(value)] = value
            found.update(_methods(value, package))
        elif inspect.isfunction(value):
            found[_name(value)] = value
    return dict(sorted(found.items()))


def _methods(cls: type, package: str) -> Iterator[tuple[str, Any]]:
    for owner in cls.__mro__:
        if owner.__module__.split(".")[0] != package:
            continue
        for name, value in vars(owner).items():
            # Class methods and scikit-learn's available_if wrap the function.
            function = getattr(value, "__func__", getattr(value, "fn", value))
            if name in DOCUMENTED_ONCE and owner.__name__ != "Storable":
                continue
            if inspect.isfunction(function) and not name.startswith("_"):
                defined = inspect.unwrap(function)
                # What a dataclass or a decorator makes has no source of its own.
                if defined.__module__.split(".")[0] == package:
                    yield f"{owner.__module__}.{owner.__qualname__}.{name}", defined


def _name(value: Any) -> str:
    return f"{value.__module__}.{value.__qualname__}"


def _checks() -> set[str]:
    with open(ROOT / "pyproject.toml", "rb") as file:
        settings = tomllib.load(file)["tool"]["numpydoc_validation"]
    return set(get_validation_checks(set(settings["checks"])))


def api_violations(objects: dict[str, Any], checks: set[str]) -> Iterator[Violation]:
    """What is wrong with the docstrings of public objects."""
    for name, value in objects.items():
        for code, what in validate(name)["errors"]:
            if code in checks and not (code == "PR01" and _has_documented_fields(value)):
                yield Violation(name, code, what)
        text = inspect.getdoc(value) or ""
        for code, what in (*_defaults(value, text), *_returns(name, text), *_examples(text)):
            yield Violation(name, code, what)


def _has_documented_fields(value: Any) -> bool:
    """Whether the fields of a dataclass are documented as its attributes."""
    if not is_dataclass(value):
        return False
    attributes = NumpyDocString(inspect.getdoc(value) or "")["Attributes"]
    names = {name.strip() for attribute in attributes for name in attribute.name.split(",")}
    return names.issuperset(field.name for field in fields(value) if field.init)


def _defaults(value: Any, text: str) -> Iterator[tuple[str, str]]:
    """Parameters whose default is not in the docstring."""
    try:
        parameters = inspect.signature(value).parameters
    except (TypeError, ValueError):
        return
    types = _documented_types(text)
    for name, parameter in parameters.items():
        if parameter.default is not parameter.empty and "default=" not in types.get(name, ""):
            # One that is not documented at all is numpydoc's to find.
            if name in types:
                yield "SW01", f"{name} : {types[name]} has no default="


def _documented_types(text: str) -> dict[str, str]:
    sections = NumpyDocString(text)
    return {
        name.strip(): parameter.type
        for parameter in sections["Parameters"]
        for name in parameter.name.split(",")
    }


def _returns(name: str, text: str) -> Iterator[tuple[str, str]]:
    if name.rpartition(".")[2] in RETURNING and not NumpyDocString(text)["Returns"]:
        yield "SW02", "the docstring has no Returns"


def _examples(text: str) -> Iterator[tuple[str, str]]:
    """Imports that could be shorter: from a file, or of names that `samewise` has."""
    top = import_module("samewise")
    public = {name for name in top.__all__ if isinstance(getattr(top, name), ModuleType)}
    for module, names in re.findall(r">>> from samewise\.([\w.]+) import (.*)", text):
        known = {name.strip() for name in names.split(",")} & set(top.__all__)
        if "." in module or (known and module not in public):
            yield "SW03", f"an example imports {names} from samewise.{module}"


def text_violations(folder: Path) -> Iterator[Violation]:
    """What is wrong with comments, docstrings and messages of Python files."""
    for path in sorted(folder.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        where = path.relative_to(folder).as_posix()
        tree = ast.parse(text)
        for line, words in dict.fromkeys((*_comments(text), *_strings(tree))):
            folded = " ".join(words.split())
            for idiom, usual in IDIOMS.items():
                if re.search(rf"\b{idiom}\b", folded, flags=re.IGNORECASE):
                    yield Violation(f"{where}:{line}", "SW05", f'"{idiom}"; usual is "{usual}"')
            if REFERENCE.search(folded):
                yield Violation(f"{where}:{line}", "SW04", "refers to another text")
        for line, end in () if where in FRAGMENTS else _message_ends(tree):
            if not end.endswith((".", "?", "!", ":", "\n")):
                yield Violation(f"{where}:{line}", "SW06", f"a message ends with {end[-30:]!r}")


def page_violations(pages: Iterable[Path], root: Path) -> Iterator[Violation]:
    """Unusual words on pages of the documentation."""
    for page in pages:
        for number, paragraph in _paragraphs(page.read_text(encoding="utf-8")):
            for idiom, usual in IDIOMS.items():
                if re.search(rf"\b{idiom}\b", paragraph, flags=re.IGNORECASE):
                    where = f"{page.relative_to(root).as_posix()}:{number}"
                    yield Violation(where, "SW05", f'"{idiom}"; usual is "{usual}"')


def _paragraphs(text: str) -> Iterator[tuple[int, str]]:
    """The number of the first line of each paragraph, and its words."""
    number = 1
    for paragraph in re.split(r"(\n\s*\n)", text):
        if paragraph.strip():
            yield number, " ".join(paragraph.split())
        number += paragraph.count("\n")


def _comments(text: str) -> Iterator[tuple[int, str]]:
    """Runs of comment lines, each run as one text."""
    run: list[str] = []
    last = -1
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            if token.start[0] != last + 1 and run:
                yield last, " ".join(run)
                run = []
            run.append(token.string.lstrip("# "))
            last = token.start[0]
    if run:
        yield last, " ".join(run)


def _strings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value


def _message_ends(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """The last words of what is raised or warned, where they are written there."""
    for node in ast.walk(tree):
        call = node.exc if isinstance(node, ast.Raise) else node
        if not isinstance(call, ast.Call) or not call.args:
            continue
        name = ast.unparse(call.func)
        if isinstance(node, ast.Raise) or name in ("warnings.warn", "warn"):
            message = call.args[0]
            if isinstance(message, ast.JoinedStr):
                message = message.values[-1]
            if isinstance(message, ast.Constant) and isinstance(message.value, str):
                if " " in ast.unparse(call.args[0]):
                    yield call.lineno, message.value


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what is wrong; the exit code is 1 if anything is."""
    only = tuple(sys.argv[1:] if arguments is None else arguments)
    found = [
        *api_violations(public_objects(), _checks()),
        *text_violations(ROOT / "src/samewise"),
        *page_violations(pages(), ROOT),
    ]
    if only:
        found = [v for v in found if any(word in str(v) for word in only)]
    for violation in found:
        print(violation)
    for code, n in sorted(Counter(violation.code for violation in found).items()):
        print(f"{n:>5} {code}")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
