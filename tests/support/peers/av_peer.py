"""PyAV's ffmpeg 8, which speaks enhanced RTMP, as a child process: `python av_peer.py COMMAND ...`.

encode FILE CODEC...     a second or two of test pictures or tones, one track for each codec
copy FROM TO SPEED       tags as they are, from a file or URL to a file or URL; 0 is full speed
vp8 FILE                 the same of VP8, which ffmpeg's muxer has no tags for, by ours
decode FILE              one line per track: codec, frames decoded, width or sample rate
"""

import sys
import time
from fractions import Fraction
from pathlib import Path

import av
import numpy as np

from rtmplite.flv import file
from rtmplite.flv.enhanced_video import ExVideoTag, VideoFourCc, VideoPacketType, VideoTrack
from rtmplite.flv.tag import Tag, TagType
from rtmplite.flv.video import FrameType

FRAMES, RATE = 48, 24
SOUND = ("libopus", "flac", "aac", "ac3", "eac3")
OPTIONS = {
    "libx265": {"preset": "ultrafast", "x265-params": "keyint=12:bframes=2:log-level=none"},
    "libsvtav1": {"preset": "12", "svtav1-params": "keyint=12"},
    "libvpx-vp9": {"deadline": "realtime", "cpu-used": "8", "g": "12"},
    "libx264": {"preset": "ultrafast", "g": "12"},
}
FOURCCS = "hvc1,av01,vp09,avc1,Opus,fLaC,ac-3,ec-3,mp4a,.mp3"  # all that ffmpeg takes


def url_options(url: str) -> dict[str, str]:
    """What ffmpeg must be told to announce."""
    return {"rtmp_enhanced_codecs": FOURCCS, "rtmp_live": "live"} if url[:4] == "rtmp" else {}


def encode(path: str, *codecs: str) -> None:
    """Every track is of its own color or pitch, so that none is taken for another."""
    with av.open(path, "w", format="flv") as output:
        streams = []
        for codec in codecs:
            sounds = codec in SOUND
            stream = output.add_stream(codec, rate=48000 if sounds else RATE)
            if sounds:
                stream.layout = "stereo"
            else:
                stream.width, stream.height, stream.pix_fmt = 160, 96, "yuv420p"
                stream.time_base = Fraction(1, RATE)
            stream.options = OPTIONS.get(codec, {})
            streams.append((stream, sounds, []))
        for number, (stream, sounds, packets) in enumerate(streams):
            frames = tone(stream, number) if sounds else pictures(number)
            for frame in frames:
                packets += stream.encode(frame)
            packets += stream.encode(None)
        every = [packet for _, _, packets in streams for packet in packets]
        for packet in sorted(every, key=lambda each: each.dts * each.time_base):
            output.mux(packet)


def vp8(path: str) -> None:
    """Encode by ffmpeg, and write by ourselves; a sequence start has nothing to tell."""
    context = av.CodecContext.create("libvpx", "w")
    context.width, context.height, context.pix_fmt = 160, 96, "yuv420p"
    context.time_base, context.options = Fraction(1, RATE), OPTIONS["libvpx-vp9"]
    packets = [packet for frame in (*pictures(0), None) for packet in context.encode(frame)]
    tags = [video_tag(0, FrameType.KEY, VideoPacketType.SEQUENCE_START, b"")]
    for packet in packets:
        kind = FrameType.KEY if packet.is_keyframe else FrameType.INTER
        at = packet.pts * 1000 // RATE
        tags.append(video_tag(at, kind, VideoPacketType.CODED_FRAMES, bytes(packet)))
    Path(path).write_bytes(file.write_flv(tags))


def video_tag(at: int, kind: FrameType, packet: VideoPacketType, data: bytes) -> Tag:
    """One of VP8."""
    track = VideoTrack(VideoFourCc.VP8, data)
    return Tag(TagType.VIDEO, at, bytes(ExVideoTag(kind, packet, (track,))))


def pictures(number: int):
    """A bar that moves over a colored ground."""
    for at in range(FRAMES):
        image = np.full((96, 160, 3), (40 + 60 * number) % 256, np.uint8)
        image[:, at * 3 : at * 3 + 8] = 255
        frame = av.VideoFrame.from_ndarray(image, format="rgb24").reformat(format="yuv420p")
        frame.pts, frame.time_base = at, Fraction(1, RATE)
        yield frame


def tone(stream, number: int):
    """A sine; 440 Hz for the first track, more for each next."""
    context = stream.codec_context
    context.open()
    size, at = context.frame_size or 1024, 0
    while at < 48000 * FRAMES // RATE:
        times = np.arange(at, at + size) / 48000
        wave = (np.sin(2 * np.pi * 440 * (number + 1) * times) * 8000).astype(np.int16)
        frame = av.AudioFrame.from_ndarray(np.stack([wave, wave]), format="s16p", layout="stereo")
        frame.sample_rate, frame.pts, frame.time_base = 48000, at, Fraction(1, 48000)
        for ready in av.AudioResampler(context.format.name, "stereo", 48000).resample(frame):
            ready.pts, ready.time_base = at, Fraction(1, 48000)
            yield ready
        at += size


def copy(source: str, target: str, speed: str) -> None:
    """Remux, at the pace of the time stamps."""
    began = time.monotonic()
    with (
        av.open(source, options=url_options(source), timeout=20) as given,
        av.open(target, "w", format="flv") as taken,
    ):
        streams = {
            each.index: taken.add_stream_from_template(each, opaque=True)
            for each in media_of(given)
        }
        print("copying", flush=True)
        for packet in given.demux(media_of(given)):
            if packet.dts is None:
                continue
            early = float(packet.dts * packet.time_base) / (float(speed) or 1e9)
            time.sleep(max(0.0, began + early - time.monotonic()))
            packet.stream = streams[packet.stream.index]
            taken.mux(packet)


def decode(path: str) -> None:
    """Count what comes out of the decoders."""
    with av.open(path) as given:
        indices = [stream.index for stream in media_of(given)]
    for index in indices:
        with av.open(path) as given:
            stream = given.streams[index]
            count = sum(map(decoded, given.demux(stream)))
            size = stream.codec_context.width if stream.type == "video" else stream.rate
            print(stream.codec_context.name, count, size)


def decoded(packet) -> int:
    """How many frames a packet has, none if its decoder does not like it."""
    try:
        return len(packet.decode())
    except av.FFmpegError:
        return 0


def media_of(container) -> list:
    """Audio and video; onMetaData that comes later than 0 is a stream of text to ffmpeg."""
    return [each for each in container.streams if each.type in ("audio", "video")]


if __name__ == "__main__":
    {"encode": encode, "vp8": vp8, "copy": copy, "decode": decode}[sys.argv[1]](*sys.argv[2:])
