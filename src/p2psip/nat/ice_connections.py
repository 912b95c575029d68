"""The connections of a full agent of ICE, by TCP: opened for checks, closed if not chosen.

Implements RFC 6544 §7, §8, §10 and §11.1.

An agent says what it sends, and the edge what has become of a connection.  What the edge is to do
stands in `orders`, until it asks for them.

    >>> active = TcpBase("192.0.2.1", 9, TcpType.ACTIVE)
    >>> connections, there = IceConnections(), ("192.0.2.2", 9000)
    >>> connections.send(b"check", active, there, now=0.0)
    >>> [type(order).__name__ for order in connections.orders()]
    ['IceOpen']
    >>> connections.opened(active, there)
    >>> connections.orders()[0].data
    b'\\x00\\x05check'
"""

from collections import deque
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final, NamedTuple

from p2psip.nat.ice_candidate import HostPort, TcpBase, TcpType
from p2psip.nat.stream_framing import FrameReader, framed

MAX_OPENING: Final = 5  # to one host at a time.  Source: §12
OPEN_SECONDS: Final = 10.0  # Own design: four SYNs, while others wait for their turn
GREETING_SECONDS: Final = 5.0  # Own design: until a stranger's first check that is right
MAX_STRANGERS: Final = 16  # Own design: that have connected and not proved who they are
MAX_CONNECTIONS: Final = 128  # Own design: in all; there are 100 pairs at most
MAX_PACKET: Final = 9000  # Own design: octets, as Ethernet's largest frames have them
MAX_WAITING: Final = 8  # Own design: packets for a connection that is not open yet


class IceDatagram(NamedTuple):
    """A datagram to send from an address of ours: RFC 8445 §7.2.4."""

    data: bytes
    base: HostPort
    to: HostPort


class IceOpen(NamedTuple):
    """Connect from the host of `base` to an address: §7.1."""

    base: TcpBase
    to: HostPort


class IceOctets(NamedTuple):
    """Write on a connection: §7.1."""

    data: bytes
    base: TcpBase
    to: HostPort


class IceClose(NamedTuple):
    """Close a connection, or stop opening it: §8."""

    base: TcpBase
    to: HostPort


IceOrder = IceOpen | IceOctets | IceClose
_Flow = tuple[TcpBase, HostPort]


class _State(Enum):
    """How far a connection is."""

    QUEUED = auto()
    OPENING = auto()
    OPEN = auto()


@dataclass(slots=True, eq=False)
class _Connection:
    """One connection, to be given up at `until`.

    By one that `is_known` the peer has proved who it is, by one that `is_valid` it has answered.
    """

    state: _State
    until: float | None = None
    is_known: bool = False
    is_valid: bool = False
    reader: FrameReader = field(default_factory=lambda: FrameReader(MAX_PACKET))
    waiting: deque[bytes] = field(default_factory=lambda: deque(maxlen=MAX_WAITING))


