"""Chooses how audio crosses: as it is where both sides have the codec, else decoded and encoded.

Own design: audio that passes costs nothing and loses nothing, so a codec is made only where none
passes; then it is the phone's favourite of those that can be made.
"""

from typing import Final

from siprtmp.media.sdp_map import AudioPlan
from siprtmp.media.transcode.to_flv import SpeexToFlv, TranscodedToFlv
from siprtmp.media.transcode.to_rtp import TranscodedToRtp, can_encode
from siprtmp.media.translate import aac_passing
from siprtmp.media.translate.aac_passing import AacToFlv, AacToRtp
from siprtmp.media.translate.audio_formats import AAC, OPUS, AudioCodec
from siprtmp.media.translate.conversion import (
    AudioHeader,
    AudioToFlv,
    AudioToRtp,
    UnsuitableError,
)
from siprtmp.media.translate.flv_to_rtp import FlvToRtp, OtherRateError
from siprtmp.media.translate.opus_passing import OpusToFlv, OpusToRtp, is_opus, suits
from siprtmp.media.translate.rtp_to_flv import RtpToFlv

ENHANCED: Final = 9  # SoundFormat with a FourCC: E-RTMP v2 §"Enhanced Audio"


class AudioCodecSelection:
    """The translations of one call; `transcoding` is false where only what passes can cross.

    `header` may be replaced by one that has a publisher's header from before the call.
    `takes_opus` says that the players take Opus by Enhanced RTMP, so that a phone's may pass,
    and `wants_speex` that they take Speex alone, even if the phone has G.711.
    `g711_rate` is the real rate of the publisher's G.711, 0 for the usual one: see `RealRate`.
    """

    def __init__(self, transcoding: bool) -> None:
        self._transcoding = transcoding
        self.header = AudioHeader()
        self.g711_rate, self.takes_opus, self.wants_speex = 0, False, False
        self._in_use: tuple[AudioToRtp | None, AudioToFlv | None] = None, None

    @property
    def transcodes(self) -> list[str]:
        """What is decoded and encoded now, to the phone and from it, as "aac > opus"."""
        return [each.transcodes for each in self._in_use if each is not None and each.transcodes]

    def close(self) -> None:
        """Let the codecs of an ended call go."""
        self._in_use = None, None

    def publish_ended(self) -> None:
        """Forget what was known of the publisher."""
        self.g711_rate, self._in_use = 0, (None, self._in_use[1])

    def learns(self, error: UnsuitableError) -> bool:
        """Whether an error tells of another rate, for which there may be another translation."""
        if isinstance(error, OtherRateError):
            self.g711_rate = error.rate
        return isinstance(error, OtherRateError)

    def to_phone(
        self, plan: AudioPlan, tag: bytes, before: AudioToRtp | None
    ) -> tuple[AudioToRtp, int] | None:
        """A translation of audio as in this tag body (FLV 10.1 §E.4.2.1), and its payload type.

        It is `before`, the one in use, if that still suits; None if the phone cannot have it.
        """
        passing = self._opus(plan, tag, before) or self._aac(plan, tag, before)
        chosen = passing or self._to_phone(plan, tag[0] >> 4, before)
        self._in_use = chosen[0] if chosen is not None else None, self._in_use[1]
        return chosen

    def _opus(
        self, plan: AudioPlan, tag: bytes, before: AudioToRtp | None
    ) -> tuple[AudioToRtp, int] | None:
        """The way of Opus that passes, if both sides have it: E-RTMP v2 §"Enhanced Audio"."""
        way = next((each for each in plan.sending if each[0] is OPUS), None)
        if way is None or tag[0] >> 4 != ENHANCED or not is_opus(tag):
            return None
        if not suits(plan.parameters(way[1])):
            return None
        return (before if isinstance(before, OpusToRtp) else OpusToRtp(self.header)), way[1]

    def _aac(
        self, plan: AudioPlan, tag: bytes, before: AudioToRtp | None
    ) -> tuple[AudioToRtp, int] | None:
        """The way of AAC that passes, if the peer has the publisher's: RFC 3640 §4.1."""
        self.header.put(tag)
        if tag[0] >> 4 != AAC:
            return None
        way = next((each for each in plan.sending if each[0].is_aac
                    and aac_passing.sends(each[0], self.header.body)), None)  # fmt: skip
        if way is None:
            return None
        is_same = isinstance(before, AacToRtp) and before.codec is way[0]
        return (before if before and is_same else AacToRtp(way[0], self.header)), way[1]

    def _to_phone(
        self, plan: AudioPlan, sound_format: int, before: AudioToRtp | None
    ) -> tuple[AudioToRtp, int] | None:
        way = plan.for_sound_format(sound_format)
        if way is not None and not self.g711_rate:
            if before is not None and not before.transcodes and before.codec is way[0]:
                return before, way[1]
            return FlvToRtp(way[0], plan.media.ptime), way[1]
        for codec, number in plan.sending if self._transcoding else ():
            if can_encode(codec):
                if before is not None and before.transcodes and before.codec is codec:
                    return before, number
                fmtp, ptime = plan.parameters(number), plan.media.ptime
                return TranscodedToRtp(codec, ptime, fmtp, self.header, self.g711_rate), number
        return None

    def to_rtmp(self, codec: AudioCodec, before: AudioToFlv | None) -> AudioToFlv:
        """A translation of the phone's codec; what was once made is made to the end of the call."""
        if codec.is_aac:
            passing = AacToFlv(codec)
            self._in_use = self._in_use[0], passing
            return passing
        if before is not None and (
            before.transcodes or (codec.passes and isinstance(before, RtpToFlv))
        ):
            before.switch(codec)
            return before
        speex = self.wants_speex and codec.is_g711
        passes = (codec is OPUS and self.takes_opus) or (codec.passes and not speex)
        made: AudioToFlv = RtpToFlv(codec) if codec.passes else OpusToFlv(OPUS)
        if self._transcoding and not passes:
            made = SpeexToFlv(codec) if speex else TranscodedToFlv(codec)
        self._in_use = self._in_use[0], made
        return made
