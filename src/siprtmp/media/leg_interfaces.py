"""The two sides of a media leg: its ports, and the call it belongs to.

Own design: protocols of `leg`, so that tests replace either side.
"""

from collections.abc import Callable, Collection, Sequence
from typing import Protocol

from siprtmp.media.translate.audio_formats import AudioCodec
from siprtmp.media.translate.flv_to_rtp import Packet
from siprtmp.media.translate.made_pictures import Made, PictureTag
from siprtmp.media.translate.picture_limits import PictureLimits
from siprtmp.media.translate.rtp_to_flv import Tag
from siprtmp.media.translate.sound_header import SoundHeader
from siprtmp.media.translate.timebase import MediaClock


class Wire(Protocol):
    """A pair of UDP ports with a remote address; `p2psip.net.media.rtp_ports` has the real one."""

    remote: tuple[str, int] | None
    remote_rtcp: tuple[str, int] | None
    rtcp_mux: bool
    hosts: Collection[str]
    on_ready: Callable[[], object]

    @property
    def is_ready(self) -> bool:
        """Whether packets sent now get through, which `on_ready` tells: RFC 8656 §11.1."""

    def send_rtp(self, data: bytes) -> None:
        """Send one RTP datagram: RFC 3550 §11."""

    def send_rtcp(self, data: bytes) -> None:
        """Send one RTCP datagram: RFC 3550 §11."""

    def close(self) -> None:
        """Close the ports."""


class Listener(Protocol):
    """The call that a leg belongs to, and reports to."""

    def on_hold_back(self, hold: bool) -> None:
        """Hold the publisher back if `hold`, else let it go on: see `pacing`."""

    def on_unsuitable(self, sound_format: int) -> None:
        """The publisher's codec cannot be sent to the phone: FLV 10.1 §E.4.2.1."""

    def on_transcoding(self, sound_format: int, codec: str) -> None:
        """The publisher's codec is made into one that the phone has: FLV 10.1 §E.4.2.1."""

    def on_transcoding_phone(self, codec: str) -> None:
        """The phone's codec is made into one that players have: FLV 10.1 §E.4.2.1."""

    def on_quiet(self, now: float) -> None:
        """The phone is silent and the media time-out is near: ask the phone."""

    def on_silence(self, now: float) -> None:
        """The phone has sent nothing for the media time-out, and no answer."""

    def on_drained(self, now: float) -> None:
        """After `publish_ended`: the last packet has been sent."""


class ToPhone(Protocol):
    """A translation of a publisher's tags into the payloads of one codec."""

    codec: AudioCodec

    @property
    def making(self) -> str:
        """What is decoded and encoded, as "aac > opus"; "" for sound that passes."""

    @property
    def in_doubt(self) -> bool:
        """Whether the tags may be of another rate than they say, which more of them will tell."""

    @property
    def packet_seconds(self) -> float:
        """The seconds of sound in a packet: RFC 3551 §4.2."""

    def convert(self, tag: bytes, timestamp: int) -> list[Packet]:
        """The packets that are complete with this tag body of RTMP time `timestamp` (ms)."""

    def flush(self) -> list[Packet]:
        """The last packet, when the publisher ends."""


class ToRtmp(Protocol):
    """A translation of a phone's payloads into tags."""

    codec: AudioCodec
    clock: MediaClock

    @property
    def making(self) -> str:
        """What is decoded and encoded, as "aac > opus"; "" for sound that passes."""

    @property
    def sound(self) -> tuple[int, int]:
        """SoundFormat and samples a second, for the stream's metadata: FLV 10.1 §E.5."""

    def switch(self, codec: AudioCodec) -> None:
        """Follow the phone to another agreed codec: RFC 3264 §5.1."""

    def convert(self, payload: bytes, timestamp: int, ssrc: int, arrival_ms: int) -> list[Tag]:
        """The tags that are complete with one packet: FLV 10.1 §E.4.2.1."""


class Transcoding(Protocol):
    """Makes translations that decode and encode: `siprtmp.media.transcode` has the real one."""

    def can_send(self, codec: AudioCodec) -> bool:
        """Whether any sound can be made into this codec."""

    def to_phone(
        self, codec: AudioCodec, ptime: int, fmtp: str, header: SoundHeader, g711_rate: int
    ) -> ToPhone:
        """A translation into a codec, in packets of up to `ptime` ms: RFC 8866 §6.5.

        `fmtp` is what the phone says of it (RFC 8866 §6.15), `header` that of the publisher, and
        `g711_rate` the real rate of its G.711, 0 for the usual one.
        """

    def to_rtmp(self, codec: AudioCodec, speex: bool) -> ToRtmp:
        """A translation of a phone's codec into AAC, or into Speex: FLV 10.1 §E.4.2.1."""


class PictureMaker(Protocol):
    """Makes pictures from those of one source, or several: FLV 10.1 §E.4.3.1."""

    def convert(self, sources: Sequence[PictureTag], late: int, wants_key: bool) -> Made:
        """The tags made of these; of the first `late` ones none is encoded.

        With `wants_key` the first picture is a key frame.
        """


class PictureTranscoding(Protocol):
    """Makes pictures, in threads: `siprtmp.media.transcode` has the real one.

    `limits` are the operator's.  `run` calls a job in a thread, and then a function in the loop
    with what the job gave, and the time.
    """

    limits: PictureLimits
    run: Callable[[Callable[[], Made], Callable[[Made, float], None]], None]

    def transcoder(self, codec: str, limits: PictureLimits, slice_octets: int) -> PictureMaker:
        """A translation into "h264" or "vp8", whose slices have at most so many octets."""

    def side_by_side(self, after: int) -> PictureMaker:
        """A maker of one picture from those of two sources, for times beyond `after` (ms)."""


class VideoListener(Protocol):
    """The call that pictures belong to."""

    def on_video_hold_back(self, hold: bool) -> None:
        """Hold the publisher back if `hold`, else let it go on: see `pacing`."""

    def on_video_unsuitable(self, reason: str) -> None:
        """The publisher's pictures cannot be sent to the phone: FLV 10.1 §E.4.3.1."""

    def on_video_transcoding(self, making: str, reason: str) -> None:
        """Pictures are transcoded: both formats, such as "h264 9x9 > vp8 9x9", and the reason.

        RFC 6184 §8.2.2 has the limits that a phone sets.
        """

    def on_key_frame_needed(self, now: float) -> None:
        """Ask the phone for a key frame by SIP, as it takes no feedback: RFC 5168 §4."""

    def on_key_frame_wanted(self) -> None:
        """Ask the publisher for a key frame, since the phone has: RFC 5104 §3.5.1."""

    def on_picture_size(self, now: float) -> None:
        """Note that the size of the phone's pictures is known, or another: RFC 6184 §8.1."""

    def takes(self, codec: str) -> bool:
        """Whether players take this codec beside H.264.

        E-RTMP v2 §"Enhancing NetConnection connect Command".
        """

    def hears(self, host: str) -> bool:
        """Whether the phone's sound has come from this host."""

    def on_picture(self, now: float) -> None:
        """Note that a packet of the phone has come, which is a sign of life."""
