"""A web service of the suite's own, to which a target posts.

Own design: one listener serves all cases, each at a path of its own, so that what comes late for
one case disturbs no other.  A path of no case is answered by 410, which ends what is posted there.
"""

import os
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from http.client import HTTPException, HTTPMessage, parse_headers
from typing import Final

from gevent import socket
from gevent.pool import Pool
from gevent.queue import Queue
from gevent.server import StreamServer

from rtclab.conform.case import NotApplicable
from rtclab.conform.checks import at_most

GONE, TAKEN = 410, 204
_MOST: Final = 1 << 20  # octets of a body
_MOST_LINE: Final = 8192
_MOST_AT_ONCE: Final = 20
_SECONDS: Final = 10.0  # for a request to come


@dataclass(frozen=True, slots=True)
class Posted:
    """One request: its path, its header fields and its body."""

    path: str
    headers: HTTPMessage
    body: bytes


class PostedTo:
    """A path of one case; `answers` are the statuses to come, each with its Location or empty.

    Without one a post is taken, by 204.  Paths below it are the case's as well.
    """

    def __init__(self, base: str, close: Callable[["PostedTo"], object]) -> None:
        self._close = close
        self.path = f"/conform-{os.urandom(6).hex()}"
        self.url = f"{base}{self.path}"
        self.answers: deque[tuple[int, str]] = deque()
        self.posts: Queue[Posted] = Queue()

    def next(self) -> Posted:
        """The next post, which a case waits for as long as it may run."""
        post: Posted = self.posts.get()
        return post

    def close(self) -> None:
        """Take nothing more."""
        self._close(self)


class PostService:
    """The listener at `place`, which begins with the first path."""

    def __init__(self, place: tuple[str, int]) -> None:
        self._place = place
        self._server: StreamServer | None = None
        self._paths: dict[str, PostedTo] = {}

    def open(self) -> PostedTo:
        """Give a case a path.  NotApplicable where no listener can be opened."""
        host, port = self._place
        if self._server is None:
            family = socket.AF_INET6 if ":" in host else socket.AF_INET
            listener = socket.socket(family, socket.SOCK_STREAM)
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                listener.bind(self._place)
            except OSError as error:
                listener.close()
                why = error.strerror or str(error)
                raise NotApplicable(f"no service opens at {host} port {port}: {why}") from None
            listener.listen(_MOST_AT_ONCE)
            self._server = StreamServer(listener, self._serve, spawn=Pool(_MOST_AT_ONCE))
            self._server.start()
        base = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
        path = PostedTo(base, self._closed)
        self._paths[path.path] = path
        return path

    def stop(self) -> None:
        """End the listener."""
        if self._server is not None:
            self._server.stop(0)
            self._server = None

    def _closed(self, path: PostedTo) -> None:
        self._paths.pop(path.path, None)

    def _serve(self, connected: socket.socket, address: object) -> None:
        try:
            with at_most(_SECONDS), connected.makefile("rb") as file:
                words = file.readline(_MOST_LINE).decode("latin-1").split()
                headers = parse_headers(file)
                size = headers.get("Content-Length", "0")
                body = file.read(min(int(size), _MOST) if size.isdecimal() else 0)
                status, where = self._taken(Posted(words[1], headers, body))
                lines = [f"HTTP/1.1 {status} Conform", "Content-Length: 0", "Connection: close"]
                lines += [f"Location: {where}"] * bool(where)
                connected.sendall("\r\n".join([*lines, "", ""]).encode())
        except (OSError, HTTPException, IndexError):
            pass  # no request; nothing is judged by it
        finally:
            connected.close()

    def _taken(self, post: Posted) -> tuple[int, str]:
        path = self._paths.get("/" + post.path.split("/")[1] if post.path[:1] == "/" else "")
        if path is None:
            return GONE, ""
        path.posts.put(post)
        return path.answers.popleft() if path.answers else (TAKEN, "")
