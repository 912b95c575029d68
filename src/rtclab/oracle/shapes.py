"""The fields of the neutral JSON of a codec, from the types of its dataclasses.

Own design: what is printed is derived from what is compared, so that it cannot be out of date.

    >>> from p2psip.rtp.packet import RtpPacket
    >>> for line in shapes(RtpPacket):
    ...     print(line)
    value: rtp-packet
    rtp-packet: payload_type number, sequence number, timestamp number, ssrc number, \
payload octets, marker boolean, csrcs [number], extension extension|null, padding number
    extension: profile number, data octets
"""

import types
from collections.abc import Iterator
from enum import StrEnum
from typing import Any, Final, get_args, get_origin

from rtclab.oracle.neutral import UNIONS, field_names, flat, hints_of, type_name

_NAMES: Final[dict[Any, str]] = {
    bool: "boolean",
    int: "number",
    str: "text",
    bytes: "octets",
    types.NoneType: "null",
}


def shapes(hint: Any) -> Iterator[str]:
    """A line for the value, and one for each record that it holds."""
    yield f"value: {_shown(hint)}"
    waiting, seen = [hint], set()
    while waiting:
        each = waiting.pop(0)
        if get_origin(each):
            waiting = [*get_args(each), *waiting]
            continue
        names = field_names(each)
        if names is None or each in seen:
            continue
        seen.add(each)
        hints = hints_of(each)
        fields = ", ".join(f"{name} {_shown(hints[name])}" for name in names)
        yield f"{type_name(each)}: {fields or 'no fields'}"
        waiting += [hints[name] for name in names]


def _shown(hint: Any) -> str:
    """A type as text: the name of a record, or what it is in JSON."""
    if get_origin(hint) in UNIONS:
        return "|".join(map(_shown, flat(get_args(hint))))
    if get_origin(hint) is tuple and get_args(hint)[-1] is not Ellipsis:
        return f"[{', '.join(map(_shown, get_args(hint)))}]"
    if get_origin(hint):
        return f"[{_shown(get_args(hint)[0])}]"
    if field_names(hint) is not None:
        return type_name(hint)
    return "text" if issubclass(hint, StrEnum) else _NAMES.get(hint, "number")
