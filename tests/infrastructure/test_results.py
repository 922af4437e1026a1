"""The file that keeps the last run of each section of the benchmarks."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import growth
from benchmarks.__main__ import table
from benchmarks.results import MARK, keep


def test_a_section_takes_the_place_of_its_run_before(tmp_path):
    path = tmp_path / "RESULTS.md"
    path.write_text("# Results\n\nWritten by hand.\n\n## Goals\n\nKept.\n", encoding="utf-8")
    keep("search", "A quiet day.", [("Exact", "a  b\n1  2")], path)
    keep("lmnn", "A busy day.", [("Whole", "5"), ("Growth", "6")], path)
    keep("search", "Another day.", [("Exact", "a  b\n3  4")], path)
    text = path.read_text(encoding="utf-8")
    head, written = text.split(MARK)
    assert head == "# Results\n\nWritten by hand.\n\n## Goals\n\nKept.\n\n"
    assert written.index("## lmnn") < written.index("## search")
    assert "3  4" in written and "1  2" not in written and "A quiet day." not in written
    for part in ("A busy day.", "Whole", "5", "Growth", "6", "Another day."):
        assert written.count(part) == 1
    keep("search", "Another day.", [("Exact", "a  b\n3  4")], path)
    assert path.read_text(encoding="utf-8") == text


def test_a_table_has_a_column_for_each_name():
    assert table([{"n": 5, "what": "LMNN"}, {"n": 10}]) == " n  what\n--  ----\n 5  LMNN\n10      "
    assert table([]) == "left out: the data are not here"


@pytest.mark.parametrize("exponent", [0.0, 1.0, 2.5])
def test_an_exponent_and_how_far_costs_are_off_its_line(exponent):
    sizes = (100, 200, 400, 800)
    costs = [3 * n**exponent for n in sizes]
    assert growth.line(sizes, costs) == pytest.approx((exponent, 0.0), abs=1e-9)
    costs[1] *= 1.2
    found, off = growth.line(sizes, costs)
    assert abs(found - exponent) < 0.1
    x, y = np.log(sizes), np.log(costs)
    wanted = np.abs(y - np.polyval(np.polyfit(x, y, 1), x)).max()
    assert off == pytest.approx(np.exp(wanted) - 1)
