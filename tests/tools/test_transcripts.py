"""Commands in the docs, run anew."""

from __future__ import annotations

import pytest

transcripts = pytest.importorskip("tools.transcripts", reason="the tools belong to a checkout")


def test_every_command_is_run_in_one_folder_and_answers_in_its_place(tmp_path):
    page = (
        "# Page\n\n```text\n$ echo one > a\nold\n\n$ cat a\nolder\n```\n\nText.\n\n```text\n```\n"
    )
    new = transcripts.rerun(page, tmp_path)
    assert (
        new == "# Page\n\n```text\n$ echo one > a\n\n\n$ cat a\none\n```\n\nText.\n\n```text\n```\n"
    )


def test_times_and_memory_are_no_difference():
    old = "lmnn learned from 142 rows, in 0.4 s.\n│ rca │ 1.89 % │    0.01 │ 259 │\n"
    assert transcripts.same(old, old.replace("0.4", "12.9").replace("0.01 │ 259", "3.20 │ 301"))
    assert not transcripts.same(old, old.replace("1.89", "1.88"))
    assert not transcripts.same(old, old.replace("142", "141"))
