"""DTLS records, as browsers and phones open SRTP with them: hellos, certificates, alerts.

Own design: what is encrypted stays octets, whether its secrets were logged or not.  What is told in
the clear is what calls fail by: the profiles of SRTP, and the certificate, whose hash is written as
a session description has it.  `note_hellos` takes what the keys of SRTP are made of.

    >>> data = bytes.fromhex("16feff000000000000000100020e00")
    >>> [each.name for each in datagram(Span.all(data), Context()).children]
    ['handshake']
    >>> guess = is_dtls(data), is_dtls(b"\\x80data")
    >>> guess
    (True, False)
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from rtclab.explain.fields.context import Context
from rtclab.explain.fields.field import Field, Span
from rtclab.explain.fields.layout import Layout, explained
from rtclab.unwrap.key_log import RANDOM_OCTETS, DtlsHello
from rtclab.unwrap.srtp import SrtpSessions

HEADER: Final = 13  # octets of a record, as RFC 6347 has it
_HANDSHAKE_HEADER: Final = 12  # octets, as RFC 6347 has it
_KINDS: Final = {20: "change cipher spec", 21: "alert", 22: "handshake", 23: "application data"}
_VERSIONS: Final = {0xFEFF: "DTLS 1.0", 0xFEFD: "DTLS 1.2"}
_MESSAGES: Final = {  # as RFC 6347 has them
    0: "hello request",
    1: "client hello",
    2: "server hello",
    3: "hello verify request",
    4: "new session ticket",
    11: "certificate",
    12: "server key exchange",
    13: "certificate request",
    14: "server hello done",
    15: "certificate verify",
    16: "client key exchange",
    20: "finished",
}
_ALERTS: Final = {  # as RFC 5246 has them
    0: "close notify",
    10: "unexpected message",
    20: "bad record MAC",
    40: "handshake failure",
    42: "bad certificate",
    43: "unsupported certificate",
    45: "certificate expired",
    46: "certificate unknown",
    47: "illegal parameter",
    48: "unknown CA",
    50: "decode error",
    51: "decrypt error",
    70: "protocol version",
    71: "insufficient security",
    80: "internal error",
    90: "user canceled",
    100: "no renegotiation",
    110: "unsupported extension",
}
_EXTENSIONS: Final = {
    0: "server name",
    10: "supported groups",
    11: "point formats",
    13: "signature algorithms",
    14: "use_srtp",
    22: "encrypt then MAC",
    23: "extended master secret",
    35: "session ticket",
    43: "supported versions",
    51: "key share",
    65281: "renegotiation info",
}
_HELLOS: Final = ("client hello", "server hello")
_USE_SRTP: Final = 14  # as RFC 5764 has it
_PROFILES: Final = {  # as RFC 5764 has them
    1: "SRTP_AES128_CM_HMAC_SHA1_80",
    2: "SRTP_AES128_CM_HMAC_SHA1_32",
    5: "SRTP_NULL_HMAC_SHA1_80",
    6: "SRTP_NULL_HMAC_SHA1_32",
    7: "SRTP_AEAD_AES_128_GCM",
    8: "SRTP_AEAD_AES_256_GCM",
}


def is_dtls(data: bytes) -> bool:
    """Tell DTLS by the content type and the version of its first record."""
    return len(data) >= HEADER and data[0] in _KINDS and data[1:2] == b"\xfe"


def datagram(span: Span, context: Context) -> Field:
    """Describe a datagram: records one behind the other."""

    def walk(layout: Layout) -> None:
        while layout.left:
            layout.add(_record(layout))

    field = explained("DTLS", span, None, walk, datagram)
    note_hellos(field, span.data, context.ends, context.srtp)
    return field


def note_hellos(field: Field, data: bytes, way: tuple[str, ...], srtp: SrtpSessions) -> None:
    """Tell of the hellos in a datagram; the first fragment has the random, and a whole one all."""
    for message in (message for record in field.children for message in record.children):
        said = {each.name: each for each in message.children}
        if message.name not in _HELLOS or said["fragment offset"].value != "0":
            continue
        profiles = [each for each in message.children if each.name == "profile"]
        chosen = tuple(int(each.value, 16) for each in profiles)
        begin = said["fragment length"].end + 2  # behind the version
        random = data[begin : begin + RANDOM_OCTETS]
        if message.name == "client hello":
            srtp.greeted(way, random, chosen)
        elif "cipher suite" in said:
            srtp.agreed(way, DtlsHello(random, int(said["cipher suite"].value, 16), chosen))


def _record(layout: Layout) -> Field:
    """Describe a record."""
    head = bytes(layout.span.part(layout.at, layout.at + HEADER))
    size = HEADER + int.from_bytes(head[11:], "big")
    span = layout.take(min(size, layout.left)) if len(head) == HEADER else layout.take(layout.left)
    epoch = int.from_bytes(head[3:5], "big")

    def walk(inner: Layout) -> None:
        kind = inner.number("content type", 1, _named(_KINDS))
        inner.number("version", 2, _named(_VERSIONS), show="#06x")
        inner.number("epoch", 2)
        inner.number("sequence", 6)
        length = inner.number("length", 2, "octets")
        content = inner.take(length)
        if epoch:
            inner.add(Field("encrypted", content.start, content.end, meaning="no key is known"))
        elif kind in _CONTENTS:
            inner.at = content.start
            _CONTENTS[kind](inner)
        else:
            inner.add(Field("content", content.start, content.end))

    name = _KINDS.get(head[0], "record") if head else "record"
    return explained(name, span, None, walk, _record)


def _alert(layout: Layout) -> None:
    """Describe an alert in the clear."""
    layout.number("level", 1, _named({1: "warning", 2: "fatal"}))
    layout.number("description", 1, _named(_ALERTS))


def _handshakes(layout: Layout) -> None:
    """Describe the messages of a handshake, or their fragments."""
    while layout.left:
        head = bytes(layout.span.part(layout.at, layout.at + _HANDSHAKE_HEADER))
        size = _HANDSHAKE_HEADER + int.from_bytes(head[9:], "big")
        name = _MESSAGES.get(head[0], f"message {head[0]}")
        layout.add(
            explained(name, layout.take(min(size, layout.left)), None, _message, _handshakes)
        )


def _message(layout: Layout) -> None:
    kind = layout.number("type", 1, _named(_MESSAGES))
    length = layout.number("length", 3, "octets of the whole message")
    layout.number("message sequence", 2)
    offset = layout.number("fragment offset", 3)
    part = layout.number("fragment length", 3)
    if (offset, part) != (0, length):
        layout.octets("fragment", part, meaning="a part of the message")
    elif kind in _BODIES:
        _BODIES[kind](layout)
    else:
        layout.octets("body", part)


def _client_hello(layout: Layout) -> None:
    """Describe what a client offers."""
    _hello(layout)
    layout.octets("cookie", layout.number("cookie length", 1))
    for _ in range(layout.number("cipher suites length", 2) // 2):
        layout.number("cipher suite", 2, show="#06x")
    layout.octets("compression methods", layout.number("compression methods length", 1))
    _extensions(layout)


def _server_hello(layout: Layout) -> None:
    """Describe what a server chooses."""
    _hello(layout)
    layout.number("cipher suite", 2, show="#06x")
    layout.number("compression method", 1)
    _extensions(layout)


def _hello(layout: Layout) -> None:
    layout.number("version", 2, _named(_VERSIONS), show="#06x")
    layout.octets("random", 32)
    layout.octets("session ID", layout.number("session ID length", 1))


def _verify(layout: Layout) -> None:
    """Describe the cookie that a client has to return."""
    layout.number("version", 2, _named(_VERSIONS), show="#06x")
    layout.octets("cookie", layout.number("cookie length", 1))


def _extensions(layout: Layout) -> None:
    if not layout.left:
        return
    layout.number("extensions length", 2)
    while layout.left:
        kind = layout.number("extension", 2, _named(_EXTENSIONS))
        length = layout.number("extension length", 2)
        if kind == _USE_SRTP:
            _use_srtp(layout)
        else:
            layout.octets(_EXTENSIONS.get(kind, "extension data"), length)


def _use_srtp(layout: Layout) -> None:
    """Describe the profiles of SRTP that a hello names."""
    for _ in range(layout.number("profiles length", 2) // 2):
        layout.number("profile", 2, _named(_PROFILES), show="#06x", of=_use_srtp)
    layout.octets("MKI", layout.number("MKI length", 1))


def _certificates(layout: Layout) -> None:
    """Describe a chain; the hash is that of the fingerprint in a description (RFC 8122 §5)."""
    layout.number("certificates length", 3)
    while layout.left:
        size = layout.number("certificate length", 3)
        held = bytes(layout.span.part(layout.at, layout.at + size))
        shown = hashlib.sha256(held).digest().hex(":").upper() if len(held) == size else ""
        layout.octets("certificate", size, f"sha-256 {shown}", of=_certificates)


def certificates(body: bytes) -> Iterator[bytes]:
    """Yield the certificates of a message, the sender's own first."""
    at = 3
    while at + 3 <= len(body):
        size = int.from_bytes(body[at : at + 3])
        yield body[at + 3 : at + 3 + size]
        at += 3 + size


def _named(names: Mapping[int, str]) -> Callable[[int], str]:
    return lambda value: names.get(value, "")


_CONTENTS: Final[Mapping[int, Callable[[Layout], None]]] = {21: _alert, 22: _handshakes}
_BODIES: Final[Mapping[int, Callable[[Layout], None]]] = {
    1: _client_hello,
    2: _server_hello,
    3: _verify,
    11: _certificates,
}
