"""The lines of session descriptions, as any implementation must read them.

Implements RFC 8866 §5, §6 and §9 in reverse.  Each strategy draws what the grammar of its line
allows, and more than peers write: times of eleven digits, groups of layers, any octet in a text.
"""

from collections.abc import Callable
from functools import cache
from ipaddress import IPv4Address, IPv6Address
from string import ascii_letters, ascii_lowercase, digits
from typing import Final, TypeAlias

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from p2psip.sdp.attributes import DIRECTIONS, Fmtp, RtpMap
from p2psip.sdp.session import Attribute, Bandwidth, Connection, Origin, Timing

TOKEN_CHARS: Final = (  # Source: RFC 8866 §9 (token-char)
    "!#$%&'*+-.^_`{|}~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
)
NAMES: Final = ("PCMU", "PCMA", "speex", "opus", "G722", "iLBC", "telephone-event", "H264", "x-flv")
RATES: Final = (8000, 16000, 48000, 90000)  # Hz
_MAX_FORMATS: Final = 6  # of one stream


@cache
def tokens() -> SearchStrategy[str]:
    """Words of the grammar's token-char: RFC 8866 §9."""
    return st.text(TOKEN_CHARS, min_size=1, max_size=12)


@cache
def texts() -> SearchStrategy[str]:
    """Words for people, in UTF-8: RFC 8866 §5.3, §5.4."""
    allowed = st.characters(exclude_categories=["Cs"], exclude_characters="\0\r\n")
    return st.text(allowed, min_size=1, max_size=12)


@cache
def values() -> SearchStrategy[str]:
    """Byte strings as this codec holds them: any octet but Nul, CR, LF (RFC 8866 §9)."""
    octets = st.binary(min_size=1, max_size=24).map(lambda data: data.translate(None, b"\0\r\n"))
    return octets.map(lambda data: (data or b"-").decode("utf-8", "surrogateescape"))


_PEOPLE: Final = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0\r\n()<>"),
    min_size=1,
    max_size=8,
)
_WITH_NAMES: Final = st.sampled_from(["{0}", "{0} ({1})", "{0}  ({1})", "{1} <{0}>"])
_MAILBOXES: Final = st.sampled_from(["j.doe@example.com", "a+b!#@a-1.example", "x@y"])
_NUMBERS: Final = st.builds(
    "{}{}{}".format,
    st.sampled_from(["+", ""]),
    st.integers(0, 999),
    st.text(digits + " -", min_size=1, max_size=12),
)


@cache
def emails() -> SearchStrategy[str]:
    """Addresses, alone or with a name: RFC 8866 §5.6."""
    return st.builds(str.format, _WITH_NAMES, _MAILBOXES, _PEOPLE)


@cache
def phones() -> SearchStrategy[str]:
    """Numbers, alone or with a name: RFC 8866 §5.6."""
    return st.builds(str.format, _WITH_NAMES, _NUMBERS, _PEOPLE)


@cache
def uris() -> SearchStrategy[str]:
    """References to more about the session: RFC 8866 §5.5."""
    path = st.text(ascii_letters + digits + "-._~!$&'()*+,;=:@/?", max_size=12)
    start = st.sampled_from(["http://www.example.com/", "urn:a:", "./", "//[2001:db8::1]:80/", "?"])
    return st.builds("{}{}{}".format, start, path, st.sampled_from(["", "#", "#b", "%C3%A4"]))


@cache
def ports() -> SearchStrategy[int]:
    """Port numbers one can send to: RFC 8866 §5.14."""
    return st.integers(1, 65534)


@cache
def hosts() -> SearchStrategy[str]:
    """Unicast addresses and names: RFC 8866 §5.7, where a name has four characters or more."""
    label = st.text(ascii_lowercase + digits + "-", min_size=1, max_size=8)
    names = st.builds(
        lambda first, dot: f"{first.strip('-') or 'a'}.example{dot}",
        label,
        st.sampled_from(["", "."]),
    )
    return st.one_of(
        st.integers(1 << 24, (224 << 24) - 1).map(lambda bits: str(IPv4Address(bits))),
        st.integers(0x2000 << 112, (0x4000 << 112) - 1).map(lambda bits: str(IPv6Address(bits))),
        names,
        st.just("localhost"),
    )


