"""The port of a stream by ICE, which becomes a plain port if the peer has no ICE.

Implements RFC 8839 §4.2.2, §4.3 and §4.4 for one stream.

Own design: addresses are opened, and told, before it is known whether the peer has ICE.  So the
sockets are those of plain RTP until then, and `MediaPort` takes them over if the peer has no ICE.
Packets that are sent before a pair is selected are lost.
"""

import logging
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from p2psip.errors import RemoteError
from p2psip.nat.demultiplexing import DatagramKind, is_rtcp, kind_of
from p2psip.nat.ice import IceAgent, IceState
from p2psip.nat.ice_candidate import HostPort, IceCandidate
from p2psip.nat.ice_credentials import IceCredentials
from p2psip.net.clock import monotonic
from p2psip.net.media.ice_sockets import IceSockets
from p2psip.net.media.port_pool import MediaPair, NoPortsError, PublicPorts
from p2psip.net.media.rtp_ports import MediaPool, MediaPort, Receiver
from p2psip.sdp.agreed_media import AgreedMedia
from p2psip.sdp.ice_line import MISMATCH, IceLine
from p2psip.sdp.local_media import LocalTransport

log: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class IcePlaces:
    """Where a stream by ICE may be reached.

    `places` are hosts to bind, with the pools of their sockets.  A peer without ICE is told the
    first of them, by its own address if that peer `is_inside`.  `tcp` adds connections.
    """

    places: Sequence[tuple[str, MediaPool]]
    is_inside: bool = False
    tcp: bool = False


