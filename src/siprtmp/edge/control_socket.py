"""The operator's socket: a running gateway tells what goes on, and ends what it is told to end.

Own design: `control.sock` in the folder of `--state`.  Whoever may open it is the operator: the
folder is for its owner alone and the socket has mode 0600, so nobody is asked who he is.  A
client says one line of JSON, has one line back, and is hung up on:

    {"do": "list"}           {"calls": [...], "registrations": [...], "streams": [...]}
    {"do": "end", "id": ID}  {"ended": ["call"]}, or {"error": "no id begins with ..."}
"""

import json
import logging
import os
import socket
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
from siprtmp.operation.arguments import ConfigError

log: Final = logging.getLogger(__name__)

NAME: Final = "control.sock"
MAX_REQUEST: Final = 4096  # bytes
MAX_CLIENTS: Final = 8
PATIENCE: Final = 10.0  # s for a request to come, and for the answer to be read
ROWS: Final = 50  # between two pauses, in which packets go on


class Control:
    """Serves one socket in `folder`, which is ours alone.  Own design: see the module.

    What is found there was left by a gateway that is gone.  Raises ConfigError where no socket can
    be made.
    """

    def __init__(self, folder: Path, overview: Overview) -> None:
        self._path, self._overview = folder / NAME, overview
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
        """Take the socket away.  Own design."""
        self._server.stop(timeout=0.2)
        with suppress(OSError):
            self._path.unlink(missing_ok=True)

    def _serve(self, client: Any, address: object) -> None:
        """One request and its answer; whoever does not read it is left."""
        try:
            with suppress(gevent.Timeout), gevent.Timeout(PATIENCE):
                reply = self._answer(_read_line(client))
                client.sendall(reply + b"\n")
        except OSError:
            return  # hung up
        except Exception:
            log.exception("control socket")

    def _answer(self, line: bytes) -> bytes:
        try:
            request = json.loads(line)
            wish, text = request["do"], request.get("id", "")
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return _dump({"error": "one line of JSON is wanted"})
        if wish == "list":
            return self._list()
        if wish != "end" or not isinstance(text, str):
            return _dump({"error": "do what? list, or end an id"})
        try:
            ended = self._overview.end(text, monotonic())
        except LocalError as error:
            return _dump({"error": str(error)})
        self._overview.wake()
        return _dump({"ended": ended})

    def _list(self) -> bytes:
        """All rows, a few at a time: ten calls must not wait for a list of a thousand."""
        rows: dict[str, list[bytes]] = {kind: [] for kind in KINDS}
        for number, (kind, row) in enumerate(self._overview.rows(monotonic()), 1):
            rows[kind].append(_dump(row))
            if number % ROWS == 0:
                gevent.sleep(0.001)
        parts = (b'"%s": [%s]' % (kind.encode(), b", ".join(rows[kind])) for kind in KINDS)
        return b"{" + b", ".join(parts) + b"}"


def _read_line(client: Any) -> bytes:
    """A line, or as much as there may be of one."""
    data = b""
    while b"\n" not in data and len(data) < MAX_REQUEST:
        piece = client.recv(MAX_REQUEST - len(data))
        if not piece:
            break
        data += piece
    return data.partition(b"\n")[0]


def _dump(value: Row) -> bytes:
    return json.dumps(value).encode("ascii")