def _origin(name: str, session_id: int, version: int, host: str) -> Origin:
    return Origin(name, session_id, version, "IN", "IP6" if ":" in host else "IP4", host)


@cache
def origins() -> SearchStrategy[Origin]:
    """`o=` lines whose numbers fit 62 bits: RFC 3264 §5."""
    numbers = st.integers(0, 2**62 - 2)
    names = tokens() | st.sampled_from(["-", "Jürgen", '"j(d)@[x]:\\;'])
    return st.builds(_origin, names, numbers, numbers, hosts())


@cache
def groups() -> SearchStrategy[Connection]:
    """`c=` lines of multicast, with some layers: RFC 8866 §5.7."""
    v4 = st.integers(224 << 24, (240 << 24) - 1).map(lambda bits: str(IPv4Address(bits)))
    v6 = st.integers(0xFF00 << 112, 2**128 - 1).map(lambda bits: str(IPv6Address(bits)))
    layers = st.integers(1, 9)
    return st.one_of(
        st.builds(Connection, st.just("IN"), st.just("IP4"), v4, st.integers(0, 255), layers),
        st.builds(Connection, st.just("IN"), st.just("IP6"), v6, st.none(), layers),
    )


@cache
def connections() -> SearchStrategy[Connection]:
    """`c=` lines, unicast and multicast: RFC 8866 §5.7."""
    return hosts().map(Connection.to) | groups()


@cache
def bandwidths() -> SearchStrategy[Bandwidth]:
    """`b=` lines: RFC 8866 §5.8."""
    return st.builds(Bandwidth, st.sampled_from(["CT", "AS", "X-YZ"]), st.integers(0, 10**9))


_TIMES: Final = st.integers(10**9, 10**11)  # ten digits or more
_SPANS: Final = st.builds("{}{}".format, st.integers(0, 10**6), st.sampled_from(["", *"dhms"]))
_INTERVALS: Final = st.builds("{}{}".format, st.integers(1, 999), st.sampled_from(["", *"dhms"]))
_REPEATS: Final = st.builds(
    lambda interval, spans: " ".join([interval, *spans]),
    _INTERVALS,
    st.lists(_SPANS, min_size=2, max_size=4),
)
_ZONES: Final = st.lists(
    st.builds("{} {}{}".format, _TIMES, st.sampled_from(["", "-"]), _SPANS), min_size=1, max_size=3
).map(" ".join)
_WITH_REPEATS: Final = st.lists(_REPEATS, max_size=2).map(tuple)
_LASTING: Final = st.just(0) | st.integers(0, 10**11)


def _timing(start: int, lasting: int, repeats: tuple[str, ...], zone: str) -> Timing:
    if not (start and lasting):
        return Timing(start, 0)
    return Timing(start, start + lasting, repeats, zone if repeats else "")


@cache
def timings() -> SearchStrategy[Timing]:
    """`t=` lines: permanent, unbounded or bounded, and then some with `r=` and `z=`.

    RFC 8866 §5.9, §5.10; §5.11 allows `z=` only behind `r=`.
    """
    return st.builds(_timing, st.just(0) | _TIMES, _LASTING, _WITH_REPEATS, st.just("") | _ZONES)


_WELL_KNOWN: Final = (
    *(Attribute(word) for word in DIRECTIONS),
    Attribute("cat", "x.y"),
    Attribute("keywds", "a b"),
    Attribute("tool", "siprtmp 1"),
    Attribute("orient", "seascape"),
    Attribute("type", "H332"),
    Attribute("framerate", "29.97"),
    Attribute("quality", "0"),
)

