"""The service as a process of its own, on loopback."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

PORT = 8350


@contextmanager
def service(folder: Path, patience: float = 600.0) -> Iterator[str]:
    """The address of a service over a folder; it ends with the block."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "samewise.cli", "serve", str(folder), "--port", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        _wait(url, process, patience)
        yield url
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def free_port() -> int:
    """The usual port, or another if it is taken."""
    for port in (PORT, 0):
        with socket.socket() as found:
            # As the service will: a port that was left a moment ago can be had.
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                found.bind(("127.0.0.1", port))
            except OSError:
                continue
            return int(found.getsockname()[1])
    raise OSError("There is no free port on 127.0.0.1.")


def _wait(url: str, process: subprocess.Popen[bytes], patience: float) -> None:
    end = time.monotonic() + patience
    while time.monotonic() < end:
        if process.poll() is not None:
            raise RuntimeError(f"The service ended with the code {process.returncode}.")
        try:
            if httpx.get(f"{url}/readyz", trust_env=False, timeout=5).status_code == 200:
                return
        except httpx.TransportError:
            # It does not listen yet: the first start compiles, for minutes on a slow machine.
            pass
        time.sleep(0.1)
    raise RuntimeError(f"The service did not answer within {patience:g} seconds.")
