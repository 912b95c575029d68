"""Session descriptions: each line with its parts, the lines of a media stream within its own.

Own design: see `explain.fields.field`.  The codec is asked about every line by a small description
that has this line alone, so that an error is found where it is.

    >>> from rtclab.explain.fields.context import Context
    >>> text = b"v=0\\no=- 1 1 IN IP4 192.0.2.1\\ns=-\\nt=0 0\\nm=audio 9 RTP/AVP 0\\na=:\\n"
    >>> field = session(Span.all(text), Context())
    >>> [each.name for each in field.children], [each.name for each in field.children[-1].children]
    (['v', 'o', 's', 't', 'media audio'], ['m', 'a'])
    >>> [(each.name, each.fault.reason) for each in field.walk() if each.fault]
    [('a', 'Bad a= line')]
"""

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from p2psip.errors import SipError
from p2psip.nat.ice_candidate import IceCandidate
from p2psip.sdp.attributes import Fmtp, RtpMap, media_address, parameters, rtpmaps
from p2psip.sdp.crypto import CryptoAttribute, cryptos
from p2psip.sdp.line import Attribute, Bandwidth, Connection, Origin, Timing, words
from p2psip.sdp.session import MediaDescription, SessionDescription
from p2psip.srtp.suites import SUITES
from rtclab.explain.fields.context import Context
from rtclab.explain.fields.field import Field, Span, plain
from rtclab.explain.fields.layout import Layout, explained, refusal
from rtclab.explain.fields.source import Fault
from rtclab.unwrap.address import written
from rtclab.unwrap.key_log import SrtpMaster
from rtclab.unwrap.srtp import SrtpSessions

_LINE: Final = re.compile(rb"[^\r\n]+")
_HEAD: Final = b"v=0\r\no=- 0 0 IN IP4 0\r\ns=-\r\nt=0 0\r\n"
_STREAM: Final = b"m=audio 9 RTP/AVP 0\r\n"
_STRICTLY: Final = partial(SessionDescription.parse, strict=True)
_MOST: Final = 1000  # lines that are described; the codec takes 600


def session(span: Span, context: Context) -> Field:
    """Describe a whole description, and remember its formats."""
    layout = Layout("SDP", span, SessionDescription, gaps=True)
    stream: Layout | None = None
    lines = [span.part(*each.span()) for each in _LINE.finditer(span.data, span.start, span.end)]
    for line in lines[:_MOST]:
        if bytes(line).startswith(b"m="):
            if stream is not None:
                layout.add(_closed(stream))
            kind = plain(bytes(line)[2:].partition(b" ")[0].decode("utf-8", "replace"))
            whole = span.part(line.start, span.end)
            stream = Layout(f"media {kind}".strip(), whole, MediaDescription, gaps=True)
        (stream or layout).add(_line(line, stream is not None))
    if stream is not None:
        layout.add(_closed(stream))
    _remember(bytes(span), context)
    return layout.done(fault=refusal(_STRICTLY, bytes(span)))


def _closed(stream: Layout) -> Field:
    stream.span = stream.span.part(stream.span.start, stream.at)
    return stream.done()


def _remember(data: bytes, context: Context) -> None:
    try:
        parsed = SessionDescription.parse(data)
    except SipError:
        return
    for media in parsed.media:
        context.rtpmaps |= {each.payload_type: each for each in rtpmaps(media)}
        take_keys(media, parsed, context.srtp)


def take_keys(media: MediaDescription, whole: SessionDescription, srtp: SrtpSessions) -> None:
    """Take the keys of a line: what its owner sends is opened by them (RFC 4568 §6.4).

    Under RTP/SAVP it sends nothing else, if each of its keys is one that we can use.
    """
    offered = cryptos(media)
    is_sure = "SAVP" in media.protocol.upper() and all(each.is_usable for each in offered)
    at = media_address(media, whole)
    for each in offered:
        if each.is_usable:
            key = each.keys[0]
            master = SrtpMaster(SUITES[each.suite], key.key, key.salt)
            srtp.add(master, written(*at) if at and is_sure else "")


