"""The shell session of the guide, run as it is."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "examples" / "serve.sh"


@pytest.mark.skipif(
    os.name != "posix" or not shutil.which("curl") or not SCRIPT.is_file(),
    reason="it needs a POSIX shell, curl and a checkout",
)
def test_the_session_of_the_guide(tmp_path):
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    done = subprocess.run(
        ["sh", str(SCRIPT), str(tmp_path / "data"), str(port)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHON": sys.executable, "OPENBLAS_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr + done.stdout
    said = done.stdout
    assert re.search(r"promoted after \d+ judged lists", said)
    assert re.search(r'"served":\{"rest":\d,"first":\d\}', said)
    assert '"version":0' in said.partition("== roll back")[2]
    assert "the same\n" in said.partition("== kill -9")[2]
    assert "digits: " in said.partition("== check")[2] and "all right" in said
