"""The media lines of video: which codecs and profiles both ends take.

Implements RFC 6184 §8.2.2, RFC 3264 §6.1, RFC 7798 §7 and RFC 7741 §6.2 by way of `p2psip.sdp`.

Own design: frames pass as they are, so the gateway has no profile of its own.  It answers with
each profile that the phone offers, and takes each one that a phone answers with.  It offers one
of H.264 alone, at the level that phones allow, in both ways of packing: an INVITE of more than
1,300 octets would leave by TCP (RFC 3261 §18.1.1), which not every phone hears.

H.265 and VP8 stand behind H.264.  Of the phone's limits for H.265 only the bits of its line count,
since nothing here makes H.265 that could keep to a level.  VP8 is there only where the publisher or
a player has it, or it may be made.
"""

import binascii
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Final

from p2psip.errors import RemoteError
from p2psip.sdp.agreed_media import AgreedMedia
from p2psip.sdp.attributes import parameters
from p2psip.sdp.codec import Codec, codecs_of
from p2psip.sdp.h264_parameters import H264Parameters
from p2psip.sdp.h265_parameters import parameter_sets
from p2psip.sdp.line import Attribute
from p2psip.sdp.local_media import RepairSources
from p2psip.sdp.offer_answer import LocalMedia, LocalTransport
from p2psip.sdp.session import MediaDescription, SessionDescription
from siprtmp.media.translate import video_tag
from siprtmp.media.translate.codec_limits import CodecLimits, h264_limits
from siprtmp.media.translate.video_tag import H264 as NAME

CLOCK_RATE: Final = 90_000  # Source: RFC 7741 §6.2.1, RFC 7798 §7


@dataclass(frozen=True, slots=True)
class VideoFormat:
    """The agreement of both ends on a codec: types of packets each way, and the phone's limits."""

    name: str  # in the client's API
    send_type: int
    receive_type: int
    limits: CodecLimits
    parameter_sets: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class VideoCodec:
    """A codec as lines have it: RFC 3264 §5.1.

    `name` is that of the client's API, `format` that of an offer.
    `limits` and `parameter_sets` read the parameters of a phone.
    """

    name: str
    format: Codec
    limits: Callable[[str, AgreedMedia], CodecLimits]
    parameter_sets: Callable[[str], tuple[bytes, ...]] = lambda fmtp: ()

    def is_offered(self, theirs: SessionDescription) -> bool:
        """Whether a line with a port has the codec: RFC 3264 §5.1."""
        # RFC 7741 §6.2.1 [media-is-video]
        lines = [media for media in theirs.media if media.kind == "video" and media.port]
        return any(self._is(codec) for media in lines for codec in codecs_of(media))

    def agreed(self, media: AgreedMedia) -> VideoFormat | None:
        """The codec's format of an accepted line, None without: RFC 3264 §6.1."""
        for codec, send, receive in zip(
            media.codecs, media.send_payload_types, media.receive_payload_types, strict=True
        ):
            if self._is(codec):
                limits, sets = self.limits(codec.fmtp, media), self.parameter_sets(codec.fmtp)
                return VideoFormat(self.name, send, receive, limits, sets)
        return None

    def _is(self, codec: Codec) -> bool:
        # RFC 7741 §6.2.1 [name-is-vp8] [clock-is-90000]
        same = codec.name.upper() == self.format.name
        return same and codec.clock_rate == self.format.clock_rate


# RFC 7798 §7.2.1 [named-h265] [clock-of-90000]
_H265_FORMAT: Final = Codec("H265", CLOCK_RATE, 1, 104)


def _h265_limits(fmtp: str, media: AgreedMedia) -> CodecLimits:
    """The most that a phone takes: RFC 8866 §5.8."""
    return CodecLimits(bits=media.bits)


H265: Final = VideoCodec(video_tag.H265, _H265_FORMAT, _h265_limits, parameter_sets)

# What is decoded here is bounded by its size alone: 1920 by 1088.
_VP8_FORMAT: Final = Codec("VP8", CLOCK_RATE, 1, 106, "max-fr=30;max-fs=8160")


def _vp8_limits(fmtp: str, media: AgreedMedia) -> CodecLimits:
    """The most that a phone takes: RFC 7741 §6.2.2, and RFC 8866 §5.8."""
    said = parameters(fmtp)  # RFC 7741 §6.2 [unknown-parameters-ignored]
    rate, blocks = _number(said.get("max-fr", "")), _number(said.get("max-fs", ""))
    # RFC 7741 §6.2.2 [limits-are-kept]
    return CodecLimits(rate=rate, blocks=blocks, bits=media.bits)


