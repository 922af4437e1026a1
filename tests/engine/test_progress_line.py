"""What a run says: lines in a pipe, one line with a bar in a terminal or a notebook."""

from __future__ import annotations

import io

import pytest
from sklearn.datasets import load_iris

from samewise import ITML, LMNN, PassiveAggressive
from samewise.engine import progress_line
from samewise.engine.progress_line import ProgressLine


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Notebook(io.StringIO):
    __module__ = "ipykernel.iostream"


@pytest.mark.parametrize("kind", [Terminal, Notebook])
def test_a_live_line_is_written_over(kind, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    stream = kind()
    line = ProgressLine(8, 0.0, stream)
    line.say("a long beginning of it", 2)
    line.say("middle", 4)
    line.end("end", 8)
    states = stream.getvalue().split("\r")[1:]
    assert states[0] == "█" * 6 + "░" * 18 + " a long beginning of it"
    assert states[1].rstrip() == "█" * 12 + "░" * 12 + " middle"
    assert len(states[1]) == len(states[0])
    assert states[2].rstrip(" ") == "█" * 24 + " end" + " " * 3 + "\n"
    assert ProgressLine(0, 0.0, kind())._bar(3) == ""
    line.say("x" * 200, 1)
    assert len(stream.getvalue().split("\r")[-1]) == 59


def test_elsewhere_there_are_lines(monkeypatch):
    stream = io.StringIO()
    line = ProgressLine(8, 0.0, stream)
    line.say("middle", 4)
    assert [line.due(now) for now in (0.5, 1.0, 1.5, 2.5)] == [False, True, False, True]
    line.end("end", 8)
    assert stream.getvalue() == "middle\nend\n"


@pytest.mark.parametrize(
    "learner", [ITML(random_state=0), LMNN(random_state=0), PassiveAggressive(random_state=0)]
)
def test_fits_draw_a_bar_in_a_terminal_only(learner, monkeypatch, capsys):
    X, y = load_iris(return_X_y=True)
    monkeypatch.setattr(progress_line, "EVERY_LIVE", 0.0)
    monkeypatch.setattr(progress_line, "EVERY", 3600.0)
    monkeypatch.setattr("sys.stderr", stream := Terminal())
    learner.fit(X, y)
    assert stream.getvalue() == ""
    learner.set_params(verbose=True).fit(X, y)
    said = stream.getvalue()
    assert said.startswith(("\r█", "\r░"))
    assert said.count("\n") == 1 and said.endswith("\n")
    assert type(learner).__name__ in said and said.count("\r") >= 1
    monkeypatch.setattr("sys.stderr", stream := io.StringIO())
    learner.fit(X, y)
    assert "\r" not in stream.getvalue() and stream.getvalue().count("\n") == 1
