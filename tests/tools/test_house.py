"""The numbers of the house, counted in a small one."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

house = pytest.importorskip("tools.house", reason="the tools belong to a checkout")


@pytest.fixture
def package(tmp_path):
    def write(**files):
        for name, text in files.items():
            path = tmp_path / name.replace("__", "/").replace("_py", ".py")
            path.parent.mkdir(exist_ok=True)
            path.write_text(dedent(text), encoding="utf-8")
        return tmp_path

    return write


def value(folder, start):
    (found,) = [m for m in house.measures(folder) if m.name.startswith(start)]
    return found.value


def test_docstrings_comments_and_blank_lines_are_no_code(package):
    folder = package(
        a_py='''
        """A module.

        With a text.
        """

        # A comment.
        x = 1  # Another.
        """What x is."""


        def f(
            a,
        ):
            """A function."""
            text = """two
            lines"""
            return text
        '''
    )
    # x, the three lines of the signature, the two of the text, return.
    assert value(folder, "code lines") == 7


def body(lines):
    return "".join(f"    x{i} = {i}\n" for i in range(lines))


@pytest.mark.parametrize(("lines", "found"), [(50, 0), (51, 1)])
def test_a_long_function_has_a_body_of_more_than_fifty_lines(package, lines, found):
    signature = 'def f(\n    a,\n    b,\n):\n    """A text.\n\n    Of lines.\n    """\n'
    folder = package(a_py=signature + "    # A comment.\n\n" + body(lines))
    assert value(folder, "functions with a body over 50") == found


ELEVEN = ", ".join(f"a{i}" for i in range(11))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (f"def f({ELEVEN}): pass", 1),
        (f"def f({ELEVEN[4:]}): pass", 0),
        (f"class A:\n    def f(self, {ELEVEN[4:]}): pass", 0),
        (f"class A:\n    def __init__(self, {ELEVEN}): pass", 1),
        (f"class A(Base):\n    def __init__(self, {ELEVEN}): pass", 0),
        (f"class A(Base):\n    def fit(self, *, {ELEVEN}): pass", 1),
    ],
)
def test_many_arguments(package, text, found):
    base = "class Base(Generic[T], sklearn.base.BaseEstimator): pass"
    folder = package(a_py=text, other__b_py=base)
    assert value(folder, "functions with more than 10") == found


@pytest.mark.parametrize(("place", "found"), [("cli__a_py", 0), ("other__a_py", 1)])
def test_commands_may_have_many_arguments(package, place, found):
    text = f"def f({ELEVEN}, b: Annotated[str, typer.Option()]): pass"
    assert value(package(**{place: text}), "functions with more than 10") == found


def test_names_twice(package):
    text = "class A:\n    class B: pass\n"
    folder = package(one__a_py=text, two__a_py="class B: pass", two____init___py="")
    twice = {m.name: list(m.places) for m in house.measures(folder) if "twice" in m.name}
    assert twice["class names twice"] == [f"B: {Path('one/a.py')}, {Path('two/a.py')}"]
    assert twice["file names twice"] == [f"a.py: {Path('one/a.py')}, {Path('two/a.py')}"]


def test_excuses_are_counted_in_their_folder(package):
    folder = package(
        engine__a_py="x = 1  # type: ignore[misc]\ny = cast(int, x)\n",
        forms__b_py='z = broadcast(x)\nw = typing.cast(int, "# type: ignore")\n',
    )
    assert value(folder, "type: ignore and cast in engine") == 2
    assert value(folder, "type: ignore and cast in learners") == 0
    assert value(folder, "type: ignore and cast in forms") == 1


def test_the_copy_without_docstrings_keeps_line_numbers(package):
    folder = package(a_py='"""A\n\ntext."""\nx = 1\n')
    (source,) = house.read_sources(folder)
    assert house.without_docstrings(source) == "\n\n\nx = 1\n"


@pytest.mark.parametrize(
    ("printed", "value", "note"),
    [
        ("190 pairs of places (217 files read), each\nD1 a.py:1-6 ~ b.py:2-7\n", 190, ""),
        ("no duplicates (3 files read)\n", 0, ""),
        ("incomplete: no file that counts was read\n", None, "incomplete: no file"),
        ("12 pairs of places\nincomplete: time\n", 12, "incomplete: time"),
        ("", None, ""),
    ],
)
def test_what_the_command_duplicates_prints(printed, value, note):
    found = house._read_duplicates(printed)
    assert found.value == value
    assert found.note.startswith(note)


def test_a_number_over_its_goal_is_marked():
    assert "OVER" in str(house.Measure("lines", 9, 8))
    assert "OVER" not in str(house.Measure("lines", 8, 8))
    assert "OVER" not in str(house.Measure("lines", None, 8))


def test_the_numbers_of_this_package_are_printed(capsys, monkeypatch):
    monkeypatch.setattr(house.shutil, "which", lambda name: None)
    monkeypatch.setattr(house, "_walk", lambda: [house.Measure("walk", 8, 8, ["a.py"])])
    house.main(["--list"])
    printed = capsys.readouterr().out
    assert "code lines" in printed
    assert f"at most {house.MOST_CODE_LINES}" in printed
    assert "    a.py" in printed
    assert "duplicates is not installed" in printed
