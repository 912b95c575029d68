"""From any FLV audio to samples for the conference: G.711 by tables, all else by a decoder.

Implements RFC 3551 §4.5.14 for tags of G.711: FLV 10.1 §E.4.2.1.
"""

from array import array

from p2psip.rtp.payload import g711
from siprtmp.media.transcode import decoder
from siprtmp.media.translate.audio_formats import ALAW, ULAW


class ToSamples:
    """The samples of one speaker's tags, mono at 8 kHz: RFC 3551 §4.5.14."""

    def __init__(self) -> None:
        self._decoder: decoder.AudioDecoder | None = None

    def decode(self, tag: bytes) -> "array[int]":
        """The samples of a tag body: FLV 10.1 §E.4.2.1.  None for a header.

        Raises UndecodableError, also for what only a decoder reads that is not installed.
        """
        sound_format = tag[0] >> 4 if tag else ULAW
        if sound_format == ULAW:
            return g711.decode_ulaw(tag[1:])
        if sound_format == ALAW:
            return g711.decode_alaw(tag[1:])
        if self._decoder is None:
            if not decoder.is_available():
                raise decoder.UndecodableError("its codec needs the extra transcode")
            self._decoder = decoder.AudioDecoder(g711.CLOCK_RATE)
        return self._decoder.decode(tag)
