"""Audio by ffmpeg: decoders, encoders, and one channel of another rate.

Own design: all with one thread.  A filter graph, and PyAV's encoders have one inside,
starts a thread for each processor with its first frame, and keeps them as long as it lives; 20 ms
of audio are too short to be shared among threads, and calls are many.
"""

import os
from array import array
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from fractions import Fraction
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from av.audio.codeccontext import AudioCodecContext
    from av.audio.frame import AudioFrame

T = TypeVar("T")
Resample = Callable[["AudioFrame"], "list[AudioFrame]"]


def resampler(sample_format: str, rate: int, frame_size: int = 0) -> Resample:
    """Make a function that turns frames into frames of `sample_format`, one channel and `rate`.

    The first frame settles what is taken; another format or rate raises ValueError.  With
    `frame_size` each frame that comes out has so many samples.
    """
    import av

    made = av.AudioResampler(sample_format, "mono", rate, frame_size=frame_size)
    return begun_alone(made.resample)


def begun_alone(work: "Callable[[AudioFrame], T]") -> "Callable[[AudioFrame], T]":
    """The same function, but that what the first call of it starts has one thread."""
    has_begun = False

    def run(frame: "AudioFrame") -> T:
        nonlocal has_begun
        if has_begun:
            return work(frame)
        has_begun = True
        with _one_processor():
            return work(frame)

    return run


@contextmanager
def _one_processor() -> Iterator[None]:
    """Have ffmpeg find one processor, where the system can be told so.

    Neither PyAV's resampler nor its encoders say how many threads are wanted.
    """
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    allowed = os.sched_getaffinity(0)
    with suppress(OSError):  # a sandbox may forbid it
        os.sched_setaffinity(0, {min(allowed)})
    try:
        yield
    finally:
        with suppress(OSError):
            os.sched_setaffinity(0, allowed)


def as_frame(samples: "array[int]", rate: int) -> "AudioFrame":
    import av

    frame = av.AudioFrame("s16", "mono", len(samples))
    frame.planes[0].update(samples.tobytes())
    frame.sample_rate = rate
    return frame


def as_samples(frames: "list[AudioFrame]") -> "array[int]":
    """The samples of frames of one channel of 16 bits."""
    samples = array("h")
    for frame in frames:
        samples.frombytes(bytes(frame.planes[0])[: 2 * frame.samples])
    return samples


def open_decoder(
    name: str, rate: int = 0, channels: int = 0, header: bytes = b""
) -> "AudioCodecContext":
    """A decoder of ffmpeg; 0 takes the value of the header.  ValueError, av.FFmpegError."""
    import av

    context = av.CodecContext.create(name, "r")
    assert isinstance(context, av.AudioCodecContext)
    if header:
        context.extradata = header
    if rate:
        context.sample_rate = rate
    if channels:
        context.layout = "mono" if channels == 1 else "stereo"
    context.thread_count = 1
    context.open(strict=False)
    return context


def open_encoder(
    name: str, sample_format: str, rate: int, options: dict[str, str], bits: int = 0
) -> "AudioCodecContext":
    """An encoder of ffmpeg for one channel; `bits` a second, 0 for the usual rate."""
    import av

    context = av.CodecContext.create(name, "w")
    assert isinstance(context, av.AudioCodecContext)
    # RFC 7587 §7.1 [mono-unless-asked]
    context.sample_rate, context.format, context.layout = rate, sample_format, "mono"
    context.time_base, context.options, context.thread_count = Fraction(1, rate), options, 1
    if bits:
        context.bit_rate = bits
    context.open()
    return context
