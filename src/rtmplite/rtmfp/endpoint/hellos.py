"""Answers hellos: ours, those of peers to introduce, and those for other servers to share.

Implements RFC 7016 §3.5.1.1.2, §3.5.1.4, §3.5.1.5, §3.5.1.6 and §3.5.1.7.

    asker --- IHello (peer id) ---> us --- FIHello (asker's address) ---> the peer
          <--- Redirect (the peer's addresses) ---
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

from rtmplite.errors import LocalError
from rtmplite.limits.rate_limit_key import rate_limit_key
from rtmplite.rtmfp.endpoint.endpoint_listener import EndpointListener, Forwarded
from rtmplite.rtmfp.endpoint.rate_limiter import KEY_BYTES, Limiter
from rtmplite.rtmfp.endpoint.responder import Responder, ResponderHost
from rtmplite.rtmfp.wire.address import Address, Origin, SocketAddress, is_sendable, observed, told
from rtmplite.rtmfp.wire.control_chunks import ForwardedInitiatorHello
from rtmplite.rtmfp.wire.startup_chunks import InitiatorHello, ResponderRedirect

if TYPE_CHECKING:
    from rtmplite.rtmfp.endpoint.session_table import SessionEntry
    from rtmplite.rtmfp.session.session import Session

# Own design: a Redirect fits one datagram, and leaves room among an asker's 24 candidates.
DESTINATIONS_MOST: Final = 12
_SECOND: Final = 1.0

# Names other addresses of a far end for an asker, None for none: see `on_introduction`.
Judge: TypeAlias = "Callable[[Session], Iterable[Address] | None]"


class Redirector:
    """Answers hellos for another endpoint, or sends ours to `others`: §3.5.1.4, §3.5.1.7."""

    def __init__(
        self,
        host: ResponderHost,
        policy: EndpointListener,
        random: Callable[[int], bytes],
        others: Sequence[Address],
    ) -> None:
        self._host, self._policy = host, policy
        limit = host.limits.forwards_per_second
        self._forwards = Limiter(random(KEY_BYTES), limit, _SECOND)
        self.others = tuple(others)

    def on_foreign_hello(self, hello: InitiatorHello, source: Address, now: float) -> bool:
        """Help a host that asks for another; False: stay silent: §3.5.1.4 to §3.5.1.6."""
        epd = hello.endpoint_discriminator
        entry = self._find(epd)
        if entry is not None:
            reported = self._policy.on_introduction(entry.session, source, now)
            return self._introduce(entry, hello, reported, source, now)
        addresses = self._policy.addresses_of(epd, now)
        # §3.5.1.4 [redirect-for-others]
        if self._redirect(hello.tag, _encodable(addresses, Origin.UNKNOWN), source, now):
            return True
        self._policy.on_unknown_peer(hello, source, now)
        return False

    def introduce(self, hello: InitiatorHello, source: Address, judge: Judge, now: float) -> None:
        """Introduce a host that has asked another process of this server: §3.5.1.5."""
        if (entry := self._find(hello.endpoint_discriminator)) is not None:
            self._introduce(entry, hello, judge(entry.session), source, now)

    def _introduce(
        self,
        entry: "SessionEntry",
        hello: InitiatorHello,
        reported: Iterable[Address] | None,
        source: Address,
        now: float,
    ) -> bool:
        """Forward a hello, and tell the asker where the far end is: §3.5.1.5, §3.5.1.6."""
        epd = hello.endpoint_discriminator
        peer = self._host.profile.fingerprint(entry.session.far_certificate)
        if reported is None or not self._forwards.allows(peer, now):
            return False  # an asker that may not be introduced uses up nobody else's share
        # §3.5.1.5 [fihello-sent], §3.5.1.6 [introduction]
        entry.session.queue_chunk(ForwardedInitiatorHello(epd, observed(source), hello.tag))
        # §3.5.1.6 [public-address-told] [more-addresses]; the latter help behind the same NAT
        destinations = [observed(entry.session.address), *_encodable(reported, Origin.LOCAL)]
        # §3.5.1.4 [redirect-for-others], §3.5.1.6 [introduction]
        return self._redirect(hello.tag, destinations, source, now)

    def refer(self, tag: bytes, source: Address, now: float) -> bool:
        """Send a host that asks for us to the other servers; False if there are none.

        §3.5.1.7 [referred].  The asker's tag, which is random, selects the server that is named
        first, so that each of many servers is.
        """
        others = self.others
        first = sum(tag) % len(others) if others else 0
        turned = others[first:] + others[:first]
        return self._redirect(tag, _encodable(turned, Origin.UNKNOWN), source, now)

    def _find(self, epd: bytes) -> "SessionEntry | None":
        """Find an open session whose far end an EPD selects: §3.5.1.5."""
        fingerprint = self._host.profile.wanted_fingerprint(epd)
        entry = None if fingerprint is None else self._host.table.reachable(fingerprint)
        if entry is None or not self._host.profile.is_selected(entry.session.far_certificate, epd):
            return None
        return entry

    def _redirect(
        self, tag: bytes, destinations: Iterable[SocketAddress], source: Address, now: float
    ) -> bool:
        told = tuple(dict.fromkeys(destinations))[:DESTINATIONS_MOST]
        # None at all would mean that we are the wanted far end: §2.3.5.
        return bool(told) and self._host.packets.send(ResponderRedirect(tag, told), source, now)


def _encodable(addresses: Iterable[Address], origin: Origin) -> Iterator[SocketAddress]:
    """Keep the numeric addresses only: peers may report anything."""
    for ip, port in addresses:
        address = SocketAddress(ip, port, origin)
        try:
            address.encode()
        except LocalError:
            continue
        yield address


class Hellos:
    """Answers hellos as responder, as redirector and forwarder, or not at all: §3.5.1.

    `refers` is called for each hello that asks for us, and says whether to send the asker to other
    servers: §3.5.1.7.  `forwarded` is how hellos are answered that a forwarder passes on.
    """

    def __init__(
        self,
        host: ResponderHost,
        responder: Responder,
        redirector: Redirector,
        random: Callable[[int], bytes],
        ignored: Callable[[str], None],
    ) -> None:
        self._host, self._responder, self._redirector = host, responder, redirector
        self._ignored = ignored
        self._limiter = Limiter(random(KEY_BYTES), host.limits.hellos_per_second, _SECOND)
        # All count together, as the forwarder chooses where the answers go.
        forwards = host.limits.forwards_per_second
        self._forwards = Limiter(bytes(KEY_BYTES), forwards, _SECOND, slots=1)
        self.refers: Callable[[], bool] = lambda: False
        self.forwarded = Forwarded.HELLO

    def on_hello(self, hello: InitiatorHello, source: Address, now: float) -> None:
        """Answer, refer, introduce, or be silent: §3.5.1.1.2, §3.5.1.4, §3.5.1.5."""
        if not self._may_answer(hello, source, now):
            return
        host = self._host
        if not host.profile.selects(hello.endpoint_discriminator):
            if not self._redirector.on_foreign_hello(hello, source, now):
                self._ignored("hello to somebody else")
        elif not self.refers() and host.has_room:
            self._responder.on_hello(hello.tag, source, now)
        elif not self._redirector.refer(hello.tag, source, now):
            self._ignored("load")

    def introduce(self, hello: InitiatorHello, source: Address, judge: Judge, now: float) -> None:
        """Introduce a host to a far end here, if `judge` agrees: §3.5.1.5.

        Own design: the host has asked another process of this server, which has counted its hello.
        """
        self._redirector.introduce(hello, source, judge, now)

    def on_forwarded(self, hello: ForwardedInitiatorHello, is_asked: bool, now: float) -> None:
        """Answer a hello that a forwarder passes on: §3.5.1.1.2.

        Own design: only if we asked for the session (`is_asked`) in which it came, and not too
        often; else a stranger could make us send packets to a victim.
        """
        address = told(hello.reply_address)
        is_ours = self._host.profile.selects(hello.endpoint_discriminator)
        if not is_asked or not is_ours or not is_sendable(address):
            self._ignored("forwarded hello")
        elif not self._forwards.allows(b"", now):
            self._ignored("forwarded hellos")
        elif not self._may_answer(hello, address, now):
            return
        elif self.forwarded is Forwarded.HELLO:  # §3.5.1.1.2 [fihello-answered]
            self._responder.on_hello(hello.tag, address, now)
        elif self.forwarded is Forwarded.REDIRECT:  # §3.5.1.1.2 [fihello-answered]
            self._host.packets.send(ResponderRedirect(hello.tag), address, now)

    def _may_answer(
        self, hello: InitiatorHello | ForwardedInitiatorHello, address: Address, now: float
    ) -> bool:
        """Keep answers within limits: §5, `limits.StartupLimits`."""
        longest = max(len(hello.tag), len(hello.endpoint_discriminator))
        if longest > self._host.limits.field_bytes:  # §5 [resources-bounded]
            self._ignored("long field")
        # §5 [resources-bounded]
        elif self._limiter.allows(rate_limit_key(address[0]), now):
            return True
        else:
            self._ignored("hellos of a host")
        return False
