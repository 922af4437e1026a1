"""Errors that are written into a small package, and which of them its tests notice."""

from __future__ import annotations

import json
from textwrap import dedent

import pytest

mutants = pytest.importorskip("tools.mutants", reason="the tools belong to a checkout")
from tools.mutations import mutations  # noqa: E402 (after the check)

SOURCE = '''
"""A toy."""

def clipped(x, low=0):
    """x, or low."""
    if x < low:
        return low
    return x

def unused(x):
    return -x
'''
TESTS = """
from toy.area.sums import clipped

def test_clipped():
    assert clipped(-1) == 0
    assert clipped(0.5) == 0.5

def test_that_fails_anyway():
    assert False
"""


def changes(source):
    return [mutation.change for mutation in mutations(dedent(source))]


@pytest.mark.parametrize(
    "source, expected",
    [
        ("a < b", ["a < b → a <= b"]),
        ("a is None", ["a is None → a is not None"]),
        ("a in b", ["a in b → a not in b"]),
        ("a + b", ["a + b → a - b"]),
        ("a / b", ["a / b → a * b"]),
        ("a and b", ["a and b → a or b"]),
        ("not a", ["not a → a"]),
        ("-a", ["-a → a"]),
        ("x = 0", ["0 → 1"]),
        ("x = 0.5", ["0.5 → 1.0"]),
        ("x = 1", ["1 → 0", "1 → 2"]),
        ("x = True", ["True → False"]),
        ("x = 1e-9, 4096, 'text'", []),
        ("x = min(a, b)", ["min → max"]),
        ("x = a.argmax()", ["a.argmax → a.argmin"]),
        ("x = f(a, k=b, strict=c)", ["f(a, k=b, strict=c) → f(a, strict=c)"]),
        ("x += a", ["x += a → pass"]),
        ("f()", ["f() → pass"]),
        ("if a: b", ["if a: → if not a:"]),
        ("while a: b", ["while a: → while not a:"]),
        ("x = a if b else c", ["a if b else c → a if not b else c"]),
        ("def f(a=0): return a", ["0 → 1", "return a → return None"]),
    ],
)
def test_what_is_changed(source, expected):
    assert changes(source) == expected


@pytest.mark.parametrize(
    "source",
    [
        "def f() -> Literal[1]: '''Not 1.'''",
        "x: Literal[1]",
        "raise E(f'more than {1 + n}')",
        "assert a < b",
        "@cached(size=1)\ndef f(): ...",
        "if verbose: f(1)",
        "if TYPE_CHECKING:\n    import a",
        "__all__ = ['a'] + ['b']",
        "def __repr__(self): return a + b",
        "x = f'{a + 1}'",
        "import a",
        "while True: a",
    ],
)
def test_what_is_left_alone(source):
    assert changes(source) == []


def test_a_mutation_changes_one_place_and_leaves_the_tree_as_it_was():
    found = mutations(dedent(SOURCE))
    sources = [mutation.source() for mutation in found]
    assert len({*sources}) == len(sources)
    assert [mutation.source() for mutation in found] == sources
    for source in sources:
        compile(source, "toy", "exec")
    (negated,) = [m for m in found if m.change == "if x < low: → if not x < low:"]
    assert (negated.first, negated.last, negated.text) == (6, 6, "if x < low:")
    assert not negated.outside
    (default,) = [m for m in found if m.text == "def clipped(x, low=0):"]
    assert default.outside


@pytest.fixture
def toy(tmp_path):
    for name, text in (
        ("src/toy/__init__.py", ""),
        ("src/toy/area/__init__.py", ""),
        ("src/toy/area/sums.py", SOURCE),
        ("tests/test_sums.py", TESTS),
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text), encoding="utf-8")
    return tmp_path


def drawn(toy, *lines):
    trials = mutants.sample(toy / "src/toy", ["area"], 1000, 0)
    return sorted(
        (trial for trial in trials if trial.mutation.text in lines),
        key=lambda trial: (trial.mutation.line, trial.mutation.change),
    )


