"""The parts of SIP messages, as any implementation must read them: tokens, URIs, addresses, Via.

Implements RFC 3261 §25.1 in reverse.  What a part means is kept as well: a parameter that some RFC
defines (`ttl`, `q`) is drawn with a value of its own rule, or not at all.

Hypothesis takes its time for each choice, and not for what is chosen: a shape is one choice (which
parameters, with which values), and so is a text.
"""

from collections.abc import Callable, Sequence
from functools import cache
from itertools import product
from string import ascii_letters, ascii_lowercase, digits
from typing import Final, TypeAlias

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from p2psip.sip.address import Address
from p2psip.sip.grammar import bracketed, quote
from p2psip.sip.params import Params
from p2psip.sip.uri import Uri
from p2psip.sip.via import Via
from p2psip.strategies.ip import ipv4, ipv6

_ALPHANUM: Final = ascii_letters + digits
_TOKEN: Final = _ALPHANUM + "-.!%*_+`'~"
_URIC: Final = _ALPHANUM + "-_.!~*'();/?:@&=+$,"  # `uric` without escapes
_CONTROLS: Final = "".join(map(chr, [*range(32), 127]))
_NO_BREAKS: Final = st.characters(exclude_categories=["Cs"], exclude_characters="\r\n")
_PRINTED: Final = st.characters(
    exclude_categories=["Cs"], exclude_characters=_CONTROLS.replace("\t", "")
)
_REASON: Final = st.characters(
    min_codepoint=0x80, exclude_categories=["Cs"], include_characters=_URIC + " \t%"
)
# Names whose values have a rule of their own: §25.1, RFC 3581 §3, RFC 3966 §3.
_DEFINED: Final = frozenset(
    {"branch", "expires", "ext", "ip", "isub", "lr", "maddr", "method", "phone-context", "q"}
    | {"received", "rport", "tag", "transport", "ttl", "user"}
)


@cache
def tokens() -> SearchStrategy[str]:
    """Any `token`, strange punctuation included (RFC 3261 §25.1)."""
    return st.text(_TOKEN, min_size=1, max_size=12)


@cache
def free_text() -> SearchStrategy[str]:
    """Any text a quoted string or an escaped part can stand for (RFC 3261 §25.1)."""
    return st.text(_NO_BREAKS, max_size=12)


@cache
def header_text() -> SearchStrategy[str]:
    """The value of a header that nobody interprets: `TEXT-UTF8-TRIM` or nothing (§25.1)."""
    return st.text(_PRINTED, max_size=12).map(lambda value: value.strip(" \t"))


@cache
def reasons() -> SearchStrategy[str]:
    """Reason phrases, of fewer characters than header values may have (RFC 3261 §25.1)."""
    return st.text(_REASON, max_size=12).map(lambda reason: reason.replace("%", "%41"))


_LABELS: Final = st.text(ascii_lowercase + digits + "-.", min_size=1, max_size=20)


def _host_name(text: str) -> str:
    """Make the nearest `hostname` of any labels: the last one begins with a letter."""
    name = text.removesuffix(".")
    *domains, top = (label.strip("-") or "x" for label in name.split("."))
    if top[0] in digits:
        top = f"d{top}"
    return ".".join([*domains, top]) + ("." if len(name) < len(text) else "")


@cache
def host_names() -> SearchStrategy[str]:
    """Names with hyphens inside, some with the dot of the root behind (RFC 3261 §25.1)."""
    return _LABELS.map(_host_name)


_KNOWN_ADDRESSES: Final = ("192.0.2.1", "2001:db8::9:1", "::1", "IPv4", "IPv6")
_ADDRESSES: Final = st.sampled_from(_KNOWN_ADDRESSES)
_HOSTS: Final = st.sampled_from([*_KNOWN_ADDRESSES, "pc33.atlanta-1.example", "biloxi.", "name"])
_DRAWN: Final = {"IPv4": ipv4(), "IPv6": ipv6(), "name": host_names()}


@st.composite
def _hosts(draw: DrawFn, kinds: SearchStrategy[str]) -> str:
    kind = draw(kinds)
    return draw(_DRAWN[kind]) if kind in _DRAWN else kind


@cache
def ip_addresses() -> SearchStrategy[str]:
    """IPv4 and IPv6 addresses, without brackets (RFC 3261 §25.1)."""
    return _hosts(_ADDRESSES)


@cache
def hosts() -> SearchStrategy[str]:
    """Names, IPv4 and IPv6 addresses as `Uri.host` holds them (RFC 3261 §25.1)."""
    return _hosts(_HOSTS)


@cache
def ports() -> SearchStrategy[int | None]:
    """A port, or none written (RFC 3261 §19.1.1)."""
    return st.sampled_from(range(-65536, 65536)).map(lambda port: port if port >= 0 else None)


_Kind: TypeAlias = tuple[str, SearchStrategy[str] | None, Callable[[str], str]]
"""A parameter: its name, or "" for any; what draws its value, if it has one; how it is written."""


