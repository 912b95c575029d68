"""The descriptions of browsers: an offer read as one of plain RTP, an answer written for it.

Implements RFC 9725 §4.2 and §4.4.1, in the shape that JSEP gives to descriptions, with RFC 8839
§5.1 and §5.4 and RFC 5763 §5 for what a browser says of its transport.

Own design: a browser differs from a phone by its transport alone.  That is one for all lines, by
ICE and DTLS, and says nothing about codecs.  So it is taken off the offer like an envelope, what is
inside is answered as that of a phone (`offer_answer`), and the answer gets an envelope of ours.
Offers of ours and the answers to them are read and written the same way.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, Self

from p2psip.errors import RemoteError
from p2psip.sdp.attributes import DIRECTIONS, direction, mid, rtcp_mux
from p2psip.sdp.ice_line import of_either
from p2psip.sdp.line import Attribute, Attributes, Connection, find_all
from p2psip.sdp.rate_feedback import RATE_OFFER, rate_feedback
from p2psip.sdp.session import MediaDescription, SessionDescription

PROTOCOLS: Final = ("UDP/TLS/RTP/SAVPF", "UDP/TLS/RTP/SAVP")
PLAIN: Final = "RTP/AVPF"
FRAGMENT: Final = "application/trickle-ice-sdpfrag"  # Source: RFC 9725 §4.3.1
ICE_OPTIONS: Final = "trickle ice2"  # Source: RFC 9725 §4.2, its example
HOST_PREFERENCE: Final = 126  # of candidates of a host's own, as ICE recommends
TCP_PREFERENCE: Final = 125  # lower than that of UDP, as media had better not wait for lost packets
PASSIVE: Final = (4 << 13) + 8192  # Source: RFC 6544, the preference of those that wait, plus one
TCP: Final = "tcp"  # what a foundation begins with
HASH: Final = "sha-256"  # Source: RFC 8122 §5, the one that all have
_DIGEST: Final = re.compile(r"[0-9A-Fa-f]{2}(?::[0-9A-Fa-f]{2})*")  # Source: RFC 8122 §5
_DISCARD: Final = 9  # the port of a line whose address comes by ICE
_MEDIA: Final = ("audio", "video")
# What an envelope has, and a plain line has not
_ENVELOPE: Final = frozenset(("rtcp", "candidate", "end-of-candidates", "rtcp-mux-only"))

HostPort = tuple[str, int]


@dataclass(frozen=True, slots=True)
class BrowserOffer:
    """An offer without its envelope.

    `plain` is what it offers, as RTP at a stand-in address; `lines` are those of the browser,
    `bundled` the names of those that share its transport.  `ufrag`, `password` and `fingerprint`
    are of that.
    """

    plain: SessionDescription
    lines: tuple[MediaDescription, ...]
    bundled: tuple[str, ...]
    ufrag: str
    password: str
    fingerprint: str

    @classmethod
    def read(cls, sdp: bytes, host: str, flow: str = "") -> Self:
        """Read an offer, or raise RemoteError: 400, or 488 for one that cannot be answered.

        `host` stands for the browser's address.  `flow` is the one direction that media may have:
        "sendonly" for a browser that publishes, "recvonly" for one that plays, "" for a phone,
        which has any.
        """
        theirs = SessionDescription.parse(sdp)
        bundled = tuple(_bundled(theirs))
        tagged = next((each for each in theirs.media if mid(each) in bundled), None)
        if tagged is None:
            raise RemoteError("No bundled line in the offer", 488)
        ufrag, password, fingerprint, setup = (
            of_either(tagged, theirs, name)
            for name in ("ice-ufrag", "ice-pwd", "fingerprint", "setup")
        )
        if not ufrag or password is None:
            raise RemoteError("No ICE in the offer", 488)
        if theirs.attribute("ice-lite") is not None:
            raise RemoteError("Two lite agents cannot find each other", 488)
        digest = read_digest(fingerprint, "offer")
        if setup not in ("actpass", "active"):  # RFC 9725 §4.4.4
            raise RemoteError("The browser must begin DTLS: a=setup:actpass", 488)
        lines = tuple(_plain(each, theirs, bundled, flow) for each in theirs.media)
        plain = replace(theirs, connection=Connection.to(host), media=lines)
        return cls(plain, theirs.media, bundled, ufrag, password, digest)


@dataclass(frozen=True, slots=True)
class BrowserAnswer:
    """What an answer says to the one that plays the browser's part, and offered actpass.

    `lines` are those that are on; `is_active` tells that the other end begins DTLS.  `candidates`
    are values of the attribute, unread.
    """

    lines: tuple[MediaDescription, ...]
    ufrag: str
    password: str
    fingerprint: str
    is_active: bool
    candidates: tuple[str, ...]

    @classmethod
    def read(cls, sdp: bytes) -> Self:
        """Read an answer, or raise RemoteError: 400, or 488 for one without ICE, DTLS or lines."""
        theirs = SessionDescription.parse(sdp)
        lines = tuple(
            each for each in theirs.media if each.port or each.attribute("bundle-only") is not None
        )
        if not lines:
            raise RemoteError("The answer takes no line of the offer", 488)
        ufrag, password, fingerprint, setup = (
            of_either(lines[0], theirs, name)
            for name in ("ice-ufrag", "ice-pwd", "fingerprint", "setup")
        )
        if not ufrag or not password:
            raise RemoteError("No ICE in the answer", 488)
        if setup not in ("active", "passive"):  # RFC 5763 §5
            raise RemoteError("The answer does not say which end begins DTLS: a=setup", 488)
        candidates = (*find_all(theirs.attributes, "candidate"),)
        candidates += tuple(v for each in lines for v in find_all(each.attributes, "candidate"))
        digest = read_digest(fingerprint, "answer")
        return cls(lines, ufrag, password, digest, setup == "active", candidates)


@dataclass(frozen=True, slots=True)
class BrowserEnd:
    """Our end of a browser's transport: ICE by these credentials, at `address`, DTLS as server.

    `stream` is the name under which the browser shows what we send.  With `has_tcp` the same
    addresses take connections of TCP.  One that is not `is_lite` plays the browser's part itself.
    """

    ufrag: str
    password: str
    fingerprint: str
    addresses: tuple[HostPort, ...]
    stream: str = "siprtmp"
    has_tcp: bool = False
    is_lite: bool = True

    def answer(self, offer: BrowserOffer, plain: SessionDescription) -> SessionDescription:
        """Give an answer to `offer.plain` the envelope that the browser asks for."""
        lines = tuple(
            self._line(ours, theirs, "passive")
            for ours, theirs in zip(plain.media, offer.lines, strict=True)
        )
        return self._session(plain, lines)

    def offer(
        self, plain: SessionDescription, theirs: Sequence[MediaDescription] = ()
    ) -> SessionDescription:
        """Give an offer of plain RTP the envelope of a browser: RFC 5763 §5, RFC 8839 §5.

        `theirs` are the browser's lines so far, which name ours; others are named by their place.
        """
        lines = []
        for index, ours in enumerate(plain.media):
            first: Attributes = (Attribute("mid", str(index)), *RATE_OFFER)
            said = theirs[index].attributes if index < len(theirs) else first
            alike = replace(ours, protocol=PROTOCOLS[0], attributes=said)
            if not rtcp_mux(ours):
                ours = replace(ours, attributes=(*ours.attributes, Attribute("rtcp-mux")))
            lines.append(self._line(ours, alike, "actpass"))  # RFC 5763 §5
        return self._session(plain, tuple(lines))

    def _session(
        self, plain: SessionDescription, lines: tuple[MediaDescription, ...]
    ) -> SessionDescription:
        named = " ".join(mid(each) or "" for each in lines if each.port)
        host, _ = self.addresses[0]
        attributes = (
            # WHEP §4.5.1 [bundles]
            Attribute("group", f"BUNDLE {named}"),  # RFC 9725 §4.4.1 [bundles]
            *((Attribute("ice-lite"),) if self.is_lite else ()),  # RFC 8839 §5.3
            Attribute("ice-options", ICE_OPTIONS),
        )
        return replace(plain, attributes=attributes, connection=Connection.to(host), media=lines)

    def fragment(self, offer: BrowserOffer) -> bytes:
        """Write what is new after a restart of ICE, for the line that the bundle is named by."""
        line = next(each for each in offer.lines if mid(each) in offer.bundled)
        lines = (
            # WHEP §4.4.3 [same-options]
            "a=ice-lite",  # RFC 9725 §4.3.3 [same-options]
            f"a=ice-options:{ICE_OPTIONS}",
            f"a=group:BUNDLE {' '.join(offer.bundled)}",
            f"m={line.kind} {_DISCARD} {line.protocol} {line.formats[0]}",
            f"a=mid:{mid(line)}",
            # WHEP §4.4.3 [restart-is-200]
            f"a=ice-ufrag:{self.ufrag}",  # RFC 9725 §4.3.3 [restart-is-200]
            f"a=ice-pwd:{self.password}",
            *(f"a={each}" for each in self._candidates()),
            "a=end-of-candidates",
        )
        return "".join(f"{each}\r\n" for each in lines).encode()

    def _line(
        self, ours: MediaDescription, theirs: MediaDescription, setup: str
    ) -> MediaDescription:
        name = Attribute("mid", mid(theirs) or "0")
        if not ours.port:
            return replace(ours, protocol=theirs.protocol, attributes=(name,))
        kept = tuple(each for each in ours.attributes if each.name not in _ENVELOPE)
        transport = (
            Attribute("ice-ufrag", self.ufrag),  # RFC 8839 §5.4 [credentials-for-each]
            Attribute("ice-pwd", self.password),
            # RFC 5763 §5 [fingerprint-is-said] [answers-active-or-passive]
            Attribute("fingerprint", f"{HASH} {self.fingerprint}"),
            Attribute("setup", setup),
            # WHEP §4.4.2 [answer-has-all-candidates]
            *self._candidates(),  # RFC 9725 §4.3.2 [answer-has-all-candidates]
            Attribute("end-of-candidates"),
            # WHEP §4.5.1 [mux-only-is-said]
            Attribute("rtcp-mux-only"),  # RFC 9725 §4.4.1 [mux-only-is-said]
        )
        sends = "recvonly" not in {each.name for each in ours.attributes}
        # WHEP §4.5.2 [one-stream]
        shown = (Attribute("msid", f"{self.stream} {ours.kind}"),) if sends else ()
        receives = "sendonly" not in {each.name for each in ours.attributes}
        rate = rate_feedback(theirs, ours.formats) if receives else ()
        _, port = self.addresses[0]
        return replace(
            ours,
            port=port,
            protocol=theirs.protocol,
            attributes=(name, *kept, *shown, *rate, *transport),
        )

    def _candidates(self) -> Iterator[Attribute]:
        """Write our addresses: RFC 8839 §5.1.

        Own design: the local preference falls by one for each.  Those of TCP come last.
        """
        for number, (host, port) in enumerate(self.addresses, 1):
            # RFC 8839 §5.1 [no-names] [component-1-for-rtp] [host-has-no-related]
            priority = HOST_PREFERENCE << 24 | (0x10000 - number) << 8 | 255
            yield Attribute("candidate", f"{number} 1 udp {priority} {host} {port} typ host")
        for number, (host, port) in enumerate(self.addresses if self.has_tcp else (), 1):
            # RFC 6544 §4.4 [lite-has-passive-hosts], §4.5 [transport-is-tcp]
            priority = TCP_PREFERENCE << 24 | (PASSIVE - number) << 8 | 255
            words = f"{TCP}{number} 1 tcp {priority} {host} {port} typ host tcptype passive"
            yield Attribute("candidate", words)


def is_of_browser(sdp: bytes) -> bool:
    """Whether a description offers DTLS-SRTP, as all browsers do: RFC 5763 §5."""
    try:
        theirs = SessionDescription.parse(sdp)
    except RemoteError:
        return False
    return any(each.protocol in PROTOCOLS for each in theirs.media)


@dataclass(frozen=True, slots=True)
class IceFragment:
    """What a browser says of its ICE within a session: RFC 9725 §4.3.1.

    Own design: its candidates are not kept, since a lite agent needs none; the password may be
    missing, as a lite agent checks nothing itself.
    """

    ufrag: str
    password: str

    @classmethod
    def read(cls, fragment: bytes) -> Self:
        """Read a fragment; RemoteError for a text that is none, or has no user name."""
        found: dict[str, str] = {}
        for line in filter(None, fragment.decode(errors="replace").splitlines()):
            # WHEP §4.4.1 [patch-is-a-fragment]
            if line[1:2] != "=":  # RFC 9725 §4.3.1 [patch-is-a-fragment]
                raise RemoteError("That is no fragment of SDP")
            name, _, value = line.partition(":")
            found.setdefault(name, value.strip())
        if not (ufrag := found.get("a=ice-ufrag")):
            raise RemoteError("No ice-ufrag in the fragment")
        return cls(ufrag, found.get("a=ice-pwd", ""))


def _bundled(theirs: SessionDescription) -> Iterator[str]:
    """The names of the lines that share a transport; a single line needs no group."""
    for value in find_all(theirs.attributes, "group"):
        word, *names = value.split() or [""]
        if word == "BUNDLE":
            yield from names
            return
    if len(theirs.media) == 1 and (name := mid(theirs.media[0])):
        yield name


def read_digest(fingerprint: str | None, where: str) -> str:
    """Read the hash of a certificate by SHA-256; RemoteError without one: RFC 8122 §5."""
    # RFC 8122 §5 [fingerprint-is-there] [no-md5]
    algorithm, _, digest = (fingerprint or "").partition(" ")
    if algorithm.lower() != HASH or not _DIGEST.fullmatch(digest.strip()):
        raise RemoteError(f"No fingerprint by SHA-256 in the {where}", 488)
    return digest.strip().upper()


def _plain(
    line: MediaDescription, session: SessionDescription, bundled: tuple[str, ...], flow: str
) -> MediaDescription:
    """A line as plain RTP, off if it is not in the bundle, or no media: RFC 9725 §4.4.1.

    Raises RemoteError(488) if its media flows the other way.
    """
    is_there = line.port or line.attribute("bundle-only") is not None
    is_media = line.kind in _MEDIA and line.protocol in PROTOCOLS
    # WHEP §4.5.1 [muxes]
    # RFC 9725 §4.4.1 [muxes]
    if not (is_there and is_media and mid(line) in bundled and rtcp_mux(line)):
        return replace(line, port=0)
    said = direction(line, session)
    if flow and said not in (flow, "sendrecv"):
        # WHEP §4.2.5 [players-receive]
        # RFC 9725 §4.2 [publishers-send]
        raise RemoteError(f"The offer has {said}, where {flow} is meant", 488)
    kept: Attributes = tuple(
        each for each in line.attributes if each.name not in (*_ENVELOPE, *DIRECTIONS)
    )
    return replace(
        line,
        port=_DISCARD,
        protocol=PLAIN,
        connection=None,
        more_connections=(),
        # WHEP §4.2.5 [answers-sendonly]
        attributes=(*kept, Attribute(flow or said)),  # RFC 9725 §4.2 [answers-recvonly]
    )
