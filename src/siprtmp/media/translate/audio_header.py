"""A publisher's codec header for audio, for a decoder that begins later.

Own design: AAC, and the codecs of Enhanced RTMP, cannot be decoded without a header that the
publisher sends once (FLV 10.1 §E.4.2.1).  The phone may call, or ask for another codec, long after.
"""

from typing import Final

from rtmplite.flv.audio import is_sequence_header

MAX_OCTETS: Final = 4096  # AAC has 2 to some 70, Opus and FLAC fewer than 300


class AudioHeader:
    """Keeps the last header; `body` is a tag body, empty for a publisher that sent none."""

    def __init__(self) -> None:
        self.body = b""

    def put(self, payload: bytes) -> None:
        """Take the body of an audio message."""
        if len(payload) <= MAX_OCTETS and is_sequence_header(payload):
            self.body = payload

    def clear(self) -> None:
        """Forget the header, when the publisher has ended."""
        self.body = b""
