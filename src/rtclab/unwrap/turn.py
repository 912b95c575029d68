"""What TURN servers relay, taken out of the packets between client and server.

Implements RFC 8656 §9, §11 and §12 as a rule book: datagrams get the addresses that they have
between relay and peer.  Only UDP is read.

    >>> from p2psip.nat.stun import write_address
    >>> from p2psip.nat.turn import channel_data
    >>> relays = TurnRelays()
    >>> bind = (TurnType.CHANNEL_NUMBER, b"\\x40\\1\\0\\0"), (
    ...     TurnType.XOR_PEER_ADDRESS, write_address(("192.0.2.9", 4000), bytes(12)))
    >>> asked = StunMessage.write(StunClass.REQUEST, TurnMethod.CHANNEL_BIND, bytes(12), bind)
    >>> list(relays.stun("192.0.2.1:5", "192.0.2.2:3478", asked.data, 0.0))
    []
    >>> [each] = relays.channel("192.0.2.1:5", "192.0.2.2:3478", channel_data(0x4001, b"RTP"))
    >>> each.source, each.target, each.data
    ('192.0.2.1:5', '192.0.2.9:4000', b'RTP')
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from p2psip.errors import SipError
from p2psip.nat.stun import StunClass, StunMessage, read_address
from p2psip.nat.turn import CHANNELS, OVERHEAD, TurnMethod, TurnType
from rtclab.unwrap.address import host_of, written
from rtclab.unwrap.breach import Breach

REBINDING: Final = 15 * 60.0  # s: a binding and the wait behind it, Source: RFC 8656 §12
RESERVED: Final = range(0x5000, 0x8000)  # channels of RFC 5766; no RTP begins with these octets
PADDED: Final = 4  # octets, Source: RFC 8656 §12.5


def is_old_channel(data: bytes) -> bool:
    r"""Whether this is ChannelData of a reserved channel, by its exact length: RFC 8656 §12.

    >>> is_old_channel(b"\x58\x8f\0\2hi"), is_old_channel(b"\x58\x8f\0\2hi there")
    (True, False)
    """
    more = len(data) - OVERHEAD - int.from_bytes(data[2:4])
    return int.from_bytes(data[:2]) in RESERVED and 0 <= more < PADDED


class Relayed(NamedTuple):
    """A datagram between relay and peer: RFC 8656 §11.  `leg` is where it was seen."""

    source: str
    target: str
    data: bytes
    leg: str


@dataclass(slots=True)
class _Allocation:
    """A client at a server: RFC 8656 §6.  `is_whole` if its beginning was seen."""

    client: str
    server: str
    relayed: str
    is_whole: bool = False
    permitted: set[str] = field(default_factory=set)  # hosts that the client has asked for
    channels: dict[int, str] = field(default_factory=dict)
    bound: dict[int, float] = field(default_factory=dict)  # when the server agreed

    def carried(self, peer: str, data: bytes, *, is_sent: bool) -> Relayed:
        source, target = (self.relayed, peer) if is_sent else (peer, self.relayed)
        return Relayed(source, target, data, f"{self.client} > {self.server}")


class TurnRelays:
    """All allocations of a capture: RFC 8656 §6."""

    def __init__(self) -> None:
        self._all: dict[tuple[str, str], _Allocation] = {}
        self._asked: dict[tuple[str, str, bytes], StunMessage] = {}

    def stun(self, source: str, target: str, data: bytes, now: float) -> Iterator[Relayed | Breach]:
        """Take a STUN message; yield what a Send or Data indication carries: RFC 8656 §11."""
        try:
            message = StunMessage.parse(data)
        except SipError:
            return
        if message.method not in tuple(TurnMethod):
            return
        if message.kind == StunClass.INDICATION:
            yield from self._indication(source, target, message)
        elif message.kind == StunClass.REQUEST:
            self._asked[source, target, message.transaction_id] = message
            yield from self._request(source, target, message, now)
        else:
            request = self._asked.pop((target, source, message.transaction_id), None)
            if request is not None:
                self._response(target, source, request, message, now)

    def channel(self, source: str, target: str, data: bytes) -> Iterator[Relayed | Breach]:
        """Take a datagram; yield what it carries if it is ChannelData: RFC 8656 §12.6."""
        is_sent = (source, target) in self._all
        allocation = self._all.get((source, target) if is_sent else (target, source))
        if allocation is None or len(data) < OVERHEAD:
            return
        number, length = int.from_bytes(data[:2]), int.from_bytes(data[2:4])
        if is_old_channel(data):
            yield Breach("turn-channel", f"ChannelData of channel {number:#06x}")
        elif number not in CHANNELS:
            return
        if OVERHEAD + length > len(data):
            what = f"ChannelData of {length} octets has {len(data) - OVERHEAD}"
            yield Breach("turn-indication", what, "RFC 8656 §12.6")
            return
        peer = allocation.channels.get(number)
        if peer is not None:
            inner = data[OVERHEAD : OVERHEAD + length]
            yield allocation.carried(peer, inner, is_sent=is_sent)
        elif allocation.is_whole and number in CHANNELS:
            yield Breach("turn-unbound", f"ChannelData of channel {number:#06x}")

    def _request(
        self, client: str, server: str, message: StunMessage, now: float
    ) -> Iterator[Breach]:
        if message.method not in (TurnMethod.CREATE_PERMISSION, TurnMethod.CHANNEL_BIND):
            return
        allocation = self._of(client, server)
        peers = _peers(message)
        allocation.permitted |= {host_of(each) for each in peers}
        value = message.get(TurnType.CHANNEL_NUMBER)
        if message.method != TurnMethod.CHANNEL_BIND or value is None or not peers:
            return
        number, peer = int.from_bytes(value[:2]), peers[0]
        if number not in CHANNELS:
            yield Breach("turn-channel", f"ChannelBind of channel {number:#06x}")
        for other, bound in allocation.channels.items():
            since = now - allocation.bound.get(other, now - REBINDING)
            if (other == number) != (bound == peer) and since < REBINDING:
                what = f"ChannelBind of {number:#06x} to {peer}, and {other:#06x} is to {bound}"
                yield Breach("turn-rebound", what)
        allocation.channels.setdefault(number, peer)

    def _response(
        self, client: str, server: str, request: StunMessage, said: StunMessage, now: float
    ) -> None:
        is_agreed = said.kind == StunClass.SUCCESS
        match request.method:
            case TurnMethod.ALLOCATE if is_agreed:
                value = said.get(TurnType.XOR_RELAYED_ADDRESS)
                relayed = _address(value, said.transaction_id) or client
                self._all[client, server] = _Allocation(client, server, relayed, is_whole=True)
            case TurnMethod.REFRESH if is_agreed:
                if request.get(TurnType.LIFETIME) == bytes(4):
                    self._all.pop((client, server), None)
            case TurnMethod.CHANNEL_BIND:
                self._bound(self._of(client, server), request, now, is_agreed=is_agreed)

    def _bound(
        self, allocation: _Allocation, request: StunMessage, now: float, *, is_agreed: bool
    ) -> None:
        """Take the answer to ChannelBind: RFC 8656 §12.3."""
        number = int.from_bytes((request.get(TurnType.CHANNEL_NUMBER) or b"")[:2])
        peers = _peers(request)
        if is_agreed and number and peers:
            allocation.channels[number], allocation.bound[number] = peers[0], now
        elif number not in allocation.bound:
            allocation.channels.pop(number, None)

    def _indication(
        self, source: str, target: str, message: StunMessage
    ) -> Iterator[Relayed | Breach]:
        if message.method not in (TurnMethod.SEND, TurnMethod.DATA):
            return
        is_sent = message.method == TurnMethod.SEND
        name = "Send" if is_sent else "Data"
        data, peers = message.get(TurnType.DATA), _peers(message)
        if not peers or (data is None and (is_sent or message.get(TurnType.ICMP) is None)):
            section = "RFC 8656 §11.2" if is_sent else "RFC 8656 §11.4"
            yield Breach("turn-indication", f"{name} without its peer or its data", section)
            return
        allocation = self._of(source, target) if is_sent else self._of(target, source)
        if is_sent and allocation.is_whole and host_of(peers[0]) not in allocation.permitted:
            yield Breach("turn-permission", f"Send to {peers[0]}")
        if data is not None:
            yield allocation.carried(peers[0], data, is_sent=is_sent)

    def _of(self, client: str, server: str) -> _Allocation:
        """Find an allocation; one whose beginning was not seen has the client's own address."""
        made = _Allocation(client, server, client)
        return self._all.setdefault((client, server), made)


def _peers(message: StunMessage) -> list[str]:
    values = (each.value for each in message.attributes if each.type == TurnType.XOR_PEER_ADDRESS)
    found = (_address(value, message.transaction_id) for value in values)
    return [each for each in found if each]


def _address(value: bytes | None, transaction_id: bytes) -> str:
    try:
        return "" if value is None else written(*read_address(value, transaction_id))
    except SipError:
        return ""
