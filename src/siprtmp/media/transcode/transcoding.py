"""The translations that decode and encode, as a leg asks for them.

Own design: one object for all calls of a gateway that has the extra `transcode`.
"""

from siprtmp.media.transcode.encoder import can_encode
from siprtmp.media.transcode.to_flv import TranscodedToFlv
from siprtmp.media.transcode.to_rtp import TranscodedToRtp
from siprtmp.media.transcode.to_speex import SpeexToFlv
from siprtmp.media.translate.audio_formats import AudioCodec
from siprtmp.media.translate.sound_header import SoundHeader


class AvTranscoding:
    """Makes translations; it keeps nothing."""

    def can_send(self, codec: AudioCodec) -> bool:
        """Whether any sound can be made into this codec."""
        return can_encode(codec)

    def to_phone(
        self, codec: AudioCodec, ptime: int, fmtp: str, header: SoundHeader, g711_rate: int
    ) -> TranscodedToRtp:
        """A translation into a codec, in packets of up to `ptime` ms: RFC 8866 §6.5."""
        return TranscodedToRtp(codec, ptime, fmtp, header, g711_rate)

    def to_rtmp(self, codec: AudioCodec, speex: bool) -> TranscodedToFlv | SpeexToFlv:
        """A translation of a phone's codec into AAC, or into Speex: FLV 10.1 §E.4.2.1."""
        return SpeexToFlv(codec) if speex else TranscodedToFlv(codec)