def test_which_are_noticed(toy, capsys):
    trials = drawn(toy, "def clipped(x, low=0):", "if x < low:", "return -x")
    entry = mutants.Explained(
        "area/sums.py", "if x < low:", "The same on the border.", "x < low → x <= low"
    )
    found = mutants.try_all(toy, "src/toy", trials, [entry])
    assert [trial.mutation.change for trial in found.noticed] == [
        "0 → 1",
        "if x < low: → if not x < low:",
    ]
    assert [(trial.mutation.change, why) for trial, why in found.survived] == [
        ("-x → x", "no test reaches it"),
        ("return -x → return None", "no test reaches it"),
    ]
    assert [trial.mutation.change for trial, _ in found.explained] == ["x < low → x <= low"]
    said = mutants.table(found)
    assert "area               2 / 4       50%            1" in said
    assert "area/sums.py:11: -x → x (no test reaches it)\n    return -x" in said
    assert "x < low → x <= low (The same on the border.)" in said
    assert "noticed  area/sums.py:4: 0 → 1" in capsys.readouterr().err
    # The files are as they were.
    assert (toy / "src/toy/area/sums.py").read_text(encoding="utf-8") == SOURCE
    assert (toy / "build/mutants/0/src/toy/area/sums.py").read_text(encoding="utf-8") == SOURCE


def test_what_does_not_end_is_ended(toy):
    (toy / "tests/test_sums.py").write_text("while True: pass", encoding="utf-8")
    assert mutants.Copy(toy, "src/toy").run("tests", timeout=2.0) == -1


def test_tests_that_fail_when_run_alone_are_no_measure(toy):
    """What passes after another test only would count as noticing every change."""
    (toy / "tests/test_order.py").write_text(
        "from toy.area import sums\n\n"
        "def test_first():\n    sums.ready = True\n\n"
        "def test_second():\n    assert sums.unused(1) == -1 and sums.ready\n",
        encoding="utf-8",
    )
    (trial, _) = drawn(toy, "return -x")
    with pytest.raises(RuntimeError, match="Tests fail without any change"):
        mutants.try_all(toy, "src/toy", [trial], [])


def test_a_new_test_is_run_without_running_all_again(toy):
    (trial, _) = drawn(toy, "return -x")
    assert mutants.try_all(toy, "src/toy", [trial], []).survived
    noted = toy / "build/mutants/noted.json"
    before = noted.stat().st_mtime_ns
    assert mutants.try_all(toy, "src/toy", [trial], []).survived
    assert noted.stat().st_mtime_ns == before
    (toy / "tests/test_more.py").write_text(
        "from toy.area.sums import unused\n\ndef test_unused():\n    assert unused(1) == -1\n",
        encoding="utf-8",
    )
    assert mutants.try_all(toy, "src/toy", [trial], []).noticed == [trial]


def test_tests_of_the_own_folder_come_first(toy):
    """What they notice needs no other test to be run, and the others may be left out."""
    trials = drawn(toy, "def clipped(x, low=0):", "return -x")
    (toy / "tests/area").mkdir()
    (toy / "tests/area/test_unused.py").write_text(
        "from toy.area.sums import unused\n\ndef test_unused():\n    assert unused(1) == -1\n",
        encoding="utf-8",
    )
    found = mutants.try_all(toy, "src/toy", trials, [], near=True)
    assert [trial for trial, _ in found.survived] == [trials[0]]
    assert found.noticed == trials[1:]
    noted, _ = json.loads((toy / "build/mutants/noted.json").read_text(encoding="utf-8"))
    assert noted.keys() == {"others", "tests/area/test_unused.py"}
    assert not mutants.try_all(toy, "src/toy", trials, []).survived


def test_a_sample_is_the_same_for_the_same_seed(toy):
    def some(n, seed):
        return [str(trial) for trial in mutants.sample(toy / "src/toy", ["area"], n, seed)]

    assert some(5, 0) == some(5, 0) == some(9, 0)[:5] != some(5, 1)
    assert len(some(1000, 0)) == len(mutations(SOURCE))


def test_what_is_explained_is_still_there():
    package = mutants.ROOT / "src" / "samewise"
    for entry in mutants.read_explained():
        found = mutations((package / entry.file).read_text(encoding="utf-8"))
        trials = [mutants.Trial("", entry.file, mutation) for mutation in found]
        assert any(entry.covers(trial) for trial in trials), entry
        assert entry.reason.endswith(".")
