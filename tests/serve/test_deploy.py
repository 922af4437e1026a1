"""The unit and the Dockerfile start the service as the command takes it."""

from __future__ import annotations

import configparser
import inspect
import json
import re
import shlex
from pathlib import Path

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


def test_the_dockerfile():
    text = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    words = json.loads(re.search(r"^CMD (.*)$", text, flags=re.MULTILINE)[1])
    assert words[:2] == ["samewise", "serve"]
    assert options(words) <= set(inspect.signature(serve).parameters)
    assert f"VOLUME {words[2]}" in text
    for line in re.findall(r"^COPY (.*) \S+$", text, flags=re.MULTILINE):
        assert all((DEPLOY.parent / name).exists() for name in line.split())
