"""From RTP payloads to FLV audio tags, the other direction of a call.

Implements FLV 10.1 §E.4.2.1, from the payloads of RFC 3551 §4.5.14 and RFC 5574 §3.3.

Pure: packets in, tags out.  RTMP time follows the phone's RTP timestamps, so a player
hears the phone's rhythm, whatever the jitter of the network.
"""

from enum import IntEnum
from typing import NamedTuple

from p2psip.errors import RemoteError
from p2psip.rtp.payload import speex
from p2psip.rtp.payload.speex import one_frame
from siprtmp.media.translate.audio_formats import SPEEX, AudioCodec
from siprtmp.media.translate.conversion import AudioToFlv, Tag


class Check(IntEnum):
    """What a payload is checked for before it may pass: by the same numbers in a packet pump."""

    NONE = 0
    SPEEX = 1  # to be surely one frame: RFC 5574 §3.3
    OPUS = 2  # to have a length that Opus allows: RFC 7587 §4.2


class Passing(NamedTuple):
    """How a usual payload becomes the body of a tag (FLV 10.1 §E.4.2.1): by octets before it."""

    head: bytes
    check: Check


class RtpToFlv(AudioToFlv):
    """Turns one phone's audio into tags: of one Speex frame (RFC 5574 §3.3), or packet of G.711."""

    def _use(self, codec: AudioCodec) -> None:
        self.codec = codec
        self._head = bytes([codec.tag_byte])
        self._speex = codec.sound_format == SPEEX
        self._frame_ms = round(1000 * speex.FRAME_SECONDS)

    @property
    def audio_format(self) -> tuple[int, int]:
        return self.codec.sound_format, self.codec.sample_rate

    @property
    def passing(self) -> Passing:
        """How most packets of this codec become a tag: FLV 10.1 §E.4.2.1."""
        return Passing(self._head, Check.SPEEX if self._speex else Check.NONE)

    def convert(self, payload: bytes, timestamp: int, ssrc: int, arrival_ms: int) -> list[Tag]:
        if ssrc != self._ssrc:
            self._restart(ssrc)
        at = self.clock.milliseconds(timestamp, arrival_ms)  # RFC 3551 §4.1 [silence-is-expected]
        if not self._speex:
            # RFC 3551 §4.2 [other-values] [takes-200-ms]
            return [(at, self._head + payload)] if payload else []
        if one_frame(payload)[0]:
            return [(at, self._head + payload)]
        try:
            frames = speex.split(payload)  # RFC 5574 §6 [bits-decide]
        except RemoteError:
            return []
        # RFC 3551 §4.2 [takes-ten-frames]
        return [(at + i * self._frame_ms, self._head + f) for i, f in enumerate(frames)]
