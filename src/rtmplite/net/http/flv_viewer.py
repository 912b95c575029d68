"""A viewer's socket, once it is clear that it is one: fed like an RTMP player's.

Bytes made once for all go in by `put`, those of one turn of the loop leave together, and a socket
that does not take them is watched until it does.
"""

import logging
import socket
from collections.abc import Callable
from typing import Any, Final, Protocol

import gevent
from gevent.event import Event

from rtmplite.flv.framing import FirstFraming, Framing, framing_at
from rtmplite.live.streams import LiveStream, Player
from rtmplite.net.clock import now
from rtmplite.net.http.websocket import WebSocket
from rtmplite.net.read_budget import SLICE, ReadBudget
from rtmplite.net.tcp_traffic import traffic

log = logging.getLogger(__name__)

IOV_MAX: Final = 1024  # buffers per sendmsg, Linux's limit
LINGER: Final = 5.0  # s, for a viewer to read what is left when a stream has ended

_WATCH_READ, _WATCH_WRITE = 1, 2


class ViewerHost(Protocol):
    """What a viewer needs of its server; `FlvHttp` is one."""

    turns: ReadBudget

    def schedule(self, viewer: "FlvViewer") -> None:
        """Call `viewer.flush` when this turn of the loop ends."""

    def forget(self, viewer: "FlvViewer") -> None:
        """Its socket is closed."""


class PendingViewer:
    """A place in an audience, taken before there is a viewer, as nothing may be published yet.

    What comes meanwhile is kept for `hand_over`: nothing is missed, not even the first key frame
    of a stream that is fetched because of it.
    """

    output_size = 0

    def __init__(self, live: LiveStream, web: WebSocket | None) -> None:
        wrap = bytes if web is None else WebSocket.frame
        self._live, self._kept, self.arrived = live, list[bytes](), Event()
        self._framing = framing_at(live.timestamp, wrap) if live.kinds else FirstFraming(wrap)
        self._player = live.join(self, self._framing, self, now())

    def hand_over(self, viewer: "FlvViewer") -> None:
        """Let `viewer` sit here, and give it what it has missed."""
        self._player.outlet = self._player.viewer = viewer
        viewer.sit(self._live, self._player)
        for data in self._kept:
            viewer.put(data)

    def leave(self) -> None:
        """Give it up."""
        self._player.leave(now())

    def put(self, data: bytes) -> None:
        """Keep it: the viewer comes in this turn of the loop or the next."""
        self._kept.append(data)
        self.arrived.set()

    def abort(self, reason: str, now: float) -> None:
        """It is never too slow."""

    def published(self, now: float) -> None:
        """Wait for the first message."""

    def unpublished(self, now: float) -> None:
        """The viewer, if there will be one, finds nothing more."""


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
        self.traffic: tuple[int, int] | None = None
        self.on_shut: Callable[[], None] = lambda: None
        self._live: LiveStream | None = None
        self._player: Player | None = None
        self._first: FirstFraming | None = None
        self._http, self._socket, self._web = http, connected, web
        self._output: list[bytes | memoryview] = []
        self._open, self._ending, self._scheduled = True, False, False
        loop = gevent.get_hub().loop
        self._reader: Any = loop.io(connected.fileno(), _WATCH_READ)
        self._writer: Any = loop.io(connected.fileno(), _WATCH_WRITE)
        self._linger: Any = loop.timer(LINGER)
        self._reader.start(self._on_readable)

    def sit(self, live: LiveStream, player: Player) -> None:
        """Take a place."""
        self._live, self._player = live, player
        if isinstance(player.framing, FirstFraming):
            self._first = player.framing

    def put(self, data: bytes) -> None:
        """Send this when the turn ends; no bytes at all are the end: see `flv.framing`."""
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
        """Viewers come while somebody publishes and go with him."""

    def unpublished(self, now: float) -> None:
        """End with the stream."""
        self.end()

    def end(self) -> None:
        """Close after what is queued."""
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
        """Get the same bytes as all others, now that it is known which."""
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
        """Whether it may be read."""
        return self._open

    def read(self) -> None:
        """Hear what a viewer says: nothing but good-bye, by WebSocket also a ping."""
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
            reply, closed = self._web.receive(data)
            if reply and not self.output_size:  # who reads nothing is told nothing
                self.put(reply)
            if closed:
                self._web = None
                self.end()
