"""Session descriptions of every kind, and media that two ends could agree on.

Implements RFC 8866 §9, read as a generator.  Strategies are named for what they make:
plain nouns are valid, `odd_` ones break a rule that a reader has to forgive, and
`broken_` ones must be refused.

    >>> from hypothesis import given
    >>> @given(sessions())
    ... def test_reading_undoes_writing(session):
    ...     assert SessionDescription.parse(bytes(session)) == session
"""

from dataclasses import replace
from functools import cache
from typing import Final

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from p2psip.sdp.attributes import DIRECTIONS, Fmtp, RtpMap
from p2psip.sdp.offer_answer import PROTOCOLS, Codec, LocalMedia, LocalTransport, make_offer
from p2psip.sdp.session import (
    Attribute,
    Bandwidth,
    Connection,
    MediaDescription,
    Origin,
    SessionDescription,
    Timing,
)

TOKEN_CHARS: Final = (  # Source: RFC 8866 §9 (token-char)
    "!#$%&'*+-.^_`{|}~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
)
NAMES: Final = ("PCMU", "PCMA", "speex", "opus", "G722", "iLBC", "telephone-event", "H264", "x-flv")
DTMF: Final = Codec("telephone-event", 8000, 1, 101, "0-15")
AUDIO: Final = (
    Codec("PCMU", 8000, 1, 0),
    Codec("GSM", 8000, 1, 3),
    Codec("PCMA", 8000, 1, 8),
    Codec("G722", 8000, 1, 9),
    Codec("speex", 16000, 1, 96),
    Codec("speex", 8000, 1, 98),
    Codec("iLBC", 8000, 1, 97),
    Codec("opus", 48000, 2, 111),
)
VIDEO: Final = (
    Codec("H264", 90000, 1, 99, "profile-level-id=42e01f;packetization-mode=1"),
    Codec("H264", 90000, 1, 100, "profile-level-id=42e01f"),
    Codec("x-flv", 90000, 1, 97),
    Codec("H261", 90000, 1, 31),
    Codec("VP8", 90000, 1, 102),
)
WOUNDS: Final = ("no v=", "v=1", "no o=", "two o=", "letter", "no equals", "nul", "port")
RATES: Final = (8000, 16000, 48000, 90000)  # Hz


@cache
def tokens() -> SearchStrategy[str]:
    """Words of the grammar's token-char: RFC 8866 §9."""
    return st.text(TOKEN_CHARS, min_size=1, max_size=12)


@cache
def texts() -> SearchStrategy[str]:
    """Words for people, in UTF-8: RFC 8866 §5.3, §5.4."""
    text = st.text(
        st.characters(exclude_categories=["Cs"], exclude_characters="\0\r\n"),
        min_size=1,
        max_size=12,
    )
    return text


@cache
def values() -> SearchStrategy[str]:
    """Byte strings as this codec holds them: any octet but Nul, CR, LF (RFC 8866 §9)."""
    octets = st.binary(min_size=1, max_size=24).map(lambda data: data.translate(None, b"\0\r\n"))
    return octets.map(lambda data: (data or b"-").decode("utf-8", "surrogateescape"))


@cache
def emails() -> SearchStrategy[str]:
    """Addresses, alone or with a name: RFC 8866 §5.6."""
    return st.sampled_from(
        ["j.doe@example.com", "j.doe@example.com (Jane Doe)", "Jane Doe <j.doe@example.com>"]
    )


@cache
def phones() -> SearchStrategy[str]:
    """Numbers, alone or with a name: RFC 8866 §5.6."""
    return st.sampled_from(
        ["+1 617 555-6011", "+1 617 555-6011 (Jane Doe)", "Jane Doe <+1 617 555-6011>"]
    )


@cache
def uris() -> SearchStrategy[str]:
    """References to more about the session: RFC 8866 §5.5."""
    return st.sampled_from(["http://www.example.com/sdp.pdf?a=b#c", "urn:a:b", "../about", "//a/b"])


@cache
def ports() -> SearchStrategy[int]:
    """Port numbers one can send to: RFC 8866 §5.14."""
    return st.integers(1, 65534)


@cache
def hosts() -> SearchStrategy[str]:
    """Unicast addresses and names: RFC 8866 §5.7."""
    return st.one_of(
        st.ip_addresses(network="192.0.2.0/24").map(str),
        st.ip_addresses(network="2001:db8::/32").map(str),
        st.sampled_from(["host.example.com", "a-1.example", "localhost", "a.example."]),
    )


@cache
def origins() -> SearchStrategy[Origin]:
    """`o=` lines whose numbers fit 62 bits: RFC 3264 §5."""
    numbers = st.integers(0, 2**62 - 2)
    return st.builds(
        lambda name, session_id, version, host: Origin(
            name, session_id, version, "IN", "IP6" if ":" in host else "IP4", host
        ),
        tokens(), numbers, numbers, hosts(),
    )  # fmt: skip