def _alone(line: bytes, in_stream: bool) -> Fault | None:
    """What the codec has against a line, in a description that is good but for it."""
    letter = line[:2]
    if letter == b"m=":
        return refusal(_STRICTLY, _HEAD + line)
    if not in_stream and letter in (b"v=", b"o=", b"s=", b"t="):
        kept = [each for each in _HEAD.splitlines() if each[:2] != letter]
        return refusal(_STRICTLY, b"\r\n".join([*kept, line]))
    if not in_stream and letter in (b"r=", b"z="):
        return None
    return refusal(_STRICTLY, _HEAD + (_STREAM if in_stream else b"") + line)


def _line(span: Span, in_stream: bool) -> Field:
    text = bytes(span).decode("utf-8", "surrogateescape")
    letter, equals, value = text.partition("=")
    describe = _LINES.get(letter)
    name = letter if equals and len(letter) == 1 else "line"
    layout = Layout(plain(name), span, _CLASSES.get(letter), gaps=True)
    if equals:
        layout.at += len(letter.encode("utf-8", "surrogateescape")) + 1
    if describe is not None:
        describe(layout, value)
    return layout.done("" if layout.fields else value, fault=_alone(bytes(span), in_stream))


def _named(*names: str) -> Callable[[Layout, str], None]:
    """A line whose words have these names, the last one for all that are more."""

    def describe(layout: Layout, value: str) -> None:
        for place, word in enumerate(words(value)):
            layout.place(names[min(place, len(names) - 1)], word)

    return describe


def _bandwidth(layout: Layout, value: str) -> None:
    kind, _, amount = value.partition(":")
    layout.place("type", kind)
    layout.place("value", amount.strip(" "), meaning="kbit/s" if kind in ("AS", "CT") else "")


def _media(layout: Layout, value: str) -> None:
    for place, word in enumerate(words(value)):
        layout.place(("kind", "port", "protocol", "format")[min(place, 3)], word)


def _attribute(layout: Layout, value: str) -> None:
    name, colon, text = value.partition(":")
    layout.place("name", name)
    if not colon:
        return
    span = layout.span.part(layout.at + 1, layout.span.end)
    if name in _FORMS:
        layout.add(_formed("value", span, name, text))
    else:
        layout.place("value", text)


def _formed(title: str, span: Span, name: str, text: str) -> Field:
    """The value of an attribute that has a class, word by word."""
    of, parse, names = _FORMS[name]

    def walk(inner: Layout) -> None:
        for place, word in enumerate(words(text)):
            found = inner.place(names[min(place, len(names) - 1)], word)
            if found is not None and name == "fmtp" and place:
                break
        if name == "fmtp":
            _fmtp(inner, text)

    return explained(title, span, lambda _: parse(text), walk, of, gaps=True)


def candidate(span: Span) -> Field:
    """Describe the value of a candidate attribute."""
    text = bytes(span).decode("utf-8", "surrogateescape")
    return _formed("candidate", span, "candidate", text)


def _fmtp(layout: Layout, text: str) -> None:
    """Place the parameters of a format one by one."""
    del layout.fields[1:]
    if layout.fields:
        layout.at = layout.fields[0].end
    for each in text.partition(" ")[2].split(";"):
        if each.strip():
            layout.place("parameter", each.strip(), of=parameters)


_LINES: Final[Mapping[str, Callable[[Layout, str], None]]] = {
    "o": _named("username", "session id", "version", "network", "type", "address"),
    "c": _named("network", "type", "address"),
    "b": _bandwidth,
    "t": _named("start", "stop"),
    "m": _media,
    "a": _attribute,
}
_CLASSES: Final[Mapping[str, type]] = {
    "o": Origin,
    "c": Connection,
    "b": Bandwidth,
    "t": Timing,
    "a": Attribute,
}
_FORMS: Final[Mapping[str, tuple[type, Callable[[str], object], tuple[str, ...]]]] = {
    "rtpmap": (RtpMap, RtpMap.parse, ("payload type", "encoding")),
    "fmtp": (Fmtp, Fmtp.parse, ("payload type", "parameters")),
    "crypto": (CryptoAttribute, CryptoAttribute.parse, ("tag", "suite", "keys", "parameter")),
    "candidate": (
        IceCandidate,
        IceCandidate.parse,
        ("foundation", "component", "transport", "priority", "host", "port", "typ", "type", "more"),
    ),
}