def _number(text: str) -> int:
    return int(text[:6]) if text.isascii() and text.isdigit() else 0


VP8: Final = VideoCodec(video_tag.VP8, _VP8_FORMAT, _vp8_limits)

H264: Final = "H264"
OTHERS: Final = (H265, VP8)  # codecs beside H.264, the better one first
NAMES: Final = (NAME, *(codec.name for codec in OTHERS))  # in the client's API
FEEDBACK: Final = ("nack", "nack pli")  # RFC 4585 §4.2
_NO_VIDEO: Final = frozenset(("rtx", "red", "ulpfec", "flexfec-03", "x-flv"))  # of video lines
MAX_ANSWERED: Final = 8  # formats of one line
_OFFERED: Final = (  # Field §"Packing that is not named"
    (99, "profile-level-id=42e01f;packetization-mode=1"),
    (100, "profile-level-id=42e01f"),
)
FORMATS: Final = tuple(Codec(H264, CLOCK_RATE, 1, number, fmtp) for number, fmtp in _OFFERED)


@dataclass(frozen=True, slots=True)
class VideoPlan:
    """The agreement of both ends on the video of a call: RFC 3264 §6.1.

    `sending` holds (parameters, payload type to put on packets), the peer's favourite first;
    `receiving` maps the payload types that will arrive.  Both are of H.264, and empty for a phone
    that has `others` alone.
    """

    media: AgreedMedia
    sending: tuple[tuple[H264Parameters, int], ...]
    receiving: Mapping[int, H264Parameters]
    others: tuple[VideoFormat, ...] = ()

    @property
    def names(self) -> list[str]:
        """The codecs in common, H.264 first: RFC 3264 §6.1."""
        return [*([NAME] if self.sending else []), *(each.name for each in self.others)]

    @property
    def name(self) -> str:
        """The first of them, for people: RFC 3264 §6.1."""
        return self.names[0]

    @property
    def encodable(self) -> str:
        """The codec to make for the phone, "" if it has none that can be made: RFC 3264 §6.1."""
        return next((name for name in self.names if name != H265.name), "")

    @property
    def arriving(self) -> Mapping[int, str]:
        """The payload types that will arrive, and the codecs they stand for: RFC 3264 §6.1."""
        others = {each.receive_type: each.name for each in self.others}
        return {**dict.fromkeys(self.receiving, NAME), **others}

    def other(self, name: str) -> VideoFormat | None:
        """The agreement on a codec beside H.264, None without one: RFC 3264 §6.1."""
        return next((each for each in self.others if each.name == name), None)

    def for_profile(self, profile: str) -> tuple[H264Parameters, int]:
        """The way to send frames of this profile, by its name in RFC 6184 §8.1 Table 5.

        The phone's favourite if it does not have the profile: most decoders have more profiles
        than they name.  Of two ways of packing, the one in which any frame fits.

        Departs from RFC 6184 §8.2.2: the level is that of the publisher, whatever was agreed on,
        unless video may be transcoded: no encoder is there else that could lower it, and a phone
        may show it all the same.
        """
        exact = [each for each in self.sending if each[0].profile_level.sub_profile == profile]
        return max(exact or self.sending, key=lambda each: each[0].packetization_mode)

    def limits(self, name: str) -> CodecLimits:
        """The most of a codec that the phone takes: RFC 6184 §8.1, RFC 7741 §6.2.2."""
        other = self.other(name)
        if other is not None:
            return other.limits
        if not self.sending:
            return CodecLimits()
        return h264_limits(self.for_profile("")[0], self.media.bits)

    @property
    def parameter_sets(self) -> tuple[bytes, ...]:
        """The parameter sets that the phone's description has: RFC 6184 §8.1.

        Field §"Parameter sets in one place".

        Departs from RFC 6184 §8.2.2 [sets-of-another-level]: sets of an answer count whatever its
        level is: those among the frames replace them, and may never come.
        """
        sets: list[bytes] = []
        for theirs, _ in self.sending:
            # RFC 6184 §8.2.2 [sets-of-the-offer] [sets-of-the-answer] [level-sets-ignored]
            for text in dict(theirs.others).get("sprop-parameter-sets", "").split(","):
                try:
                    sets.append(b64decode(text, validate=True))
                except binascii.Error:
                    continue
        return tuple(filter(None, dict.fromkeys(sets)))


