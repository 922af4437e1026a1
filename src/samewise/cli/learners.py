"""samewise learners: what there is, what it learns from, and what it gives."""

from __future__ import annotations

import ast
from pathlib import Path

import samewise
from samewise.catalog import LEARNERS, Entry
from samewise.cli.console import Answer, say, show_table
from samewise.cli.options import command


@command()
def learners() -> Answer:
    """List the learners: what they learn from, and what they give.

    Those with a name can be given to --learner and --learners; the others are for Python.

    Example: samewise learners
    """
    found = [_described(entry) for entry in LEARNERS]
    return Answer({"learners": found}, lambda: _show(found))


def _described(entry: Entry) -> dict[str, str]:
    return {
        "name": entry.command,
        "class": entry.name,
        "learns_from": ", ".join(entry.learns_from),
        "gives": entry.gives,
        "record": entry.record,
        "summary": _summary(entry),
    }


def _summary(entry: Entry) -> str:
    """The first line of its docstring, from the source: to import all learners takes a second."""
    path = Path(samewise.__file__).parent.joinpath("learners", *entry.module.split("."))
    tree = ast.parse(path.with_suffix(".py").read_text(encoding="utf-8"))
    [found] = [n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == entry.name]
    return str(ast.get_docstring(found)).splitlines()[0]


def _show(found: list[dict[str, str]]) -> None:
    headers = ["name", "class", "learns from", "gives", ""]
    rows = [
        [
            each["name"] or "-",
            each["class"] + (" *" if each["record"] else ""),
            each["learns_from"],
            each["gives"],
            each["summary"],
        ]
        for each in found
    ]
    show_table(headers, rows, n_texts=len(headers))
    say("* With its defaults it may be worse than no learning; samewise compare says why.")
