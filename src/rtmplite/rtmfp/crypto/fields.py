"""Option lists, as certificates, discriminators, keying components and signatures contain them.

Implements RFC 7425 §4.3.1, §4.3.5, §4.4.1 and §4.5.1: options follow each other to the last byte.

    >>> options = read(bytes.fromhex("02 0a 41 00 02 15 02"))
    >>> options
    [Option(type_id=10, value=b'A'), Option(type_id=21, value=b'\\x02')]
    >>> only(options, 10), only(options, 0)
    (b'A', None)
"""

from collections.abc import Iterable
from typing import Final

from rtmplite.errors import RemoteError
from rtmplite.rtmfp.wire.option import Option, parse_options
from rtmplite.rtmfp.wire.vlu import decode_vlu, encode_vlu

OPTIONS_MOST: Final = 64  # own design: peers have a dozen; strangers may send more


def read(data: bytes | memoryview) -> list[Option]:
    """Read at most `OPTIONS_MOST` options to the end, across Markers, else RemoteError: §4.3.1."""
    options: list[Option] = []
    at = 0
    for _ in range(OPTIONS_MOST):
        # RFC 7425 §3 [truncation-noticed] [error-aborts-element]
        some, at = parse_options(data, at, OPTIONS_MOST - len(options))
        options += some
        if at >= len(data):
            return options
    raise RemoteError(f"more than {OPTIONS_MOST} Markers")


def values(options: Iterable[Option], type_id: int) -> list[bytes]:
    """Give the values of all options of one type, in order: RFC 7425 §4.3.3."""
    # RFC 7425 §4.3.3 [unknown-ignored], §4.4.2 [unknown-ignored], §4.5.2 [unknown-ignored]
    return [option.value for option in options if option.type_id == type_id]


def only(options: Iterable[Option], type_id: int) -> bytes | None:
    """Give the value of the one option of a type, or None; RemoteError for several: §4.3.3.1."""
    found = values(options, type_id)
    if len(found) > 1:
        raise RemoteError(f"option {type_id:#04x} must not occur more than once")
    return found[0] if found else None


def read_key(value: bytes) -> tuple[int, int]:
    """Read a group id and a public key: RFC 7425 §4.3.3.5, §4.5.2.1 [ephemeral-key-layout]."""
    group_id, start = decode_vlu(value)
    return group_id, int.from_bytes(value[start:])


def write_key(group_id: int, public: int) -> bytes:
    """Write a group id and a public key, without leading zeros: RFC 7425 §4.3.3.5, §4.5.2.1."""
    return encode_vlu(group_id) + public.to_bytes((public.bit_length() + 7) // 8)


def read_group(value: bytes) -> int:
    """Read a group id alone: RFC 7425 §4.3.3.4, §4.5.2.3."""
    return decode_vlu(value)[0]
