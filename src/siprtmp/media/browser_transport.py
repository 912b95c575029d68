"""The transport of a browser: all lines of a session on one UDP flow, by ICE, DTLS and SRTP.

Implements RFC 5764 §5.1 and RFC 9725 §4.4.1, over `p2psip.nat.ice_lite` and a DTLS handshake.

Own design: a sans-I/O machine between a port that many browsers share and the streams of one
session.  ICE says where the browser is, so that the addresses of its description mean nothing here;
a datagram of anything but ICE counts only from where a check has come.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final, Protocol

from p2psip.errors import LocalError
from p2psip.nat.demultiplexing import DatagramKind, is_rtcp
from p2psip.nat.ice_credentials import HostPort
from p2psip.nat.ice_lite import IceLite
from p2psip.nat.stun import StunClass, StunMessage
from p2psip.rtp.arrivals import Arrivals
from p2psip.rtp.fast import one_byte_element
from p2psip.sdp.attributes import payload_types
from p2psip.sdp.jsep import BrowserEnd, BrowserOffer
from p2psip.sdp.rate_feedback import wide_number_id
from p2psip.sdp.session import SessionDescription
from p2psip.srtp.stream import SrtpStream
from p2psip.srtp.suites import AES_CM_128_HMAC_SHA1_80
from siprtmp.media.offload import Flow, Outlet
from siprtmp.media.stream import earliest
from siprtmp.media.transport import MediaAddress, Receiver, Timed, Waker

SETUP_SECONDS: Final = 15.0  # from an answer to the keys; browsers need less than one
MAX_LINES: Final = 2  # audio and video
WIDE_OCTETS: Final = 2  # Source: Transport-wide CC 01 §2.2
WINDOW: Final = 512  # packets late, since lost ones are sent again: RFC 4585 §6.2.1

Send = Callable[[bytes, HostPort], None]
Watch = Callable[[HostPort, HostPort, bytes], object]
Lost = Callable[[float, str], object]


class Handshake(Protocol):
    """A DTLS handshake, as `p2psip.net.dtls` has it: RFC 5764 §4.2."""

    @property
    def keys(self) -> tuple[tuple[bytes, bytes], tuple[bytes, bytes]] | None:
        """Our master key and salt, and theirs, when it is done: RFC 5764 §4.2."""

    failed: str
    closed: bool
    deadline: float | None

    def received(self, data: bytes, now: float) -> list[bytes]:
        """Take a datagram, and return the datagrams that answer it."""

    def tick(self, now: float) -> list[bytes]:
        """Send again what is due."""

    def close(self) -> list[bytes]:
        """Tell the peer that this is the end."""


class BundledLine:
    """The part of a browser's transport that carries one line; a `MediaTransport`.

    What a description says of addresses is kept and not used.
    """

    def __init__(self, bundle: "BrowserTransport") -> None:
        self._bundle = bundle
        self.remote: HostPort | None = None
        self.remote_rtcp: HostPort | None = None
        self.rtcp_mux = True
        self.hosts: Collection[str] = ()
        self.on_ready: Callable[[], object] = lambda: None
        self.on_rtp: Receiver = _unheard
        self.on_rtcp: Receiver = _unheard

    @property
    def is_ready(self) -> bool:
        return self._bundle.is_ready

    def offload(self, *terms: Any) -> Flow | None:
        return None

    def gather(self, *terms: Any) -> Flow | None:
        return None

    def outlet(self, take: Callable[[int, int, bytes, float], None]) -> Outlet | None:
        return None

    def send_rtp(self, data: bytes) -> None:
        self._bundle.send_rtp(data)

    def send_run(self, run: Sequence[bytes]) -> None:
        for data in run:
            self._bundle.send_rtp(data)

    def send_rtcp(self, data: bytes) -> None:
        self._bundle.send_rtcp(data)

    def watch(self, watch: Watch | None) -> None:
        self._bundle.watch = watch

    def close(self) -> None:
        self.on_rtp = self.on_rtcp = _unheard


class BrowserTransport:
    """One browser's flow, from the answer to the end; the `Transports` of its session.

    `at` is our address, `handshake` makes the DTLS of a browser that has answered by ICE and has a
    certificate of this `fingerprint`; `send` sends a datagram, and `waker` makes a timer.
    `watch`, if set, is called with source, target and octets of each datagram but those of ICE.
    `on_connected` is called when media gets through, `on_gone`, with the reason, when the browser
    has gone or was never there.  `random(n)` gives n octets.
    """

    def __init__(
        self,
        at: MediaAddress,
        ice: IceLite,
        handshake: Callable[[str], Handshake],
        send: Send,
        waker: Callable[[Timed], Waker],
        random: Callable[[int], bytes],
        now: float,
    ) -> None:
        self.at, self.ice, self.fingerprint = at, ice, ""
        self.watch: Watch | None = None
        self.on_connected: Callable[[float], object] = lambda now: None
        self.on_gone: Callable[[str, float], object] = lambda reason, now: None
        self._make_handshake, self._send, self.waker = handshake, send, waker
        self._handshake: Handshake | None = None
        self._until: float | None = now + SETUP_SECONDS  # None while the browser knows nothing
        self._lines: list[BundledLine] = []
        self._by_type: dict[int, BundledLine] = {}
        self._srtp = SrtpStream(window=WINDOW)
        self._arrivals, self._wide_id = Arrivals(), 0  # the identifier of packets' numbers, or 0
        self._ssrc, self._heard_ssrc = int.from_bytes(random(4), "big"), 0
        self._closed = False
        self._alarm = waker(self)
        self._alarm.set()

    # -- Transports ---------------------------------------------------------------------

    def open(self) -> tuple[BundledLine, MediaAddress]:
        """The next line, of audio and then of video.  Raises LocalError when all are in use."""
        if len(self._lines) >= MAX_LINES:
            raise LocalError("a browser has one line of audio and one of video")
        line = BundledLine(self)
        self._lines.append(line)
        return line, self.at

    def release(self, transport: object) -> None:
        """Forget a line that is closed."""
        self._by_type = {
            number: line for number, line in self._by_type.items() if line is not transport
        }

    def wait(self) -> None:
        """Give the browser no time yet: its answer may take as long as a phone rings."""
        self._until = None

    def expect(self, fingerprint: str, now: float) -> None:
        """Wait for a browser with a certificate of this fingerprint, whose answer is known now."""
        if not self._srtp.is_on and self._until is None:
            self.fingerprint, self._until = fingerprint, now + SETUP_SECONDS
            self._alarm.set()

    def route(self, answer: SessionDescription) -> None:
        """Give each payload type of our description to its line: RFC 9725 §4.4.1.

        Own design: no line shares a type with another, since each has codecs of its own.
        """
        self._wide_id = next(filter(None, map(wide_number_id, answer.media)), 0)
        kinds: Mapping[str, BundledLine] = dict(zip(("audio", "video"), self._lines, strict=False))
        for media in answer.media:
            if media.port and media.kind in kinds:
                # RFC 9725 §4.4.1 [bundled-media]
                self._by_type |= dict.fromkeys(payload_types(media), kinds[media.kind])

    # -- what comes ---------------------------------------------------------------------

    def check(self, request: StunMessage, source: HostPort, now: float) -> None:
        """Answer a check of ICE, or take the answer to one of ours: RFC 8445 §7.3."""
        if request.kind is not StunClass.REQUEST:
            self.ice.answered(request, source, now)
            return
        for data in self.ice.received(request, source, now), self.ice.question(source):
            if data is not None:
                self._send(data, source)

    def received(self, kind: DatagramKind, data: bytes, now: float) -> None:
        """Take DTLS or SRTP, which has come from where a check came from."""
        if self._closed:
            return
        if self.watch is not None and (remote := self.ice.remote) is not None:
            self.watch(remote, self.at[:2], data)
        if kind is DatagramKind.DTLS:
            self._shake(data, now)
        elif self._srtp.is_on:  # RFC 5764 §5.1 [no-media-before-the-keys]
            self._hear(data, now)

    def _shake(self, data: bytes, now: float) -> None:
        if not self.fingerprint:
            return  # it sends again, when we know who may
        if self._handshake is None:
            self._handshake = self._make_handshake(self.fingerprint)
        handshake = self._handshake
        self._post(handshake.received(data, now))
        if handshake.failed:
            self._end(f"DTLS: {handshake.failed}", now)
        elif handshake.closed:
            self._end("ended by the browser", now)
        elif not self._srtp.is_on and handshake.keys is not None:
            self._srtp.use(AES_CM_128_HMAC_SHA1_80, *handshake.keys)
            self.ice.settle()
            self._until = None
            for line in self._lines:
                line.on_ready()
            self.on_connected(now)
        self._alarm.set()

    def _hear(self, data: bytes, now: float) -> None:
        if is_rtcp(data):
            if (compound := self._srtp.open_rtcp(data)) is not None:
                for line in self._lines:  # each stream knows the sources it is about
                    line.on_rtcp(compound, now)
        elif (packet := self._srtp.open_rtp(data)) is not None:
            if self._wide_id:
                self._note_arrival(packet, now)
            line_of = self._by_type.get(packet[1] & 0x7F)
            if line_of is not None:
                line_of.on_rtp(packet, now)

    def _note_arrival(self, packet: bytes, now: float) -> None:
        """Remember when a packet came, by the number it has in this flow."""
        number = one_byte_element(packet, self._wide_id)
        if len(number) != WIDE_OCTETS:  # Transport-wide CC 01 §2.2 [two-octets]
            return
        self._heard_ssrc = int.from_bytes(packet[8:12], "big")
        is_idle = self._arrivals.deadline is None
        self._arrivals.heard(int.from_bytes(number, "big"), now)
        if is_idle:
            self._alarm.set()

    # -- what leaves --------------------------------------------------------------------

    @property
    def is_ready(self) -> bool:
        """Whether media gets through: RFC 5764 §5.1."""
        return self._srtp.is_on and not self._closed

    @property
    def keys(self) -> "tuple[tuple[bytes, bytes], tuple[bytes, bytes]] | None":
        """Our master key and salt, and theirs, once they are agreed on: RFC 5764 §4.2."""
        return self._handshake.keys if self._handshake is not None else None

    @property
    def refused(self) -> int:
        """How many packets were not authentic, or came before: RFC 3711 §3.3."""
        return self._srtp.refused

    def send_rtp(self, data: bytes) -> None:
        """Protect and send a packet of any line: RFC 3711 §3.3."""
        if self.is_ready and (remote := self.ice.remote) is not None:
            self._leave(self._srtp.protect_rtp(data), remote)

    def send_rtcp(self, data: bytes) -> None:
        """Protect and send a compound of any line: RFC 3711 §3.4."""
        if self.is_ready and (remote := self.ice.remote) is not None:
            self._leave(self._srtp.protect_rtcp(data), remote)

    def _post(self, datagrams: Sequence[bytes]) -> None:
        if (remote := self.ice.remote) is not None:
            for data in datagrams:
                self._leave(data, remote)

    def _leave(self, data: bytes, remote: HostPort) -> None:
        self._send(data, remote)
        if self.watch is not None:
            self.watch(self.at[:2], remote, data)

    # -- time ---------------------------------------------------------------------------

    @property
    def deadline(self) -> float | None:
        if self._closed:
            return None
        repeat = self._handshake.deadline if self._handshake is not None else None
        if not self._srtp.is_on:
            return earliest([self._until, repeat])
        return earliest([self.ice.deadline, repeat, self._arrivals.deadline])

    def tick(self, now: float) -> None:
        if self._closed:
            return
        if self._handshake is not None:
            self._post(self._handshake.tick(now))
        if self._srtp.is_on:
            told = self._arrivals.feedback(self._ssrc, self._heard_ssrc, now)
            if told is not None:  # alone, as a=rtcp-rsize allows
                self.send_rtcp(bytes(told))
            if now >= self.ice.deadline:
                self._end("the browser has gone", now)
        elif self._until is not None and now >= self._until:
            self._end("no media path: is the port of --webrtc reachable?", now)

    def _end(self, reason: str, now: float) -> None:
        if not self._closed:
            self.on_gone(reason, now)

    def close(self) -> None:
        """Say goodbye; nothing is sent or heard any more: RFC 9725 §4.2."""
        if self._closed:
            return
        if self._handshake is not None:
            self._post(self._handshake.close())
        self._closed = True  # RFC 9725 §4.2 [ends-at-once]
        self._alarm.cancel()


class BrowserFlows(Protocol):
    """The port of all browsers, as a call sees it."""

    def attach(self, now: float) -> tuple[BrowserTransport, BrowserEnd]:
        """A transport for a new browser, and what our end of it says in descriptions."""

    def detach(self, transport: BrowserTransport) -> None:
        """Take back a transport that is closed."""


class BrowserLeg:
    """What a call with a browser has in place of ports: its `Transports`, and its `Envelope`.

    Either side may offer.  `lost(now, reason)` is called when the browser has gone without a word.
    """

    def __init__(
        self, port: BrowserFlows, lost: Callable[[float, str], object], now: float
    ) -> None:
        self._port, self._lines = port, 0
        self._transport, self._end = transport, _ = port.attach(now)
        transport.wait()
        transport.on_gone = lambda reason, at: lost(at, reason)
        self.waker = transport.waker
        self._theirs: BrowserOffer | None = None

    @property
    def keys(self) -> tuple[tuple[bytes, bytes], tuple[bytes, bytes]] | None:
        """Those of its transport: RFC 5764 §4.2."""
        return self._transport.keys

    @property
    def suite(self) -> str:
        """The name of the suite that protects the media, "" before: RFC 5764 §4.2."""
        return AES_CM_128_HMAC_SHA1_80.name if self.keys is not None else ""

    def open(self) -> tuple[BundledLine, MediaAddress]:
        """The next line.  Raises LocalError when all are in use."""
        opened = self._transport.open()
        self._lines += 1
        return opened

    def release(self, transport: object) -> None:
        """Forget a line that is closed; with the last one all ends."""
        self._transport.release(transport)
        self._lines -= 1
        if not self._lines:
            self._transport.close()
            self._port.detach(self._transport)

    def take(self, theirs: bytes) -> None:
        self._theirs = read = BrowserOffer.read(theirs, self._transport.at.host)
        self._transport.ice.theirs = read.ufrag, read.password

    def answer(self, ours: bytes) -> bytes:
        assert self._theirs is not None
        answer = self._end.answer(self._theirs, SessionDescription.parse(ours))
        self._transport.route(answer)
        return bytes(answer)

    def offer(self, ours: bytes) -> bytes:
        theirs = self._theirs.lines if self._theirs is not None else ()
        offer = self._end.offer(SessionDescription.parse(ours), theirs)
        self._transport.route(offer)
        return bytes(offer)

    def begin(self, now: float) -> None:
        if self._theirs is not None:
            self._transport.expect(self._theirs.fingerprint, now)


def _unheard(data: bytes, now: float) -> None:
    """Drop a datagram for a line that nobody has taken."""
