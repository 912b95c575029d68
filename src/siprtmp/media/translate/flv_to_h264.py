"""From FLV video tags to RTP payloads of H.264.

Implements RFC 6184 §5 and §6, from tags as FLV 10.1 §E.4.3.1 lays them out, or E-RTMP v2
§"Enhanced Video" with the FourCC `avc1`.

Pure: tags in, packets out.  A publisher sends its parameter sets once, in a tag of their own; a
phone has to get them in the stream, before each key frame, for it may have lost or missed any
earlier one.  Delimiters, fillers and enhancement information (SEI) stay behind: what a phone shows
does not need them, and packets cost.
"""

from typing import Final

from p2psip.errors import LocalError
from p2psip.rtp.payload.h264 import pack_h264
from p2psip.rtp.payload.h264_pictures import IDR, SLICES
from p2psip.sdp.h264_parameters import ProfileLevel
from rtmplite.errors import RemoteError
from rtmplite.flv.avc import AvcConfig, split_units
from rtmplite.flv.avc_sps import PPS, SPS, SequenceParameters
from rtmplite.flv.enhanced import four_cc_text
from rtmplite.flv.enhanced_video import ExVideoTag, VideoFourCc, VideoPacketType
from rtmplite.flv.video import AvcPacketType, CodecId, FrameType, VideoTag
from siprtmp.media.translate.flv_to_rtp import Packet, UnsuitableError
from siprtmp.media.translate.timebase import RTMP_WRAP, wrapped_difference

MAX_OCTETS: Final = 1200  # of a payload, Own design: with all headers less than any link carries
TICKS_PER_MS: Final = 90  # RFC 6184 §5.1 [clock-of-90-khz]
_EXTENDED: Final = 0x80  # E-RTMP v2 §"Enhanced Video"
_CODED: Final = (VideoPacketType.CODED_FRAMES, VideoPacketType.CODED_FRAMES_X)

# What a tag holds: a sequence header, or composition time (ms) and NAL units with their lengths.
_Content = AvcConfig | tuple[bool, int, bytes] | None