# Names whose values have a rule of their own: §6, RFC 3605, and what calls and ICE use.
_DEFINED: Final = """
    bundle-only candidate cat charset conference crypto end-of-candidates extmap fingerprint fmtp
    framerate group h332 ice-lite ice-options ice-pacing ice-pwd ice-ufrag identity imageattr
    inactive keywds label lang maxprate maxptime mid msid orient ptime quality recvonly
    remote-candidates rid rtcp rtcp-fb rtcp-mux rtcp-mux-only rtcp-rsize rtpmap sctp-port sctpmap
    sdplang sendonly sendrecv setup simulcast ssrc ssrc-group tls-id tool type
"""
_NAMES: Final = frozenset(_DEFINED.split())


@cache
def attributes() -> SearchStrategy[Attribute]:
    """`a=` lines that any section may have, known and unknown: RFC 8866 §5.13 and §6."""
    names = tokens().filter(lambda name: name.lower() not in _NAMES)
    unknown = st.builds(Attribute, names, st.none() | values())
    return st.sampled_from(_WELL_KNOWN) | unknown


@cache
def rtpmaps() -> SearchStrategy[RtpMap]:
    """Payload type mappings: RFC 8866 §6.6."""
    return st.builds(
        RtpMap, st.integers(0, 127), st.sampled_from(NAMES) | tokens(),
        st.sampled_from(RATES), st.integers(1, 6),
    )  # fmt: skip


_Line: TypeAlias = tuple[str, Callable[[str], str]]  # its name, and its value for a format


def _rtpmap(each: RtpMap) -> _Line:
    text = str(each).partition(" ")[2]
    return "rtpmap", lambda number: f"{number} {text}"


def _fmtp(text: str) -> _Line:
    return "fmtp", lambda number: str(Fmtp(int(number), text))


def _of_stream(name: str, text: object) -> _Line:
    return name, lambda _: str(text)


_PACKET_TIMES: Final = st.integers(1, 200).map(str) | st.sampled_from(["22.5", "0.125", "30.01"])
_RTCP: Final = st.builds(
    "{}{}".format, ports(), st.just("") | connections().map(lambda where: f" {where}")
)
_OF_RTP: Final = st.one_of(
    attributes(),
    st.builds(_of_stream, st.sampled_from(["ptime", "maxptime"]), _PACKET_TIMES),
    rtpmaps().map(_rtpmap),
    values().map(_fmtp),
    _RTCP.map(lambda text: _of_stream("rtcp", text)),
)


@cache
def _lines_of_rtp() -> SearchStrategy[list[tuple[int, Attribute | _Line]]]:
    return st.lists(st.tuples(st.integers(0, _MAX_FORMATS - 1), _OF_RTP), max_size=6)


@cache
def rtp_formats() -> SearchStrategy[tuple[tuple[str, ...], tuple[Attribute, ...]]]:
    """Payload types of an RTP stream, and attributes about these alone.

    RFC 8866 §6.6, §6.15: one `rtpmap` and one `fmtp` at most for each format.
    """
    numbers = st.lists(st.integers(0, 127).map(str), min_size=1, max_size=_MAX_FORMATS, unique=True)
    return st.tuples(numbers.map(tuple), _lines_of_rtp()).map(_about)


def _about(
    drawn: tuple[tuple[str, ...], list[tuple[int, Attribute | _Line]]],
) -> tuple[tuple[str, ...], tuple[Attribute, ...]]:
    """Give each line a format of its stream, and keep the first of each kind."""
    formats, lines = drawn
    found: dict[object, Attribute] = {}
    for place, line in lines:
        if isinstance(line, Attribute):
            found[len(found)] = line
            continue
        name, value = line
        number = formats[place % len(formats)]
        key = (name, number) if name in ("rtpmap", "fmtp") else name
        found.setdefault(key, Attribute(name, value(number)))
    return formats, tuple(found.values())


@cache
def other_formats() -> SearchStrategy[tuple[tuple[str, ...], tuple[Attribute, ...]]]:
    """Formats of a stream that is not RTP, and its attributes: RFC 8866 §5.14."""
    words = st.lists(tokens(), min_size=1, max_size=_MAX_FORMATS, unique=True).map(tuple)
    return st.tuples(words, st.lists(attributes(), max_size=6).map(tuple))
