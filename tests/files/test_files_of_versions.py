"""What any version wrote is read by this one."""

from __future__ import annotations

import json

import numpy as np
import pytest

import samewise
from samewise.catalog import LEARNERS
from samewise.files.storable import Storable
from tests.files.writing import FOLDER, HERE, answers

KEPT = sorted(HERE.glob("format_*/*.samewise"))


@pytest.mark.parametrize("path", KEPT, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_kept_file_loads_and_says_what_it_said(path, tmp_path):
    kept = samewise.load(path)
    assert type(kept).__name__ == path.stem
    expected = json.loads((path.parent / "answers.json").read_text(encoding="utf-8"))[path.stem]
    np.testing.assert_allclose(answers(kept), expected, rtol=1e-7, atol=1e-8)
    kept.save(tmp_path / "again")
    again = samewise.load(tmp_path / "again")
    assert answers(again) == answers(kept)


def test_there_is_a_file_of_each_kind():
    names = {path.stem for path in FOLDER.glob("*.samewise")}
    assert {entry.name for entry in LEARNERS} <= names
    # Parts of other objects have no files of their own.
    parts = {"TextVectors", "GivenVectors"}
    assert names >= {name for name in Storable._kinds if name in samewise.__all__} - parts
