"""Files that other programs read: they parse, and what they name exists."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

import samewise

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(
    not (ROOT / "Makefile").is_file(), reason="the files belong to a checkout"
)
yaml = pytest.importorskip("yaml")
SYSTEMS = {"ubuntu-latest", "macos-latest", "windows-latest"}
PYTHONS = ["3.11", "3.12", "3.13", "3.14"]


def read(name):
    return yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))


def targets():
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    return set(re.findall(r"^([a-z][a-z-]*):", text, flags=re.MULTILINE))


def called(commands):
    """The targets of `make …` commands."""
    return [
        word
        for command in commands
        for word in re.sub(r"^make(?: --\S+)*", "", command).split()
        if command.startswith("make")
    ]


def test_every_phony_target_is_there():
    text = (ROOT / "Makefile").read_text(encoding="utf-8").replace("\\\n", " ")
    phony = set(re.search(r"^\.PHONY:(.*)$", text, flags=re.MULTILINE)[1].split())
    assert phony == targets()


def test_the_workflow_runs_what_the_gate_runs():
    steps = read(".github/workflows/ci.yml")["jobs"]["all"]["steps"]
    runs = [step["run"] for step in steps if "run" in step]
    gate = re.findall(r"^make .*$", (ROOT / ".ci" / "run").read_text(), flags=re.MULTILINE)
    assert [run for run in runs if run.startswith("make")] == gate
    assert set(called(runs)) == {"check", "test", "docs", "demo", "wheel"}


def test_the_workflow_names_targets_that_exist():
    for job in read(".github/workflows/ci.yml")["jobs"].values():
        assert set(called([step.get("run", "") for step in job["steps"]])) <= targets()


def test_the_workflow_covers_every_system_and_python():
    matrix = read(".github/workflows/ci.yml")["jobs"]["all"]["strategy"]["matrix"]
    assert set(matrix["os"]) == SYSTEMS
    assert matrix["python"] == PYTHONS
    with open(ROOT / "pyproject.toml", "rb") as file:
        assert tomllib.load(file)["project"]["requires-python"] == f">={PYTHONS[0]}"


def test_the_hooks_are_the_parts_of_make_check():
    (local,) = read(".pre-commit-config.yaml")["repos"]
    assert local["repo"] == "local"
    assert all(hook["language"] == "system" for hook in local["hooks"])
    parts = set(called([hook["entry"] for hook in local["hooks"]]))
    check = re.search(r"^check: (.*)$", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
    assert parts == set(check[1].split())


def test_the_citation_is_complete():
    citation = read("CITATION.cff")
    assert {"cff-version", "message", "title", "authors", "version", "license"} <= set(citation)
    assert citation["cff-version"] == "1.2.0"
    assert str(citation["version"]) == samewise.__version__
    with open(ROOT / "pyproject.toml", "rb") as file:
        project = tomllib.load(file)["project"]
    assert citation["license"] == project["license"]
    assert citation["keywords"] == project["keywords"]
    for author in citation["authors"]:
        assert set(author) == {"name"} or {"family-names", "given-names"} <= set(author)


def test_how_to_report_a_vulnerability_is_said():
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    assert "Report a\nvulnerability" in text
    assert "no pickle" in text
