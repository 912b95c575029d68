"""The attributes of a media line: codecs, direction, packet time, addresses.

Implements RFC 8866 §6, with the static payload types of RFC 3551 §6, the RTCP port of
RFC 3605 §2.1, or RFC 5761 §5.1.1 where RTP shares it, and the telephone events of RFC 4733 §2.4.1.

    >>> from p2psip.sdp.session import Attribute, MediaDescription
    >>> speex = Attribute("rtpmap", "97 speex/16000")
    >>> line = MediaDescription("audio", 8088, "RTP/AVP", ("97", "0"), attributes=(speex,))
    >>> [str(each) for each in rtpmaps(line)]
    ['97 speex/16000', '0 PCMU/8000']

An attribute that makes no sense is ignored (§5.13), never an error: one bad line
about a codec that is not used must not end the call.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Self

from p2psip.errors import RemoteError
from p2psip.sdp.line import find_all, is_unspecified, number, words
from p2psip.sdp.session import Connection, MediaDescription, SessionDescription

DTMF_EVENTS: Final = frozenset(range(16))  # 0-9 * # A-D. Source: RFC 4733 §3.2
MAX_PARAMETERS: Final = 64  # Own design: of one format; the longest seen in use has some ten
MAX_EVENTS: Final = 256  # an event is an octet. Source: RFC 4733 §2.3.1
DEFAULT_PTIME: Final = 20  # ms. Source: RFC 3551 §4.2
MAX_PTIME: Final = 200  # ms, the longest packet a receiver must expect. Source: RFC 3551 §4.2
RTCP_LOOKALIKES: Final = range(64, 96)  # payload types. Source: RFC 5761 §4
_MAX_CLOCK_RATE = 2**32  # Own design: a faster clock than RTP's own timestamp is nonsense


@dataclass(frozen=True, slots=True)
class RtpMap:
    """Which encoding a payload type number stands for: §6.6; `clock_rate` in Hz."""

    payload_type: int
    encoding: str
    clock_rate: int
    channels: int = 1

    @classmethod
    def parse(cls, value: str) -> Self:
        """Read the value of `a=rtpmap:`, or raise RemoteError: §6.6."""
        match words(value):
            case [payload_type, mapping]:
                encoding, *numbers = mapping.split("/")
            case _:
                raise RemoteError("Bad rtpmap")
        match [number(text) for text in numbers]:
            case [clock_rate] if 0 < clock_rate < _MAX_CLOCK_RATE and encoding:
                return cls(_payload_type(payload_type), encoding, clock_rate)
            case [clock_rate, channels] if 0 < clock_rate < _MAX_CLOCK_RATE and encoding:
                return cls(_payload_type(payload_type), encoding, clock_rate, max(channels, 1))
        raise RemoteError("Bad rtpmap")

    def __str__(self) -> str:
        """Write the value of `a=rtpmap:`, leaving out a single channel: §6.6."""
        channels = "" if self.channels == 1 else f"/{self.channels}"
        return f"{self.payload_type} {self.encoding}/{self.clock_rate}{channels}"


@dataclass(frozen=True, slots=True)
class Fmtp:
    """The parameters of one format: §6.15; `text` is for the format itself to read."""

    payload_type: int
    text: str

    @classmethod
    def parse(cls, value: str) -> Self:
        """Read the value of `a=fmtp:`, or raise RemoteError: §6.15."""
        payload_type, _, text = value.strip(" ").partition(" ")
        return cls(_payload_type(payload_type), text.strip(" "))

    def __str__(self) -> str:
        """Write the value of `a=fmtp:`: §6.15."""
        return f"{self.payload_type} {self.text}"


# Source: RFC 3551 §6, Table 4 and Table 5.  Numbers that are reserved there stay out.
STATIC: Final[Mapping[int, RtpMap]] = {
    each.payload_type: each
    for each in (
        RtpMap(0, "PCMU", 8000),
        RtpMap(3, "GSM", 8000),
        RtpMap(4, "G723", 8000),
        RtpMap(5, "DVI4", 8000),
        RtpMap(6, "DVI4", 16000),
        RtpMap(7, "LPC", 8000),
        RtpMap(8, "PCMA", 8000),
        RtpMap(9, "G722", 8000),  # sampled at 16 kHz all the same: RFC 3551 §4.5.2
        RtpMap(10, "L16", 44100, 2),
        RtpMap(11, "L16", 44100),
        RtpMap(12, "QCELP", 8000),
        RtpMap(13, "CN", 8000),  # RFC 3389 §4 [type-13-at-8000]
        RtpMap(14, "MPA", 90000),
        RtpMap(15, "G728", 8000),
        RtpMap(16, "DVI4", 11025),
        RtpMap(17, "DVI4", 22050),
        RtpMap(18, "G729", 8000),
        RtpMap(25, "CelB", 90000),
        RtpMap(26, "JPEG", 90000),
        RtpMap(28, "nv", 90000),
        RtpMap(31, "H261", 90000),
        RtpMap(32, "MPV", 90000),
        RtpMap(33, "MP2T", 90000),
        RtpMap(34, "H263", 90000),
    )
}


# Encodings that have one clock and one number of channels, by the others that peers name.
# Source: RFC 3551 §4.5.2, RFC 7587 §7; Field §"Encodings by another rate"
_MEANT: Final = {("g722", 16000, 1): (8000, 1), ("opus", 48000, 1): (48000, 2)}


def rtpmaps(media: MediaDescription) -> tuple[RtpMap, ...]:
    """Give the encodings of a line in its order of preference: §5.14, §6.6.

    A number with neither an `a=rtpmap` nor a static meaning is left out, as is a repeated one.
    Rate and channels are those that the encoding can only have, whatever the line says.
    """
    mapped = dict(STATIC)
    for value in find_all(media.attributes, "rtpmap"):
        try:
            each = RtpMap.parse(value)
        except RemoteError:
            continue
        mapped[each.payload_type] = each
    numbers = dict.fromkeys(payload_types(media))
    return tuple(_meant(mapped[each]) for each in numbers if each in mapped)


def _meant(said: RtpMap) -> RtpMap:
    meant = _MEANT.get((said.encoding.lower(), said.clock_rate, said.channels))
    return said if meant is None else RtpMap(said.payload_type, said.encoding, *meant)


def payload_types(media: MediaDescription) -> tuple[int, ...]:
    """Give the formats of a line that are RTP payload type numbers: §5.14."""
    return tuple(
        int(text) for text in media.formats if text.isascii() and text.isdigit() and len(text) <= 3
    )


def fmtps(media: MediaDescription) -> dict[int, str]:
    """Give the format parameters of a line by payload type: §6.15.  The first one counts."""
    found: dict[int, str] = {}
    for value in find_all(media.attributes, "fmtp"):
        try:
            each = Fmtp.parse(value)
        except RemoteError:
            continue
        found.setdefault(each.payload_type, each.text)
    return found


def parameters(fmtp: str) -> dict[str, str]:
    """Read parameters written as `name=value; name=value`: §6.15.  Names in lower case."""
    found: dict[str, str] = {}
    for part in fmtp.split(";", MAX_PARAMETERS)[:MAX_PARAMETERS]:
        name, _, value = part.partition("=")
        if name.strip():
            found.setdefault(name.strip().lower(), value.strip().strip('"'))
    return found


def events(fmtp: str) -> frozenset[int]:
    """Read the telephone events of a list, by default those of DTMF: RFC 4733 §2.4.1, §2.5.1.1."""
    found: set[int] = set()
    for part in fmtp.replace(" ", "").split(",", MAX_EVENTS)[:MAX_EVENTS]:
        first, dash, last = part.partition("-")
        try:
            low = number(first)
            high = number(last) if dash else low
        except RemoteError:
            continue
        found.update(range(low, min(high, MAX_EVENTS - 1) + 1))  # RFC 4733 §2.4.1 [event-list]
        if len(found) == MAX_EVENTS:
            break
    return frozenset(found) or DTMF_EVENTS  # RFC 4733 §2.5.1.1 [dtmf-by-default]


DIRECTIONS: Final = ("sendrecv", "sendonly", "recvonly", "inactive")


def direction(media: MediaDescription, session: SessionDescription) -> str:
    """Give the direction as its author sees it: the line's, else the session's: §6.7."""
    for attributes in (media.attributes, session.attributes):
        for attribute in attributes:
            if attribute.name in DIRECTIONS:
                return attribute.name
    return "sendrecv"  # §6.7 [both-ways-by-default]


def mid(media: MediaDescription) -> str | None:
    """Give the name of a line within its session, None without one: RFC 5888 §4."""
    return media.attribute("mid") or None


def ptime(media: MediaDescription) -> int | None:
    """Give the packet time the author wants to receive, in whole ms: §6.4."""
    return _milliseconds(media.attribute("ptime"))


def maxptime(media: MediaDescription) -> int | None:
    """Give the longest packet the author can take, in whole ms: §6.5."""
    return _milliseconds(media.attribute("maxptime"))


def bits(media: MediaDescription, session: SessionDescription) -> int:
    """Give the most bits a second that the author takes, 0 if it does not say: §5.8.

    AS counts kilobits, and TIAS, a later kind, bits without headers.  Those of the session hold
    for a line that says nothing itself.
    """
    for ceilings in (media.bandwidths, session.bandwidths):
        said = {each.kind: each.value for each in ceilings}
        # §5.8 [other-bandwidths] [unknown-bandwidth-ignored]
        if most := said.get("TIAS") or 1000 * said.get("AS", 0):
            return most
    return 0


def connection(media: MediaDescription, session: SessionDescription) -> Connection | None:
    """Give the `c=` line that holds for a line: its own, else the session's: §5.7."""
    return media.connection or session.connection


