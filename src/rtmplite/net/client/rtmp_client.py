"""An RTMP client whose calls wait for the server, and let other greenlets run.

client = RtmpClient.connect("rtmp://127.0.0.1/live")
stream = client.create_stream()
stream.publish("demo")
stream.write(MessageType.AUDIO, 0, tag_body)
client.close()
"""

import os
import ssl
from collections.abc import Callable
from functools import partial
from typing import Final

import gevent
from gevent import socket
from gevent.lock import BoundedSemaphore

from rtmplite.amf.values import Value
from rtmplite.net.client.client import TIMEOUT, Client, established
from rtmplite.net.client.http_tunnel import HttpTunnel
from rtmplite.net.clock import now
from rtmplite.net.tls import CLOSED_UNHEARD, Tls, client_context, explain, mistaken
from rtmplite.net.usage import in_words
from rtmplite.rtmp.client import ClientConnection, Target

READ_SIZE: Final = 65536
FAREWELL: Final = 2.0  # s for the end of a tunnel to arrive


class RtmpClient(Client):
    """One connection by RTMP, with TLS or without, or in a `tunnel`; make it with `connect`."""

    _machine: ClientConnection

    def __init__(
        self,
        machine: ClientConnection,
        connected: socket.socket,
        tls: Tls | None = None,
        tunnel: HttpTunnel | None = None,
    ) -> None:
        super().__init__(machine)
        self._socket, self._tls, self._tunnel = connected, tls, tunnel
        self._sending = BoundedSemaphore()
        self._is_heard = False
        self._greenlet = gevent.spawn(self._run)

    @classmethod
    def connect(
        cls,
        url: str | Target,
        *args: Value,
        timeout: float = TIMEOUT,
        properties: dict[str, Value] | None = None,
        handshake: str = "simple",
        on_call: Callable[[str, tuple[Value, ...]], None] | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> "RtmpClient":
        """Connect to an application: the whole path of `url`, or a `Target`.

        `args` follow the command object, `properties` go into it; `handshake` is "simple" or
        "digest".  For an rtmps URL the server's certificate has to be one that the system trusts,
        unless `tls` says otherwise: see `tls.client_context`.  A server that sends us
        elsewhere is obeyed a few times.  Raises RemoteError if the server refuses, OSError if
        there is none, TimeoutError after `timeout` seconds.
        """
        target = url if isinstance(url, Target) else Target.parse(url, stream=False)
        open_to = partial(
            cls.open,
            args=args,
            timeout=timeout,
            properties=properties,
            digest=handshake == "digest",
            tls=tls,
        )
        return established(open_to, target, timeout, on_call)

    @classmethod
    def open(
        cls,
        target: Target,
        *,
        args: tuple[Value, ...] = (),
        timeout: float = TIMEOUT,
        properties: dict[str, Value] | None = None,
        digest: bool = False,
        tls: ssl.SSLContext | None = None,
    ) -> "RtmpClient":
        """Reach a server and begin to connect; `connect` waits for its answer as well."""
        machine = ClientConnection(
            target, os.urandom, now(), args=args, properties=properties, digest=digest
        )
        if target.by_http:
            tunnel = HttpTunnel(target, timeout)
            return cls(machine, tunnel.socket, tunnel=tunnel)
        connected = socket.create_connection((target.host, target.port), timeout)
        connected.settimeout(None)
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        secure = Tls(tls or client_context(), target.host) if target.secure else None
        return cls(machine, connected, secure)

    def close(self) -> None:
        """End the connection; a second time does nothing."""
        self._machine.close(now())
        if self._greenlet is not gevent.getcurrent():
            self._greenlet.kill()
        self._socket.close()
        if self._tunnel is not None:
            self._tunnel.join(FAREWELL)
        self._finish()

    def flush(self) -> None:
        """Send the queue; waits while the server takes nothing."""
        with self._sending:
            self._drain()

    def _drain(self) -> None:
        try:
            while output := self._output():
                self._socket.sendall(output)
        except OSError as error:
            self._machine.transport.connection_lost(now(), in_words(error))
            self._finish()

    def _output(self) -> bytes:
        output = b"".join(self._machine.transport.take_output())
        if self._tls is None:
            return output
        if output:
            self._tls.send(output)
        return self._tls.take_output()

    def _run(self) -> None:
        self._drain()
        while not self.closed:
            deadline = self._machine.deadline
            wait = None if deadline is None else max(0.0, deadline - now())
            try:
                socket.wait_read(self._socket.fileno(), wait, _LateError())
                self._take(self._socket.recv(READ_SIZE))
            except _LateError:
                self._machine.tick(now())
            except ssl.SSLError as error:
                self._machine.transport.connection_lost(now(), explain(error))
            except OSError as error:
                self._machine.transport.connection_lost(now(), in_words(error))
            self._answer()
        self._socket.close()
        self._finish()

    def _take(self, data: bytes) -> None:
        ended = not data
        if not self._is_heard and self._tls is None and (reason := mistaken(data)):
            self._machine.transport.connection_lost(now(), reason)
        self._is_heard = self._is_heard or bool(data)
        if self._tls is not None:
            data = self._tls.receive(data)
            ended = ended or self._tls.ended
        if data:
            self._machine.transport.receive(data, now())
        if ended:
            self._machine.transport.connection_lost(now(), self._end)
        self._hear()

    @property
    def _end(self) -> str:
        """The reason to give when the server closes the connection without one."""
        if self._tls is not None:
            return self._tls.end
        return "closed by the peer" if self._is_heard else CLOSED_UNHEARD

    def _answer(self) -> None:
        """Send the machine's replies; a greenlet that is sending already takes them along."""
        if self._sending.acquire(blocking=False):
            try:
                self._drain()
            finally:
                self._sending.release()


class _LateError(Exception):
    """The deadline of the machine has come before anything to read."""
