"""What decodes and encodes starts no threads, and is freed with the last that refers to it."""

import gc
import os
import weakref
from array import array
from pathlib import Path

import pytest

pytest.importorskip("av")

import av
from support.gateway.audio_rig import AUDIO, Rig
from support.gateway.audio_world import tags

from siprtmp.calls.conference.room import Member
from siprtmp.media.mixer import Mixer
from siprtmp.media.transcode.audio_decoder import AudioDecoder
from siprtmp.media.transcode.side_by_side import SideBySide
from siprtmp.media.transcode.to_flv import AacTags, TranscodedToFlv
from siprtmp.media.transcode.to_rtp import TranscodedToRtp, encoder
from siprtmp.media.transcode.to_samples import PayloadsToSamples, ToSamples, payload_decoder
from siprtmp.media.transcode.video_decoder import VideoDecoder
from siprtmp.media.transcode.video_encoder import H264, VP8, VideoEncoder
from siprtmp.media.transcode.video_transcoder import VideoTranscoder
from siprtmp.media.translate.audio_formats import G722, OPUS, PCMA
from siprtmp.media.translate.codec_limits import CodecLimits
from siprtmp.media.translate.conversion import QueuedTag
from siprtmp.media.video.video_worker import VideoWorker

TASKS = Path("/proc/self/task")
SIZE = (64, 48)


def picture(time):
    frame = av.VideoFrame(*SIZE, "yuv420p")
    frame.pts = time
    return frame


def aac_tags():
    made = AacTags()
    made.encode(array("h", bytes(4096)), 8000, 0)
    return made


def sound_decoder(kind="aac"):
    made = AudioDecoder(8000)
    for _, body in tags(kind)[:20]:
        made.decode(body)
    return made


def sound_encoder(codec=OPUS):
    made = encoder(codec, 20, "")
    made.encode(array("h", bytes(2 * made.samples)))
    return made


def g722_encoder():
    return sound_encoder(G722)


def payloads_decoder():
    made = payload_decoder(OPUS)
    for payload in sound_encoder().encode(array("h", bytes(2 * 960))):
        made(payload)
    return made


def to_rtp():
    made = TranscodedToRtp(OPUS, 20)
    for at, body in tags("ulaw")[:20]:
        made.convert(body, at)
    return made


def to_flv():
    made = TranscodedToFlv(PCMA)
    for number in range(20):
        made.convert(bytes(160), 160 * number, 1, 20 * number)
    return made


def to_samples():
    made = ToSamples()
    for _, body in tags("enhanced opus")[:20]:
        made.decode(body)
    return made


def from_payloads():
    made = PayloadsToSamples(16_000)
    made.decode(PCMA, bytes(160))
    return made


def video_encoder(codec=H264):
    made = VideoEncoder(codec, SIZE, 10.0, 100_000)
    made.encode(picture(0), True)
    return made


def vp8_encoder():
    return video_encoder(VP8)


def film():
    return [body for _, body in VideoEncoder(H264, SIZE, 10.0, 100_000).encode(picture(0), True)]


def video_decoder():
    made = VideoDecoder()
    for body in film():
        made.decode(body, 0)
    return made


def transcoder(made=None):
    made = made or VideoTranscoder(VP8, CodecLimits())
    made.convert([QueuedTag(0, body, 0.0) for body in film()], 0, False)
    return made


def side_by_side():
    return transcoder(SideBySide())


MAKERS = [
    aac_tags, sound_decoder, sound_encoder, g722_encoder, payloads_decoder, to_rtp, to_flv,
    to_samples,
    from_payloads, video_encoder, vp8_encoder, video_decoder, transcoder, side_by_side,
]  # fmt: skip


@pytest.fixture
def counted_only():
    """References are counted, cycles stay; those of other tests are not looked for."""
    gc.freeze()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
def test_it_has_no_threads_of_its_own(make):
    """Own design: a thread for each processor and codec would be thousands in a busy hour."""
    allowed = os.sched_getaffinity(0)
    make()  # what loads a library starts
    before = len(list(TASKS.iterdir()))
    kept = [make() for _ in range(3)]
    assert len(list(TASKS.iterdir())) <= before and len(kept) == 3
    assert os.sched_getaffinity(0) == allowed  # the thread may run where it might before


@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
def test_it_is_no_part_of_a_cycle(make, counted_only):
    """Own design: it holds megabytes, and the collector comes seldom."""
    make()
    gc.collect()
    make()
    assert gc.collect() == 0


def test_the_codecs_of_a_call_end_with_it():
    """Own design: what remembers the call for a while, RFC 3261 §13.3.1.4, holds none."""
    rig = Rig(OPUS, transcode=True)
    for at, body in tags("ulaw")[:50]:
        rig.wait(max(rig.now, at / 1000))
        rig.stream.publish(AUDIO, at, body, rig.now)
    rig.hear(0, sound_encoder().encode(array("h", bytes(2 * 960)))[0], payload_type=111, ticks=960)
    codecs = [weakref.ref(each) for each in (rig.stream._to_phone, rig.stream._to_rtmp)]
    assert all(isinstance(each(), TranscodedToRtp | TranscodedToFlv) for each in codecs)
    rig.stream.close(rig.now)
    assert [each() for each in codecs] == [None, None] and not rig.stream.codec_selection.transcodes


def test_pictures_that_are_made_no_more_free_their_codecs():
    """Own design: also those of a piece of work under way, when that ends."""
    jobs, given = [], []
    made = VideoTranscoder(VP8, CodecLimits())
    codecs = weakref.ref(made)
    work = VideoWorker(
        made, lambda *job: jobs.append(job), lambda now: None,
        give=lambda *tag: given.append(tag), changed=lambda: None,
    )  # fmt: skip
    for body in film():
        work.put(0, body, 0.0)
    del made
    work.close()
    assert codecs() is not None
    while jobs:
        job, then = jobs.pop()
        then(job(), 0.0)
        del job, then
    assert codecs() is None and not given
    work.put(40, b"\x27\x01", 0.04)
    assert not jobs


def test_a_member_that_leaves_a_room_leaves_no_codec():
    """Own design: see `AudioStream.close`."""

    class Room:
        mixer = Mixer()

        def next_number(self):
            return 1

        def left(self, member, now):
            pass

    class Screen:
        def hear(self, tag, at, now):
            pass

    member = Member(Room(), Screen(), 0.0)
    for _, body in tags("aac")[:20]:
        member.write(AUDIO, body, 0.0)
    codec = weakref.ref(member._ears)
    assert not member.unsuitable
    member.leave(1.0)
    assert codec() is None
