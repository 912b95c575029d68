"""Sockets whose bytes go through HTTP, for clients of RTMPT.

Own design: a client has one end of a pair of sockets, and uses it like a socket of TCP.  A greenlet
has the other end, and asks the server.  All requests of a tunnel go by one connection.  If the
server has closed it, the request is repeated by a new one.
"""

import socket as sockets
from contextlib import closing, suppress
from http.client import HTTPConnection, HTTPException
from typing import Final

import gevent
from gevent import socket

from rtmplite.errors import RemoteError
from rtmplite.net.clock import now
from rtmplite.rtmp.client import Target
from rtmplite.rtmp.tunnel_client import MOST, TunnelClient, TunnelRequest

CONTENT_TYPE: Final = "application/x-fcs"
MAX_ANSWER: Final = 16 * 1024 * 1024  # bytes


class HttpTunnel:
    """A tunnel to the server of `target`, which has opened it; `socket` is the client's end.

    Raises OSError if there is no server, RemoteError if it does not open one.
    """

    def __init__(self, target: Target, timeout: float) -> None:
        self._http = _Connection(target.host, target.port, timeout=timeout)
        self._tunnel = TunnelClient()
        try:
            self._http.connect()
            self._turn()
        except BaseException:
            self._http.close()
            raise
        self.socket, self._inside = socket.socketpair()
        self._greenlet = gevent.spawn(self._run)

    def join(self, timeout: float) -> None:
        """Wait until the server has heard the end, which a closed `socket` makes."""
        self._greenlet.join(timeout)

    def _run(self) -> None:
        with closing(self._inside), closing(self._http), suppress(RemoteError, OSError):
            while not self._tunnel.is_over:
                self._wait()
                self._pass_on(self._turn())

    def _wait(self) -> None:
        """Take the bytes of the client, until a request is due."""
        tunnel = self._tunnel
        while not tunnel.is_full:
            self._inside.settimeout(max(0.0, (tunnel.deadline or 0.0) - now()))
            try:
                data = self._inside.recv(MOST)
            except (TimeoutError, BlockingIOError):
                return
            except OSError:  # the client has not read all
                data = b""
            if not data:
                tunnel.close()
                return
            tunnel.write(data)

    def _pass_on(self, received: bytes) -> None:
        """Give the client the received bytes; wait while it does not read."""
        self._inside.settimeout(None)
        with suppress(OSError):  # it has gone, as the next `recv` tells
            self._inside.sendall(received)

    def _turn(self) -> bytes:
        """Send the request that is due, and take its answer."""
        request = self._tunnel.request(now())
        if request is None:
            return b""
        try:
            status, body = self._ask(request)
        except ConnectionError:  # closed between two requests, as after some time of silence
            self._http.close()
            status, body = self._ask(request)
        return self._tunnel.take(status, body, now())

    def _ask(self, request: TunnelRequest) -> tuple[int, bytes]:
        headers = {"Content-Type": CONTENT_TYPE, "User-Agent": "rtmplite"}
        try:
            self._http.request("POST", request.path, request.body, headers)
            answer = self._http.getresponse()
            return answer.status, answer.read(MAX_ANSWER)
        except ConnectionError:  # which may be an HTTPException as well
            raise
        except HTTPException as error:
            raise RemoteError(f"no answer by HTTP: {error!r}") from None


class _Connection(HTTPConnection):
    """The connection of the standard library, on gevent's sockets."""

    def connect(self) -> None:
        self.sock = socket.create_connection((self.host, self.port), self.timeout)
        self.sock.setsockopt(sockets.IPPROTO_TCP, sockets.TCP_NODELAY, 1)
