"""An RTMFP client whose calls wait for the server, and let other greenlets run.

client = RtmfpClient.connect("rtmfp://127.0.0.1/live")
stream = client.create_stream()
stream.play("demo")
message = stream.read()
client.close()
"""

import ssl
from collections.abc import Callable
from functools import partial
from typing import Final

import gevent
from gevent.event import Event

from rtmplite.amf.values import Value
from rtmplite.errors import RemoteError
from rtmplite.live.streams import LiveStream
from rtmplite.net.client.client import CLOSED, TIMEOUT, Client, ClientStream, established, place
from rtmplite.net.client.dialer import dial
from rtmplite.net.client.rtmp_client import RtmpClient
from rtmplite.net.clock import now
from rtmplite.net.rtmfp_port import RtmfpPort
from rtmplite.rtmfp.netconnection.client import RtmfpClientConnection
from rtmplite.rtmfp.netconnection.connection import FlowTransport
from rtmplite.rtmfp.netconnection.media_flows import LIVE, Lifetimes
from rtmplite.rtmfp.netconnection.messages import RELAY_COMMAND
from rtmplite.rtmfp.p2p.direct import FAILED, SUCCESS, MayPlay, Subscription
from rtmplite.rtmfp.p2p.peers import Peers
from rtmplite.rtmp.client import Target
from rtmplite.rtmp.message_transport import text

BACKLOG: Final = 256 * 1024  # bytes that have not been acknowledged, before `write` waits
FAREWELL: Final = 2.0  # s for the last messages to arrive, media apart
LOOK: Final = 0.01  # s between looks whether they have

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


