"""The media lines of H.264: which profiles the gateway offers, and what both ends agree on.

Implements RFC 6184 §8.2.2 by way of `p2psip.sdp`.

Own design: pictures pass as they are, so the gateway has no profile of its own.  It answers with
each profile that the phone offers, and takes each one that a phone answers with.  It offers one
alone, at the level that phones allow, in both ways of packing: an INVITE of more than 1,300 octets
would leave by TCP (RFC 3261 §18.1.1), which not every phone hears.
"""

import binascii
from base64 import b64decode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Final

from p2psip.errors import RemoteError
from p2psip.sdp.agreed_media import AgreedMedia
from p2psip.sdp.codec import Codec, codecs_of
from p2psip.sdp.h264_parameters import H264Parameters
from p2psip.sdp.line import Attribute
from p2psip.sdp.offer_answer import LocalMedia, LocalTransport
from p2psip.sdp.session import MediaDescription, SessionDescription
from siprtmp.media import vp8_lines
from siprtmp.media.translate.picture_limits import PictureLimits, h264_limits
from siprtmp.media.vp8_lines import Vp8Format

H264: Final = "H264"
CLOCK_RATE: Final = 90_000  # Source: RFC 6184 §8.2.1
FEEDBACK: Final = ("nack", "nack pli")  # RFC 4585 §4.2
MAX_ANSWERED: Final = 8  # formats of one line
_OFFERED: Final = (  # Field §"Packing that is not named"
    (99, "profile-level-id=42e01f;packetization-mode=1"),
    (100, "profile-level-id=42e01f"),
)
FORMATS: Final = tuple(Codec(H264, CLOCK_RATE, 1, number, fmtp) for number, fmtp in _OFFERED)


@dataclass(frozen=True, slots=True)
class VideoPlan:
    """The agreement of both ends on the pictures of a call: RFC 3264 §6.1.

    `sending` holds (parameters, payload type to put on packets), the peer's favourite first;
    `receiving` maps the payload types that will arrive.  Both are empty for a phone that has `vp8`
    alone.
    """

    media: AgreedMedia
    sending: tuple[tuple[H264Parameters, int], ...]
    receiving: Mapping[int, H264Parameters]
    vp8: Vp8Format | None = None

    @property
    def name(self) -> str:
        """The codec that is sent, "h264" or "vp8": RFC 3264 §6.1."""
        return "h264" if self.sending else "vp8"

    @property
    def arriving(self) -> frozenset[int]:
        """The payload types that will arrive: RFC 3264 §6.1."""
        own = () if self.vp8 is None else (self.vp8.receive_type,)
        return frozenset((*self.receiving, *own))

    def for_profile(self, profile: str) -> tuple[H264Parameters, int]:
        """The way to send pictures of this profile, by its name in RFC 6184 §8.1 Table 5.

        The phone's favourite if it does not have the profile: most decoders have more profiles
        than they name.  Of two ways of packing, the one in which any picture fits.

        Departs from RFC 6184 §8.2.2: the level is that of the publisher, whatever was agreed on,
        unless pictures may be made: no encoder is there else that could lower it, and a phone may
        show it all the same.
        """
        exact = [each for each in self.sending if each[0].profile_level.sub_profile == profile]
        return max(exact or self.sending, key=lambda each: each[0].packetization_mode)

    @property
    def limits(self) -> PictureLimits:
        """The most that the phone takes: RFC 6184 §8.1, RFC 7741 §6.2.2, RFC 8866 §5.8."""
        if not self.sending:
            return self.vp8.limits if self.vp8 is not None else PictureLimits()
        return h264_limits(self.for_profile("")[0], self.media.bits)

    @property
    def parameter_sets(self) -> tuple[bytes, ...]:
        """The parameter sets that the phone's description has: RFC 6184 §8.1.

        Field §"Parameter sets in one place".

        Departs from RFC 6184 §8.2.2 [sets-of-another-level]: sets of an answer count whatever its
        level is: those among the pictures replace them, and may never come.
        """
        sets: list[bytes] = []
        for parameters, _ in self.sending:
            # RFC 6184 §8.2.2 [sets-of-the-offer] [sets-of-the-answer] [level-sets-ignored]
            for text in dict(parameters.others).get("sprop-parameter-sets", "").split(","):
                try:
                    sets.append(b64decode(text, validate=True))
                except binascii.Error:
                    continue
        return tuple(filter(None, dict.fromkeys(sets)))


