"""Follow the README, word for word, on a machine that has Python and make and nothing else.

``python tools/clean_machine.py --root build/machine`` makes one, by Debian's debootstrap and as
root: a folder with a system of its own, a user with an empty home, and a copy of the last commit.
Without ``--root`` the README is followed on this machine. The script needs no packages.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]
PACKAGES = "python3,python3-venv,make,ca-certificates"
# How this machine reaches PyPI; the other one has to reach it too.
NETWORK = ("/etc/resolv.conf", "/etc/pip.conf", "/etc/ssl/certs/ca-certificates.crt")
PASSED_ON = ("PIP_CERT", "PIP_INDEX_URL", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "FIRST_HOUR")
# Waits for a service, and looks at its page.
ASK = """
import time, urllib.request
for _ in range(3000):
    try:
        page = urllib.request.urlopen("http://127.0.0.1:8350/", timeout=5).read()
        break
    except OSError:
        time.sleep(0.1)
assert b"samewise" in page
"""


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
    """Each command and block of the README, in its order, in one shell."""
    text = (CHECKOUT / "README.md").read_text(encoding="utf-8")
    # What is installed stands where a user of the checkout would make it.
    shutil.rmtree(CHECKOUT / "env", ignore_errors=True)
    with tempfile.TemporaryDirectory() as empty:
        script = "\n".join(_lines(text, empty, without))
        sys.exit(subprocess.run(["sh", "-e", "-c", script], cwd=CHECKOUT).returncode)


def _lines(text: str, empty: str, without: list[str]) -> Iterator[str]:
    pattern = (
        r"^```(\w+)\n(.*?)^```|^ {4}(\S[^\n]*)$"
        r"|`(make [a-z-]+|pip install [^`]+|samewise serve [^`]+)`"
    )
    done = {f"make {target}" for target in ("demo-serve", "film", "bench", *without)}
    for found in re.finditer(pattern, text, flags=re.M | re.S):
        kind, block, line, inline = found.groups()
        code = block or line or inline
        if code in done:
            continue
        done.add(code)
        yield f"echo; echo {shlex.quote('=== ' + code.splitlines()[0])}; date"
        if kind == "sh":
            yield f"cd {empty}\n{code}"
        elif kind == "python":
            yield f"cd {empty}\npython - <<'END'\n{code}END"
        elif code.startswith("samewise serve"):
            yield f"cd {empty}\n{code} &\npython - <<'END'\n{ASK}END\nkill $!"
        else:
            yield f"cd {CHECKOUT}\n{code}"
    yield "echo; echo '=== done'; date"


if __name__ == "__main__":
    main()
