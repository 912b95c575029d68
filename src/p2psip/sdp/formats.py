"""What is particular to a format in offer and answer: its parameters, and its packet times.

Implements RFC 3264 §6.1, where it leaves the parameters to the format's own specification.

A row for each encoding whose parameters are computed; of any other both ends say their own
(RFC 8866 §6.15), and each heeds the peer's.

    >>> negotiate("telephone-event", "0-15", "0-11,66,a")
    ('0-15', '0-11,66')
    >>> negotiate("H264", "profile-level-id=42e01f", "profile-level-id=64001f") is None
    True
    >>> whole_frames("speex", 30, 200), whole_frames("opus", 25, 60), whole_frames("PCMU", 25, 60)
    (40, 40, 25)
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeAlias

from p2psip.sdp import h264_parameters, h265_parameters, opus_parameters
from p2psip.sdp.attributes import events, parameters

Negotiated: TypeAlias = tuple[str, str]
"""The parameters that our end answers with, and those that it heeds as it sends: §6.1."""

# Source: RFC 3640 §4.1, the parameters that say where in a payload each field stands
_AAC_LAYOUT: Final = (
    ("mode", ""),
    ("sizelength", "0"),
    ("indexlength", "0"),
    ("indexdeltalength", "0"),
    ("ctsdeltalength", "0"),
    ("dtsdeltalength", "0"),
    ("randomaccessindication", "0"),
    ("auxiliarydatasizelength", "0"),
)


def negotiate_events(ours: str, theirs: str) -> Negotiated:
    """The lists of telephone events, of which a sender keeps to the peer's: RFC 4733 §2.4.1."""
    # RFC 4733 §2.5.2.1 [events-listed], §2.5.1.1 [only-events-listed]
    return event_list(events(ours)), event_list(events(theirs))


def event_list(codes: Iterable[int]) -> str:
    """Write event codes as numbers and ranges: RFC 4733 §2.4.

    >>> event_list([0, 1, 2, 70, 66])
    '0-2,66,70'
    """
    ranges: list[tuple[int, int]] = []
    for code in sorted(set(codes)):
        if ranges and ranges[-1][1] == code - 1:
            ranges[-1] = ranges[-1][0], code
        else:
            ranges.append((code, code))
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in ranges)


def negotiate_aac(ours: str, theirs: str) -> Negotiated | None:
    """The parameters of mpeg4-generic, None where one end interleaves too: RFC 3640 §4.1."""
    mine, other = parameters(ours), parameters(theirs)
    if other.get("maxdisplacement", "0") != "0":  # RFC 3640 §4.1 [interleaved-is-declined]
        return None
    # RFC 3640 §4.1 [more-parameters-are-no-harm]
    for name, default in _AAC_LAYOUT:
        if mine.get(name, default).lower() != other.get(name, default).lower():
            return None
    return ours, theirs


_NEGOTIATORS: Final[Mapping[str, Callable[[str, str], Negotiated | None]]] = {
    "h264": h264_parameters.negotiate,
    "h265": h265_parameters.negotiate,
    "mpeg4-generic": negotiate_aac,
    "opus": opus_parameters.negotiate,
    "telephone-event": negotiate_events,
}


def negotiate(encoding: str, ours: str, theirs: str) -> Negotiated | None:
    """Agree on the parameters of two `a=fmtp` of one encoding; None if they clash.

    RFC 3264 §6.1.
    """
    rule = _NEGOTIATORS.get(encoding.lower())
    # RFC 7741 §6.2 [unknown-parameters-ignored]
    return rule(ours, theirs) if rule else (ours, theirs)


def configuration(encoding: str, fmtp: str) -> str:
    """The parameters without which a format is another one, "" for most: RFC 6184 §8.2.2."""
    return h264_parameters.configuration(fmtp) if encoding.lower() == "h264" else ""


# The frames (ms) that packets of an encoding are made of, in order; the longest may be repeated.
_FRAMES: Final[Mapping[str, tuple[int, ...]]] = {
    "speex": (20,),  # Source: RFC 5574 §5.6
    "gsm": (20,),  # Source: RFC 3551 §4.5 Table 1
    "g723": (30,),
    "g729": (10,),
    "opus": (3, 5, 10, 20, 40, 60),  # Source: RFC 7587 §6.1, 2.5 ms rounded up
}
_LONGEST: Final[Mapping[str, int]] = {"opus": 120}  # Source: RFC 7587 §6.1, ms


def whole_frames(encoding: str, wanted: int, limit: int) -> int:
    """Fit a packet time (ms) to whole frames, the next one up below `limit`: RFC 5574 §5.6."""
    name = encoding.lower()
    frames = _FRAMES.get(name)
    if frames is None:
        return wanted
    limit = min(limit, _LONGEST.get(name, limit))
    longest = frames[-1]
    times: list[int] = [*frames, *range(2 * longest, limit + 1, longest)]
    fitting = [time for time in times if time <= limit] or times[:1]
    return next((time for time in fitting if time >= wanted), fitting[-1])
