"""The unit and the Dockerfile start the service as the command takes it."""

from __future__ import annotations

import configparser
import inspect
import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

from samewise.cli.serve import serve

DEPLOY = Path(__file__).parents[2] / "deploy"

pytestmark = pytest.mark.skipif(not DEPLOY.is_dir(), reason="it belongs to a checkout")


def options(words):
    return {word.removeprefix("--").replace("-", "_") for word in words if word.startswith("--")}


def test_the_unit():
    unit = configparser.ConfigParser(interpolation=None)
    unit.optionxform = str
    unit.read(DEPLOY / "samewise.service", encoding="utf-8")
    program, command, folder, *rest = shlex.split(unit["Service"]["ExecStart"])
    assert (Path(program).name, command) == ("samewise", "serve")
    assert options(rest) <= set(inspect.signature(serve).parameters)
    # What systemd makes for the service is where the service keeps its data.
    assert folder == f"/var/lib/{unit['Service']['StateDirectory']}"


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd is not here")
def test_systemd_takes_the_unit(tmp_path):
    text = (DEPLOY / "samewise.service").read_text(encoding="utf-8")
    # The command is checked too, and is not installed there.
    unit = tmp_path / "samewise.service"
    unit.write_text(text.replace("/opt/samewise/bin/samewise", sys.executable), encoding="utf-8")
    command = ["systemd-analyze", "verify", str(unit)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, "samewise.service" in done.stderr) == (0, False), done.stderr


@pytest.mark.skipif(os.name != "posix", reason="the unit is for Linux")
def test_the_command_of_the_unit_runs_in_a_clean_directory(tmp_path):
    """As systemd starts it: no home, no variables but those of the unit, and SIGTERM to end it."""
    unit = configparser.ConfigParser(interpolation=None)
    unit.optionxform = str
    unit.read(DEPLOY / "samewise.service", encoding="utf-8")
    _, *words = shlex.split(unit["Service"]["ExecStart"])
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = str(found.getsockname()[1])
    place = {"/var/lib/samewise": str(tmp_path / "state"), "8350": port}
    name, _, _ = unit["Service"]["Environment"].partition("=")
    process = subprocess.Popen(
        [sys.executable, "-m", "samewise.cli", *(place.get(word, word) for word in words)],
        cwd=tmp_path,
        env={name: str(tmp_path / "cache"), "SAMEWISE_TOKEN": "admin:a-token-of-some-length"},
        stdout=subprocess.DEVNULL,
    )
    try:
        for _ in range(1200):
            assert process.poll() is None
            try:
                answer = httpx.get(f"http://127.0.0.1:{port}/readyz", trust_env=False)
                break
            except httpx.ConnectError:
                time.sleep(0.1)
        assert answer.json() == {"failed": []}
        assert httpx.get(f"http://127.0.0.1:{port}/metrics", trust_env=False).status_code == 401
    finally:
        process.send_signal(getattr(signal, unit["Service"]["KillSignal"]))
    # uvicorn ends by the signal it was given, which systemd takes as a clean end.
    assert process.wait(60) in (0, -signal.SIGTERM)
    assert (tmp_path / "state" / "lock").is_file()


def test_the_dockerfile():
    text = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    words = json.loads(re.search(r"^CMD (.*)$", text, flags=re.MULTILINE)[1])
    assert words[:2] == ["samewise", "serve"]
    assert options(words) <= set(inspect.signature(serve).parameters)
    assert f"VOLUME {words[2]}" in text
    for line in re.findall(r"^COPY (.*) \S+$", text, flags=re.MULTILINE):
        assert all((DEPLOY.parent / name).exists() for name in line.split())