class FlvToH264:
    """Packs the pictures of one publisher for one phone: RFC 6184 §6.

    `mode` is the packetization mode, 0 or 1; no payload is longer than `max_octets`.

    Departs from RFC 6184 §8.1 [mtu-discovery]: the length is a constant that any link carries, for
    pictures do not wait while a path is tried.
    Not done: RFC 6184 §8.1 [no-redundant-slices]: a publisher's redundant slices pass, for no
    encoder in use makes them, and only a look into each slice could tell.
    Not done: RFC 6184 §10 [congestion-control] [loss-is-watched]: pictures leave as the publisher
    makes them; lost ones are sent again, but nothing here could make them smaller.
    Not done: RFC 4585 §7 [fair-to-tcp]: for the same reason, whatever feedback tells.
    """

    def __init__(self, mode: int, max_octets: int = MAX_OCTETS) -> None:
        self.mode = mode
        self.max_octets = max_octets
        self._config: AvcConfig | None = None
        self._waiting = True  # for a key frame
        self._announce = False  # the parameter sets, as they have changed
        self._time: int | None = None  # ms, unbounded

    @property
    def profile_level(self) -> ProfileLevel | None:
        """Profile and level of the publisher's pictures, None before the sequence header.

        As the parameter set has them, for the negotiation of RFC 6184 §8.2.2: the octets of the
        FLV record are not always the same (Flash Player 11).
        """
        config = self._config
        if config is None or not config.sps or len(config.sps[0]) < 4:
            return None
        return ProfileLevel(*config.sps[0][1:4])

    @property
    def size(self) -> tuple[int, int]:
        """Width and height of the publisher's pictures, 0 if they are not known: FLV 10.1 §E.5."""
        try:
            read = SequenceParameters.parse(self._config.sps[0] if self._config else b"")
        except (IndexError, RemoteError):
            return 0, 0
        return read.width, read.height

    def restart(self) -> None:
        """Send nothing until a key frame: the phone has missed pictures.  RFC 6184 §5."""
        self._waiting = True

    def convert(self, body: bytes, timestamp_ms: int) -> list[Packet]:
        """The packets of a tag body of RTMP time `timestamp_ms`: FLV 10.1 §E.4.3.1.

        Their time is that of showing, as RFC 6184 §5.1 asks for.  UnsuitableError for another
        codec, for what is broken, and for a NAL unit that mode 0 cannot send; what follows is
        left out until a key frame.
        """
        if self._time is None:
            self._time = timestamp_ms
        self._time += wrapped_difference(timestamp_ms, self._time, RTMP_WRAP)
        try:
            content = _extended(body) if body[:1] >= b"\x80" else _legacy(body)
            if content is None:
                return []
            if isinstance(content, AvcConfig):
                self._announce |= content != self._config
                self._config = content
                return []
            is_key, composition, data = content
            length_size = self._config.length_size if self._config is not None else 4
            units = split_units(data, length_size)
        except RemoteError as error:
            self._waiting = True
            raise UnsuitableError(error.description) from None
        return self._pack(units, is_key, self._time + composition)

    def _pack(self, units: list[bytes], is_key: bool, shown: int) -> list[Packet]:
        kept = [unit for unit in units if unit[0] & 0x1F in _KEPT]
        kinds = {unit[0] & 0x1F for unit in kept}
        is_key |= IDR in kinds
        if not kinds & _SLICES or (self._waiting and not is_key):
            return []
        if (is_key or self._announce) and not kinds >= _SETS:
            config = self._config
            if config is None or not (config.sps and config.pps):
                return []
            # RFC 6184 §8.2.2 [sets-among-the-pictures], §8.1 [sets-for-those-who-ask]
            # RFC 6184 §8.4 [sets-are-repeated] [sets-before-their-use]
            # RFC 6184 §6.1 [repeated-sets-are-the-same] [repeated-in-packets-of-their-own]
            kept = [*config.sps, *config.pps, *(u for u in kept if u[0] & 0x1F not in _SETS)]
        try:
            payloads = pack_h264(kept, self.max_octets, self.mode)  # RFC 6184 §8.1 [mode-1]
        except LocalError as error:
            self._waiting = True
            raise UnsuitableError(str(error)) from None
        self._waiting = self._announce = False
        ticks = TICKS_PER_MS * shown  # RFC 6184 §5.7 [aggregate-time]
        return [Packet(ticks, payload, marker) for payload, marker in payloads]


_SLICES: Final = frozenset(SLICES)
_SETS: Final = frozenset((SPS, PPS))
_KEPT: Final = _SLICES | _SETS


def _legacy(body: bytes) -> _Content:
    """Read a tag with a codec's number: FLV 10.1 §E.4.3.1."""
    tag = VideoTag.parse(body)
    if tag.codec_id != CodecId.AVC:
        names = {each.value: each.name for each in CodecId}
        raise UnsuitableError(f"video codec {names.get(tag.codec_id, tag.codec_id)}")
    if tag.avc_packet_type == AvcPacketType.SEQUENCE_HEADER:
        return AvcConfig.parse(tag.data)
    if tag.avc_packet_type != AvcPacketType.NALU:
        return None
    return tag.frame_type == FrameType.KEY, tag.composition_time, tag.data


def _extended(body: bytes) -> _Content:
    """Read a tag with FourCCs: E-RTMP v2 §"Enhanced Video"; of several tracks the default one."""
    tag = ExVideoTag.parse(body)
    track = next((each for each in tag.tracks if not each.track_id), None)
    if track is None or tag.packet_type == VideoPacketType.METADATA:
        return None
    if track.four_cc != VideoFourCc.AVC:
        raise UnsuitableError(f"video codec {four_cc_text(track.four_cc)}")
    if tag.packet_type == VideoPacketType.SEQUENCE_START:
        return AvcConfig.parse(track.data)
    if tag.packet_type not in _CODED:
        return None
    return tag.frame_type == FrameType.KEY, track.composition_time, track.data
