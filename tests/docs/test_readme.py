"""README and tutorial: their blocks run in an empty folder, their numbers were measured."""

from __future__ import annotations

import os
import re
import shlex
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from samewise.catalog import BY_COMMAND
from samewise.kernels.compiling import code_directory

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
pytestmark = pytest.mark.skipif(not README.is_file(), reason="the README belongs to a checkout")
TEXT = README.read_text(encoding="utf-8") if README.is_file() else ""
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", TEXT, flags=re.M | re.S)
SHIM = "#!{python}\nfrom samewise.cli import main\n\nif __name__ == '__main__':\n    main()\n"


@pytest.fixture(scope="module")
def clean(tmp_path_factory):
    """An empty folder of a user without files, and the environment: the command is in PATH."""
    home, folder, path = (tmp_path_factory.mktemp(name) for name in ("home", "work", "bin"))
    command = path / "samewise"
    command.write_text(SHIM.format(python=sys.executable), encoding="utf-8")
    command.chmod(0o755)
    env = {k: v for k, v in os.environ.items() if k != "SAMEWISE_DATA" and "XDG" not in k}
    env |= {"HOME": str(home), "PATH": f"{path}{os.pathsep}{env['PATH']}"}
    # What was compiled is used: a block is not about compiling.
    return folder, env | {"NUMBA_CACHE_DIR": str(code_directory().parents[1])}


def printed(clean, *command, **more):
    folder, env = clean
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, **more)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.skipif(os.name == "nt", reason="the commands are those of a POSIX shell")
def test_all_blocks_run_one_after_the_other(clean):
    pytest.importorskip("typer")
    out = {}
    for kind, code in BLOCKS:
        assert kind in ("sh", "python"), kind
        run = ("sh", "-e") if kind == "sh" else (sys.executable, "-")
        out[code] = printed(clean, *run, input=code)
    commands, table, search, pairs = out.values()
    assert "Best: " in commands, commands
    assert "Written to wine.sw" in commands
    assert "Most weighted features" in commands
    assert "error on" in table and "(178, " in table
    before, after = map(float, search.splitlines()[0].split())
    assert 0.5 < before < after < 1
    decided, right, accuracy = pairs.splitlines()
    assert decided == "[ 1 -1]" and float(right) > 0.85 and float(accuracy) > 0.95
    assert {"wine.csv", "wine.sw", "model.sw", "digits.verifier"} <= {
        path.name for path in clean[0].iterdir()
    }


@pytest.mark.skipif(os.name == "nt", reason="the commands are those of a POSIX shell")
def test_the_tutorial_runs_from_the_first_step_to_the_last(clean):
    for package in ("typer", "fastapi", "httpx"):
        pytest.importorskip(package)
    page = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
    assert len(re.findall(r"^## \d\. ", page, flags=re.M)) == 7
    out = printed_beside_a_service(clean, page)
    assert len(out) == 7
    assert "Best: " in out[1] or "Nothing was gained" in out[1]
    assert out[5] == "(178, 2)\n"
    shown, served = out[6].splitlines()
    assert shown.startswith("['wine 17', ") and served == "{'rest': 0, 'first': 0}"


@pytest.mark.skipif(os.name == "nt", reason="the commands are those of a POSIX shell")
def test_the_service_learns_from_the_clicks_of_the_guide(clean):
    for package in ("typer", "fastapi", "httpx"):
        pytest.importorskip(package)
    page = (ROOT / "docs" / "guide" / "clicks.md").read_text(encoding="utf-8")
    (out,) = printed_beside_a_service(clean, page)
    precisions, known, left = out.splitlines()
    start, live = map(float, precisions.split())
    assert 0.1 < start < 0.2 < 0.28 < live
    assert known.startswith("400 ") and left == "0"


def printed_beside_a_service(clean, page):
    """What each block printed, while the services that others start were running."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        page = page.replace("8350", str(found.getsockname()[1]))
    out, servers = [], []
    try:
        for kind, code in re.findall(r"^```(\w+)\n(.*?)^```", page, flags=re.M | re.S):
            if "samewise serve" in code:
                servers.append(serving(clean, code))
            elif not code.startswith(">>>"):
                run = ("sh", "-e") if kind == "sh" else (sys.executable, "-")
                out.append(printed(clean, *run, input=code))
    finally:
        for server in servers:
            server.terminate()
            server.communicate(timeout=60)
    return out


def serving(clean, code):
    folder, env = clean
    process = subprocess.Popen(
        shlex.split(code), cwd=folder, env=env, stdout=subprocess.PIPE, text=True
    )
    port, end = int(shlex.split(code)[-1]), time.monotonic() + 300
    while time.monotonic() < end:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return process
        time.sleep(0.1)
    process.kill()
    process.communicate()
    raise AssertionError("The service does not listen.")


def test_nothing_else_is_asked_for_than_there_is():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.M))
    assert set(re.findall(r"`make ([a-z-]+)`", TEXT)) <= targets
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    for extra in re.findall(r"'\.\[(\w+)\]'", TEXT):
        assert f"\n{extra} = [" in project
    assert set(re.findall(r"--learner (\w+)", TEXT)) <= set(BY_COMMAND)
    for target in re.findall(r"\]\(([^)#]+)\)", TEXT):
        assert (ROOT / target).exists(), target


FIGURE = r"(?<![\w.@])\d+\.\d+"


@pytest.mark.parametrize("line", [row for row in TEXT.splitlines() if "-m experiments" in row])
def test_cited_numbers_are_those_that_were_measured(line):
    names = re.findall(r"python -m experiments (\w+)", line)
    pages = [ROOT / "experiments" / "results" / name / "summary.md" for name in names]
    measured = re.findall(FIGURE, "".join(page.read_text(encoding="utf-8") for page in pages))
    assert not [n for n in re.findall(FIGURE, re.sub(r"`[^`]*`", "", line)) if n not in measured]
