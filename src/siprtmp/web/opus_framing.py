"""Writes the messages of a live stream for browsers, with audio made into Opus once for all.

Own design: a stream writes each message once for all players of the same framing, so a framing is
where audio is decoded and encoded a single time.  It gives tags of Opus, which the session of each
viewer passes on by its own RTP and SRTP.
"""

from collections.abc import Iterator
from struct import Struct
from typing import Final

from siprtmp.media.session_log import MediaLog, sound_format_name
from siprtmp.media.sink import AUDIO, VIDEO
from siprtmp.media.transcode.to_rtp import TranscodedToRtp
from siprtmp.media.translate.audio_formats import OPUS
from siprtmp.media.translate.conversion import AudioHeader, Tag, UnsuitableError
from siprtmp.media.translate.flv_to_rtp import OtherRateError
from siprtmp.media.translate.opus_passing import is_opus, opus_tag
from siprtmp.media.translate.video_tag import is_of_default

PACKET_MS: Final = 20  # of the Opus that is made
_HEAD: Final = Struct(">BII")  # type, time in ms, octets of the body
_PER_MS: Final = OPUS.clock_rate // 1000


def packed(type_id: int, timestamp: int, payload: bytes) -> bytes:
    """Write a message as it is, once for all viewers; nothing if it is of other tracks alone."""
    if type_id == VIDEO and not is_of_default(payload):
        return b""
    return _HEAD.pack(type_id, timestamp & 0xFFFFFFFF, len(payload)) + payload


def unpacked(data: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Read messages: type, time in ms, and body."""
    at = 0
    while at < len(data):
        type_id, timestamp, octets = _HEAD.unpack_from(data, at)
        at += _HEAD.size + octets
        yield type_id, timestamp, data[at - octets : at]


class OpusFraming:
    """The framing of all `viewers` of one stream whose browsers take any Opus.

    `header` is that of the publisher's audio, from before the first viewer.
    """

    def __init__(self, header: AudioHeader, log: MediaLog) -> None:
        self.viewers = 0
        self._header, self._log = header, log
        self._transcoder: TranscodedToRtp | None = None  # from the first audio that is not Opus
        self._start: int | None = None  # the RTMP time (ms) of its first packet
        self._sound_format = -1  # that the log has been told of
        self._unsuitable: set[int] = set()

    def __call__(self, type_id: int, timestamp: int, payload: bytes) -> bytes:
        """Write a message; audio that is not Opus becomes as many tags of it as are complete."""
        if type_id != AUDIO or not payload or is_opus(payload):
            return packed(type_id, timestamp, payload)
        return b"".join(packed(AUDIO, at, tag) for at, tag in self._made(timestamp, payload))

    def _made(self, timestamp: int, tag: bytes) -> list[Tag]:
        sound_format = tag[0] >> 4
        if self._transcoder is None:
            self._begin()
        assert self._transcoder is not None
        try:
            packets = self._transcoder.convert(tag, timestamp)
        except OtherRateError as error:
            self._begin(error.rate)
            return []
        except UnsuitableError:
            self._say_unsuitable(sound_format)
            return []
        if not packets:
            return []
        if sound_format != self._sound_format:
            self._sound_format = sound_format
            self._log.event("transcoding", codec=sound_format_name(sound_format), to=OPUS.name)
        if self._start is None:
            self._start = timestamp - packets[0].ticks // _PER_MS
        start = self._start
        return [(start + each.ticks // _PER_MS, opus_tag(each.payload)) for each in packets]

    def _begin(self, g711_rate: int = 0) -> None:
        self._transcoder = TranscodedToRtp(OPUS, PACKET_MS, "", self._header, g711_rate)
        self._start = None

    def _say_unsuitable(self, sound_format: int) -> None:
        """Log once for a codec that it cannot be decoded, or is broken."""
        if sound_format not in self._unsuitable:
            self._unsuitable.add(sound_format)
            values = {"codec": sound_format_name(sound_format), "agreed": OPUS.name}
            self._log.unsuitable("sound-unsuitable", **values, cure="publish aac or opus")
