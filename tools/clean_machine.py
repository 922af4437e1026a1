"""Follow the README, word for word, on a machine that has Python and make and nothing else.

``python tools/clean_machine.py --root build/machine`` makes one, by Debian's debootstrap and as
root: a folder with a system of its own, a user with an empty home, and a copy of the last commit.
Without ``--root`` the README is followed on this machine. It needs nothing but the standard library.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]
PACKAGES = "python3,python3-venv,make,ca-certificates"
# How this machine reaches PyPI; the other one has to reach it too.
NETWORK = ("/etc/resolv.conf", "/etc/pip.conf", "/etc/ssl/certs/ca-certificates.crt")
PASSED_ON = ("PIP_CERT", "PIP_INDEX_URL", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "FIRST_HOUR")
URL = "http://127.0.0.1:8350/"


def main() -> None:
    """Run what the arguments say."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, help="folder to make a Debian system in")
    parser.add_argument("--without", nargs="*", default=[], help="make targets to leave out: test")
    options = parser.parse_args()
    if options.root is not None:
        _on_another(options.root.resolve(), options.without)
    else:
        _follow(options.without)


def _on_another(root: Path, without: list[str]) -> None:
    if not (root / "etc" / "debian_version").is_file():
        subprocess.run(
            ["debootstrap", "--variant=minbase", f"--include={PACKAGES}", "bookworm", str(root)],
            check=True,
        )
    for path in filter(os.path.exists, NETWORK):
        shutil.copy(path, f"{root}{path}")
    home = root / "home" / "new"
    if home.exists():
        subprocess.run(["chroot", root, "userdel", "--remove", "new"], check=True)
    subprocess.run(["chroot", root, "useradd", "--create-home", "new"], check=True)
    checkout = home / "samewise"
    checkout.mkdir()
    tree = subprocess.run(
        ["git", "archive", "HEAD"], cwd=CHECKOUT, stdout=subprocess.PIPE, check=True
    )
    subprocess.run(["tar", "-x", "-C", str(checkout)], input=tree.stdout, check=True)
    subprocess.run(["chroot", root, "chown", "-R", "new:new", "/home/new"], check=True)
    known = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    env = {"HOME": "/home/new", "PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"} | known
    follow = ["python3", "/home/new/samewise/tools/clean_machine.py", "--without", *without]
    # In namespaces of their own, mounts and processes are gone when the last step has ended.
    mounts = f"mount -t proc proc {root}/proc && mount -t tmpfs tmpfs {root}/dev/shm"
    inside = shlex.join(["env", "-i", *(f"{k}={v}" for k, v in env.items()), *follow])
    script = f"{mounts} && exec chroot --userspec=new:new {root} {inside}"
    unshared = ["unshare", "--mount", "--pid", "--fork", "sh", "-c", script]
    sys.exit(subprocess.run(unshared).returncode)


def _follow(without: list[str]) -> None:
    """Each command and block of the README, in its order, then its make targets."""
    text = (CHECKOUT / "README.md").read_text(encoding="utf-8")
    own, work = CHECKOUT / "build" / "own", CHECKOUT / "build" / "empty"
    for folder in (own, work):
        shutil.rmtree(folder, ignore_errors=True)
    work.mkdir(parents=True)
    _run("an environment of one's own", [sys.executable, "-m", "venv", str(own)], CHECKOUT)
    os.environ["PATH"] = f"{own / 'bin'}{os.pathsep}{os.environ['PATH']}"
    for kind, code in _steps(text):
        if kind == "make":
            if code.split()[-1] not in without:
                _run(code, code.split(), CHECKOUT)
        elif kind == "install":
            _run(code, ["sh", "-e", "-c", code], CHECKOUT)
        elif kind == "serve":
            _serve(code, work)
        else:
            run = ["sh", "-e"] if kind == "sh" else ["python", "-"]
            _run(f"block of {kind}: {code.splitlines()[0]} …", run, work, code)


def _steps(text: str) -> Iterator[tuple[str, str]]:
    """What the README has one do: kind and code."""
    pattern = (
        r"^```(\w+)\n(.*?)^```|^ {4}(\S[^\n]*)$"
        r"|`(make [a-z-]+|pip install [^`]+|samewise serve [^`]+)`"
    )
    done = set()
    for found in re.finditer(pattern, text, flags=re.M | re.S):
        kind, block, line, inline = found.groups()
        code = block or line or inline
        if block is None:
            kind = "make" if code.startswith("make") else "install"
            kind = "serve" if code.startswith("samewise serve") else kind
        # `make demo-serve` ends with Ctrl-C; figures and films have their own machines.
        if code not in done and code not in ("make demo-serve", "make film", "make bench"):
            done.add(code)
            yield kind, code


def _run(what: str, command: list[str], folder: Path, code: str | None = None) -> None:
    print(f"=== {what}", flush=True)
    began = time.monotonic()
    done = subprocess.run(command, cwd=folder, input=code, text=True)
    print(f"=== {time.monotonic() - began:.0f} s, exit code {done.returncode}\n", flush=True)
    if done.returncode:
        sys.exit(f"The README cannot be followed: {what}")


def _serve(code: str, folder: Path) -> None:
    print(f"=== {code}", flush=True)
    server = subprocess.Popen(code.split(), cwd=folder)
    try:
        for _ in range(600):
            time.sleep(0.1)
            try:
                with urllib.request.urlopen(URL, timeout=5) as page:
                    print(f"=== {URL} answers with {len(page.read()):,} bytes\n", flush=True)
                    return
            except OSError:
                continue
        sys.exit(f"The README cannot be followed: {code} does not answer")
    finally:
        server.terminate()
        server.wait(timeout=60)


if __name__ == "__main__":
    main()
