"""The documentation: its examples run, and its reference has every public name.

That links resolve is Sphinx's to say: `make docs` fails on any warning.
"""

from __future__ import annotations

import doctest
import importlib
import re
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from inspect import ismodule
from pathlib import Path
from xml.etree import ElementTree

import pytest

import samewise
from samewise.datasets import available

DOCS = Path(__file__).parents[2] / "docs"
PAGES = sorted(DOCS.rglob("*.md")) if DOCS.is_dir() else []
EXAMPLES = [page for page in PAGES if ">>>" in page.read_text(encoding="utf-8")]
MODULES = [
    "samewise",
    "samewise.datasets",
    "samewise.exceptions",
    "samewise.filtering",
    "samewise.forms",
    "samewise.learners",
    "samewise.plots",
    "samewise.protocols",
    "samewise.scale",
    "samewise.scores",
]
NAMES = [(module, n) for module in MODULES for n in importlib.import_module(module).__all__]

pytestmark = pytest.mark.skipif(not PAGES, reason="the documentation belongs to a checkout")


def name_of(page):
    return str(page.relative_to(DOCS))


def with_data(text):
    """The sections whose data sets, and packages that samewise does not need, are there."""
    sections = re.split(r"^(?=## )", text, flags=re.MULTILINE)
    return "".join(
        section
        for section in sections
        if set(re.findall(r"dataset\(\"(\w+)\"\)", section)) <= set(available())
        and all(find_spec(package) for package in re.findall(r"import (faiss|dask)", section))
    )


@pytest.mark.parametrize("page", EXAMPLES, ids=name_of)
def test_examples_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = with_data(page.read_text(encoding="utf-8"))
    # What ends a block would else be taken for expected output.
    text = re.sub(r"^```.*$", "", text, flags=re.MULTILINE)
    test = doctest.DocTestParser().get_doctest(text, {}, page.name, str(page), 0)
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    failures, tried = doctest.DocTestRunner(optionflags=flags).run(test)
    assert tried
    assert not failures


def test_there_are_examples_everywhere_they_are_promised():
    for folder in ("guide", "algorithms"):
        pages = {p for p in PAGES if p.parent == DOCS / folder and p.name != "index.md"}
        assert pages
        assert not sorted(map(name_of, pages - set(EXAMPLES)))


def documented():
    """What autodoc is told to document: the objects, by their identity."""
    found = {}
    for page in PAGES:
        module = None
        for kind, what in re.findall(
            r"^\.\. (currentmodule|automodule|auto(?:class|function|data|exception)):: *(\S+)",
            page.read_text(encoding="utf-8"),
            flags=re.MULTILINE,
        ):
            if kind == "currentmodule":
                module = importlib.import_module(what)
            elif kind == "automodule":
                listed = importlib.import_module(what)
                found.update({id(getattr(listed, n)): name_of(page) for n in listed.__all__})
            else:
                found[id(getattr(module, what))] = name_of(page)
    return found


@pytest.mark.parametrize(("module", "name"), NAMES, ids=lambda part: part)
def test_every_public_name_is_in_the_reference(module, name):
    value = getattr(importlib.import_module(module), name)
    if ismodule(value):
        assert (DOCS / "api" / f"{name}.md").is_file()
    else:
        assert id(value) in documented()


@pytest.mark.parametrize("name", samewise.__all__)
def test_the_table_of_contents_of_the_reference_has_it(name):
    spec = spec_from_file_location("conf", DOCS / "conf.py")
    conf = module_from_spec(spec)
    spec.loader.exec_module(conf)
    index = conf.with_learners((DOCS / "api" / "index.md").read_text(encoding="utf-8"))
    assert re.search(rf"^   {name}$|\[samewise\.{name}\]", index, flags=re.MULTILINE)


FIGURE = r"(?<![\w.@])(?:\d+\.\d+|\d+ of \d+)"


def cited():
    """Paragraphs and tables outside of code that name the experiment their numbers are from."""
    for page in PAGES:
        text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
        for block in re.split(r"\n\s*\n", text):
            names = re.findall(r"python -m experiments (\w+)", block)
            # Numbers in code are parameters.
            numbers = re.findall(FIGURE, re.sub(r"`[^`]*`", "", block))
            if names and numbers:
                yield pytest.param(set(names), numbers, id=f"{name_of(page)}: {block[:40]}")


@pytest.mark.parametrize(("names", "numbers"), list(cited()))
def test_cited_numbers_are_those_that_were_measured(names, numbers):
    results = DOCS.parent / "experiments" / "results"
    if not results.is_dir():
        pytest.skip("the results belong to a checkout")
    text = "".join((results / name / "summary.md").read_text(encoding="utf-8") for name in names)
    measured = set(re.findall(FIGURE, text))
    assert not [number for number in numbers if number not in measured]


def test_no_page_is_about_this_machine():
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        assert not re.search(r"(^|[\s`(\"'])/(work|home|tmp|root|opt)/", text), page


def test_cited_numbers_of_the_front_page_are_those_of_its_picture():
    pytest.importorskip("matplotlib")
    spec = spec_from_file_location("before_after", DOCS / "pictures" / "before_after.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    axes = module.draw(module.run()).axes
    before, after = (re.search(r"([\d.]+) % wrong", ax.get_title())[1] for ax in axes)
    assert float(after) < float(before)
    # The front page and the README tell of the same pairs.
    readme = (DOCS.parent / "README.md").read_text(encoding="utf-8")
    assert f"wrongly for {after} % of pairs instead of {before} %" in readme


def test_every_result_has_a_page():
    index = (DOCS / "results" / "index.md").read_text(encoding="utf-8")
    for summary in (DOCS.parent / "experiments" / "results").glob("*/summary.md"):
        page = f"{summary.parent.name}.md"
        assert (DOCS / "results" / page).is_file(), page
        assert f"({page})" in index, page


CITATIONS = re.compile(r"^ +References\n +-+\n(.*?)(?:\n\n|\"\"\")", flags=re.M | re.S)
FORMULA = re.compile(r"^```\{math\}\n(.*?)^```", flags=re.M | re.S)


def test_formulas_of_all_algorithms_become_mathml():
    pytest.importorskip("latex2mathml")
    spec = spec_from_file_location("mathml", DOCS / "mathml.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    pages = {p.stem: p.read_text(encoding="utf-8") for p in (DOCS / "algorithms").glob("*.md")}
    formulas = {name: FORMULA.findall(text) for name, text in pages.items()}
    assert {name for name, found in formulas.items() if not found} == {"index", "filters"}
    for formula in (one for found in formulas.values() for one in found):
        made = ElementTree.fromstring(module.mathml(formula))
        assert made.tag.endswith("math") and made.get("display") == "block"
    with pytest.raises(ValueError, match=r"not known: \\nosuchcommand\."):
        module.mathml(r"\nosuchcommand")


def test_the_bibliography_has_what_docstrings_cite():
    text = (DOCS / "bibliography.md").read_text(encoding="utf-8")
    listed = [" ".join(entry.split()) for entry in re.split(r"^- ", text, flags=re.M)[1:]]
    cited = set()
    for file in Path(samewise.__file__).parent.rglob("*.py"):
        code = file.read_text(encoding="utf-8")
        for part in CITATIONS.findall(code):
            first = part.split(";")[0]
            author = re.search(r"[^\W\d_][\w'-]{2,}", first)
            year = re.search(r"(?<!= )(?:19|20)\d\d", first)
            cited.add((author[0], year and year[0]))
    assert len(cited) > 20
    for author, year in cited:
        assert any(author in entry and (year or "") in entry for entry in listed), (author, year)
