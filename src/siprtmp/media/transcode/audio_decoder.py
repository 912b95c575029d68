"""A publisher's audio as samples: AAC, MP3, Nellymoser, ADPCM, PCM, G.711, Speex and Opus.

Implements FLV 10.1 §E.4.2.1 and E-RTMP v2 §"Enhanced Audio" as far as they say what a decoder is
fed with.

Own design: the decoders are those of PyAV, which the extra `transcode` installs.  One frame takes
about a tenth of a millisecond, forty times a second, so it is decoded where it comes.
"""

import importlib
import importlib.util
from array import array
from typing import TYPE_CHECKING, Final

from rtmplite.errors import RemoteError
from rtmplite.flv.audio import AacPacketType, AudioTag, SoundFormat
from rtmplite.flv.enhanced_audio import AudioFourCc, AudioPacketType, ExAudioTag
from siprtmp.media.transcode.resampler import as_samples, open_decoder, resampler
from siprtmp.media.translate.conversion import UnsuitableError
from siprtmp.media.translate.flv_to_rtp import G711_RATE

if TYPE_CHECKING:
    from av.audio.codeccontext import AudioCodecContext

MAX_OCTETS: Final = 1 << 16  # of one tag: a second of audio is less in every codec
MAX_SECONDS: Final = 1.0  # of audio that one tag may give
RATES: Final = (5512, 11025, 22050, 44100)  # Source: FLV 10.1 §E.4.2.1, SoundRate
_NATIVE: Final[dict[int, str]] = {
    SoundFormat.ADPCM: "adpcm_swf",
    SoundFormat.MP3: "mp3float",
    SoundFormat.LINEAR_PCM_LITTLE_ENDIAN: "pcm_s16le",
    SoundFormat.NELLYMOSER_16_KHZ_MONO: "nellymoser",
    SoundFormat.NELLYMOSER_8_KHZ_MONO: "nellymoser",
    SoundFormat.NELLYMOSER: "nellymoser",
    SoundFormat.G711_A_LAW: "pcm_alaw",
    SoundFormat.G711_MU_LAW: "pcm_mulaw",
    SoundFormat.AAC: "aac",
    SoundFormat.SPEEX: "speex",
    SoundFormat.MP3_8_KHZ: "mp3float",
}
_FIXED_RATES: Final[dict[int, int]] = {
    SoundFormat.NELLYMOSER_16_KHZ_MONO: 16000,
    SoundFormat.NELLYMOSER_8_KHZ_MONO: 8000,
    SoundFormat.G711_A_LAW: G711_RATE,
    SoundFormat.G711_MU_LAW: G711_RATE,
    SoundFormat.MP3_8_KHZ: 8000,
    SoundFormat.SPEEX: 16000,
}
G711_DECODERS: Final = ("pcm_alaw", "pcm_mulaw")
_BY_FOUR_CC: Final = {
    AudioFourCc.AAC: "aac",
    AudioFourCc.MP3: "mp3float",
    AudioFourCc.OPUS: "opus",
    AudioFourCc.FLAC: "flac",
}
CHANNELS_AT: Final = 9  # in an OpusHead; each pair of them costs a decoder
_HEADED: Final = ("aac", "opus", "flac")  # that cannot begin without their header


def is_available() -> bool:
    """Whether the extra `transcode` is installed."""
    return importlib.util.find_spec("av") is not None


def load() -> None:
    """Load PyAV, which takes longer than a call should wait.  ImportError without the extra."""
    importlib.import_module("av")


class AudioDecoder:
    """Turns the tags of one publisher into samples of one channel at `rate`.

    `g711_rate` is that of its G.711, if there is any: see `RealRate`.  A tag of another codec, or
    a new header, begins anew.
    """

    def __init__(self, rate: int, g711_rate: int = G711_RATE) -> None:
        self._rate, self._g711_rate = rate, g711_rate
        self._key: tuple[object, ...] = ()
        self._context: AudioCodecContext | None = None
        self._codec = ""
        self._header = b""

    @property
    def codec(self) -> str:
        """The codec that is decoded, as ffmpeg names it; "" before the first tag."""
        return self._codec

    def decode(self, payload: bytes) -> "array[int]":
        """The samples of one tag body, none for a header: FLV 10.1 §E.4.2.1.

        Raises UnsuitableError.
        """
        if len(payload) > MAX_OCTETS:
            raise UnsuitableError("more sound in a tag than a second")
        try:
            data = self._unwrap(payload)
        except RemoteError as error:
            raise UnsuitableError(str(error)) from None
        if not data or self._context is None:
            return array("h")
        import av

        samples = array("h")
        try:
            for frame in self._context.decode(av.Packet(data)):
                samples += as_samples(self._resample(frame))
                if len(samples) > MAX_SECONDS * self._rate:
                    raise UnsuitableError("more sound in a tag than a second")
        except (av.FFmpegError, ValueError) as error:  # ValueError: another rate or layout
            self._key = ()  # the next tag begins anew
            raise UnsuitableError(f"broken {self._codec}: {error}") from None
        return samples

    def _unwrap(self, payload: bytes) -> bytes:
        """The codec's own data of a tag, with a decoder made ready for it; b"" for a header."""
        if payload and payload[0] >> 4 == SoundFormat.EXTENDED:
            return self._unwrap_enhanced(ExAudioTag.parse(payload))
        tag = AudioTag.parse(payload)
        name = _NATIVE.get(tag.sound_format)
        if name is None:
            raise UnsuitableError(f"sound of format {tag.sound_format}")
        if tag.sound_format == SoundFormat.AAC:
            if tag.aac_packet_type == AacPacketType.SEQUENCE_HEADER:
                self._header = tag.data
                return b""
            self._prepare(name, 0, 0, self._header)
        else:
            rate = _FIXED_RATES.get(tag.sound_format, RATES[tag.sound_rate])
            if name in G711_DECODERS:
                rate = self._g711_rate
            mono = tag.sound_format in _FIXED_RATES or not tag.sound_type
            self._prepare(name, rate, 1 if mono else 2, b"")
        return tag.data

    def _unwrap_enhanced(self, tag: ExAudioTag) -> bytes:
        """Do as `_unwrap` for the first track of an enhanced tag: E-RTMP v2 §"Enhanced Audio"."""
        if not tag.tracks:
            return b""
        track = tag.tracks[0]
        try:
            name = _BY_FOUR_CC[AudioFourCc(track.four_cc)]
        except (KeyError, ValueError):
            raise UnsuitableError(f"sound of FourCC {track.four_cc:08x}") from None
        if tag.packet_type == AudioPacketType.SEQUENCE_START:
            if name == "opus" and track.data[CHANNELS_AT : CHANNELS_AT + 1] > b"\x02":
                raise UnsuitableError("Opus of more than two channels")
            self._header = track.data
        if tag.packet_type != AudioPacketType.CODED_FRAMES:
            return b""
        self._prepare(name, 0, 0, self._header)
        return track.data

    def _prepare(self, name: str, rate: int, channels: int, header: bytes) -> None:
        """Have a decoder for this codec and header, the one in use if nothing has changed."""
        key = name, rate, channels, header
        if key == self._key:
            return
        self._key, self._codec, self._context = key, name, None
        if name in _HEADED and not header:
            return  # it cannot be decoded before its header has come
        import av

        try:
            context = open_decoder(name, rate, channels, header)
        except (av.FFmpegError, ValueError) as error:
            raise UnsuitableError(f"no decoder for this {name}: {error}") from None
        self._context = context
        self._resample = resampler("s16", self._rate)