class RtmfpClient(Client):
    """One connection by RTMFP, on a port of its own; make it with `connect`.

    Other clients ask for this one by its `peer_id`: RFC 7425 §4.3.2.  `may_play(peer_id, name)`
    decides which of them may play what `publish_direct` publishes; by default all may.
    """

    _machine: RtmfpClientConnection

    def __init__(
        self, machine: RtmfpClientConnection, port: RtmfpPort, peers: Peers, peer_id: bytes
    ) -> None:
        super().__init__(machine)
        self.peer_id = peer_id
        self._port, self._peers = port, peers
        self._direct: list[DirectClient] = []
        self._is_closed = self._heard_end = False
        self._news = Event()
        port.on_turn = self._news.set
        self._greenlet = gevent.spawn(self._run)

    @classmethod
    def connect(
        cls,
        url: str | Target,
        *args: Value,
        timeout: float = TIMEOUT,
        properties: dict[str, Value] | None = None,
        lifetimes: Lifetimes = LIVE,
        on_call: Callable[[str, tuple[Value, ...]], None] | None = None,
    ) -> "RtmfpClient":
        """Connect to an application: the whole path of `url`, or a `Target`.

        `args` follow the command object, `properties` go into it; what is published is worth
        sending for `lifetimes`.  A server that sends us elsewhere is obeyed a few times.  Raises
        RemoteError if the server refuses, OSError if there is none, TimeoutError after `timeout`
        seconds.
        """
        target = url if isinstance(url, Target) else Target.parse(url, stream=False)
        open_to = partial(cls.open, args=args, properties=properties, lifetimes=lifetimes)
        return established(open_to, target, timeout, on_call)

    @classmethod
    def open(
        cls,
        target: Target,
        *,
        args: tuple[Value, ...] = (),
        properties: dict[str, Value] | None = None,
        lifetimes: Lifetimes = LIVE,
    ) -> "RtmfpClient":
        """Begin to connect; `connect` waits for the server's answer as well."""
        machine = RtmfpClientConnection(target, now(), args=args, properties=properties)
        machine.transport.lifetimes = lifetimes
        port, peers, peer_id = dial(machine)
        peers.lifetimes = lifetimes
        return cls(machine, port, peers, peer_id)

    def close(self) -> None:
        """End the connection when all output has arrived.  Idempotent.

        With it all ends that is between us and other clients; without it that goes on, even if
        the server is gone.  Raises RemoteError if some of what was published never arrived, which
        is certain when nothing has been acknowledged for a while.
        """
        if self._is_closed:
            return
        senders = self._end(is_patient=True)
        reason = next((each.cut_short for each in senders if each.cut_short), "")
        if reason:
            raise RemoteError(f"{place(self.target)}: not all has arrived: {reason}", CLOSED)

    def leave(self) -> None:
        """End the connection soon, without waiting until all output has arrived."""
        self._end(is_patient=False)

    def _end(self, *, is_patient: bool) -> list[FlowTransport]:
        """Close it and its sessions with peers; return them all."""
        peers = [stream for peer in self._peers.sessions for stream in peer.streams]
        senders: list[FlowTransport] = [
            self._machine.transport,
            *(each.transport for each in peers),
        ]
        for each in (self._machine, *peers):
            each.close(now())
        if self._greenlet is not gevent.getcurrent():
            self._greenlet.kill()
        end = now() + FAREWELL
        try:
            while self._port.connections and (
                now() < end or (is_patient and any(each.holds_media for each in senders))
            ):
                gevent.sleep(LOOK)
        finally:
            self._is_closed = True
            self._port.close()
            self._hear()
        return senders

    def flush(self) -> None:
        """Send the queue; waits while more than `BACKLOG` bytes are not acknowledged."""
        self._port.flush()
        while self._machine.queued > BACKLOG and not self.closed:
            self._news.clear()
            self._news.wait()

    @property
    def may_play(self) -> MayPlay:
        """The function that decides who may play from this client: see the class."""
        return self._peers.may_play

    @may_play.setter
    def may_play(self, may_play: MayPlay) -> None:
        self._peers.may_play = may_play

    def publish_direct(self, name: str) -> "DirectPublishing":
        """Let other clients play `name` from this one.  Raises LocalError if they can already."""
        return DirectPublishing(self._peers, self._peers.publish(name, now()), self._pace)

    def play_from(
        self,
        peer_id: bytes,
        name: str,
        *,
        timeout: float = TIMEOUT,
        reach_timeout: float = REACH_TIMEOUT,
        relayed: bool = True,
    ) -> ClientStream:
        """Play `name` from another client, directly; then `read`: RFC 7425 §5.4.1.

        If they cannot reach each other within `reach_timeout` seconds and `relayed` is true, the
        server is asked to stand between them, which it may.  Raises RemoteError if the peer
        refuses, TimeoutError, LocalError if `peer_id` is not the id of another client.
        """
        relayed = relayed and not self.closed
        direct = self._play(peer_id)
        try:
            return direct.begin(name, timeout, min(reach_timeout, timeout) if relayed else timeout)
        except UnreachableError as error:
            if not relayed:
                raise
            try:
                relay = self.call(RELAY_COMMAND, peer_id.hex(), timeout=timeout)
            except RemoteError:  # it has no such call, or will not
                raise error from None
        direct = self._play(bytes.fromhex(text(relay)))
        return direct.begin(name, timeout, timeout)

    def _play(self, peer_id: bytes) -> DirectClient:
        direct = DirectClient(self._peers.play(peer_id, now()), self._peers, self._port.flush)
        self._direct.append(direct)
        return direct

    def _pace(self) -> None:
        """Send media published directly to peers; waits while too much is not acknowledged."""
        self._port.flush()
        while any(
            stream.queued > BACKLOG for peer in self._peers.sessions for stream in peer.streams
        ):
            self._news.clear()
            self._news.wait(LOOK)

    def _run(self) -> None:
        while not self._is_closed:
            self._news.wait()
            self._news.clear()
            self._hear()

    def _hear(self) -> None:
        was_closed, self._heard_end = self._heard_end, self.closed
        super()._hear()
        for direct in self._direct:
            direct.hear()
        self._direct = [direct for direct in self._direct if not direct.closed]
        if self.closed and not was_closed:
            self._finish()


def connect(
    url: str | Target,
    *,
    timeout: float = TIMEOUT,
    digest: bool = False,
    tls: ssl.SSLContext | None = None,
    lifetimes: Lifetimes = LIVE,
) -> Client:
    """Connect to an application by RTMP, RTMPS or RTMFP, as the scheme of `url` says.

    `url` has the application as its whole path, or is a `Target`.  A server that sends us
    elsewhere is obeyed a few times.  Raises RemoteError if the server refuses, OSError if there
    is none, TimeoutError after `timeout` seconds.
    """
    target = url if isinstance(url, Target) else Target.parse(url, stream=False)

    def open_to(place: Target) -> Client:
        if place.by_datagrams:
            return RtmfpClient.open(place, lifetimes=lifetimes)
        return RtmpClient.open(place, timeout=timeout, digest=digest, tls=tls)

    return established(open_to, target, timeout, None)
