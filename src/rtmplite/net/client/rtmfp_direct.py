"""Streams between clients by RTMFP: `RtmfpClient` uses these to play and publish directly."""

from collections.abc import Callable
from typing import Final

from rtmplite.errors import RemoteError
from rtmplite.live.streams import LiveStream
from rtmplite.net.client.client import Client, ClientStream
from rtmplite.net.clock import now
from rtmplite.rtmfp.p2p.direct import FAILED, SUCCESS, Subscription
from rtmplite.rtmfp.p2p.peers import Peers

REACH_TIMEOUT: Final = 6.0  # s to reach a peer: its hello is sent three times in that time


class UnreachableError(RemoteError):
    """The peer cannot be reached."""


class DirectClient(Client):
    """Plays one stream from a peer; it is closed when the stream is over."""

    _machine: Subscription

    def __init__(self, machine: Subscription, peers: Peers, flush: Callable[[], None]) -> None:
        super().__init__(machine)
        self._peers, self._flush = peers, flush
        self._stream = self._streams[machine.stream_id] = ClientStream(
            self, machine, machine.stream_id
        )

    def begin(self, name: str, timeout: float, reach_timeout: float) -> ClientStream:
        """Play, if the peer is reached within `reach_timeout`; errors as those of `play_from`."""
        self.flush()
        try:
            if not self._is_reached(reach_timeout):
                raise UnreachableError("the peer cannot be reached", FAILED)
            self._stream.play(name, timeout)
        except BaseException:
            self.close()
            raise
        return self._stream

    def _is_reached(self, reach_timeout: float) -> bool:
        information = self._stream.status(reach_timeout)
        return information is not None and information.get("code") == SUCCESS

    def hear(self) -> None:
        """Pass events on, as `Client` does; `RtmfpClient` calls it."""
        self._hear()
        if self.closed:
            self._finish()

    def flush(self) -> None:
        """Send the queue."""
        self._flush()

    def close(self) -> None:
        """Play no more; a second time does nothing."""
        self._peers.give_up(self._machine, now())
        self._flush()
        self.hear()


class DirectPublishing:
    """A stream that other clients play from this one; `write` waits for the slowest."""

    def __init__(self, peers: Peers, live: LiveStream, pace: Callable[[], None]) -> None:
        self._peers, self._live, self._pace = peers, live, pace

    @property
    def players(self) -> int:
        """The number of clients that play it."""
        return self._live.players

    def write(self, type_id: int, timestamp: int, payload: bytes) -> None:
        """Send one message of type 8, 9 or 18 to all players, `timestamp` in ms."""
        self._live.write(type_id, timestamp, payload, now())
        self._pace()

    def delete(self) -> None:
        """Publish it no more, and tell the players."""
        self._live.end(now())
        self._pace()
