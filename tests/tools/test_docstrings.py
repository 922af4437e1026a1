"""What is wrong with texts is found, and what is right is left alone."""

from __future__ import annotations

import sys
from textwrap import dedent
from types import ModuleType

import pytest

pytest.importorskip("numpydoc")
docstrings = pytest.importorskip("tools.docstrings", reason="the tools belong to a checkout")


def codes(violations):
    return [violation.code for violation in violations]


def in_text(tmp_path, text):
    (tmp_path / "a.py").write_text(dedent(text), encoding="utf-8")
    return codes(docstrings.text_violations(tmp_path))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('"""Ten unless said."""', ["SW05"]),
        ('"""Ten unless\n    said."""', ["SW05"]),
        ("# What was handed\n# out.", ["SW05"]),
        ("told = 1", []),
        ('"""As for `POLA`."""', ["SW04"]),
        ('"""As in `POLA`."""', []),
        ('raise ValueError("This is wrong")', ["SW06"]),
        ('raise ValueError("This is wrong.")', []),
        ('raise ValueError(f"This is {wrong}")', []),
        ('raise ValueError(f"This {one} is wrong")', ["SW06"]),
        ('raise KeyError("name")', []),
        ('warnings.warn("This is odd", stacklevel=2)', ["SW06"]),
        ('warnings.warn("This is odd.", stacklevel=2)', []),
    ],
)
def test_words_and_messages(tmp_path, text, found):
    assert in_text(tmp_path, text) == found


@pytest.fixture
def module(monkeypatch, tmp_path):
    """A module of one class, with the given texts of the class and its `fit`."""

    def make(text, returns):
        source = f'''
            class Learner:
                """A learner.

                Parameters
                ----------
                {text}
                    How often.

                Examples
                --------
                >>> from samewise import POLA
                """

                def __init__(self, n=1):
                    self.n = n

                def fit(self, X):
                    """Learn.

                    Parameters
                    ----------
                    X : array
                        Rows.{returns}
                    """
                    return self
            '''
        path = tmp_path / "made_up.py"
        path.write_text(dedent(source), encoding="utf-8")
        made = ModuleType("made_up")
        made.__file__ = str(path)
        monkeypatch.setitem(sys.modules, "made_up", made)
        exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), vars(made))
        made.__all__ = ["Learner"]
        return made

    return make


INDENT = "\n" + 20 * " "
RETURNS = f"\n{INDENT}Returns{INDENT}-------{INDENT}self : Learner"
DESCRIBED = f"{RETURNS}{INDENT}    Fitted."


@pytest.mark.parametrize(
    ("text", "returns", "found"),
    [
        ("n : int, default=1", DESCRIBED, set()),
        ("n : int", DESCRIBED, {"SW01"}),
        ("n : int, optional", DESCRIBED, {"SW01"}),
        ("n : int, default=1", "", {"RT01", "SW02"}),
        ("n : int, default=1", RETURNS, {"RT03"}),
        ("m : int", DESCRIBED, {"PR01", "PR02"}),
    ],
)
def test_docstrings_of_public_names(module, text, returns, found):
    module(text, returns)
    objects = docstrings.public_objects("made_up")
    assert list(objects) == ["made_up.Learner", "made_up.Learner.fit"]
    assert set(codes(docstrings.api_violations(objects, docstrings._checks()))) == found


@pytest.mark.parametrize(
    ("line", "found"),
    [
        (">>> from samewise import POLA", []),
        (">>> from samewise.scores import roc", []),
        (">>> from samewise.scores.verification import roc", ["SW03"]),
        (">>> from samewise.forms import Mahalanobis", ["SW03"]),
        (">>> from samewise.protocols import measure", []),
    ],
)
def test_examples_import_public_names(line, found):
    assert [code for code, _ in docstrings._examples(line)] == found


def test_every_public_learner_and_its_methods_are_looked_at():
    objects = docstrings.public_objects()
    names = {name.rpartition(".")[2] for name in objects}
    assert {"POLA", "LMNN", "fit", "partial_fit", "transform", "roc", "load"} <= names
    assert all(name.startswith("samewise.") for name in objects)


def test_unusual_words_on_pages(tmp_path):
    page = tmp_path / "a.md"
    page.write_text(
        "# A\n\nFine.\n\nIt is not to be\nhad anywhere, unless said.\n", encoding="utf-8"
    )
    found = list(docstrings.page_violations([page], tmp_path))
    assert codes(found) == ["SW05", "SW05"] and all(str(v).startswith("a.md:5: ") for v in found)
