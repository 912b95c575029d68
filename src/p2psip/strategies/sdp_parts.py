"""The lines of session descriptions, as any implementation must read them.

Implements RFC 8866 §5, §6 and §9 in reverse.  Each strategy draws what the grammar of its line
allows, and more than peers write: times of eleven digits, groups of layers, any octet in a text.
A shape is one choice, as in `p2psip.strategies.sip_parts`.
"""

from functools import cache
from itertools import product
from string import ascii_letters, ascii_lowercase, digits
from typing import Final

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from p2psip.sdp.attributes import DIRECTIONS, RtpMap
from p2psip.sdp.session import Attribute, Bandwidth, Connection, Origin, Timing
from p2psip.strategies.ip import ipv4, ipv6

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


_OCTETS: Final = st.binary(min_size=1, max_size=24)


@cache
@st.composite
def values(draw: DrawFn) -> str:
    """Byte strings as this codec holds them: any octet but Nul, CR, LF (RFC 8866 §9)."""
    octets = draw(_OCTETS).translate(None, b"\0\r\n")
    return (octets or b"-").decode("utf-8", "surrogateescape")


_PEOPLE: Final = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0\r\n()<>"),
    min_size=1,
    max_size=8,
)
_WITH_NAMES: Final = ("{0}", "{0} ({1})", "{0}  ({1})", "{1} <{0}>")
_MAILBOXES: Final = ("j.doe@example.com", "a+b!#@a-1.example", "x@y")
_EMAILS: Final = st.sampled_from(list(product(_WITH_NAMES, _MAILBOXES)))
_PHONES: Final = st.sampled_from(list(product(_WITH_NAMES, ["", "+"], range(1000))))
_MORE_DIGITS: Final = st.text(digits + " -", min_size=1, max_size=12)


@cache
@st.composite
def emails(draw: DrawFn) -> str:
    """Addresses, alone or with a name: RFC 8866 §5.6."""
    form, mailbox = draw(_EMAILS)
    return form.format(mailbox, draw(_PEOPLE))


@cache
@st.composite
def phones(draw: DrawFn) -> str:
    """Numbers, alone or with a name: RFC 8866 §5.6."""
    form, plus, start = draw(_PHONES)
    return form.format(f"{plus}{start}{draw(_MORE_DIGITS)}", draw(_PEOPLE))


_REFERENCES: Final = st.sampled_from(
    list(
        product(
            ["http://www.example.com/", "urn:a:", "./", "//[2001:db8::1]:80/", "?"],
            ["", "#", "#b", "%C3%A4"],
        )
    )
)
_PATHS: Final = st.text(ascii_letters + digits + "-._~!$&'()*+,;=:@/?", max_size=12)


@cache
@st.composite
def uris(draw: DrawFn) -> str:
    """References to more about the session: RFC 8866 §5.5."""
    start, end = draw(_REFERENCES)
    return start + draw(_PATHS) + end


@cache
def ports() -> SearchStrategy[int]:
    """Port numbers one can send to: RFC 8866 §5.14."""
    return st.integers(1, 65534)


_LABELS: Final = st.text(ascii_lowercase + digits + "-", min_size=1, max_size=8)
_UNICAST: Final = {"IPv4": ipv4(range(1, 224)), "IPv6": ipv6(range(0x20, 0x40))}
_HOSTS: Final = st.sampled_from(["IPv4", "IPv6", ".example", ".example.", "localhost"])


@cache
@st.composite
def hosts(draw: DrawFn) -> str:
    """Unicast addresses and names: RFC 8866 §5.7, where a name has four characters or more."""
    kind = draw(_HOSTS)
    if kind in _UNICAST:
        return draw(_UNICAST[kind])
    return kind if kind[0] != "." else (draw(_LABELS).strip("-") or "a") + kind


_NUMBERS_62: Final = st.sampled_from(range(2**62 - 1))
_USERS: Final = st.sampled_from(["-", "Jürgen", '"j(d)@[x]:\\;', "", "", ""])


@cache
@st.composite
def origins(draw: DrawFn) -> Origin:
    """`o=` lines whose numbers fit 62 bits: RFC 3264 §5."""
    user = draw(_USERS) or draw(tokens())
    session_id, version, host = draw(_NUMBERS_62), draw(_NUMBERS_62), draw(hosts())
    return Origin(user, session_id, version, "IN", "IP6" if ":" in host else "IP4", host)


_IPV4_GROUPS: Final = ipv4(range(224, 240))
_IPV6_GROUPS: Final = ipv6(range(255, 256))
_HOPS_AND_LAYERS: Final = st.sampled_from(
    list(product([*[None] * 320, *[0, 1, 127, 255] * 16, *range(256)], range(1, 10)))
)


@cache
@st.composite
def groups(draw: DrawFn) -> Connection:
    """`c=` lines of multicast, with some layers: RFC 8866 §5.7."""
    hops, layers = draw(_HOPS_AND_LAYERS)
    if hops is None:
        return Connection("IN", "IP6", draw(_IPV6_GROUPS), None, layers)
    return Connection("IN", "IP4", draw(_IPV4_GROUPS), hops, layers)


@cache
def connections() -> SearchStrategy[Connection]:
    """`c=` lines, unicast and multicast: RFC 8866 §5.7."""
    return hosts().map(Connection.to) | groups()


