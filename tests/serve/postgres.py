"""A PostgreSQL server in a temporary folder; tests are skipped where it is not installed."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

import pytest


def binaries() -> Path | None:
    """The folder of initdb and postgres; Debian keeps it out of the path."""
    found = shutil.which("initdb")
    if found:
        return Path(found).resolve().parent
    places = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return places[-1].parent if places else None


class Server:
    """A server on loopback, which may be killed and started again."""

    def __init__(self) -> None:
        self._bin = binaries()
        if self._bin is None:
            pytest.skip("PostgreSQL's server is not installed (Debian: apt-get install postgresql)")
        pytest.importorskip("psycopg")
        # initdb refuses root.
        self._as: list[str] = []
        if os.name == "posix" and os.geteuid() == 0:
            if not shutil.which("runuser") or _fails(["id", "postgres"]):
                pytest.skip("PostgreSQL does not run as root, and there is no user postgres")
            self._as = ["runuser", "-u", "postgres", "--"]
        self.folder = Path(tempfile.mkdtemp(prefix="samewise-pg-", dir="/tmp"))
        self.folder.chmod(0o777)
        self._data = self.folder / "data"
        self._run("initdb", "-D", self._data, "-A", "trust", "-U", "samewise", "--no-sync")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]
        self.url = f"postgresql://samewise@127.0.0.1:{self._port}/postgres"
        self.start()

    def _run(self, program: str, *options: object) -> None:
        assert self._bin is not None
        command = [*self._as, str(self._bin / program), *map(str, options)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=self.folder)

    def start(self) -> None:
        """Start it, and wait until it answers."""
        options = f"-p {self._port} -c listen_addresses=127.0.0.1 -c unix_socket_directories=''"
        log = self.folder / "log"
        self._run("pg_ctl", "-D", self._data, "-w", "-l", log, "-o", options, "start")

    def stop(self, how: str = "immediate") -> None:
        """Stop it; "immediate" leaves all to the recovery of the next start, as a crash does."""
        self._run("pg_ctl", "-D", self._data, "-m", how, "stop")

    def remove(self) -> None:
        """Stop it and delete its files."""
        subprocess.run(
            [*self._as, str(self._bin / "pg_ctl"), "-D", str(self._data), "-m", "fast", "stop"],
            check=False,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=self.folder,
        )
        shutil.rmtree(self.folder, ignore_errors=True)


def _fails(command: list[str]) -> bool:
    return subprocess.run(command, capture_output=True, check=False).returncode != 0
