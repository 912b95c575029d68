"""Options: values with a type and a length, in certificates, discriminators and on flows.

Implements RFC 7016 §2.1.3 and §2.1.4.

    >>> encode_options([Option(0, b"TC"), Option(10, b"!")], marker=True).hex(" ")
    '03 00 54 43 02 0a 21 00'
    >>> parse_options(bytes.fromhex("03 00 54 43 00 ff"))
    ([Option(type_id=0, value=b'TC')], 5)
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from rtmplite.errors import RemoteError
from rtmplite.rtmfp.wire.vlu import decode_counted, decode_vlu, encode_counted, encode_vlu

MARKER: Final = b"\x00"  # the empty Option, which ends a list: §2.1.3


@dataclass(frozen=True, slots=True)
class Option:
    """A value and its type: §2.1.3.  An empty Option is no `Option` but the `MARKER`."""

    type_id: int
    value: bytes = b""


def encode_option(option: Option) -> bytes:
    """Write length, type and value: §2.1.3 [option-layout]."""
    return encode_counted(encode_vlu(option.type_id) + option.value)


def encode_options(options: Iterable[Option], *, marker: bool = False) -> bytes:
    """Write options one after the other, then a Marker if `marker` says so: §2.1.4 [list-ends]."""
    return b"".join(map(encode_option, options)) + (MARKER if marker else b"")


def parse_options(
    data: bytes | memoryview, at: int = 0, most: int | None = None
) -> tuple[list[Option], int]:
    """Read options to a Marker or the end, `most` at most: RFC 7425 §4.3.1.  RemoteError."""
    data = bytes(data)
    options: list[Option] = []
    while at < len(data):
        option, at = _parse_option(data, at)
        if option is None:
            break
        if len(options) == most:
            raise RemoteError(f"more than {most} options")
        options.append(option)
    return options, at


def parse_option_list(data: bytes | memoryview, at: int = 0) -> tuple[tuple[Option, ...], int]:
    """Read options and the Marker after them; return them and the index of the next byte.

    §2.1.4 [list-ends].  Raises RemoteError for an option that is cut off, and for a list without a
    Marker.
    """
    data = bytes(data)
    options: list[Option] = []
    while True:
        option, at = _parse_option(data, at)
        if option is None:
            return tuple(options), at
        options.append(option)


def _parse_option(data: bytes, at: int) -> tuple[Option | None, int]:
    """Read one option, None for a Marker: §2.1.3 [option-layout] [marker]."""
    payload, at = decode_counted(data, at)
    if not payload:
        return None, at
    type_id, start = decode_vlu(payload)
    return Option(type_id, payload[start:]), at