@cache
def bandwidths() -> SearchStrategy[Bandwidth]:
    """`b=` lines: RFC 8866 §5.8."""
    return st.builds(Bandwidth, st.sampled_from(["CT", "AS", "X-YZ"]), st.integers(0, 10**9))


_STARTS: Final = st.sampled_from(range(10**9, 10**11))  # ten digits or more
_LASTING: Final = st.sampled_from(range(1, 10**11))
_UNITS: Final = ("", *"dhms")
_SPANS: Final = st.sampled_from(range(5 * 10**6)).map(lambda n: f"{n // 5}{_UNITS[n % 5]}")
_INTERVALS: Final = st.sampled_from(range(5, 5 * 1000)).map(lambda n: f"{n // 5}{_UNITS[n % 5]}")
_TIMES: Final = st.sampled_from(  # whether there is a start and an end, the spans, the zones
    [(False, False, (), ()), (True, False, (), ()), (True, True, (), ())] * 6
    + [(True, True, spans, zones) for spans, zones in product(
        [(2,), (3,), (4, 2)], [(), ("",), ("-", ""), ("-", "", "-")]
    )]
)  # fmt: skip


@cache
@st.composite
def timings(draw: DrawFn) -> Timing:
    """`t=` lines: permanent, unbounded or bounded, and then some with `r=` and `z=`.

    RFC 8866 §5.9, §5.10; §5.11 allows `z=` only behind `r=`.
    """
    starts, ends, repeats, zones = draw(_TIMES)
    start = draw(_STARTS) if starts else 0
    stop = start + draw(_LASTING) if ends else 0
    lines = (
        " ".join([draw(_INTERVALS), *(draw(_SPANS) for _ in range(spans))]) for spans in repeats
    )
    zone = " ".join(f"{draw(_STARTS)} {sign}{draw(_SPANS)}" for sign in zones)
    return Timing(start, stop, tuple(lines), zone)


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


_KINDS: Final = st.sampled_from([*_WELL_KNOWN, *["flag"] * 5, *["value"] * 5])


@cache
@st.composite
def attributes(draw: DrawFn) -> Attribute:
    """`a=` lines that any section may have, known and unknown: RFC 8866 §5.13 and §6."""
    kind = draw(_KINDS)
    if isinstance(kind, Attribute):
        return kind
    name = draw(tokens())
    if name.lower() in _NAMES:
        name += "x"
    return Attribute(name, draw(values()) if kind == "value" else None)


_ENCODINGS: Final = st.sampled_from([*NAMES, *[""] * len(NAMES)])
_CLOCKS: Final = st.sampled_from(list(product(RATES, range(1, 7))))
_PAYLOAD_TYPES: Final = st.sampled_from(range(128))


@cache
@st.composite
def rtpmaps(draw: DrawFn) -> RtpMap:
    """Payload type mappings: RFC 8866 §6.6."""
    encoding = draw(_ENCODINGS) or draw(tokens())
    return RtpMap(draw(_PAYLOAD_TYPES), encoding, *draw(_CLOCKS))


_PACKET_TIMES: Final = st.sampled_from([*map(str, range(1, 201)), "22.5", "0.125", "30.01"])
_ABOUT: Final = ("attribute", "attribute", "rtpmap", "fmtp", "ptime", "maxptime", "rtcp")
_FORMATS: Final = st.binary(min_size=1, max_size=_MAX_FORMATS)
_LINES: Final = st.binary(max_size=6)


@cache
@st.composite
def rtp_formats(draw: DrawFn) -> tuple[tuple[str, ...], tuple[Attribute, ...]]:
    """Payload types of an RTP stream, and attributes about these alone.

    RFC 8866 §6.6, §6.15: one `rtpmap` and one `fmtp` at most for each format.  An octet is a
    format, or a kind of line and the format it is about.
    """
    formats = tuple(dict.fromkeys(str(octet & 127) for octet in draw(_FORMATS)))
    found: dict[object, Attribute] = {}
    for octet in draw(_LINES):
        place, kind = divmod(octet, len(_ABOUT))
        name, number = _ABOUT[kind], formats[place % len(formats)]
        key = (name, number) if name in ("rtpmap", "fmtp") else name
        if name == "attribute":
            found[len(found)] = draw(attributes())
        elif key not in found:
            found[key] = Attribute(name, _about(draw, name, number))
    return formats, tuple(found.values())


def _about(draw: DrawFn, name: str, number: str) -> str:
    """The value of an attribute of this name, for a format: RFC 8866 §6, RFC 3605 §2.1."""
    match name:
        case "rtpmap":
            return f"{number} {str(draw(rtpmaps())).partition(' ')[2]}"
        case "fmtp":
            return f"{number} {draw(values())}"
        case "rtcp":
            port = draw(ports())
            return f"{port} {draw(connections())}" if port % 2 else str(port)
        case _:
            return draw(_PACKET_TIMES)


_WORDS: Final = st.lists(tokens(), min_size=1, max_size=_MAX_FORMATS, unique=True).map(tuple)
_ATTRIBUTES: Final = st.lists(attributes(), max_size=6).map(tuple)


@cache
def other_formats() -> SearchStrategy[tuple[tuple[str, ...], tuple[Attribute, ...]]]:
    """Formats of a stream that is not RTP, and its attributes: RFC 8866 §5.14."""
    return st.tuples(_WORDS, _ATTRIBUTES)
