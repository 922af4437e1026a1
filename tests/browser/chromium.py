"""A headless Chromium, spoken to through a pipe: JSON messages, each ended by a zero byte."""

from __future__ import annotations

import base64
import contextlib
import fcntl
import json
import os
import select
import shutil
import subprocess
import sys
import time

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")

# Chromium reads from descriptor 3 and writes to 4.
_LAUNCH = "import os, sys; r, w, *c = sys.argv[1:]; os.dup2(int(r), 3); os.dup2(int(w), 4); "
_LAUNCH += "os.execv(c[0], c)"


def find():
    """The path of a Chromium, or None."""
    return next((path for path in map(shutil.which, NAMES) if path), None)


class Chromium:
    """One browser, and the page in its newest tab."""

    def __init__(self, path, profile):
        ours, theirs = self._pipes()
        options = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--disable-quic",
            "--no-first-run",
            "--hide-scrollbars",
            f"--user-data-dir={profile}",
            "--remote-debugging-pipe",
        ]
        command = [sys.executable, "-c", _LAUNCH, *map(str, theirs), path, *options]
        self._process = subprocess.Popen(
            command, pass_fds=theirs, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        for descriptor in theirs:
            os.close(descriptor)
        self._write, self._read = ours
        self._buffer, self._number, self._session = b"", 0, None
        self.events = []
        self.add_tab()

    def add_tab(self):
        """Open a tab before the others; what follows is about it."""
        self._session = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    @staticmethod
    def _pipes():
        """((write, read) of this process, (read, write) of Chromium), away from 3 and 4."""
        ends = []
        for descriptor in (*os.pipe(), *os.pipe()):
            ends.append(fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 10))
            os.close(descriptor)
        there_read, here_write, here_read, there_write = ends
        return (here_write, here_read), (there_read, there_write)

    def call(self, method, **params):
        """Send a command and wait for its result; what happens meanwhile goes to `events`."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self.events.append(answer)

    def _next(self, seconds=60):
        end = time.monotonic() + seconds
        while b"\0" not in self._buffer:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self._read], [], [], left)[0]:
                raise TimeoutError(f"Chromium said nothing for {seconds} s")
            chunk = os.read(self._read, 2**20)
            if not chunk:
                raise RuntimeError(f"Chromium ended with code {self._process.wait()}")
            self._buffer += chunk
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)

    def open(self, url, width=1200, height=900, dark=False, phone=False):
        """Go to a page, with a window and a color scheme; waits until it is loaded."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=2 if phone else 1,
            mobile=phone,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.events.clear()
        self.call("Page.navigate", url=url)
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self._next())

    def evaluate(self, expression):
        """The value of a JavaScript expression, promises awaited."""
        result = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in result:
            raise RuntimeError(result["exceptionDetails"]["text"])
        return result["result"].get("value")

    def wait_for(self, expression, seconds=30):
        """Wait until a JavaScript expression is true."""
        end = time.monotonic() + seconds
        while not self.evaluate(f"!!({expression})"):
            if time.monotonic() > end:
                raise TimeoutError(f"{expression} was not true for {seconds} s")
            time.sleep(0.05)

    def press(self, key, code=None, alt=False, control=False):
        """Press and release a key, as a person does."""
        modifiers = (1 if alt else 0) + (2 if control else 0)
        numbers = {"Enter": 13, "ArrowUp": 38, "ArrowDown": 40, "Tab": 9, "Escape": 27}
        one = {"key": key, "code": code or key, "modifiers": modifiers}
        one["windowsVirtualKeyCode"] = numbers.get(key, ord(key[0].upper()))
        if len(key) == 1 and not modifiers:
            one["text"] = key
        elif key == "Enter":
            one["text"] = "\r"
        self.call("Input.dispatchKeyEvent", type="keyDown", **one)
        one.pop("text", None)
        self.call("Input.dispatchKeyEvent", type="keyUp", **one)

    def screenshot(self, path, whole=True):
        """Write a PNG of the page, all of it or what the window shows."""
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(data["data"]))

    def complaints(self):
        """Errors and warnings of the console, and exceptions, since the page was opened."""
        found = []
        for event in self.events:
            method, params = event.get("method"), event.get("params", {})
            if method == "Runtime.exceptionThrown":
                found.append(params["exceptionDetails"]["text"])
            elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning"):
                found.append(str(params["args"]))
            elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
                found.append(params["entry"]["text"])
        return found

    def requests(self):
        """Addresses asked for since the page was opened, other than data in the page itself."""
        asked = [e["params"]["request"]["url"] for e in self.events if e.get("method") == _REQUEST]
        return [url for url in asked if not url.startswith("data:")]

    def close(self):
        """End the browser."""
        self._session = None
        with contextlib.suppress(OSError, RuntimeError, TimeoutError):
            self.call("Browser.close")
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._write)
        os.close(self._read)


_REQUEST = "Network.requestWillBeSent"
