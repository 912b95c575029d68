"""Chooses how sound crosses: as it is where both sides have the codec, else decoded and encoded.

Own design: sound that passes costs nothing and loses nothing, so a codec is made only where none
passes; then it is the phone's favourite of those that can be made.
"""

from siprtmp.media.leg_interfaces import ToPhone, ToRtmp, Transcoding
from siprtmp.media.sdp_map import AudioPlan
from siprtmp.media.translate.audio_formats import AudioCodec
from siprtmp.media.translate.flv_to_rtp import FlvToRtp
from siprtmp.media.translate.rtp_to_flv import RtpToFlv
from siprtmp.media.translate.sound_header import SoundHeader


class SoundWays:
    """The translations of one call; `transcoding` is None where only what passes can cross.

    `header` may be replaced by one that has a publisher's header from before the call.
    """

    def __init__(self, transcoding: Transcoding | None) -> None:
        self._transcoding = transcoding
        self.header = SoundHeader()

    def to_phone(
        self, plan: AudioPlan, sound_format: int, before: ToPhone | None
    ) -> tuple[ToPhone, int] | None:
        """A translation of sound of this SoundFormat (FLV 10.1 §E.4.2.1), and its payload type.

        It is `before`, the one in use, if that still suits; None if the phone cannot have it.
        """
        maker, way = self._transcoding, plan.for_sound(sound_format)
        if way is not None:
            if before is not None and not before.transcodes and before.codec is way[0]:
                return before, way[1]
            return FlvToRtp(way[0], plan.media.ptime), way[1]
        if maker is None:
            return None
        for codec, number in plan.sending:
            if maker.can_send(codec):
                if before is not None and before.transcodes and before.codec is codec:
                    return before, number
                fmtp = plan.parameters(number)
                return maker.to_phone(codec, plan.media.ptime, fmtp, self.header), number
        return None

    def to_rtmp(self, codec: AudioCodec, before: ToRtmp | None) -> ToRtmp:
        """A translation of the phone's codec, `before` if that can follow it: RFC 3264 §5.1.

        What was once made is made to the end of the call, since few players follow to another
        codec.
        """
        if before is not None and (before.transcodes or codec.passes):
            before.switch(codec)
            return before
        if self._transcoding is None or codec.passes:
            return RtpToFlv(codec)
        return self._transcoding.to_rtmp(codec)