def _params(kinds: Sequence[_Kind], names: SearchStrategy[str]) -> SearchStrategy[Params]:
    """Parameters of up to three of these kinds, each name once."""
    threes = zip(kinds, (*kinds[1:], *kinds), (*kinds[2:], *kinds), strict=False)
    some = [*((kind,) for kind in [*kinds] * len(kinds)), *product(kinds, repeat=2), *threes]
    return _params_of(st.sampled_from([*[()] * (len(some) // 2), *some]), names)


@st.composite
def _params_of(
    draw: DrawFn, few: SearchStrategy[tuple[_Kind, ...]], names: SearchStrategy[str]
) -> Params:
    found: dict[str, tuple[str, str | None]] = {}
    for name, values, written in draw(few):
        if not name:
            name = draw(names)
            if name.lower() in _DEFINED:
                name += "x"
        value = None if values is None else written(draw(values))
        found.setdefault(name.lower(), (name, value))
    return tuple(found.values())


_ANY_VALUE: Final = st.text(_NO_BREAKS, min_size=1, max_size=8)
_URI_PARAMS: Final = _params(
    (
        ("", None, str),
        ("", _ANY_VALUE, str),
        ("lr", None, str),
        ("transport", st.sampled_from(["udp", "TCP", "sctp", "tls"]), str),
        ("transport", tokens(), str),
        ("user", st.sampled_from(["phone", "ip"]), str),
        ("user", tokens(), str),
        ("ttl", st.sampled_from(range(256)).map(str), str),
        ("maddr", hosts(), bracketed),
    ),
    tokens(),
)
_HEADER_PARAMS: Final = _params(
    (("", None, str), ("", tokens(), str), ("", hosts(), bracketed), ("", free_text(), quote)),
    tokens(),
)
_URI_SHAPES: Final = st.sampled_from(
    list(product(["sip", "sips"], ["", "user", "password"], range(3)))
)


@cache
@st.composite
def sip_uris(draw: DrawFn, *, headers: bool = False) -> Uri:
    """SIP and SIPS URIs; with `headers`, some have the part behind "?" (RFC 3261 §19.1.1)."""
    scheme, secret, count = draw(_URI_SHAPES)
    return Uri(
        scheme=scheme,
        user=draw(_ANY_VALUE) if secret else None,
        password=draw(free_text()) if secret == "password" else None,
        host=draw(hosts()),
        port=draw(ports()),
        params=draw(_URI_PARAMS),
        headers=tuple(
            (draw(_ANY_VALUE), draw(free_text())) for _ in range(count if headers else 0)
        ),
    )


_NUMBERS: Final = st.text(digits + "-.()", max_size=11)
_LAST_DIGIT: Final = st.sampled_from(digits)
_CONTEXTS: Final = st.sampled_from(["", "", "example.com", "+1-914"])
_TEL_VALUES: Final = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="[]"), min_size=1
)
_TEL_PARAMS: Final = _params(
    (("", None, str), ("", _TEL_VALUES, str)), st.text(_ALPHANUM + "-", min_size=1, max_size=12)
)


@cache
@st.composite
def tel_uris(draw: DrawFn) -> Uri:
    """Telephone numbers, the local ones with their context (RFC 3966 §3)."""
    number = draw(_NUMBERS) + draw(_LAST_DIGIT)
    params = draw(_TEL_PARAMS)
    context = draw(_CONTEXTS)
    if context:
        params = (("phone-context", context), *params)
    else:
        number = f"+{number}"
    return Uri("tel", user=number, params=params, opaque=number)


_OTHER_URIS: Final = st.builds(
    Uri,
    scheme=st.sampled_from(["isbn", "http", "soap.beep", "urn"]),
    opaque=st.text(_URIC, min_size=1, max_size=12),
)


@cache
def uris() -> SearchStrategy[Uri]:
    """URIs of any scheme (RFC 3261 §19.1, RFC 3966 §3)."""
    return st.one_of(sip_uris(), sip_uris(headers=True), tel_uris(), _OTHER_URIS)


@cache
def header_params() -> SearchStrategy[Params]:
    """Parameters of a header value: tokens, hosts and quoted strings (RFC 3261 §7.3.1)."""
    return _HEADER_PARAMS


@cache
@st.composite
def addresses(draw: DrawFn, of: SearchStrategy[Uri] | None = None) -> Address:
    """Addresses with all that may surround a URI (RFC 3261 §20.10)."""
    return Address(draw(uris() if of is None else of), draw(free_text()), draw(header_params()))


@cache
def branches() -> SearchStrategy[str]:
    """Branch parameters with the magic cookie (RFC 3261 §8.1.1.7)."""
    return tokens().map("z9hG4bK".__add__)


_VIA_SHAPES: Final = st.sampled_from(
    list(
        product(
            ["UDP", "TCP", "TLS", "SCTP", "WS", "", "", "", "", ""],
            ["none", "asked", "answered", "multicast"],
        )
    )
)
_ANSWERED: Final = st.sampled_from(range(1, 65536))
_TTLS: Final = st.sampled_from(range(256))


@cache
@st.composite
def vias(draw: DrawFn) -> Via:
    """One hop, with rport and received as a server may have left them (RFC 3581 §4)."""
    transport, hop = draw(_VIA_SHAPES)
    transport = transport or draw(tokens()).upper()
    params = (*draw(header_params()), ("branch", "z9hG4bK" + draw(tokens())))
    if hop == "asked":
        params += (("rport", None),)
    elif hop == "answered":
        params += (("received", draw(ip_addresses())), ("rport", str(draw(_ANSWERED))))
    elif hop == "multicast":
        params += (("maddr", "239.255.255.1"), ("ttl", str(draw(_TTLS))))
    return Via(transport, draw(hosts()), draw(ports()), params)
