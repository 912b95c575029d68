"""The operator's socket: it lists calls, registrations and streams, and ends or mixes one.

Own design: `control.sock` in the folder of `--state`.  The folder is its owner's alone and the
socket has mode 0600.  So a process that can open it acts for the operator, and no password is
asked.  A client sends one line of JSON, receives one line, and is disconnected:

    {"do": "list"}           {"calls": [...], "registrations": [...], "streams": [...]}
    {"do": "end", "id": ID}  {"ended": ["call"]}, or {"error": "no id begins with ..."}
    {"do": "mix", "id": ID}, and "unmix"  {"mixed": "mixed/CONTROL_SOCKET"}, or {"unmixed": ...}
"""

import json
import logging
import os
import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import gevent
import gevent.socket
from gevent.pool import Pool
from gevent.server import StreamServer

from p2psip.errors import LocalError
from p2psip.net.clock import monotonic
from siprtmp.edge.overview import KINDS, Overview, Row
from siprtmp.edge.state_folder import CONTROL_SOCKET
from siprtmp.edge.whole import WholeOverview
from siprtmp.operation.arguments import ConfigError

log: Final = logging.getLogger(__name__)

MAX_REQUEST: Final = 4096  # bytes
MAX_CLIENTS: Final = 8
TIMEOUT: Final = 10.0  # s for a request to come, and for the answer to be read
ROWS: Final = 50  # between two pauses, in which packets go on


class Control:
    """Serves the socket in `folder`, which no other process may use.

    A socket that is found there was left by a gateway that has ended.  Raises ConfigError where no
    socket can be made.
    """

    def __init__(self, folder: Path, overview: Overview | WholeOverview) -> None:
        self._path, self._overview = folder / CONTROL_SOCKET, overview
        listener = gevent.socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        mask = os.umask(0o177)
        try:
            self._path.unlink(missing_ok=True)
            listener.bind(str(self._path))
            listener.listen(MAX_CLIENTS)
        except OSError as error:
            listener.close()
            raise ConfigError(f"--state {self._path}: {error.strerror or error}") from None
        finally:
            os.umask(mask)
        self._server = StreamServer(listener, self._serve, spawn=Pool(MAX_CLIENTS))
        self._server.start()

    def stop(self) -> None:
        self._server.stop(timeout=0.2)
        with suppress(OSError):
            self._path.unlink(missing_ok=True)

    def _serve(self, client: Any, address: object) -> None:
        """Answer one request; a client that does not read the answer in time is dropped."""
        try:
            with suppress(gevent.Timeout), gevent.Timeout(TIMEOUT):
                reply = self._answer(_read_line(client))
                client.sendall(reply + b"\n")
        except OSError:
            return  # hung up
        except Exception:
            log.exception("control socket")

    def _answer(self, line: bytes) -> bytes:
        try:
            request = json.loads(line)
            action, text = request["do"], request.get("id", "")
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return _dump({"error": "one line of JSON is wanted"})
        if action == "list":
            return self._list()
        if not isinstance(action, str) or action not in _ACTIONS or not isinstance(text, str):
            return _dump({"error": f"do what? list, or {', '.join(_ACTIONS)} an id"})
        try:
            reply = _ACTIONS[action](self._overview, text, monotonic())
        except LocalError as error:
            return _dump({"error": str(error)})
        self._overview.wake()
        return _dump(reply)

    def _list(self) -> bytes:
        """All rows, with pauses in which media goes on: a list of a thousand calls takes long."""
        rows: dict[str, list[bytes]] = {kind: [] for kind in KINDS}
        for number, (kind, row) in enumerate(self._overview.rows(monotonic()), 1):
            rows[kind].append(_dump(row))
            if number % ROWS == 0:
                gevent.sleep(0.001)
        parts = (b'"%s": [%s]' % (kind.encode(), b", ".join(rows[kind])) for kind in KINDS)
        return b"{" + b", ".join(parts) + b"}"


def _read_line(client: Any) -> bytes:
    """The first line, or the first `MAX_REQUEST` bytes without a line end."""
    data = b""
    while b"\n" not in data and len(data) < MAX_REQUEST:
        piece = client.recv(MAX_REQUEST - len(data))
        if not piece:
            break
        data += piece
    return data.partition(b"\n")[0]


def _dump(value: Row) -> bytes:
    return json.dumps(value).encode("ascii")


_ACTIONS: Final[Mapping[str, Callable[[Overview | WholeOverview, str, float], Row]]] = {
    "end": lambda overview, text, now: {"ended": overview.end(text, now)},
    "mix": lambda overview, text, now: {"mixed": overview.mix(text, now)},
    "unmix": lambda overview, text, now: {"unmixed": overview.unmix(text, now)},
}
