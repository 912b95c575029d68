"""From any FLV audio to RTP payloads of G.711, for phones that do not have the publisher's codec.

Implements RFC 3551 §4.5.14 behind a decoder; packets and time are those of `FlvToRtp`.
"""

from p2psip.rtp.payload import g711
from siprtmp.media.transcode.decoder import AudioDecoder, UndecodableError
from siprtmp.media.translate.audio_formats import ULAW, AudioCodec
from siprtmp.media.translate.flv_to_rtp import FlvToRtp, Packet, UnsuitableError


class TranscodedToRtp:
    """Makes the audio of one publisher into G.711 for one phone: RFC 3551 §4.5.14.

    It is used like `FlvToRtp`.
    """

    def __init__(self, codec: AudioCodec, ptime: int) -> None:
        self.codec = codec
        self._decoder = AudioDecoder(codec.clock_rate)
        self._inner = FlvToRtp(codec, ptime)
        self._head = bytes([codec.tag_byte])
        self._encode = g711.encode_ulaw if codec.sound_format == ULAW else g711.encode_alaw

    @property
    def packet_seconds(self) -> float:
        """The seconds of sound in a packet: RFC 3551 §4.2."""
        return self._inner.packet_seconds

    @property
    def source(self) -> str:
        """The codec of the publisher, as ffmpeg names it: FLV 10.1 §E.4.2.1."""
        return self._decoder.codec

    def convert(self, tag: bytes, timestamp: int) -> list[Packet]:
        """The packets that are complete with this tag body of RTMP time `timestamp` (ms).

        FLV 10.1 §E.4.2.1.  None for a header.  Raises UnsuitableError for what cannot be decoded.
        """
        try:
            samples = self._decoder.decode(tag)
        except UndecodableError as error:
            raise UnsuitableError(str(error)) from None
        if not samples:
            return []
        return self._inner.convert(self._head + self._encode(samples), timestamp)

    def flush(self) -> list[Packet]:
        """The last packet, filled up with silence, when the publisher ends: RFC 3551 §4.2."""
        return self._inner.flush()