def line(transport: LocalTransport, has_vp8: bool = False) -> LocalMedia:
    """The line of an offer, with VP8 behind H.264 if we have it: RFC 3264 §5.1."""
    formats = (*FORMATS, vp8_lines.FORMAT) if has_vp8 else FORMATS
    # RFC 6184 §8.2.1 [media-is-video] [name-is-h264] [clock-is-90000], §6.3 [mode-1-is-read]
    return LocalMedia("video", formats, transport, feedback=FEEDBACK)


def lines_for(
    theirs: SessionDescription, transport: LocalTransport, direction: str, has_vp8: bool = False
) -> list[LocalMedia]:
    """The line that answers an offer, with the profiles that the offer has: RFC 3264 §6.1."""
    offered = [
        Codec(
            H264,
            CLOCK_RATE,
            fmtp=str(H264Parameters(each.profile_level, each.packetization_mode, True)),
        )
        for each in offered_parameters(theirs)
    ]
    formats = (*offered[:MAX_ANSWERED], *([vp8_lines.FORMAT] if has_vp8 else ()))
    if not formats:
        return []
    feedback = (*FEEDBACK, "ccm fir")  # RFC 5104 §4.3.1; an offer has no octets to spare
    # RFC 6184 §8.2.1 [media-is-video]
    return [LocalMedia("video", formats, transport, direction, feedback=feedback)]


def forgiven(answer: SessionDescription, offer: SessionDescription) -> SessionDescription:
    """An answer whose formats of H.264 are those of the offer, by their numbers.

    Departs from RFC 6184 §8.2.2: a phone should answer with the profile of the offer, or not at
    all.  Some answer with another and decode what comes: Field §"A profile of its own".
    """
    lines = []
    for theirs, ours in zip_longest(answer.media, offer.media):
        if theirs is not None and ours is not None and theirs.kind == ours.kind == "video":
            theirs = replace(theirs, attributes=tuple(_with_profiles(theirs, ours)))
        if theirs is not None:
            lines.append(theirs)
    return replace(answer, media=tuple(lines))


def _with_profiles(theirs: MediaDescription, ours: MediaDescription) -> Iterator[Attribute]:
    offered = {codec.payload_type: _read(codec) for codec in codecs_of(ours)}
    answered = {codec.payload_type: _read(codec) for codec in codecs_of(theirs)}
    for each in theirs.attributes:
        number, _, _ = (each.value or "").partition(" ")
        read = answered.get(int(number)) if each.name == "fmtp" and number.isdecimal() else None
        wanted = offered.get(int(number)) if read is not None else None
        if read is None or wanted is None or read.packetization_mode != wanted.packetization_mode:
            yield each
        else:
            profile_level = wanted.profile_level.at(read.profile_level.level)
            yield Attribute("fmtp", f"{number} {replace(read, profile_level=profile_level)}")


def offered_parameters(theirs: SessionDescription) -> list[H264Parameters]:
    """The formats of H.264 that lines with a port offer, and we can pack: RFC 6184 §8.2.2."""
    codecs = [
        codec
        for media in theirs.media
        if media.kind == "video" and media.port
        for codec in codecs_of(media)
    ]
    return [read for codec in codecs if (read := _read(codec)) is not None]


def plan(media: AgreedMedia) -> VideoPlan | None:
    """The plan of an accepted line, None without H.264 and VP8: RFC 6184 §8.2.2."""
    sending, receiving = [], {}
    for codec, send, receive in zip(
        media.codecs, media.send_payload_types, media.receive_payload_types, strict=True
    ):
        read = _read(codec)
        if read is not None:
            sending.append((read, send))
            receiving[receive] = read
    vp8 = vp8_lines.agreed(media)
    return VideoPlan(media, tuple(sending), receiving, vp8) if sending or vp8 else None


def _read(codec: Codec) -> H264Parameters | None:
    # RFC 6184 §8.2.1 [name-is-h264] [clock-is-90000]
    if codec.name.upper() != H264 or codec.clock_rate != CLOCK_RATE:
        return None
    try:
        read = H264Parameters.parse(codec.fmtp)
    except RemoteError:
        return None
    return read if read.packetization_mode in (0, 1) else None
