"""One relayed address at a TURN server: made, kept, and used to exchange data with peers.

Implements RFC 8656 §7.1, §7.3, §7.4, §9, §10.1, §11.4 and §12 from the client's side, over UDP.

Own design: the first packet to a peer asks for a channel and leaves in a Send indication; from the
server's consent on, four octets before each packet are all that a relay costs.  A channel that is
not renewed is done without.  What the server has lost is not restored: the owner is told by
`state`, and ends or begins anew.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from p2psip.errors import RemoteError
from p2psip.nat.long_term import LongTermCredentials
from p2psip.nat.stun import (
    StunClass,
    StunMessage,
    StunType,
    TransportAddress,
    read_address,
    write_address,
)
from p2psip.nat.stun_client import ClientTransaction
from p2psip.nat.turn import (
    CHANNELS,
    TurnMethod,
    TurnType,
    channel_data,
    read_channel_data,
    read_lifetime,
    write_channel,
    write_family,
    write_lifetime,
    write_transport,
)

# s between Refreshes.  Own design: a server that was restarted says so only when it is asked, and
# a call must not be silent for long; this also keeps the way through a router open.
REFRESH: Final = 30.0
PERMISSION: Final = 240.0  # s between renewals, before 300 s are over: §9 [five-minutes]
MAX_PEERS: Final = 16  # hosts that are permitted, and channels
MAX_CHALLENGES: Final = 3  # in a row, for one request: a server must not keep us busy
MISMATCH: Final = 437
HOPELESS: Final = (400, 401, 403, 420, 440, 441, 442)  # the same request would fail again: §7.4

Attributes = tuple[tuple[int, bytes], ...]


class AllocationState(StrEnum):
    """The state of an allocation.  Own design: RFC 8656 draws no figure."""

    ASKING = "asking"
    READY = "ready"
    FAILED = "failed"
    CLOSED = "closed"


@dataclass(slots=True)
class _Exchange:
    """A request under way: its attributes without the user's, and what its end does."""

    transaction: ClientTransaction
    method: TurnMethod
    attributes: Attributes
    done: Callable[[StunMessage, float], None]
    refused: Callable[[float], None]
    challenges: int = 0
    is_unproven: bool = False  # an answer came that was not signed