def others_of(names: Sequence[str]) -> tuple[Codec, ...]:
    """The formats of codecs beside H.264 that are named: RFC 3264 §5.1."""
    # RFC 7741 §6.2.1 [limits-are-declared], RFC 7741 §6.1 [both-limits] [limits-for-nothing-else]
    return tuple(codec.format for codec in OTHERS if codec.name in names)


def line(names: Sequence[str], transport: LocalTransport) -> LocalMedia:
    """The line of an offer of the codecs named, the others behind H.264: RFC 3264 §5.1."""
    formats = (*(FORMATS if NAME in names else ()), *others_of(names))
    # RFC 6184 §8.2.1 [media-is-video] [name-is-h264] [clock-is-90000]
    # RFC 6184 §6.3 [mode-1-is-read]
    return LocalMedia("video", formats, transport, feedback=FEEDBACK)


def lines_for(
    names: Sequence[str],
    theirs: SessionDescription,
    transport: LocalTransport,
    direction: str,
    repairs: RepairSources | None = None,
) -> list[LocalMedia]:
    """The line that answers an offer, with the profiles that the offer has: RFC 3264 §6.1.

    With `repairs` packets may be sent again by RTX: RFC 4588 §8.1.
    """
    wanted = offered_parameters(theirs) if NAME in names else []
    ours = (H264Parameters(each.profile_level, each.packetization_mode, True) for each in wanted)
    offered = [Codec(H264, CLOCK_RATE, fmtp=str(each)) for each in ours]
    formats = (*offered[:MAX_ANSWERED], *others_of(names))
    if not formats:
        return []
    feedback = (*FEEDBACK, "ccm fir")  # RFC 5104 §4.3.1; an offer has no octets to spare
    # RFC 6184 §8.2.1 [media-is-video]
    # H.264 first, which every player has: RFC 3264 §6.1 leaves the order to the answerer
    return [
        LocalMedia(
            "video",
            formats,
            transport,
            direction,
            feedback=feedback,
            prefer="local",
            repairs=repairs,
        )
    ]


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


def are_offered(theirs: SessionDescription, names: Sequence[str]) -> bool:
    """Whether an offer has any of the codecs named: RFC 3264 §6."""
    others = (codec.is_offered(theirs) for codec in OTHERS if codec.name in names)
    return any(others) or (NAME in names and bool(offered_parameters(theirs)))


def offered_video(of: SessionDescription) -> list[str]:
    """The codecs of the video lines that have a port, each once: RFC 8866 §5.14."""
    lines = [each for each in of.media if each.kind == "video" and each.port]
    names = [codec.name.lower() for line in lines for codec in codecs_of(line)]
    return [name for name in dict.fromkeys(names) if name not in _NO_VIDEO]


def offered_parameters(theirs: SessionDescription) -> list[H264Parameters]:
    """The formats of H.264 that lines with a port offer, and we can pack: RFC 6184 §8.2.2."""
    lines = [each for each in theirs.media if each.kind == "video" and each.port]
    codecs = [codec for line in lines for codec in codecs_of(line)]
    return [read for codec in codecs if (read := _read(codec)) is not None]


def plan(media: AgreedMedia) -> VideoPlan | None:
    """The plan of an accepted line, None without a codec that can pass: RFC 6184 §8.2.2."""
    sending, receiving = [], {}
    for codec, send, receive in zip(
        media.codecs, media.send_payload_types, media.receive_payload_types, strict=True
    ):
        read = _read(codec)
        if read is not None:
            sending.append((read, send))
            receiving[receive] = read
    others = tuple(filter(None, (codec.agreed(media) for codec in OTHERS)))
    return VideoPlan(media, tuple(sending), receiving, others) if sending or others else None


def _read(codec: Codec) -> H264Parameters | None:
    # RFC 6184 §8.2.1 [name-is-h264] [clock-is-90000]
    if codec.name.upper() != H264 or codec.clock_rate != CLOCK_RATE:
        return None
    try:
        read = H264Parameters.parse(codec.fmtp)
    except RemoteError:
        return None
    return read if read.packetization_mode in (0, 1) else None
