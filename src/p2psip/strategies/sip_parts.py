"""The parts of SIP messages, as any implementation must read them: tokens, URIs, addresses, Via.

Implements RFC 3261 §25.1 in reverse.  What a part means is kept as well: a parameter that some RFC
defines (`ttl`, `q`) is drawn with a value of its own rule, or not at all.
"""

from functools import cache
from ipaddress import IPv4Address, IPv6Address
from string import ascii_letters, ascii_lowercase, digits
from typing import Final

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from p2psip.sip.address import Address
from p2psip.sip.grammar import bracketed, quote
from p2psip.sip.uri import Uri
from p2psip.sip.via import Via

_ALPHANUM: Final = ascii_letters + digits
_TOKEN: Final = _ALPHANUM + "-.!%*_+`'~"
_URIC: Final = _ALPHANUM + "-_.!~*'();/?:@&=+$,"  # `uric` without escapes
_CONTROLS: Final = "".join(map(chr, [*range(32), 127]))
_NO_BREAKS: Final = st.characters(exclude_categories=["Cs"], exclude_characters="\r\n")
_PRINTED: Final = st.characters(
    exclude_categories=["Cs"], exclude_characters=_CONTROLS.replace("\t", "")
)
_REASON: Final = st.sampled_from(_URIC + " \t") | st.characters(
    min_codepoint=0x80, exclude_categories=["Cs"]
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
    return st.text(_REASON, max_size=12) | st.just("%41")


@cache
def host_names() -> SearchStrategy[str]:
    """Names with hyphens inside, some with the dot of the root behind (RFC 3261 §25.1)."""
    label = st.text(ascii_lowercase + digits + "-", max_size=8)
    return st.builds(_host_name, st.lists(label, min_size=1, max_size=3), st.booleans())


def _host_name(labels: list[str], rooted: bool) -> str:
    """Make the nearest `hostname` of any labels: the last one begins with a letter."""
    *domains, top = (label.strip("-") or "x" for label in labels)
    if top[0] in digits:
        top = f"d{top}"
    return ".".join([*domains, top]) + ("." if rooted else "")


@cache
def ip_addresses() -> SearchStrategy[str]:
    """IPv4 and IPv6 addresses, without brackets (RFC 3261 §25.1)."""
    v4 = st.integers(0, 2**32 - 1).map(lambda bits: str(IPv4Address(bits)))
    v6 = st.integers(0, 2**128 - 1).map(lambda bits: str(IPv6Address(bits)))
    return st.sampled_from(["192.0.2.1", "2001:db8::9:1", "::1"]) | v4 | v6


@cache
def hosts() -> SearchStrategy[str]:
    """Names, IPv4 and IPv6 addresses as `Uri.host` holds them (RFC 3261 §25.1)."""
    return ip_addresses() | host_names()


@cache
def ports() -> SearchStrategy[int | None]:
    """A port, or none written (RFC 3261 §19.1.1)."""
    return st.none() | st.integers(0, 65535)


def _names(letters: str = _TOKEN) -> SearchStrategy[str]:
    """Names of parameters that no RFC defines."""
    names = st.text(letters, min_size=1, max_size=12)
    return names.filter(lambda name: name.lower() not in _DEFINED)


@cache
def _uri_params() -> SearchStrategy[tuple[tuple[str, str | None], ...]]:
    """Parameters of a SIP URI, each name once (RFC 3261 §19.1.1)."""
    defined = st.one_of(
        st.just(("lr", None)),
        st.tuples(st.just("transport"), st.sampled_from(["udp", "TCP", "sctp", "tls"]) | tokens()),
        st.tuples(st.just("user"), st.sampled_from(["phone", "ip"]) | tokens()),
        st.tuples(st.just("ttl"), st.integers(0, 255).map(str)),
        st.tuples(st.just("maddr"), hosts().map(bracketed)),
    )
    values = st.none() | st.text(_NO_BREAKS, min_size=1, max_size=8)
    pairs = st.tuples(_names(), values) | defined
    return st.lists(pairs, max_size=3, unique_by=lambda pair: pair[0].lower()).map(tuple)


@cache
def sip_uris(*, headers: bool = False) -> SearchStrategy[Uri]:
    """SIP and SIPS URIs; with `headers`, some have the part behind "?" (RFC 3261 §19.1.1)."""
    some = st.text(_NO_BREAKS, min_size=1, max_size=8)
    user = st.none() | some
    pairs = st.lists(st.tuples(some, free_text()), max_size=2).map(tuple)
    return st.builds(
        lambda uri, password: uri if uri.user is None else uri.replace(password=password),
        st.builds(
            Uri,
            scheme=st.sampled_from(["sip", "sips"]),
            user=user,
            host=hosts(),
            port=ports(),
            params=_uri_params(),
            headers=pairs if headers else st.just(()),
        ),
        st.none() | free_text(),
    )


@cache
def tel_uris() -> SearchStrategy[Uri]:
    """Telephone numbers, the local ones with their context (RFC 3966 §3)."""
    number = st.builds(str.__add__, st.text("0123456789-.()", max_size=11), st.sampled_from(digits))
    value = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="[]"), min_size=1)
    pairs = st.tuples(_names(_ALPHANUM + "-"), st.none() | value)
    params = st.lists(pairs, max_size=2, unique_by=lambda pair: pair[0].lower()).map(tuple)
    contexts = st.sampled_from(["example.com", "+1-914"])
    return st.builds(_global_number, number, params) | st.builds(
        _local_number, number, contexts, params
    )


