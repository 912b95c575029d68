"""DTLS of a call, and what can be wrong with it: (rule, scene, number of the packet)."""

import hashlib

from support.lint.media_cases import CALL, FROM_A, TO_B, up
from support.lint.sip_cases import sdp

CERTIFICATE = b"a certificate, which nobody looks into"
SRTP = bytes.fromhex("000e 0005 0002 0001 00")


def sized(octets, size):
    return len(octets).to_bytes(size) + octets


def record(content, inside):
    return bytes((content,)) + b"\xfe\xfd" + bytes(8) + sized(inside, 2)


def message(kind, body, *, start=0, end=None):
    """A message of a handshake, or a part of it."""
    part = body[start:end]
    length = len(body).to_bytes(3)
    return record(22, bytes((kind,)) + length + bytes(2) + start.to_bytes(3) + sized(part, 3))


def hello(kind, extensions):
    """Of a client, 1, or of a server, 2."""
    suites = sized(b"\xc0\x2b", 2) + sized(b"\0", 1) if kind == 1 else b"\xc0\x2b\0"
    cookie = b"\0" if kind == 1 else b""
    body = b"\xfe\xfd" + bytes(32) + b"\0" + cookie + suites + sized(extensions, 2)
    return message(kind, body)


CHAIN = sized(sized(CERTIFICATE, 3), 3)


def agreed(certificate=CERTIFICATE, hashed="sha256", name="sha-256"):
    """A call whose descriptions have the hash of a certificate."""
    digest = hashlib.new(hashed, certificate).digest().hex(":").upper()
    line = f"a=fingerprint:{name} {digest}\r\na=setup:actpass\r\n".encode()
    return up(invite={"body": sdp(1, more=line)}, ok={"body": sdp(2, formats="0", more=line)})


def handshake(*datagrams, scene=None):
    return (scene or agreed()).udp(FROM_A, TO_B, *datagrams)


PARTS = message(11, CHAIN, end=9), message(11, CHAIN, start=9)
CASES = [
    ("dtls-fingerprint", handshake(message(11, CHAIN), scene=agreed(b"another")), CALL + 1),
    ("dtls-fingerprint", handshake(*PARTS, scene=agreed(b"another")), CALL + 2),
    (
        "dtls-fingerprint",
        handshake(message(11, CHAIN), scene=agreed(b"x", "sha1", "sha-1")),
        CALL + 1,
    ),
    ("dtls-no-srtp", handshake(hello(1, b"")), CALL + 1),
    ("dtls-no-srtp", handshake(hello(2, bytes.fromhex("0017 0000"))), CALL + 1),
    ("dtls-alert", handshake(record(21, b"\2\x28")), CALL + 1),
]
GOOD = {
    "a handshake": handshake(hello(1, SRTP), hello(2, SRTP), message(11, CHAIN)),
    "a certificate in parts": handshake(*PARTS),
    "a farewell": handshake(record(21, b"\1\0")),
    "an unknown hash": handshake(message(11, CHAIN), scene=agreed(b"x", "sha1", "sha-9")),
    "no fingerprint": handshake(message(11, CHAIN), scene=up()),
}
