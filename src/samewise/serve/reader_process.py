"""Reader processes: what starts and watches them, and what runs in each.

They share the listening socket, so that the connections which wait are not lost with one of them.
Everything they need to know comes by a pipe, which ends when the writer does, and they with it.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

_LOG = logging.getLogger("samewise.serve")
_SHORT = 5.0
"""A reader that ends so soon is started again only after a second."""


@dataclass(frozen=True)
class ReaderTask:
    """What a reader is to do.

    Attributes
    ----------
    folder : str
        The folder of the service.
    writer : str
        The writer's socket.
    mail : str
        Where the writer takes letters.
    listening : int
        The descriptor of the listening socket.
    tokens : list of str
    read_only : bool
    encoder : str or None
        MODULE:FUNCTION that makes vectors of texts.
    events : str or None
        Address of the PostgreSQL database that has logs.
    """

    folder: str
    writer: str
    mail: str
    listening: int
    tokens: list[str]
    read_only: bool
    encoder: str | None
    events: str | None


class Readers:
    """Starts readers, and starts again those that end.

    Parameters
    ----------
    task : ReaderTask
    n : int
        How many.
    """

    def __init__(self, task: ReaderTask, n: int) -> None:
        self._task = task
        self._ends = threading.Event()
        self._running = [self._started() for _ in range(n)]
        self._thread = threading.Thread(target=self._watch, name="samewise-readers", daemon=True)
        self._thread.start()

    def _started(self) -> tuple[subprocess.Popen[bytes], float]:
        code = "from samewise.serve.reader_process import main; main()"
        process = subprocess.Popen(
            [sys.executable, "-c", code],
            stdin=subprocess.PIPE,
            pass_fds=[self._task.listening],
            # Ctrl-C is for the writer, which ends them.
            start_new_session=True,
        )
        assert process.stdin is not None
        with suppress(BrokenPipeError):
            process.stdin.write(json.dumps(asdict(self._task)).encode() + b"\n")
            process.stdin.flush()
        return process, time.monotonic()

    @property
    def pids(self) -> list[int]:
        """Their process numbers."""
        return [process.pid for process, _ in self._running]

    def _watch(self) -> None:
        while not self._ends.wait(0.2):
            for place, (process, since) in enumerate(self._running):
                if process.poll() is None:
                    continue
                _LOG.warning("a reader ended with %d; another is started", process.returncode)
                if time.monotonic() - since < _SHORT and self._ends.wait(1.0):
                    return
                self._running[place] = self._started()

    def stop(self) -> None:
        """End them all."""
        self._ends.set()
        self._thread.join()
        for process, _ in self._running:
            process.terminate()
        for process, _ in self._running:
            try:
                process.wait(10.0)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def serve_with_readers(
    service: Any,
    address: tuple[str, int],
    tokens: list[str],
    read_only: bool,
    encoder: str | None,
    n: int,
) -> None:
    """Serve until a signal comes: readers at the address, and this process as the writer.

    Parameters
    ----------
    service : Service
    address : tuple of str and int
    tokens : list of str
    read_only : bool
    encoder : str or None
        MODULE:FUNCTION that makes vectors of texts.
    n : int
        How many readers.
    """
    import uvicorn

    from samewise.serve.http_app import make_app
    from samewise.serve.http_guarding import Tokens
    from samewise.serve.reader_mail import Mailbox

    family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
    with (
        socket.create_server(address, family=family, backlog=2048) as listening,
        tempfile.TemporaryDirectory(prefix="samewise-") as private,
    ):
        mail = f"/{os.urandom(16).hex()}"
        path = str(Path(private) / "writer")
        folder = str(service.folder.absolute())
        task = ReaderTask(
            folder, path, mail, listening.fileno(), tokens, read_only, encoder, service.url
        )
        # uvicorn sends itself the signal again when it has ended; what follows is to be done, too.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        readers = Readers(task, n)
        app = make_app(service, Tokens(tokens, read_only), before_close=readers.stop)
        try:
            uvicorn.run(
                Mailbox(app, mail),
                uds=path,
                log_level="warning",
                access_log=False,
                timeout_graceful_shutdown=3,
            )
        finally:
            readers.stop()


def main() -> None:
    """Be a reader."""
    import httpx
    import uvicorn

    from samewise.serve.http_guarding import Tokens
    from samewise.serve.reader_app import FollowedService, ReaderApp
    from samewise.serve.reader_mail import ReaderMail
    from samewise.serve.text_function import text_function
    from samewise.serve.warming import compile_loops

    task = ReaderTask(**json.loads(sys.stdin.readline()))
    to_writer: dict[str, Any] = {"base_url": "http://writer", "trust_env": False}
    waiting = httpx.Timeout(None, connect=5.0)
    letters = httpx.Client(transport=httpx.HTTPTransport(uds=task.writer), timeout=5.0, **to_writer)
    passed = httpx.AsyncClient(
        transport=httpx.AsyncHTTPTransport(
            uds=task.writer, limits=httpx.Limits(max_connections=None, max_keepalive_connections=20)
        ),
        timeout=waiting,
        **to_writer,
    )
    mail = ReaderMail(letters, task.mail)
    encode = None if task.encoder is None else text_function(task.encoder)
    service = FollowedService(Path(task.folder), mail.keep, encode, task.events)
    compile_loops()
    service.open_all()
    app = ReaderApp(service, Tokens(task.tokens, task.read_only), passed, mail.observe)
    config = uvicorn.Config(app, log_level="warning", access_log=False, timeout_graceful_shutdown=3)
    server = uvicorn.Server(config)

    def end_with_writer() -> None:
        sys.stdin.read()
        server.should_exit = True
        time.sleep(5.0)
        os._exit(1)

    threading.Thread(target=end_with_writer, daemon=True).start()
    server.run(sockets=[socket.socket(fileno=task.listening)])
    service.close()
    # The thread that waits for the pipe holds standard input.
    os._exit(0)