@cache
def connections() -> SearchStrategy[Connection]:
    """`c=` lines, unicast and multicast: RFC 8866 §5.7."""
    return st.one_of(
        hosts().map(Connection.to),
        st.builds(Connection, st.just("IN"), st.just("IP4"), st.just("233.252.0.1"),
                  st.integers(0, 255), st.integers(1, 9)),
        st.builds(Connection, st.just("IN"), st.just("IP6"), st.just("ff00::db8:0:101"),
                  st.none(), st.integers(1, 9)),
    )  # fmt: skip


@cache
def bandwidths() -> SearchStrategy[Bandwidth]:
    """`b=` lines: RFC 8866 §5.8."""
    return st.builds(Bandwidth, st.sampled_from(["CT", "AS", "X-YZ"]), st.integers(0, 10**9))


@cache
@st.composite
def timings(draw: DrawFn) -> Timing:
    """`t=` lines: permanent, unbounded or bounded, and then some with `r=` and `z=`.

    RFC 8866 §5.9, §5.10; §5.11 allows `z=` only behind `r=`.
    """
    start = draw(st.just(0) | st.integers(10**9, 10**11))
    stop = start and draw(st.just(0) | st.integers(start, 10**11))
    if not stop:
        return Timing(start, stop)
    some = st.lists(st.sampled_from(["7d 1h 0 25h", "604800 3600 0 90000"]), max_size=2)
    repeats = tuple(draw(some))
    zone = draw(st.sampled_from(["", "3724394400 -1h 3754123200 0"])) if repeats else ""
    return Timing(start, stop, repeats, zone)


@cache
def attributes() -> SearchStrategy[Attribute]:
    """`a=` lines that any section may have, known and unknown: RFC 8866 §5.13."""
    known = st.sampled_from([Attribute(word) for word in DIRECTIONS])
    return known | st.builds(Attribute, tokens(), st.none() | values())


@cache
def rtpmaps() -> SearchStrategy[RtpMap]:
    """Payload type mappings: RFC 8866 §6.6."""
    return st.builds(
        RtpMap, st.integers(0, 127), st.sampled_from(NAMES) | tokens(),
        st.sampled_from(RATES), st.integers(1, 6),
    )  # fmt: skip


@st.composite
def _of_formats(draw: DrawFn, formats: tuple[str, ...]) -> tuple[Attribute, ...]:
    """Attributes of an RTP stream, about its own formats alone: RFC 8866 §6.6, §6.15."""
    number = st.sampled_from(formats).map(int)
    mapped = st.builds(lambda each, pt: replace(each, payload_type=pt), rtpmaps(), number)
    each = st.one_of(
        attributes(),
        st.builds(Attribute, st.sampled_from(["ptime", "maxptime"]), st.integers(1, 200).map(str)),
        mapped.map(lambda each: Attribute("rtpmap", str(each))),
        st.builds(Fmtp, number, values()).map(lambda each: Attribute("fmtp", str(each))),
        ports().map(lambda port: Attribute("rtcp", str(port))),
    )
    return tuple(draw(st.lists(each, max_size=6)))


@cache
@st.composite
def media(draw: DrawFn) -> MediaDescription:
    """`m=` sections of any kind: the formats of RTP are payload types (RFC 8866 §5.14)."""
    protocol = draw(st.sampled_from([*PROTOCOLS, "RTP/SAVP", "UDP/TLS/RTP/SAVPF", "udptl", "udp"]))
    formats, own = tokens(), st.lists(attributes(), max_size=6).map(tuple)
    if is_rtp := "RTP/" in protocol:
        formats = st.integers(0, 127).map(str)
    some = tuple(draw(st.lists(formats, min_size=1, max_size=6, unique=True)))
    return MediaDescription(
        kind=draw(st.sampled_from(["audio", "video"]) | tokens()),
        port=draw(st.integers(0, 65535)),
        protocol=protocol,
        formats=some,
        port_count=draw(st.integers(1, 3)),
        information=draw(st.just("") | texts()),
        connection=draw(st.none() | connections()),
        bandwidths=tuple(draw(st.lists(bandwidths(), max_size=2))),
        attributes=draw(_of_formats(some) if is_rtp else own),
    )