class IceConnections:
    """All connections of a session, by the address here and the far end: §7.

    Those that we open have the address of an active candidate, whose port stands for any.
    """

    def __init__(self) -> None:
        self._of: dict[_Flow, _Connection] = {}
        self._orders: list[IceOrder] = []

    def orders(self) -> list[IceOrder]:
        """What to do now, in this order: §7.1."""
        due, self._orders = self._orders, []
        return due

    # -- the agent's --------------------------------------------------------------------

    def send(self, data: bytes, base: TcpBase, to: HostPort, now: float) -> None:
        """Send a message of STUN, by a connection that is opened if need be: §7.1.

        To a peer that connects itself nothing is sent while it does not.
        """
        connection = self._of.get((base, to))
        if connection is None:
            # §11.1 [passive-waits]
            if base.type is not TcpType.ACTIVE or len(self._of) >= MAX_CONNECTIONS:
                return
            connection = self._of[base, to] = _Connection(_State.QUEUED)
        if connection.state is _State.OPEN:
            self._write(data, base, to)
        else:
            connection.waiting.append(data)
            self._open_more(now)

    def send_media(self, data: bytes, base: TcpBase, to: HostPort) -> None:
        """Send a packet by a connection that the peer has answered on, or lose it: §10.1."""
        connection = self._of.get((base, to))
        # §11.1 [media-once-valid], §10.1 [media-by-the-connection]
        if connection is not None and connection.state is _State.OPEN and connection.is_valid:
            self._write(data, base, to)

    def carries(self, base: TcpBase, to: HostPort) -> bool:
        """Whether a connection is open: §11.1."""
        connection = self._of.get((base, to))
        return connection is not None and connection.state is _State.OPEN

    def knows(self, base: TcpBase, to: HostPort) -> bool:
        """Whether the peer has proved itself by a connection: §7.2."""
        return (base, to) in self._of and self._of[base, to].is_known

    def note(self, base: TcpBase, to: HostPort, *, answered: bool = False) -> None:
        """Note that the peer has proved itself, by a check or by an answer: §11.1."""
        connection = self._of.get((base, to))
        if connection is not None:
            connection.is_known, connection.until = True, None
            connection.is_valid = connection.is_valid or answered

    def drop(self, base: TcpBase, to: HostPort) -> None:
        """Close a connection, if there is one: §7.1."""
        connection = self._of.pop((base, to), None)
        if connection is not None and connection.state is not _State.QUEUED:
            self._orders.append(IceClose(base, to))

    def keep(self, base: object = None, to: HostPort | None = None) -> None:
        """Close all connections but one, or all: §8."""
        for flow in list(self._of):
            if flow != (base, to):
                self.drop(*flow)  # §8 [others-are-closed], §11.1 [selected-stays-open]

    # -- the edge's ---------------------------------------------------------------------

    def opened(self, base: TcpBase, to: HostPort) -> None:
        """A connection that was ordered is open: §7.1."""
        connection = self._of.get((base, to))
        if connection is None:  # nobody wants it any more
            self._orders.append(IceClose(base, to))
            return
        connection.state, connection.until = _State.OPEN, None
        for data in connection.waiting:
            self._write(data, base, to)
        connection.waiting.clear()

    def accepted(self, base: TcpBase, source: HostPort, now: float) -> None:
        """A connection has come; of too many strangers the oldest gives way: §7.2."""
        strangers = [flow for flow, each in self._of.items() if self._is_strange(flow, each)]
        if len(strangers) >= MAX_STRANGERS:
            self.drop(*strangers[0])
        if len(self._of) < MAX_CONNECTIONS:
            # §7.2 [connections-are-accepted]
            self._of[base, source] = _Connection(_State.OPEN, now + GREETING_SECONDS)
        else:
            self._orders.append(IceClose(base, source))

    def ended(self, base: TcpBase, to: HostPort, now: float) -> bool:
        """A connection has ended, or was never open; whether the peer had answered on it: §11.1."""
        connection = self._of.pop((base, to), None)
        self._open_more(now)
        return connection is not None and connection.is_valid

    def received(self, data: bytes, base: TcpBase, source: HostPort) -> list[bytes]:
        """Cut received octets into packets: §7.2.  Raises RemoteError for one too long."""
        connection = self._of.get((base, source))
        # §7.2 [framed-for-its-life]
        return [] if connection is None else connection.reader.put(data)

    # -- time ---------------------------------------------------------------------------

    @property
    def deadline(self) -> float | None:
        """When to call `tick`.  Own design: connections take no longer than their limits."""
        return min((e.until for e in self._of.values() if e.until is not None), default=None)

    def tick(self, now: float) -> list[_Flow]:
        """Close what has taken too long, and return what could not be opened: §7.1."""
        late = [(f, e) for f, e in self._of.items() if e.until is not None and now >= e.until]
        for flow, _ in late:
            self.drop(*flow)
        self._open_more(now)
        return [flow for flow, each in late if each.state is _State.OPENING]

    def _open_more(self, now: float) -> None:
        """Open those that wait, as far as their hosts may be asked: §12."""
        busy = [to[0] for (_, to), e in self._of.items() if e.state is _State.OPENING]
        for (base, to), each in self._of.items():
            # §12 [five-attempts-at-a-time]
            if each.state is _State.QUEUED and busy.count(to[0]) < MAX_OPENING:
                busy.append(to[0])
                each.state, each.until = _State.OPENING, now + OPEN_SECONDS
                self._orders.append(IceOpen(base, to))

    def _write(self, data: bytes, base: TcpBase, to: HostPort) -> None:
        # §7.1 [framed-from-the-start], §10.1 [media-is-framed]
        self._orders.append(IceOctets(framed(data), base, to))

    @staticmethod
    def _is_strange(flow: _Flow, connection: _Connection) -> bool:
        return flow[0].type is TcpType.PASSIVE and not connection.is_known
