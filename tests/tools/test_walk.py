from __future__ import annotations

import re
from pathlib import Path

import pytest

from tools import walk

PAGE = Path(__file__).parents[2] / "docs" / "architecture.md"


@pytest.mark.filterwarnings("ignore")
def test_the_architecture_has_the_walks_as_they_are():
    text = PAGE.read_text(encoding="utf-8")
    section = text[text.index("## Five walks") : text.index("## Filtering")]
    listed = re.findall(r"\*\*.*?\n\n((?:    \S+\n)+)", section)
    assert len(listed) == len(walk.WALKS)
    for kind, files in zip(walk.WALKS, listed, strict=True):
        assert files.split() == walk.walk(kind)[0], kind


def test_a_fit_of_pairs_comes_soon_to_the_loop():
    files, calls = walk.walk("pairs")
    assert len(files) <= 8 and len(calls) <= 15


def test_a_walk_that_does_not_end_says_so():
    with pytest.raises(RuntimeError, match="never came to nowhere"):
        walk.traced(lambda: None, "nowhere")
