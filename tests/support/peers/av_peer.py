"""PyAV's ffmpeg 8, which speaks enhanced RTMP, as a child process: `python av_peer.py COMMAND ...`.

encode FILE CODEC...     a second or two of test pictures or tones, one track for each codec
copy FROM TO SPEED       tags as they are, from a file or URL to a file or URL; 0 is full speed
copy FROM TO SPEED loop  the same, over and over, until SIGINT
vp8 FILE                 the same of VP8, which ffmpeg's muxer has no tags for, by ours
film CODEC FILE SECONDS  pictures that carry their number, as `numbered_frames` has them
layers FILE SECONDS      the same in two tracks of H.264: the second one smaller, from `SECOND` on
numbers FILE             the number of each picture of a film, whatever its codec
decode FILE              one line per track: codec, frames decoded, width or sample rate
"""

import sys
import time
from contextlib import suppress
from fractions import Fraction
from pathlib import Path

import av
import numpy as np

from rtmplite.flv import file
from rtmplite.flv.enhanced_video import ExVideoTag, VideoFourCc, VideoPacketType, VideoTrack
from rtmplite.flv.tag import Tag, TagType
from rtmplite.flv.video import FrameType
from siprtmp.media.transcode.video_decoder import VideoDecoder

FRAMES, RATE = 48, 24
WIDTH, HEIGHT, BITS = 320, 240, 16  # of numbered pictures
NUMBERED_RATE = 15
SECOND = 1 << 14  # the first number of a second track
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
    write_vp8(path, pictures(0), (160, 96), RATE)


def write_vp8(path: str, frames, size: tuple[int, int], rate: int) -> None:
    """Encode frames, and write their tags."""
    context = av.CodecContext.create("libvpx", "w")
    (context.width, context.height), context.pix_fmt = size, "yuv420p"
    context.time_base, context.options = Fraction(1, rate), OPTIONS["libvpx-vp9"]
    packets = [packet for frame in (*frames, None) for packet in context.encode(frame)]
    tags = [video_tag(0, FrameType.KEY, VideoPacketType.SEQUENCE_START, b"")]
    for packet in packets:
        kind = FrameType.KEY if packet.is_keyframe else FrameType.INTER
        at = packet.pts * 1000 // rate
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


def film(codec: str, path: str, seconds: str) -> None:
    """Numbered pictures without B-frames; HEVC by ffmpeg's muxer, VP8 by our tags."""
    frames = numbered(NUMBERED_RATE * int(seconds))
    if codec == "libvpx":
        write_vp8(path, frames, (WIDTH, HEIGHT), NUMBERED_RATE)
        return
    with av.open(path, "w", format="flv") as output:
        stream = output.add_stream(codec, rate=NUMBERED_RATE)
        stream.width, stream.height, stream.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        stream.time_base = Fraction(1, NUMBERED_RATE)
        params = "keyint=30:bframes=0:log-level=none"
        stream.options = {"preset": "ultrafast", "tune": "zerolatency", "x265-params": params}
        for frame in (*frames, None):
            output.mux(stream.encode(frame))


def layers(path: str, seconds: str) -> None:
    """Key frames come each second, in both tracks at once."""
    count = NUMBERED_RATE * int(seconds)
    with av.open(path, "w", format="flv") as output:
        streams = []
        for parts in (1, 2):
            stream = output.add_stream("libx264", rate=NUMBERED_RATE)
            stream.width, stream.height, stream.pix_fmt = WIDTH // parts, HEIGHT // parts, "yuv420p"
            stream.time_base = Fraction(1, NUMBERED_RATE)
            stream.options = {"preset": "ultrafast", "tune": "zerolatency", "g": "15"}
            streams.append(stream)
        pictures_of = zip(numbered(count), numbered(count, SECOND, 2), strict=True)
        for pair in (*pictures_of, (None, None)):
            for stream, frame in zip(streams, pair, strict=True):
                output.mux(stream.encode(frame))


def numbered(count: int, first: int = 0, parts: int = 1):
    """Columns of black and white, column k for bit k of the number; sides divided by `parts`."""
    width, height = WIDTH // parts, HEIGHT // parts
    for at in range(count):
        number = first + at
        row = np.repeat([235 if number >> bit & 1 else 16 for bit in range(BITS)], width // BITS)
        image = np.full((height * 3 // 2, width), 128, np.uint8)
        image[:height] = row
        frame = av.VideoFrame.from_ndarray(image, format="yuv420p")
        frame.pts, frame.time_base = at, Fraction(1, NUMBERED_RATE)
        yield frame


def numbers(path: str) -> None:
    """Decode the tags of video, by the decoders of PyAV; codecs, then numbers, in one line each."""
    decoder, codecs, found = VideoDecoder(), [], []
    for tag in file.read_flv(Path(path).read_bytes())[1]:
        if tag.tag_type != TagType.VIDEO:
            continue
        for frame in decoder.decode(tag.data, tag.timestamp):
            middle = frame.to_ndarray(format="gray")[frame.height // 2]
            columns = [middle[(2 * bit + 1) * frame.width // BITS // 2] for bit in range(BITS)]
            found.append(sum((int(light) > 125) << bit for bit, light in enumerate(columns)))
        if decoder.codec not in codecs:
            codecs.append(decoder.codec)
    print(*codecs)
    print(*found)


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


def copy(source: str, target: str, speed: str, loop: str = "") -> None:
    """Remux, at the pace of the time stamps; with `loop`, over and over until SIGINT."""
    began, shift, streams = time.monotonic(), 0, {}
    with av.open(target, "w", format="flv") as taken, suppress(KeyboardInterrupt):
        while not shift or loop:
            with av.open(source, options=url_options(source), timeout=20) as given:
                if not streams:
                    streams = {
                        each.index: taken.add_stream_from_template(each, opaque=True)
                        for each in media_of(given)
                    }
                    print("copying", flush=True)
                for packet in given.demux(media_of(given)):
                    if packet.dts is None:
                        continue
                    packet.dts, packet.pts = packet.dts + shift, packet.pts + shift
                    early = float(packet.dts * packet.time_base) / (float(speed) or 1e9)
                    time.sleep(max(0.0, began + early - time.monotonic()))
                    packet.stream = streams[packet.stream.index]
                    taken.mux(packet)
            shift += FRAMES * 1000 // RATE + 100  # ms, as in FLV: beyond the last of all tracks


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
    commands = {
        "encode": encode,
        "vp8": vp8,
        "copy": copy,
        "film": film,
        "layers": layers,
        "numbers": numbers,
        "decode": decode,
    }
    commands[sys.argv[1]](*sys.argv[2:])
