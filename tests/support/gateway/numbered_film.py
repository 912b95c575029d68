"""Small pictures that carry their number, as a publisher sends them and a player sees them."""

import av
import numpy as np

from siprtmp.media.transcode.video_decoder import VideoDecoder
from siprtmp.media.transcode.video_encoder import H264, VideoEncoder
from siprtmp.media.translate.conversion import QueuedTag

WIDTH, HEIGHT, BARS = 64, 48, 4


def picture(number, width=WIDTH, height=HEIGHT):
    """A picture that has its number as black and white bars."""
    bits = [number >> at & 1 for at in range(BARS)]
    row = np.repeat(np.array(bits, np.uint8) * 220 + 16, width // BARS)
    image = np.full((height * 3 // 2, width), 128, np.uint8)
    image[:height] = row
    return av.VideoFrame.from_ndarray(image, format="yuv420p")


def number_of(frame):
    """The number of a picture, whatever its size."""
    light = frame.to_ndarray(format="gray")
    row = light[frame.height // 2]
    step = frame.width // BARS
    return sum((int(row[step * at + step // 2]) > 125) << at for at in range(BARS))


def film(codec=H264, *, count=16, step=40, width=WIDTH, height=HEIGHT, start=0):
    """What a publisher sends of numbered pictures."""
    encoder = VideoEncoder(codec, (width, height), 25, 200_000)
    out = []
    for number in range(count):
        frame = picture(number, width, height)
        frame.pts = start + step * number
        out += [QueuedTag(at, body, at / 1000) for at, body in encoder.encode(frame, number == 0)]
    return out


def seen(tags):
    """(time, number, size) of each picture in tags, as a player decodes them."""
    decoder = VideoDecoder()
    return [
        (frame.pts, number_of(frame), (frame.width, frame.height))
        for at, body in tags
        for frame in decoder.decode(body, at)
    ]
