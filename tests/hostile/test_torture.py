"""A few kills of `make torture`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("typer")
pytest.importorskip("fastapi")


@pytest.mark.skipif(os.name != "posix", reason="kill -9 is of POSIX systems")
def test_a_few_kills():
    command = [sys.executable, "-m", "torture", "--trials", "12"]
    root = Path(__file__).parents[2]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    head, *rows = [line.split() for line in done.stdout.splitlines()]
    assert head == ["trials", "amid_work", "acknowledged", "repeated", "lost", "differing"]
    assert len(rows) == 10
    counts = [[int(cell.replace(",", "")) for cell in row[-6:]] for row in rows]
    assert sum(row[0] for row in counts) >= 12
    assert all(row[4:] == [0, 0] for row in counts)