class Allocation:
    """A relayed address, from the first request to `close`.

    `relayed` is what peers send to; `error` tells why there is none, `is_hopeless` that asking
    again would not help before an operator has changed something, and `is_taken` that another port
    of ours would do at once, since this one has an allocation already.  Times are in seconds.
    """

    def __init__(
        self,
        login: LongTermCredentials,
        random: Callable[[int], bytes],
        now: float,
        *,
        ipv6: bool = False,
    ) -> None:
        self.state, self.error, self.is_hopeless = AllocationState.ASKING, "", False
        self.is_taken = False
        self.relayed: TransportAddress | None = None
        self.trouble = ""  # the last refusal of a permission or channel
        self._login, self._random = login, random
        self._running: dict[bytes, _Exchange] = {}
        self._out: list[bytes] = []
        self._permitted: dict[str, bool] = {}  # hosts, and whether the server has consented
        self._channels: dict[tuple[str, int], int] = {}  # that the server has bound
        self._peers: dict[int, TransportAddress] = {}
        self._refresh_at = self._renew_at = float("inf")
        # §7.1 [requested-transport] [one-family]
        wishes = (
            (TurnType.REQUESTED_TRANSPORT, write_transport()),
            (TurnType.REQUESTED_ADDRESS_FAMILY, write_family(ipv6)),
        )
        self._ask(TurnMethod.ALLOCATE, wishes, self._allocated, now)

    @property
    def deadline(self) -> float | None:
        """When to call `tick`: the next repetition, refresh or renewal.  RFC 8489 §6.2.1."""
        if self.state in (AllocationState.FAILED, AllocationState.CLOSED):
            return None
        times = (each.transaction.deadline for each in self._running.values())
        return min((*times, self._refresh_at, self._renew_at))

    def take(self) -> list[bytes]:
        """Return the datagrams for the server, once.  Own design."""
        out, self._out = self._out, []
        return out

    def tick(self, now: float) -> None:
        """Repeat requests, refresh the allocation, renew permissions and channels: §9."""
        if self.state in (AllocationState.FAILED, AllocationState.CLOSED):
            return
        for exchange in list(self._running.values()):
            if exchange.transaction.tick(now):
                self._out.append(exchange.transaction.request.data)
            elif exchange.transaction.failed:
                # RFC 8489 §9.2.5 [violation-is-told]
                forged = "gives answers that its password does not sign"
                what = forged if exchange.is_unproven else "does not answer"
                self._fail(f"the TURN server {what}")
                return
        if now >= self._refresh_at:
            self._refresh_at = now + REFRESH
            self._ask(TurnMethod.REFRESH, (), self._refreshed, now)  # §8 [refreshed-in-time]
        if now >= self._renew_at:
            self._renew_at = now + PERMISSION
            self._permit_all(self._permitted, now)
            for peer, channel in self._channels.items():
                self._bind(channel, TransportAddress(*peer), now)

    def permit(self, hosts: Iterable[str], now: float) -> None:
        """Let peers at these hosts send to us: §10.1."""
        new = [host for host in hosts if host not in self._permitted]
        room = MAX_PEERS - len(self._permitted)
        if self.state is AllocationState.READY and new[:room]:
            self._permit_all(new[:room], now)

    def permits(self, host: str) -> bool:
        """Whether packets for a peer at this host can be sent: §11.1."""
        return self.state is AllocationState.READY and self._permitted.get(host, False)

    def send(self, data: bytes, peer: tuple[str, int], now: float) -> bytes | None:
        """Wrap data for a peer; None where it has no permission: §11.1, §12.5."""
        channel = self._channels.get(peer)
        if channel is not None:
            return channel_data(channel, data)
        if not self.permits(peer[0]):
            return None  # §11.1 [needs-permission]
        if peer not in self._peers.values() and len(self._peers) < MAX_PEERS:
            # §12 [number-stays]: no number is used again
            number = CHANNELS[len(self._peers)]
            self._peers[number] = TransportAddress(*peer)  # §12 [prepared-at-once]
            self._bind(number, self._peers[number], now)
        identifier = self._random(12)
        # §11.1 [peer-and-data]
        listed = (
            (TurnType.XOR_PEER_ADDRESS, write_address(peer, identifier)),
            (TurnType.DATA, data),
        )
        return StunMessage.write(StunClass.INDICATION, TurnMethod.SEND, identifier, listed).data

    def receive(self, datagram: bytes, now: float) -> tuple[bytes, TransportAddress] | None:
        """Take a datagram of the server; return a permitted peer's data and address, or None."""
        if self.state in (AllocationState.FAILED, AllocationState.CLOSED):
            return None
        found = read_channel_data(datagram)
        if found is not None:
            peer = self._peers.get(found[0])
            is_heard = peer is not None and peer.host in self._permitted  # §12.6 [needs-permission]
            return (found[1], peer) if peer is not None and is_heard else None
        try:
            message = StunMessage.parse(datagram)
            if message.kind is StunClass.INDICATION:
                return self._unwrapped(message)
            self._answered(message, now)
        except RemoteError:
            return None
        return None

    def close(self, now: float) -> None:
        """Give the relayed address back: §3.2.  Idempotent."""
        if self.state is AllocationState.READY:
            wish = ((TurnType.LIFETIME, write_lifetime(0)),)  # §8 [deleted-when-done]
            self._ask(TurnMethod.REFRESH, wish, self._refreshed, now)
        self.state, self._running = AllocationState.CLOSED, {}

    # -- requests -----------------------------------------------------------------------

    def _ask(
        self,
        method: TurnMethod,
        attributes: Attributes,
        done: Callable[[StunMessage, float], None],
        now: float,
        refused: Callable[[float], None] = lambda now: None,
        challenges: int = 0,
    ) -> None:
        identifier, login = self._random(12), self._login
        listed = [(kind, value) for kind, value in attributes if kind != TurnType.XOR_PEER_ADDRESS]
        for kind, value in attributes:
            if kind == TurnType.XOR_PEER_ADDRESS:  # the mask is that of the transaction
                listed.append((kind, write_address(read_address(value), identifier)))
        request = StunMessage.write(
            StunClass.REQUEST,
            method,
            identifier,
            [*listed, *login.attributes],
            key=login.key,  # RFC 8489 §9.2.3.2 [signs-again]
            digest=login.digest,
        )
        transaction = ClientTransaction(request, now)
        exchange = _Exchange(transaction, method, attributes, done, refused, challenges)
        self._running[identifier] = exchange
        self._out.append(request.data)

    def _answered(self, response: StunMessage, now: float) -> None:
        exchange = self._running.get(response.transaction_id)
        if exchange is None or not exchange.transaction.answers(response):
            return  # RFC 8489 §6.3
        code = (response.error() or (0, ""))[0] if response.kind is StunClass.ERROR else 0
        if code in (401, 438):
            self._challenged(response, exchange, now)
            return
        if self._login.realm and not self._login.proves(response):
            exchange.is_unproven = True
            return  # RFC 8489 §9.2.5 [unsigned-is-discarded]
        del self._running[response.transaction_id]
        if response.kind is StunClass.SUCCESS and not response.unknown((*StunType, *TurnType)):
            exchange.done(response, now)
        else:
            self._refused(exchange, response, now)

    def _challenged(self, response: StunMessage, exchange: _Exchange, now: float) -> None:
        """Ask again as a challenge wants it, a few times at most: RFC 8489 §9.2.5."""
        del self._running[response.transaction_id]
        used = _had_this_nonce(exchange, self._login)
        try:
            # RFC 8489 §9.2.5 [stale-nonce-is-replaced]
            again = self._login.challenged(response) or not used
        except RemoteError as error:
            self._fail(str(error), hopeless=True)
            return
        if not again:
            # §7.4 [hopeless-401]
            self._fail("the TURN server refuses user and password (401)", hopeless=True)
        elif exchange.challenges >= MAX_CHALLENGES:
            self._fail("the TURN server challenges without end")
        else:
            rest = exchange.method, exchange.attributes, exchange.done, now, exchange.refused
            self._ask(*rest, exchange.challenges + 1)

    def _refused(self, exchange: _Exchange, response: StunMessage, now: float) -> None:
        """Fail if the allocation is refused; else do without what was asked for.

        Departs from RFC 8656 §12.3 [out-of-sync-begins-anew]: the channel is given up and not the
        allocation; its call would lose its address, and Send indications reach the peer as well.
        """
        method = exchange.method
        code, reason = response.error() or (0, "an answer that cannot be used")
        text = f"{code} {reason}" if code else reason
        if method in (TurnMethod.ALLOCATE, TurnMethod.REFRESH) or code == MISMATCH:
            # §5 [437-means-gone], §7.4 [hopeless-400] [hopeless-403]
            # §7.4 [440-is-final] [hopeless-441]
            # and §7.4 [hopeless-442]
            lost = code == MISMATCH and self.state is AllocationState.READY
            self.is_taken = code == MISMATCH and not lost
            what = "the TURN server has lost our address" if lost else "the TURN server refuses"
            self._fail(f"{what} ({text})", hopeless=code in HOPELESS)
        else:
            self.trouble = text
            exchange.refused(now)

    def _fail(self, error: str, *, hopeless: bool = False) -> None:
        self.state, self.error, self.is_hopeless = AllocationState.FAILED, error, hopeless
        self.relayed, self._running = None, {}

    # -- answers ------------------------------------------------------------------------

    def _allocated(self, response: StunMessage, now: float) -> None:
        value = response.get(TurnType.XOR_RELAYED_ADDRESS)
        try:
            # §7.3 [families-are-checked]
            self.relayed = read_address(value or b"", response.transaction_id)
            lifetime = read_lifetime(response.get(TurnType.LIFETIME))
        except RemoteError as error:
            self._fail(f"the TURN server's answer cannot be used: {error}")
            return
        self.state = AllocationState.READY
        self._renew_at = now + PERMISSION
        self._lasts(lifetime, now)

    def _refreshed(self, response: StunMessage, now: float) -> None:
        self._lasts(read_lifetime(response.get(TurnType.LIFETIME)), now)

    def _lasts(self, lifetime: int, now: float) -> None:
        """Refresh the allocation in time; without any time left it is over: §8.3."""
        if lifetime == 0:
            self._fail("the TURN server has ended our address")
        # §8 [refreshed-in-time] [refreshed-often]
        self._refresh_at = now + min(REFRESH, lifetime / 2)

    def _permit_all(self, hosts: Iterable[str], now: float) -> None:
        listed = list(hosts)
        for host in listed:
            self._permitted.setdefault(host, False)
        if not listed:
            return
        # §10.1 [at-least-one-peer]
        wishes = tuple((TurnType.XOR_PEER_ADDRESS, write_address((host, 0))) for host in listed)

        def done(response: StunMessage, now: float) -> None:
            self._permitted.update(dict.fromkeys(listed, True))

        def refused(now: float) -> None:
            if len(listed) == 1:
                self._permitted[listed[0]] = False
            else:  # one of them may have spoiled it for all
                for host in listed:
                    self._permit_all([host], now)

        self._ask(TurnMethod.CREATE_PERMISSION, wishes, done, now, refused)

    def _bind(self, number: int, peer: TransportAddress, now: float) -> None:
        wishes = (
            (TurnType.CHANNEL_NUMBER, write_channel(number)),
            (TurnType.XOR_PEER_ADDRESS, write_address(peer)),
        )

        def done(response: StunMessage, now: float) -> None:
            self._channels[peer.host, peer.port] = number

        def refused(now: float) -> None:
            self._channels.pop((peer.host, peer.port), None)  # its data goes in indications: §11.1

        self._ask(TurnMethod.CHANNEL_BIND, wishes, done, now, refused)

    def _unwrapped(self, indication: StunMessage) -> tuple[bytes, TransportAddress] | None:
        data, value = indication.get(TurnType.DATA), indication.get(TurnType.XOR_PEER_ADDRESS)
        if indication.method != TurnMethod.DATA or data is None or value is None:
            return None
        peer = read_address(value, indication.transaction_id)
        # §11.4 [only-permitted-peers]
        return (data, peer) if peer.host in self._permitted else None


def _had_this_nonce(exchange: _Exchange, login: LongTermCredentials) -> bool:
    """Tell whether a request had the nonce in force, and not the one before: RFC 8489 §9.2.5."""
    return exchange.transaction.request.get(StunType.NONCE) == (login.nonce or None)
