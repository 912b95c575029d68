"""Transcodings of pictures without threads: a real one, and one that only says what it did."""

from support.gateway.video_rig import HEADER, idr, inter, tag

from rtmplite.flv.video import is_sequence_header
from siprtmp.media.transcode.video_transcoder import VideoTranscoders
from siprtmp.media.translate.codec_limits import CodecLimits
from siprtmp.media.translate.conversion import Transcoded

ANY = CodecLimits()


def at_once(clock, **limits):
    """The real one, which makes the loop wait; `clock` tells the time."""
    return VideoTranscoders(lambda job, then: then(job(), clock()), **limits)


class Pretended:
    """Makes a picture of each one, when `work` is called; it is its own maker.

    `asked` has what was to be made, `converted` the arguments of each piece of work, and `error`
    is what goes wrong.
    """

    def __init__(self, limits=ANY):
        self.limits, self.error = limits, ""
        self.asked, self.converted, self.jobs = [], [], []

    def transcoder(self, codec, limits, slice_octets=0):
        self.asked.append((codec, limits, slice_octets))
        self.begins = True
        return self

    def side_by_side(self, after):
        self.asked.append(("side by side", after))
        self.begins = True
        return self

    def run(self, job, then):
        self.jobs.append((job, then))

    def work(self, now):
        """Do all work that there is, which may bring more."""
        while self.jobs:
            job, then = self.jobs.pop(0)
            then(job(), now)

    def convert(self, sources, late, wants_key):
        self.converted.append((len(sources), max(0, late), wants_key))
        if self.error:
            return Transcoded([], "", self.error)
        tags = []
        for source in sources[max(0, late) :]:
            if is_sequence_header(source.body):
                continue
            tags += [(source.time, HEADER)] if self.begins else []
            is_key = self.begins or wants_key
            body = idr(99) if is_key else inter(99)
            tags.append((source.time, tag(body, key=is_key)))
            self.begins = wants_key = False
        return Transcoded(tags, "h264 320x240 > h264 32x24" if tags else "")
