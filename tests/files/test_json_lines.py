"""Lines of text that come in pieces."""

from __future__ import annotations

from samewise.files import json_lines


def test_a_line_that_is_too_long_shows_it_after_others_as_well(monkeypatch):
    monkeypatch.setattr(json_lines, "LONGEST", 8)
    pieces = [b"x\ny\n", b"a" * 8, b"b" * 5, b"c" * 100, b"\nz"]
    lines = list(json_lines._split(pieces))
    assert [lines[0], lines[1], lines[3]] == [b"x", b"y", b"z"]
    # No more is kept than shows it.
    assert lines[2] == b"a" * 8 + b"b" * 5
