"""RTMFP: the session ID, the packet behind its encryption, the chunks, and the flows' messages.

Own design: see `explain.fields.field`.  The packets by which a session begins are encrypted by a
key that everybody knows; those of a session need its keys.

    >>> from rtmplite.rtmfp.crypto.cipher import default_cipher
    >>> from rtmplite.rtmfp.wire.packet import scramble
    >>> sealed = default_cipher().seal(bytes.fromhex("0b 0001 30 0007 04 030a723a 7467"))
    >>> field = datagram(Span.all(scramble(0, sealed)), Context())
    >>> [(each.name, each.value) for each in field.children]
    [('session ID', '0'), ('packet', '')]
    >>> [each.name for each in field.children[1].children][-2:]
    ['InitiatorHello', 'padding']
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from rtclab.explain.fields.context import Context
from rtclab.explain.fields.field import Field, Span
from rtclab.explain.fields.layout import Layout, explained
from rtclab.explain.flv import named
from rtclab.explain.rtmfp_chunks import Chunks
from rtmplite.errors import RtmpError
from rtmplite.rtmfp.crypto.cipher import Opener, Protection, default_cipher
from rtmplite.rtmfp.crypto.params import HMAC_LENGTHS
from rtmplite.rtmfp.wire.chunks import HEADER_LENGTH, PADDING_TYPES
from rtmplite.rtmfp.wire.packet import Mode, Packet, unscramble

_BLOCK: Final = 16


def opened(data: bytes, context: Context) -> bytes | None:
    """Decrypt a datagram by the default key, or by those of the context; None if none fits."""
    try:
        _, encrypted = unscramble(data)
        return default_cipher().open(encrypted)
    except RtmpError:
        pass
    for protection in _protections(context, len(data) - 4):
        try:
            plain = Opener(protection).open(encrypted)
            if Packet.parse(plain).mode != Mode.STARTUP:
                return plain
        except RtmpError:
            continue
    return None


def _protections(context: Context, size: int) -> Iterator[Protection]:
    """The ways in which packets of this size may be protected."""
    for key, hmac_key in context.keys:
        lengths = [each for each in HMAC_LENGTHS if (size - each) % _BLOCK == 0]
        for length in lengths if hmac_key else [0]:
            for numbered in (True, False):
                yield Protection(key, hmac_key, length, numbered)


def is_startup(data: bytes) -> bool:
    """Whether a datagram is a packet of the startup: its checksum says so."""
    return len(data) >= 4 + _BLOCK and opened(data, Context()) is not None


def datagram(span: Span, context: Context) -> Field:
    """Describe a datagram."""
    data = bytes(span)

    def walk(layout: Layout) -> None:
        session_id, _ = unscramble(data)
        layout.octets("session ID", 4, str(session_id), "scrambled", unscramble)
        plain = opened(data, context)
        if not layout.left:
            return
        inner = layout.take(layout.left)
        if plain is None:
            layout.at = inner.start
            layout.octets("packet", meaning="encrypted; the session's key is not given")
            return
        read = packet(Span.all(plain), context)
        layout.add(
            replace(read, start=inner.start, end=inner.end, meaning="decrypted", octets=plain)
        )

    return explained("RTMFP", span, unscramble, walk, unscramble)


def packet(span: Span, context: Context) -> Field:
    """Describe a packet that is decrypted."""

    def walk(layout: Layout) -> None:
        _, _, _, timed, echoed, _ = layout.bits(
            *(1, ("time critical", 1), ("time critical reverse", 1), ("reserved", 2)),
            *(("timestamp follows", 1), ("echo follows", 1), ("mode", 2, named(Mode))),
        )
        if timed:
            layout.number("timestamp", 2, "ticks of 4 ms")
        if echoed:
            layout.number("timestamp echo", 2, "ticks of 4 ms")
        chunks = Chunks(context)
        while layout.left >= HEADER_LENGTH:
            head = bytes(span.part(layout.at, layout.at + HEADER_LENGTH))
            size = HEADER_LENGTH + int.from_bytes(head[1:], "big")
            if head[0] in PADDING_TYPES or size > layout.left:
                break
            layout.add(chunks.describe(layout.take(size)))
        if layout.left:
            layout.octets("padding")

    return explained("packet", span, Packet.parse, walk, Packet)
