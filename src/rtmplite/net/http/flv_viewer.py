"""The socket of a viewer by HTTP, which is fed like that of an RTMP player.

Own design: bytes made once for all viewers come by `put`, those of one turn of the loop leave
together.  A socket that does not take them all is watched until it does.
"""

import logging
import socket
from collections.abc import Callable
from typing import Any, Final, Protocol

import gevent
from gevent.event import Event

from rtmplite.flv.framing import FirstFraming, Framing, framing_at
from rtmplite.limits.rate_limit_key import rate_limit_key
from rtmplite.live.streams import LivePlayer, LiveStream
from rtmplite.net.clock import now
from rtmplite.net.http.websocket import WebSocket
from rtmplite.net.read_budget import SLICE, ReadBudget
from rtmplite.net.tcp_connections import traffic

log = logging.getLogger(__name__)

IOV_MAX: Final = 1024  # buffers per sendmsg, Linux's limit
LINGER: Final = 5.0  # s, for a viewer to read what is left when a stream has ended

_WATCH_READ, _WATCH_WRITE = 1, 2


class ViewerHost(Protocol):
    """The server of a viewer, as far as the viewer needs it; `FlvHttp` is one."""

    turns: ReadBudget

    def schedule(self, viewer: "FlvViewer") -> None:
        """Call `viewer.flush` when this turn of the loop ends."""

    def forget(self, viewer: "FlvViewer") -> None:
        """Remove a viewer whose socket is closed."""


class PendingViewer:
    """A player of a stream that has no viewer yet, as nothing may be published so far.

    What comes meanwhile is kept for `hand_over`, so that nothing is missed, not even the first key
    frame of a stream that is pulled because of this player.
    """

    output_size = 0

    def __init__(self, live: LiveStream, web: WebSocket | None) -> None:
        wrap = bytes if web is None else WebSocket.frame
        self._live, self._kept, self.arrived = live, list[bytes](), Event()
        self._framing = framing_at(live.timestamp, wrap) if live.kinds else FirstFraming(wrap)
        self._player = live.join(self, self._framing, self, now())

    def hand_over(self, viewer: "FlvViewer") -> None:
        """Hand the place over to `viewer`, together with the messages received so far."""
        self._player.outlet = self._player.viewer = viewer
        viewer.sit(self._live, self._player)
        for data in self._kept:
            viewer.put(data)

    def leave(self) -> None:
        """Give up the place."""
        self._player.leave(now())

    def put(self, data: bytes) -> None:
        """Keep bytes: the viewer comes in this turn of the loop or the next."""
        self._kept.append(data)
        self.arrived.set()

    def abort(self, reason: str, now: float) -> None:
        """Do nothing: `output_size` is 0, so this is never called."""

    def published(self, now: float) -> None:
        """Wait for the first message."""

    def unpublished(self, now: float) -> None:
        """Do nothing: the viewer, if one comes, finds the stream ended."""


class FlvViewer:
    """A viewer's socket: an `Outlet` of the stream, and its `Viewer`, which hears of the end.

    `address` is where the client is.  `on_shut` is called when the socket is closed, after
    `traffic` has been set to the bytes it has carried both ways, if the system counts them.
    """

    def __init__(
        self,
        http: ViewerHost,
        connected: socket.socket,
        web: WebSocket | None,
        address: tuple[str, int],
    ) -> None:
        self.output_size, self.address = 0, address
        self.host = rate_limit_key(address[0])
        self.traffic: tuple[int, int] | None = None
        self.on_shut: Callable[[], None] = lambda: None
        self._live: LiveStream | None = None
        self._player: LivePlayer | None = None
        self._first: FirstFraming | None = None
        self._http, self._socket, self._web = http, connected, web
        self._output: list[bytes | memoryview] = []
        self._open, self._ending, self._scheduled = True, False, False
        loop = gevent.get_hub().loop
        self._reader: Any = loop.io(connected.fileno(), _WATCH_READ)
        self._writer: Any = loop.io(connected.fileno(), _WATCH_WRITE)
        self._linger: Any = loop.timer(LINGER)
        self._reader.start(self._on_readable)

    def sit(self, live: LiveStream, player: LivePlayer) -> None:
        """Take the place of a `PendingViewer`."""
        self._live, self._player = live, player
        if isinstance(player.framing, FirstFraming):
            self._first = player.framing

    def put(self, data: bytes) -> None:
        """Send bytes when the turn ends; empty bytes mean the end: see `flv.framing`."""
        if not self._open or self._ending:
            return
        if not data:
            self.end()
            return
        if self._first is not None and self._first.settled is not None:
            self._share(self._first.settled)
        self._output.append(data)
        if self.output_size:
            self.output_size += len(data)
        elif not self._scheduled:
            self._scheduled = True
            self._http.schedule(self)

    def abort(self, reason: str, now: float) -> None:
        """Close at once."""
        log.info("a viewer is closed: %s", reason)
        self.shut()

    def published(self, now: float) -> None:
        """Do nothing: a viewer ends with the publication it has joined."""

    def unpublished(self, now: float) -> None:
        """End with the stream."""
        self.end()

    def end(self) -> None:
        """Close after the queue is sent."""
        if self._web is not None:
            self.put(self._web.close())
        self._ending = True
        self.flush()
        if self._open:
            self._linger.start(self.shut)

    def flush(self) -> None:
        """Send as much as the socket takes."""
        self._scheduled = False
        while self._open and self._output:
            try:
                sent = self._socket.sendmsg(self._output[:IOV_MAX])
            except BlockingIOError:
                break
            except OSError:
                self.shut()
                return
            self._drop(sent)
        if not self._open:
            return
        self.output_size = sum(map(len, self._output))
        if self._output:
            self._writer.start(self.flush)
        else:
            self._writer.stop()
            if self._ending:
                self.shut()

    def shut(self) -> None:
        """Close the socket, now."""
        if not self._open:
            return
        self._open = False
        self._output.clear()
        for watcher in (self._reader, self._writer, self._linger):
            watcher.stop()
            watcher.close()
        self.traffic = traffic(self._socket)
        self._socket.close()
        self._http.forget(self)
        if self._player is not None:
            self._player.leave(now())
        self.on_shut()

    def _share(self, framing: Framing) -> None:
        """Share the bytes of all other viewers, now that the first timestamp is known."""
        self._first = None
        if self._player is not None and self._live is not None:
            self._player.framing = framing
            self._live.rearrange()

    def _drop(self, sent: int) -> None:
        at = 0
        while at < len(self._output) and sent >= len(self._output[at]):
            sent -= len(self._output[at])
            at += 1
        rest = [memoryview(self._output[at])[sent:]] if sent else self._output[at : at + 1]
        self._output = [*rest, *self._output[at + 1 :]]

    def _on_readable(self) -> None:
        turns = self._http.turns
        if turns.spent < SLICE or turns.lets(self):
            self.read()

    @property
    def is_reading(self) -> bool:
        return self._open

    def read(self) -> None:
        """Read from a viewer: only the end of the connection matters, or a frame of WebSocket."""
        begun = now()
        self._read()
        self._http.turns.spent += now() - begun

    def _read(self) -> None:
        try:
            data = self._socket.recv(4096)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.shut()
        elif self._web is not None:
            reply, closed = self._web.receive(data, now())
            if reply and not self.output_size:  # a viewer that reads nothing is sent nothing
                self.put(reply)
            if closed:  # RFC 6455 §5.5.1 [tcp-is-closed] [server-closes-first]
                self._web = None
                self.end()
