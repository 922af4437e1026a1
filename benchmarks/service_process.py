"""`samewise serve` in a process of its own, on loopback."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Self


class ServiceProcess:
    """A service over a folder, until the block is left."""

    def __init__(self, folder: Path, *options: str) -> None:
        with socket.socket() as found:
            found.bind(("127.0.0.1", 0))
            port = found.getsockname()[1]
        self.folder, self.url = folder, f"http://127.0.0.1:{port}"
        code = "from samewise.cli import main; main()"
        self._process = subprocess.Popen(
            [sys.executable, "-c", code, "serve", str(folder), "--port", str(port), *options],
            stdout=subprocess.DEVNULL,
        )
        while not _answers(port):
            if self._process.poll() is not None:
                raise RuntimeError("samewise serve did not start; what it says is above.")
            time.sleep(0.05)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._process.terminate()
        self._process.wait()

    def memory(self) -> int:
        """Its memory in MB, without what is mapped from files."""
        for line in Path(f"/proc/{self._process.pid}/status").read_text().splitlines():
            if line.startswith("RssAnon:"):
                return int(line.split()[1]) // 1000
        return 0

    def cpu(self) -> float:
        """Seconds that its threads have worked, in user code and in the system."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def size(self, pattern: str) -> int:
        """Bytes of the files of that name, wherever they are."""
        total = 0
        for path in self.folder.rglob(pattern):
            try:
                total += path.stat().st_size if path.is_file() else 0
            except FileNotFoundError:
                # A snapshot that went meanwhile.
                continue
        return total


def _answers(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), 1):
            return True
    except OSError:
        return False