@cache
def sessions() -> SearchStrategy[SessionDescription]:
    """Whole descriptions, every stream with an address: RFC 8866 §5, §5.7."""
    maybe = st.just("") | texts()
    return st.builds(
        SessionDescription,
        origin=origins(),
        name=texts(),
        information=maybe,
        uri=st.just("") | uris(),
        emails=st.lists(emails(), max_size=2).map(tuple),
        phones=st.lists(phones(), max_size=2).map(tuple),
        connection=st.none() | connections(),
        bandwidths=st.lists(bandwidths(), max_size=2).map(tuple),
        times=st.lists(timings(), min_size=1, max_size=2).map(tuple),
        attributes=st.lists(attributes(), max_size=4).map(tuple),
        media=st.lists(media(), max_size=4).map(tuple),
    ).map(_with_address)


def _with_address(session: SessionDescription) -> SessionDescription:
    """Give an address to the session where a stream has none of its own: RFC 8866 §5.7."""
    if session.connection or all(each.connection for each in session.media):
        return session
    return replace(session, connection=Connection.to("192.0.2.1"))


@st.composite
def codecs(draw: DrawFn, kind: str = "audio") -> tuple[Codec, ...]:
    """Codecs that one end of a call might support, none of them twice: RFC 3264 §5.1.

    Telephone events come only beside something to hear.
    """
    pool = AUDIO if kind == "audio" else VIDEO
    some = draw(st.lists(st.sampled_from(pool), min_size=1, max_size=6, unique=True))
    if kind == "audio" and draw(st.booleans()):
        some.insert(draw(st.integers(0, len(some))), DTMF)
    return tuple(some)


@st.composite
def local_media(draw: DrawFn, kind: str = "audio") -> LocalMedia:
    """One stream an end could have: RFC 3264 §5.1.  RTP ports are even: RFC 3550 §11."""
    return LocalMedia(
        kind=kind,
        formats=draw(codecs(kind)),
        transport=LocalTransport(2 * draw(st.integers(512, 32000))),
        direction=draw(st.sampled_from(DIRECTIONS)),
        mid=draw(st.none() | st.just(kind)),
        ptime=draw(st.none() | st.sampled_from([10, 20, 30, 40, 60])),
        maxptime=draw(st.none() | st.sampled_from([10, 40, 150])),
    )


def offers() -> SearchStrategy[SessionDescription]:
    """Offers of a caller with audio, video or both, among lines of all kinds: RFC 3264 §5."""
    return st.builds(
        _offer,
        st.sampled_from([(0,), (1,), (0, 1)]),
        st.tuples(local_media("audio"), local_media("video")),
        origins(),
        hosts(),
        st.lists(media(), max_size=2),
        st.booleans(),
    )


def _offer(
    wanted: tuple[int, ...],
    ours: tuple[LocalMedia, LocalMedia],
    origin: Origin,
    host: str,
    others: list[MediaDescription],
    before: bool,
) -> SessionDescription:
    offer = make_offer([ours[index] for index in wanted], origin, host)
    lines = [*others, *offer.media] if before else [*offer.media, *others]
    return offer.replace_media(lines)


def odd_sessions() -> SearchStrategy[bytes]:
    """Descriptions with line ends, blank lines, lost lines of the kind §5 asks to forgive."""
    return st.builds(_loosened, sessions().map(bytes), st.sampled_from([b"\n", b"\r\n\r\n", b"\r"]),
                     st.lists(st.sampled_from([b"s=", b"t=", b"k="]), max_size=3))  # fmt: skip


def _loosened(data: bytes, line_end: bytes, lost: list[bytes]) -> bytes:
    lines = data.split(b"\r\n")
    first = next((i for i, line in enumerate(lines) if line[:2] == b"m="), len(lines))
    top = [line for line in lines[:first] if line[:2] not in lost]
    if b"t=" in lost:  # their r= and z= go with them
        top = [line for line in top if line[:2] not in (b"r=", b"z=")]
    return line_end.join([*top, *lines[first:]])


@st.composite
def broken_sessions(draw: DrawFn) -> bytes:
    """Descriptions that every reader must refuse: RFC 8866 §5, §9."""
    lines = bytes(draw(sessions())).split(b"\r\n")[:-1]
    match draw(st.sampled_from(WOUNDS)):
        case "no v=":
            lines = lines[1:]
        case "v=1":
            lines[0] = b"v=1"
        case "no o=":
            del lines[1]
        case "two o=":
            lines.insert(1, lines[1])
        case "letter":
            lines.append(draw(st.sampled_from([b"x=1", b"M=audio 1 RTP/AVP 0", b"=1"])))
        case "no equals":
            lines.append(draw(st.sampled_from([b"a", b"audio", b"a sendrecv"])))
        case "nul":
            lines.append(b"a=\x00")
        case "port":
            lines.append(b"m=audio " + draw(st.sampled_from([b"-1", b"x", b"1/", b"9" * 99])))
            lines[-1] += b" RTP/AVP 0"
    return b"\r\n".join([*lines, b""])
