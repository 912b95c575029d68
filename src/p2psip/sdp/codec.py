"""A codec as two ends agree on it: its name, its payload type number, its parameters.

Implements RFC 3264 §6.1 and §8.3.2 where they speak of formats and payload types.

    >>> ours = (Codec("speex", 16000), Codec("PCMU", 8000), Codec("opus", 48000, 2))
    >>> [codec.payload_type for codec in numbered(ours)]
    [96, 0, 97]
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple, TypeAlias

from p2psip.errors import LocalError
from p2psip.sdp import formats
from p2psip.sdp.attributes import STATIC, RtpMap, fmtps, payload_types, rtpmaps
from p2psip.sdp.line import Attribute
from p2psip.sdp.session import MediaDescription

UNNUMBERED: Final = -1  # Own design: a codec that has no payload type number yet
# RFC 3550 §12 [no-lookalikes]
DYNAMIC: Final = range(96, 128)  # Source: RFC 3551 §6
TELEPHONE_EVENT: Final = "telephone-event"  # Source: RFC 4733 §7.1.1


@dataclass(frozen=True, slots=True)
class Codec:
    """One format of a media line, `fmtp` being what its owner wants to receive: RFC 8866 §6.6."""

    name: str
    clock_rate: int
    channels: int = 1
    payload_type: int = UNNUMBERED
    fmtp: str = ""

    def same(self, other: "Codec") -> bool:
        """Whether both mean one encoding, in any case: RFC 8866 §5.14, RFC 6184 §8.2.2."""
        return self.identity() == other.identity()

    def identity(self) -> tuple[str, int, int, str]:
        """The fields that tell encodings apart, as `same` says: RFC 8866 §5.14."""
        name = self.name.lower()  # Field §"Names in lower case"
        return name, self.clock_rate, self.channels, formats.configuration(name, self.fmtp)

    def negotiate(self, offered: "Codec") -> "Negotiated | None":
        """Compute what this format of ours and one of the peer's agree on: RFC 3264 §6.1.

        None if they are different formats.  The parameters are computed, by the rules of the
        format: two levels of H.264 agree on the lower one.  Neither number changes.
        """
        if (self.name.lower(), self.clock_rate, self.channels) != (
            offered.name.lower(),
            offered.clock_rate,
            offered.channels,
        ):
            return None
        fmtps = formats.negotiate(self.name, self.fmtp, offered.fmtp)
        if fmtps is None:
            return None
        return Negotiated(replace(self, fmtp=fmtps[0]), replace(offered, fmtp=fmtps[1]))

    @property
    def is_telephone_event(self) -> bool:
        """Say whether this is the format for DTMF and other named events: RFC 4733 §2.4.1."""
        return self.name.lower() == TELEPHONE_EVENT

    def attributes(self) -> Iterator[Attribute]:
        """Write the `a=rtpmap` and, if there is something to say, `a=fmtp`: RFC 8866 §6.6."""
        # RFC 3551 §4.5 [clock-is-told]
        mapping = RtpMap(self.payload_type, self.name, self.clock_rate, self.channels)
        # RFC 3551 §3 [mapping-is-told], RFC 8866 §5.14 [dynamic-is-mapped]
        # and §8.2.3 [dynamic-has-rtpmap]
        # RFC 3264 §5.1 [has-rtpmaps], §6.1 [maps-dynamic] [maps-static]
        yield Attribute("rtpmap", str(mapping))
        if self.fmtp:
            yield Attribute("fmtp", f"{self.payload_type} {self.fmtp}")


Format: TypeAlias = Codec
"""What a media line lists, which need not be a codec: RFC 8866 §5.14."""


class Negotiated(NamedTuple):
    """What two formats agree on: RFC 3264 §6.1; `receive` as we answer, `send` as they want it."""

    receive: Codec
    send: Codec


def codecs_of(media: MediaDescription, default: Sequence[Codec] = ()) -> tuple[Codec, ...]:
    """Read the codecs of a line (RFC 8866 §5.14), by `default`: Field §"Numbers without rtpmap"."""
    fmtp = fmtps(media)
    known = {each.payload_type: each for each in default}
    for each in rtpmaps(media):
        text = fmtp.get(each.payload_type, "")
        known[each.payload_type] = Codec(
            each.encoding, each.clock_rate, each.channels, each.payload_type, text
        )
    numbers = dict.fromkeys(payload_types(media))
    return tuple(known[each] for each in numbers if each in known)


def find(codec: Codec, among: Iterable[Codec]) -> Codec | None:
    """Give the first one that is the same encoding, or None: §6.1."""
    wanted = codec.identity()
    return next((each for each in among if each.identity() == wanted), None)


def numbered(codecs: Sequence[Codec], used: Sequence[Codec] = ()) -> tuple[Codec, ...]:
    """Give every codec a payload type that never changes its meaning: §8.3.2.

    `used` are the mappings the session has seen on this line: a codec keeps its number from
    there; else it keeps its own if no other codec has or had that; else it takes the static
    number of RFC 3551 §6, or the next dynamic one.  LocalError if no number is left.
    """
    spare = list(used)
    taken = {each.payload_type for each in used}
    wished = {each.payload_type for each in codecs}
    result: list[Codec] = []
    for codec in codecs:
        before = find(codec, spare)
        if before:
            spare.remove(before)
            number = before.payload_type  # §8.3.2 [numbers-keep-their-meaning]
        elif codec.payload_type != UNNUMBERED and codec.payload_type not in taken:
            number = codec.payload_type
        else:
            number = _fresh(codec, taken | wished)
        taken.add(number)
        result.append(replace(codec, payload_type=number))
    return tuple(result)


def _fresh(codec: Codec, taken: set[int]) -> int:
    for static in STATIC.values():
        # RFC 3551 §4.5 [other-rate-is-dynamic]
        same = Codec(static.encoding, static.clock_rate, static.channels).same(codec)
        if same and static.payload_type not in taken:
            return static.payload_type
    # RFC 3551 §3 [dynamic-range-first] [no-numbers-of-our-own], RFC 5761 §4 [dynamic-from-96]
    free = next((number for number in DYNAMIC if number not in taken), None)
    if free is None:
        raise LocalError("more codecs than dynamic payload types")
    return free
