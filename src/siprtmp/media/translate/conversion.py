"""What makes audio and video of one codec into another: the interfaces that streams use.

Own design: what passes is translated by `siprtmp.media.translate`; the gateway decodes and encodes
by `siprtmp.media.transcode`, which is an extra and may be absent.  Both ends of that are
tags of FLV, so that what passes and what is made take the same way before and behind it.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, Protocol

from rtmplite.flv.audio import is_sequence_header
from siprtmp.media.translate.audio_formats import AudioCodec
from siprtmp.media.translate.timebase import MediaClock, SampleClock

SIDE_BY_SIDE: Final = 1280, 360  # pixels of the frames of two sources as one
MAX_HEADER: Final = 4096  # octets; AAC has 2 to some 70, Opus and FLAC fewer than 300

Tag = tuple[int, bytes]  # RTMP time (ms), tag body


class Packet(NamedTuple):
    """One RTP payload; `ticks` count from the stream's beginning, in clock-rate units.

    `marker` opens a talk spurt (RFC 3551 §4.1), or ends a frame.
    """

    ticks: int
    payload: bytes
    marker: bool


class Cutting(NamedTuple):
    """How a usual tag becomes one packet: by leaving out the octets before its payload.

    Payloads are checked (`rtp_to_flv.Check`), have `octets` (0 for any) and last `ticks` (0 where
    they say so themselves).  `layers` says whether Speex may have more than a narrowband part (RFC
    5574 §3.3), and `clock` has the time.
    """

    head: bytes
    check: int
    octets: int
    layers: bool
    ticks: int
    clock: SampleClock


class UnsuitableError(Exception):
    """A tag or payload is not in the codec of the call, of none that is decoded, or broken."""


class AudioHeader:
    """Keeps a publisher's last codec header, `body`, a tag body that is empty without any.

    Own design: AAC, and the codecs of Enhanced RTMP, cannot be decoded without a header that the
    publisher sends once (FLV 10.1 §E.4.2.1).  The phone may call, or ask for another codec, long
    after.
    """

    def __init__(self) -> None:
        self.body = b""

    def put(self, payload: bytes) -> None:
        """Take the body of an audio message."""
        if len(payload) <= MAX_HEADER and is_sequence_header(payload):
            self.body = payload

    def clear(self) -> None:
        """Forget the header, when the publisher has ended."""
        self.body = b""


class AudioToRtp(ABC):
    """A translation of a publisher's tags into the payloads of one codec."""

    codec: AudioCodec

    @property
    def transcodes(self) -> str:
        """What is decoded and encoded, as "aac > opus"; "" for audio that passes."""
        return ""

    @property
    def in_doubt(self) -> bool:
        """Whether the tags may be of another rate than they say, which more of them will tell."""
        return False

    @property
    @abstractmethod
    def packet_seconds(self) -> float:
        """The seconds of audio in a packet: RFC 3551 §4.2."""

    @abstractmethod
    def convert(self, tag: bytes, timestamp: int) -> list[Packet]:
        """The packets that are complete with this tag body of RTMP time `timestamp` (ms).

        None for a header.  Raises UnsuitableError for what cannot be sent, and OtherRateError for
        G.711 that is not of the rate in use, or for a header of another rate.
        """

    def cutting(self, tag: bytes) -> Cutting | None:
        """How tags like this one, which was just converted, become packets; None if by more."""
        return None

    def flush(self) -> list[Packet]:
        """The last packet, when the publisher ends; none where each tag leaves at once."""
        return []


class AudioToFlv(ABC):
    """A translation of a phone's payloads into tags, whose time follows that of RTP."""

    def __init__(self, codec: AudioCodec) -> None:
        self.clock = MediaClock(codec.clock_rate)
        self._ssrc: int | None = None
        self._use(codec)

    @property
    def transcodes(self) -> str:
        """What is decoded and encoded, as "opus > aac"; "" for audio that passes."""
        return ""

    @property
    @abstractmethod
    def audio_format(self) -> tuple[int, int]:
        """SoundFormat and samples a second, for the stream's metadata: FLV 10.1 §E.5."""

    @abstractmethod
    def convert(self, payload: bytes, timestamp: int, ssrc: int, arrival_ms: int) -> list[Tag]:
        """The tags that are complete with one packet; what makes no sense gives none.

        `timestamp` in ticks, `arrival_ms` of the gateway's clock.
        """

    def switch(self, codec: AudioCodec) -> None:
        """Follow the phone to another agreed codec: RFC 3264 §5.1 allows that at any time."""
        if codec.clock_rate != self.codec.clock_rate:
            self.clock.restart(codec.clock_rate)
        self._use(codec)

    def _use(self, codec: AudioCodec) -> None:
        self.codec = codec

    def _restart(self, ssrc: int) -> None:
        """Begin with a source, or anew with another one."""
        if self._ssrc is not None:
            self.clock.restart(self.codec.clock_rate)
        self._ssrc = ssrc


class QueuedTag(NamedTuple):
    """A video tag's RTMP time (ms) and body, when it came (s), and of which source."""

    time: int
    body: bytes
    came: float
    source: int = 0


class Transcoded(NamedTuple):
    """What became of some tags: others, with their RTMP times in ms.

    `transcodes` says from what into what, as "h264 1280x720 > h264 640x360", "" before the first
    frame; `error` why frames could not be made, "" if all could.
    """

    tags: list[tuple[int, bytes]]
    transcodes: str = ""
    error: str = ""


class VideoConverter(Protocol):
    """Makes frames from those of one source, or several; it is used by one thread at a time."""

    def convert(self, sources: Sequence[QueuedTag], late: int, wants_key: bool) -> Transcoded:
        """The tags made of these; of the first `late` ones none is encoded.

        With `wants_key` the first frame is a key frame.  It raises nothing, being called in a
        thread of its own.
        """


# Calls a job in a thread, and then a function in the loop with what it gave, and the time.
Run = Callable[[Callable[[], Transcoded], Callable[[Transcoded, float], None]], None]
