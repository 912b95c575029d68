"""A phone's VP8 becomes H.264, whole and in time, and a phone that has nothing else sees VP8."""

from support.gateway.numbered_film import film
from support.gateway.video_rig import HEADER, PPS, SPS, VideoRig, idr, inter, tag, video_plan
from support.gateway.video_threads import Pretended, at_once

from p2psip.rtp import fast
from p2psip.rtp.payload.vp8 import Vp8Unpacker, pack_vp8
from rtmplite.flv.video import is_key_frame, is_sequence_header
from siprtmp.media.translate.codec_limits import CodecLimits
from siprtmp.media.video_from_phone import ASK_SECONDS
from siprtmp.media.video_lines import VideoFormat

KEY = bytes([0x10, 0, 0, 0x9D, 0x01, 0x2A, 64, 0, 48, 0]) + bytes(500)
INTER = bytes([0x11, 0, 0]) + bytes(500)


def vp8_plan(*, alone=True, **fields):
    """The plan of an answer with VP8, and without H.264 if it is `alone`."""
    plan = video_plan(**fields)
    sending, receiving = ((), {}) if alone else (plan.sending, plan.receiving)
    vp8 = VideoFormat("vp8", 98, 98, CodecLimits(rate=15))
    return type(plan)(plan.media, sending, receiving, (vp8,))


class Phone(VideoRig):
    """One with VP8; `work` does what the threads have to do."""

    def __init__(self, makes=True, **plan):
        self.threads = Pretended()
        transcoding = {"transcoding": self.threads} if makes else {}
        super().__init__(vp8_plan(**plan), **transcoding)

    def frame(self, timestamp, data, *, lost=()):
        """Send a frame; packets whose place is in `lost` do not arrive."""
        for place, (payload, marker) in enumerate(pack_vp8(data, 200)):
            self.sequence += 1
            second = 98 | (0x80 if marker else 0)
            header = fast.pack_fixed(0x80, second, self.sequence, timestamp, 0xBEEF)
            if place not in lost:
                self.stream.on_rtp(header + payload, self.now)

    def work(self):
        self.threads.work(self.now)

    @property
    def kinds(self):
        names = {(True, False): "header", (False, True): "key", (False, False): "inter"}
        return [names[is_sequence_header(body), is_key_frame(body)] for *_, body in self.tags]


def test_a_frame_becomes_a_tag_of_h264_when_it_is_made():
    """Covers RFC 7741 §4.5.1: at the time that the frame has."""
    rig = Phone()
    rig.frame(9000, KEY)
    assert not rig.tags and rig.sizes == [(0.0, (64, 48))]
    rig.work()
    rig.wait(0.1)
    rig.frame(18_000, INTER)
    rig.work()
    assert rig.kinds == ["header", "key", "inter"]
    assert rig.tags[2][1] - rig.tags[1][1] == 100
    assert rig.stream.figures.received == 6 and rig.stream.figures.transcodes == [
        "h264 320x240 > h264 32x24"
    ]
    assert rig.threads.asked == [("h264", CodecLimits(), 0)]
    assert rig.made == [("h264 320x240 > h264 32x24", "players take H.264")]


def test_a_lost_packet_freezes_and_the_phone_is_asked():
    """Covers RFC 5168 §4: from the first frame on that cannot be decoded."""
    rig = Phone()
    rig.frame(0, KEY)
    rig.frame(3000, INTER, lost=[1])
    rig.frame(6000, INTER)
    rig.wait(2.5 * ASK_SECONDS)
    assert len(rig.asked) >= 2 and rig.stream.figures.freezes == 1
    rig.frame(90_000, KEY)
    asked = len(rig.asked)
    rig.wait(rig.now + 3.0)
    rig.work()
    assert len(rig.asked) == asked
    assert sum(count for count, *_ in rig.threads.converted) == 2


def test_a_new_player_has_our_own_encoder_asked():
    rig = Phone()
    rig.frame(0, KEY)
    rig.work()
    rig.stream.ask_key_frame(rig.now)
    rig.frame(3000, INTER)
    rig.work()
    assert rig.kinds[-1] == "key" and not rig.asked


def test_a_phone_may_turn_to_its_other_codec():
    """Covers RFC 3264 §5.1: both were agreed on."""
    rig = Phone(alone=False)
    rig.frame(0, KEY)
    rig.work()
    rig.picture(9000, SPS, PPS, idr())
    rig.picture(12_000, inter())
    assert rig.kinds[2:4] == ["header", "key"]
    before = len(rig.tags)
    rig.frame(18_000, KEY)
    rig.work()
    assert len(rig.tags) == before + 1


def test_another_source_begins_anew_and_an_end_is_an_end():
    rig = Phone()
    rig.frame(0, KEY)
    rig.stream.close(rig.now)
    rig.work()
    assert not rig.tags


def test_vp8_passes_to_players_that_take_it():
    """Covers E-RTMP v2 §"Enhanced Video": as it is, also where pictures might be made."""
    for makes in (True, False):
        rig = Phone(makes)
        rig.taken = ("vp8",)
        rig.frame(0, KEY)
        rig.wait(0.1)
        rig.frame(9000, INTER)
        assert [body[1:5] for *_, body in rig.tags] == [b"vp08"] * 2
        assert rig.stream.figures.codec == "vp8" and not rig.stream.figures.transcodes
        rig.frame(12_000, INTER, lost=[1])
        rig.frame(15_000, INTER)
        rig.wait(1.0)
        assert len(rig.tags) == 2 and rig.stream.figures.freezes == 1 and rig.asked


def test_others_get_nothing_where_none_can_be_made():
    """Own design: a player that knows only what FLV 10.1 §E.4.3.1 has could not show it."""
    rig = Phone(makes=False)
    rig.frame(0, KEY)
    assert not rig.tags and rig.stream.figures.received == 3
    rig.taken = ("vp8",)
    rig.stream.ask_key_frame(rig.now)
    rig.wait(1.0)
    assert rig.asked
    rig.frame(9000, KEY)
    assert len(rig.tags) == 1


def test_a_phone_without_h264_sees_vp8():
    """Covers RFC 7741 §4.4: what a publisher sends in H.264."""
    rig = Phone()
    rig.publish(HEADER, tag(idr(), key=True), at=0)
    assert rig.threads.asked[0][:2] == ("vp8", CodecLimits(rate=15))
    assert not rig.sent and not rig.unsuitable


def test_a_film_of_h264_comes_out_as_vp8():
    """By PyAV: each picture of the publisher is a frame, at its own time."""
    rig = VideoRig(vp8_plan(), transcoding=at_once(lambda: 0.0))
    for source in film(count=5, step=80):
        rig.publish(source.body, at=source.time)
    unpacker = Vp8Unpacker()
    frames = [
        frame
        for _, number, marker, sequence, timestamp, _, payload in rig.sent
        for frame in unpacker.push(sequence, timestamp - rig.sent[0][4], marker, payload)
        if number == 98
    ]
    assert [frame.timestamp for frame in frames] == [7200 * at for at in range(5)]
    assert [frame.is_key for frame in frames] == [True, False, False, False, False]