class IcePort:
    """The sockets of one stream with ICE, until `close`; used in place of a `MediaPort`.

    `on_ready` is called when packets begin to get through to the peer, `on_moved` when an offer
    has to tell by which address, and `on_dtls` with the datagrams of a handshake.
    `is_agreed` tells that the peer has ICE too.  Raises NoPortsError.

    Departs from RFC 8839 §4.3.4 [failed-stream-is-removed]: a call has one stream, and ends with
    it.
    Not done: RFC 8839 §4.4.2 [lost-race-restarts] [lost-race-waits] [default-as-told]
    [candidates-as-told]: an answer has the pair in use here.  An offer with remote-candidates names
    the same pair, unless the last check was lost; that check is made again soon.
    Not done: RFC 8839 §4.4.2.1 [changed-options-are-refused]: options that we do not use may
    change.
    """

    def __init__(self, places: IcePlaces, on_rtp: Receiver, on_rtcp: Receiver) -> None:
        self.on_ready: Callable[[], object] = lambda: None
        self.on_moved: Callable[[], object] = lambda: None
        self.on_dtls: Callable[[bytes], object] = lambda data: None
        self._on_lost: Callable[[str], object] = lambda reason: None
        self._on_rtp, self._on_rtcp = on_rtp, on_rtcp
        self._places, self._closed = places, False
        self._pairs = self._open()  # those of the latest description, unless `_plain` has them
        self.public = self._default()
        self._rtp: IceSockets | None = None
        self._rtcp: IceSockets | None = None  # unless it shares the port of RTP
        self._plain: MediaPort | None = None  # once the peer is known to have no ICE
        self._is_offered = True  # whether our latest description has ICE
        self._pending: IceCredentials | None = None  # ours, once a restart is agreed on
        self._theirs: IceLine | None = None  # until the checks begin
        self._defaults: tuple[HostPort | None, HostPort | None] = None, None
        self._is_muxed = self._is_old = self.is_agreed = self._had_ice = False

    def _open(self) -> list[tuple[MediaPool, MediaPair]]:
        opened: list[tuple[MediaPool, MediaPair]] = []
        for host, pool in self._places.places:
            try:
                opened.append((pool, pool.open(host)))
            except (NoPortsError, OSError) as error:
                if not opened:
                    raise
                log.info("ICE goes without %s: %s", host, error)
        return opened

    def _default(self) -> PublicPorts:
        """The address that a peer without ICE sends to."""
        _, pair = self._pairs[0]
        host, port = pair.rtp.getsockname()[:2]
        if pair.public is not None and not self._places.is_inside:
            return pair.public
        return PublicPorts(host, port, port + 1)

    # -- signalling ---------------------------------------------------------------------

    def offer(self, plain: LocalTransport, *, restarts: bool) -> LocalTransport:
        """Write the transport of an offer, whose answer may restart ICE: RFC 8839 §4.4.1."""
        self._pending, self._is_offered = None, self._may_offer()
        if not self._is_offered:
            return self._without(plain)
        # §4.2.2 [rtcp-has-candidates], as the peer may want two ports
        agent = self._begun(controlling=True, has_rtcp=True).agent
        if restarts and agent.theirs.ufrag:
            self._pending = IceCredentials.draw(os.urandom)  # §4.4.1.1.1 [restart-changes-both]
        return self._written(plain, is_offer=True)

    def _may_offer(self) -> bool:
        """Whether a description has ICE: not if the peer never had it.

        A peer that has left it out once may have it again, with other ports: RFC 8839 §4.4.3.1.
        """
        if self._plain is not None and self._had_ice and not self._pairs:
            with suppress(NoPortsError, OSError):
                self._pairs = self._open()  # §4.4.3.1 [next-offer-restarts]
                self.public = self._default()
        return bool(self._pairs)

    def _without(self, plain: LocalTransport) -> LocalTransport:
        return replace(plain, port=self.public.port, rtcp_port=self.public.rtcp_port)

    def answer(
        self, plain: LocalTransport, theirs: IceLine | None, *, is_muxed: bool
    ) -> LocalTransport:
        """Write the transport of an answer to a line: RFC 8839 §4.3.2, §4.4.2."""
        self._pending, self._is_offered = None, False
        if theirs is None or not self._may_offer():
            return self._without(plain)  # §4.3.2 [no-ice-unasked] [no-attributes-unasked]
        if theirs.is_mismatched:
            # §4.2.5 [mismatch-has-no-candidates]
            return replace(self._without(plain), ice=(MISMATCH,))
        self._is_offered = True
        # A lite end is controlled: RFC 8445 §6.1.1.
        agent = self._begun(controlling=theirs.is_lite, has_rtcp=not is_muxed).agent
        if agent.theirs.ufrag and agent.theirs != _credentials(theirs):
            self._pending = IceCredentials.draw(os.urandom)  # §4.4.2.1 [answer-changes-both]
        return self._written(plain, is_offer=False)

    def _begun(self, *, controlling: bool, has_rtcp: bool) -> IceSockets:
        if self._rtp is not None:
            return self._rtp
        agent = IceAgent(os.urandom, monotonic(), controlling=controlling)
        hosts = [host for host, _ in self._places.places] if self._places.tcp else []
        given = [pair for _, pair in self._pairs]
        self._rtp = self._opened(agent, hosts, self._heard, given)
        if has_rtcp:
            other = IceAgent(os.urandom, monotonic(), controlling=controlling, first=agent)
            given = [_of_rtcp(pair) for pair in given]
            self._rtcp = self._opened(other, hosts, self._heard_rtcp, given)
        return self._rtp

    def _opened(
        self,
        agent: IceAgent,
        hosts: Sequence[str],
        heard: Callable[[bytes], object],
        given: Sequence[MediaPair],
    ) -> IceSockets:
        made = IceSockets(agent, dict.fromkeys(hosts), heard, udp=False, given=given)
        made.on_change = self._changed
        return made

    @property
    def _components(self) -> list[IceSockets]:
        return [each for each in (self._rtp, self._rtcp) if each is not None]

    @property
    def _is_concluded(self) -> bool:
        return all(each.agent.state is not IceState.RUNNING for each in self._components)

    def _written(self, plain: LocalTransport, *, is_offer: bool) -> LocalTransport:
        """Our line, with all candidates before nomination, and the one in use after it."""
        agent = self._begun(controlling=True, has_rtcp=True).agent
        told, ours = self.public, self._pending or agent.ours
        # §4.3.1 [offer-has-candidates], §4.3.2 [answer-has-candidates]
        # §7.5 [old-addresses-are-offered]
        candidates = [each for of in self._components for each in of.candidates]
        remote: tuple[HostPort, ...] = ()
        used = [_nominated(each.agent) for each in self._components]
        if used[0] is not None and self._pending is None and self._is_concluded:
            # §4.4.1.2.2 [default-is-nominated] [one-candidate]
            candidates = [each for each in used if each is not None]
            told = PublicPorts(*used[0].address, candidates[-1].port)
            # §4.3.4 [later-offers-tell-it], §4.4.2 [no-remote-candidates-back]
            # §5.2 [controlling-completed-alone]
            if agent.controlling and is_offer:
                selected = [each.agent.selected for each in self._components]
                # §4.4.1.2.2 [remote-candidates-are-told], §5.2 [value-for-each]
                remote = tuple(pair.remote.address for pair in selected if pair is not None)
        self._defaults = (told.host, told.port), self._defaults[1]
        ice = IceLine(ours.ufrag, ours.password, tuple(map(str, candidates)), remote)
        return replace(
            plain,
            port=told.port,
            host=told.host,
            rtcp_port=told.rtcp_port,
            rtcp_mux=plain.rtcp_mux or not self.is_agreed,
            ice=ice.attributes(),
        )

    def settle(self, media: AgreedMedia, theirs: IceLine | None) -> None:
        """Use an agreement: RFC 8839 §4.3.3, §4.4.3; checks wait for `connect`."""
        self._is_muxed, self.is_agreed = media.rtcp_mux, self.is_by_ice(theirs)
        if self._rtp is None or theirs is None or not self.is_agreed:
            self._settle_without(media)
            return
        if self._is_muxed and self._rtcp is not None:
            self._rtcp.close()
            self._rtcp = None
        if self._plain is not None:
            self._plain.close()
            self._plain = None
        ours, self._pending, self._had_ice = self._pending, None, True
        # §4.4.3.1 [completed-stays]
        if ours is not None and self._rtp.agent.theirs != _credentials(theirs):
            # Own design: a peer that keeps its credentials has not taken our restart
            for each in self._components:
                each.agent.restart(monotonic(), ours)  # §4.4.3.1 [restarts-as-offered]
        self._theirs, self._defaults = theirs, (self._defaults[0], media.remote)

    def is_by_ice(self, theirs: IceLine | None) -> bool:
        """Whether an agreement on a line of the peer has ICE: RFC 8839 §4.2.5."""
        # §4.3.3 [unsupported-ends-ice] [mismatch-ends-ice], §4.2.5 [mismatch-is-heard]
        return self._is_offered and theirs is not None and not theirs.is_mismatched

    def _settle_without(self, media: AgreedMedia) -> None:
        """Go on by RFC 3264: RFC 8839 §4.4.3.1 [falls-back]."""
        if self._pairs:
            for each in self._components:
                each.close()
            self._rtp = self._rtcp = None
            if self._plain is not None:
                self._plain.close()
            (pool, pair), *others = self._pairs
            self._pairs = []
            _give_back(others)
            host, _ = self._places.places[0]
            self._plain = MediaPort(host, _Taken(pool, pair), self._on_rtp, self._on_rtcp)
            self._plain.on_ready = self.on_ready
            self._plain.when_lost(self._on_lost)
        port = self._plain
        assert port is not None  # made of the pairs that were open at first
        port.rtcp_mux = media.rtcp_mux
        port.remote, port.remote_rtcp = media.remote, media.remote_rtcp

    def connect(self) -> None:
        """Begin the checks, as our description is on its way or agreed on: RFC 8839 §4.3.2."""
        theirs, self._theirs = self._theirs, None
        if theirs is None or self._closed:
            return
        found = []
        for value in theirs.candidates:
            with suppress(RemoteError):  # of a kind that we do not know
                found.append(IceCandidate.parse(value))
        self._is_old = not theirs.is_modern
        for each in self._components:
            component = each.candidates[0].component
            alike = [candidate for candidate in found if candidate.component == component]
            # Own design: wait for checks, which may tell of more candidates
            each.begin(_credentials(theirs), alike, are_all=False)

    def _changed(self) -> None:
        if self._rtp is None or self._closed:
            return
        agent = self._rtp.agent
        if agent.state is IceState.FAILED:
            log.info("ICE: the peer does not answer")
            self._on_lost("the peer does not answer by ICE")  # RFC 7675 §5.1
        elif agent.selected is not None:
            self.on_ready()
            local = _nominated(agent)
            is_told = (
                local is None or (local.address, agent.selected.remote.address) == self._defaults
            )
            if agent.controlling and self._is_old and self._is_concluded and not is_told:
                self.on_moved()  # §4.3.4 [tells-the-nominated]

    # -- packets ------------------------------------------------------------------------

    @property
    def on_rtp(self) -> Receiver:
        return self._on_rtp

    @on_rtp.setter
    def on_rtp(self, receiver: Receiver) -> None:
        self._on_rtp = receiver
        if self._plain is not None:
            self._plain.on_rtp = receiver

    @property
    def is_ready(self) -> bool:
        """Whether a packet sent now gets through."""
        if self._plain is not None:
            return self._plain.is_ready
        return self._rtp is not None and self._rtp.agent.selected is not None

    def when_lost(self, on_lost: Callable[[str], object]) -> None:
        """Have `on_lost(reason)` called when there is no way to the peer: RFC 7675 §5.1."""
        self._on_lost = on_lost

    def send_rtp(self, data: bytes) -> None:
        """Send a packet by the pair in use; without one it is lost."""
        if self._plain is not None:
            self._plain.send_rtp(data)
        elif self._rtp is not None:
            self._rtp.send(data)

    def send_rtcp(self, data: bytes) -> None:
        """Send a report by the pair of RTP or its own."""
        if self._plain is not None:
            self._plain.send_rtcp(data)
        elif (way := self._rtp if self._is_muxed else self._rtcp) is not None:
            way.send(data)

    def close(self) -> None:
        """Stop, close the sockets and give the ports back.  Idempotent."""
        if self._closed:
            return
        self._closed = True
        if self._plain is not None:
            self._plain.close()
        for each in self._components:
            each.close()
        _give_back(self._pairs)

    def _heard(self, data: bytes) -> None:
        if kind_of(data) is DatagramKind.DTLS:
            self.on_dtls(data)
            return
        self._deliver(self._on_rtcp if self._is_muxed and is_rtcp(data) else self._on_rtp, data)

    def _heard_rtcp(self, data: bytes) -> None:
        self._deliver(self._on_rtcp, data)

    def _deliver(self, receiver: Receiver, data: bytes) -> None:
        try:
            receiver(data, monotonic())
        except Exception:  # which would end the watcher of the socket
            log.exception("media by ICE")


