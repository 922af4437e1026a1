"""A service in a process of its own that can be killed, and what tests do with the page."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx

ROOT = Path(__file__).parents[2]
AXE = ROOT / "build" / "axe.min.js"


class Served:
    """`samewise serve` over a folder, always at the same port."""

    def __init__(self, folder, *options):
        with socket.socket() as found:
            found.bind(("127.0.0.1", 0))
            self.port = found.getsockname()[1]
        self.folder, self.options = folder, options
        self.url = f"http://127.0.0.1:{self.port}"
        self.start()

    def start(self):
        command = [sys.executable, "-m", "samewise.cli", "serve", str(self.folder)]
        self.process = subprocess.Popen(
            [*command, "--port", str(self.port), *self.options],
            stdout=subprocess.DEVNULL,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        end = time.monotonic() + 120
        while time.monotonic() < end:
            try:
                if httpx.get(f"{self.url}/readyz", trust_env=False).status_code == 200:
                    return
            except httpx.TransportError:
                assert self.process.poll() is None
                time.sleep(0.1)
        raise TimeoutError("the service did not start")

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def close(self):
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.kill()


def serious(browser):
    """What axe-core finds that keeps people from using the page."""
    browser.evaluate(AXE.read_text(encoding="utf-8") + "; true")
    return browser.evaluate(
        "axe.run(document, {resultTypes: ['violations']}).then(found => found.violations"
        ".filter(v => ['serious', 'critical'].includes(v.impact))"
        ".map(v => v.id + ': ' + v.nodes.map(n => n.html.slice(0, 120) + n.failureSummary"
        ".slice(0, 200)).join(' | ')))"
    )
