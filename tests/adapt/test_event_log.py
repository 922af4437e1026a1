"""What a file may say of an event."""

from __future__ import annotations

import pytest

from samewise.adapt.event_log import _right

RIGHT = [None, "ann", 3, 1.0, True, 0, -1, None]


@pytest.mark.parametrize(
    ("place", "wrong"),
    [(0, 0.5), (2, 0), (2, 3.0), (3, -1.0), (4, 1), (5, 2), (5, 0.5), (6, 3), (6, -2), (7, [1])],
)
def test_fields_are_checked_one_by_one(place, wrong):
    assert _right(RIGHT)
    fields = RIGHT.copy()
    fields[place] = wrong
    assert not _right(fields)
    assert not _right(RIGHT[:-1]) and not _right(None)