def media_address(media: MediaDescription, session: SessionDescription) -> tuple[str, int] | None:
    """Give the host and port to send RTP to, or None if there is nowhere to send.

    That is a port of 0 (RFC 3264 §5.1), an address of 0.0.0.0 (RFC 3264 §8.4), no
    address at all, or one that is not of the Internet (§5.7).
    """
    # RFC 8866 §5.14 [odd-port-is-kept] [ports-as-told]
    return _address(connection(media, session), media.port)


def rtcp_address(media: MediaDescription, session: SessionDescription) -> tuple[str, int] | None:
    """Give the host and port to send RTCP to: RFC 3605 §2.1, else the next higher port (§5.14)."""
    where = connection(media, session)
    if media.port == 0 or _address(where, media.port) is None:
        return None
    match words(media.attribute("rtcp") or ""):  # RFC 3605 §2.1 [of-one-line]
        case [port, network, kind, host] if port.isascii() and port.isdigit() and len(port) < 6:
            return _address(Connection(network, kind, host), int(port))
        case [port] if port.isascii() and port.isdigit() and len(port) < 6:
            return _address(where, int(port))  # §5.14 [ports-as-told]
    return _address(where, media.port + 1)


def rtcp_mux(media: MediaDescription) -> bool:
    """Tell whether the author wants RTCP at the port of RTP: RFC 5761 §5.1.1."""
    return any(each.name == "rtcp-mux" for each in media.attributes)


def _address(where: Connection | None, port: int) -> tuple[str, int] | None:
    if where is None or where.network_type != "IN" or not 0 < port < 65536:
        return None
    # RFC 3264 §8.4 [zeros-are-a-hold]
    if where.address_type not in ("IP4", "IP6") or is_unspecified(where.address):
        return None
    return where.address, port  # RFC 8866 §4.1 [address-of-receiver]


def _payload_type(text: str) -> int:
    value = number(text)
    if value > 127:
        raise RemoteError("Bad payload type")
    return value


def _milliseconds(text: str | None) -> int | None:
    """Read `20` or `22.5`, the fraction dropped; None for nothing, zero or nonsense."""
    whole, _, _ = (text or "").strip(" ").partition(".")
    if whole.isascii() and whole.isdigit() and len(whole) <= 9:
        return int(whole) or None
    return None