def _global_number(number: str, params: tuple[tuple[str, str | None], ...]) -> Uri:
    return Uri("tel", user=f"+{number}", params=params, opaque=f"+{number}")


def _local_number(number: str, context: str, params: tuple[tuple[str, str | None], ...]) -> Uri:
    params = (("phone-context", context), *params)
    return Uri("tel", user=number, params=params, opaque=number)


@cache
def uris() -> SearchStrategy[Uri]:
    """URIs of any scheme (RFC 3261 §19.1, RFC 3966 §3)."""
    other = st.builds(
        Uri,
        scheme=st.sampled_from(["isbn", "http", "soap.beep", "urn"]),
        opaque=st.text(_URIC, min_size=1, max_size=12),
    )
    return st.one_of(sip_uris(), sip_uris(headers=True), tel_uris(), other)


@cache
def header_params() -> SearchStrategy[tuple[tuple[str, str | None], ...]]:
    """Parameters of a header value: tokens, hosts and quoted strings (RFC 3261 §7.3.1)."""
    values = st.one_of(st.none(), tokens(), hosts().map(bracketed), free_text().map(quote))
    pairs = st.tuples(_names(), values)
    return st.lists(pairs, max_size=3, unique_by=lambda pair: pair[0].lower()).map(tuple)


@cache
def addresses(of: SearchStrategy[Uri] | None = None) -> SearchStrategy[Address]:
    """Addresses with all that may surround a URI (RFC 3261 §20.10)."""
    return st.builds(Address, uris() if of is None else of, free_text(), header_params())


@cache
def branches() -> SearchStrategy[str]:
    """Branch parameters with the magic cookie (RFC 3261 §8.1.1.7)."""
    return tokens().map("z9hG4bK".__add__)


@cache
@st.composite
def vias(draw: DrawFn) -> Via:
    """One hop, with rport and received as a server may have left them (RFC 3581 §4)."""
    transport = draw(st.sampled_from(["UDP", "TCP", "TLS", "SCTP", "WS"]) | tokens().map(str.upper))
    via = Via(transport, draw(hosts()), draw(ports()), draw(header_params()))
    via = via.with_param("branch", draw(branches()))
    match draw(st.sampled_from(["none", "asked", "answered", "multicast"])):
        case "asked":
            return via.with_param("rport", None)
        case "answered":
            via = via.with_param("received", draw(ip_addresses()))
            return via.with_param("rport", str(draw(st.integers(1, 65535))))
        case "multicast":
            via = via.with_param("maddr", "239.255.255.1")
            return via.with_param("ttl", str(draw(st.integers(0, 255))))
        case _:
            return via