class _Taken:
    """A pool with one pair of sockets, which is open already."""

    def __init__(self, pool: MediaPool, pair: MediaPair) -> None:
        self._pool, self._pair = pool, pair

    def open(self, ip: str) -> MediaPair:
        return self._pair

    def release(self, port: int) -> None:
        self._pool.release(port)


def _give_back(pairs: Sequence[tuple[MediaPool, MediaPair]]) -> None:
    for pool, pair in pairs:
        port = pair.rtp.getsockname()[1]
        pair.rtp.close()
        pair.rtcp.close()
        pool.release(port)


def _of_rtcp(pair: MediaPair) -> MediaPair:
    """The same, for the second component: RFC 8839 §4.2.2."""
    public = pair.public and PublicPorts(pair.public.host, pair.public.rtcp_port, pair.public.port)
    return MediaPair(pair.rtcp, pair.rtp, public, pair.relays)


def _nominated(agent: IceAgent) -> IceCandidate | None:
    """The candidate of ours in use by UDP, as the peer sees it.

    Own design: a description whose connection is by TCP stays as it was at first, with a default by
    UDP.
    """
    used = agent.selected
    if used is None or agent.state is not IceState.COMPLETED or used.local.is_tcp:
        return None
    return used.seen or used.local


def _credentials(theirs: IceLine) -> IceCredentials:
    return IceCredentials(theirs.ufrag, theirs.password)
