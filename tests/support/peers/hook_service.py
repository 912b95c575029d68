"""Web services of an operator: for hooks, and one in a process of its own that says JSON."""

import json
import socket
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from support.peers.process import Process

Form = dict[str, str]
Answer = tuple[int, str]  # status and Location


class HookService:
    """Runs while it is entered; `answer(path, form)` decides, `asked` is what it was asked."""

    def __init__(
        self, answer: Callable[[str, Form], Answer] = lambda path, form: (200, "")
    ) -> None:
        self.asked: list[tuple[str, Form]] = []
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                pairs = parse_qs(body, keep_blank_values=True)
                form = {name: values[0] for name, values in pairs.items()}
                service.asked.append((self.path, form))
                status, location = answer(self.path, form)
                self.send_response(status)
                if location:
                    self.send_header("Location", location)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> "HookService":
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.shutdown()
        self._server.server_close()


class EndlessService:
    """Answers with a head that has no end, as fast as it is read; `sent` is whether it began."""

    def __init__(self) -> None:
        self.sent = False
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                asking, _ = self._listening.accept()
                with asking, suppress(OSError):
                    asking.recv(4096)
                    asking.sendall(b"HTTP/1.1 200 OK\r\n")
                    self.sent = True
                    while True:
                        asking.sendall(b"X: " + b"y" * 4000 + b"\r\n")

    def __enter__(self) -> "EndlessService":
        threading.Thread(target=self._serve, daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()


class JsonService(Process):
    """A script that prints `ready PORT`, then a line of JSON for what it takes.

    `port` is that port, `said` what the lines hold.
    """

    def __init__(self, folder: Path, script: str, *arguments: str) -> None:
        super().__init__(folder, [sys.executable, "-c", script, *arguments])
        self.port = ""

    def is_ready(self) -> bool:
        lines = self.output.splitlines(keepends=True)
        if lines and lines[0].endswith("\n"):
            self.port = lines[0].split()[1]
        return bool(self.port)

    @property
    def said(self) -> list[Any]:
        lines = self.output.splitlines(keepends=True)[1:]
        return [json.loads(line) for line in lines if line.endswith("\n")]
