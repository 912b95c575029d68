"""Phones see what odd encoders publish, and operators hear of what cannot be seen."""

from itertools import groupby

import pytest
from support.gateway import h265_world
from support.gateway.gateway_world import PCMU, Desk, GatewayWorld, sdp
from support.gateway.h264_world import AUD, slice_of, tag_of
from support.gateway.numbered_film import film, picture, seen
from support.gateway.video_threads import at_once

from p2psip.rtp import fast
from p2psip.rtp.payload.h264_access_units import AccessUnitAssembler
from p2psip.rtp.payload.h264_unpacker import H264Unpacker, NalUnit
from rtmplite.flv.avc import SPS, AvcConfig, join_units, split_units
from rtmplite.flv.enhanced_video import ExVideoTag
from rtmplite.flv.video import FrameType, is_key_frame
from siprtmp.media.transcode.video_encoder import H264, VideoEncoder
from siprtmp.media.translate.video_to_flv import H264ToFlv

VIDEO = 9
OFFER = sdp(PCMU) + (
    b"m=video 6000 RTP/AVP 99\r\na=rtpmap:99 H264/90000\r\n"
    b"a=fmtp:99 profile-level-id=42e01f;packetization-mode=1\r\n"
)
H265 = b"m=video 6000 RTP/AVP 96\r\na=rtpmap:96 H265/90000\r\n"


class Show:
    """A publisher of pictures and a phone that calls it, or is called."""

    def __init__(self, offer=OFFER, **options):
        self.world = GatewayWorld(**options)
        self.desk, self.tool = Desk(self.world.link), self.world.tool()
        self.stream, self.offer = self.tool.publish("show"), offer

    def ring(self):
        self.desk.ring("show", self.world.now, self.offer)
        self.world.wait(0.1)

    def publish(self, messages):
        for at, group in groupby(messages, key=lambda message: message[0]):
            self.world.wait(0.04)
            for _, body in group:
                self.tool.write(VIDEO, at, self.stream, body)
        self.world.wait(0.1)

    @property
    def packets(self):
        """Marker, timestamp and payload of each packet to the phone."""
        [(_, wire)] = self.world.gateway.videos.items()
        rows = [(*fast.unpack(data), data[12:]) for _, data in wire.sent]
        return [(bool(row[1]), row[3], row[-1]) for row in rows]

    def shown(self):
        """What the phone's decoder makes of them: number and size of each picture."""
        unpacker, assembler, to_flv, out = H264Unpacker(), AccessUnitAssembler(), H264ToFlv(), []
        items = [
            item
            for sequence, (marker, timestamp, payload) in enumerate(self.packets)
            for item in unpacker.push(sequence, timestamp, marker, payload)
        ]
        for item in (*items, NalUnit(AUD, -1, False)):  # of the next picture
            for each in assembler.push(item):
                out += to_flv.convert(each, len(out))
        return [(number, size) for _, number, size in seen(out)]

    def events(self, what):
        return [values for name, values in self.world.gateway.log.lines if name == what]


def sets_of(source):
    config = AvcConfig.parse(source.body[5:])
    return [*config.sps, *config.pps]


def without_header(sources, form):
    """Sets in a message of their own, or in the key frame."""
    sets = sets_of(sources[0])
    for source in sources[1:]:
        units = split_units(source.body[5:])
        if is_key_frame(source.body) and form == "apart":
            yield source.time, source.body[:5] + join_units(sets)
        elif is_key_frame(source.body):
            units = [*sets, *units]
        yield source.time, source.body[:5] + join_units(units)


@pytest.mark.parametrize("form", ["apart", "within"])
@pytest.mark.parametrize("before", [0, 5])
def test_sets_among_the_pictures_alone_are_enough(form, before):
    """Covers RFC 6184 §8.4: also of pictures from before the call."""
    show, messages = Show(), list(without_header(film(count=12), form))
    show.publish(messages[:before])
    show.ring()
    show.publish(messages[before:])
    assert [number for number, _ in show.shown()] == [*range(12)]
    assert show.world.is_clean()


def test_another_size_by_sets_among_the_pictures():
    """Covers RFC 6184 §8.4 [sets-before-their-use]: the old sets are not sent with new pictures."""
    show, small = Show(), film(count=6)
    show.ring()
    show.publish([(each.time, each.body) for each in small])
    large = film(count=6, width=96, height=64, start=240)
    show.publish(without_header(large, "within"))
    assert show.shown() == [(at, (64, 48)) for at in range(6)] + [(at, (96, 64)) for at in range(6)]


def test_pictures_are_made_of_those_without_a_header():
    """Covers FLV 10.1 §E.4.3.2: a decoder has its header all the same, and of a new size too."""
    show = Show(pictures=at_once(lambda: show.world.now, width=32))
    show.ring()
    for size, start in (((64, 48), 0), ((96, 64), 240)):
        sources = film(count=6, width=size[0], height=size[1], start=start)
        show.publish(without_header(sources, "within"))
    assert [number for number, _ in show.shown()] == [*range(6), *range(6)]
    assert {size[0] for _, size in show.shown()} == {32}


def sliced(count):
    """A header, then the slices of each picture in messages of one time."""
    encoder = VideoEncoder(H264, (320, 240), 25, 900_000, slice_octets=100)
    for number in range(count):
        frame = picture(number, 320, 240)
        frame.pts = 40 * number
        for at, body in encoder.encode(frame, number % 4 == 0):
            if not body[1]:
                yield at, body
                continue
            units = split_units(body[5:])
            assert len(units) > 1 or number % 4
            yield from ((at, body[:5] + join_units([each])) for each in units)


@pytest.mark.parametrize("before", [0, 20])
def test_a_picture_in_several_messages_is_one(before):
    """Covers RFC 6184 §5.1: one marker for each time, at its end, and the sets once."""
    show, messages = Show(), list(sliced(12))
    show.publish(messages[:before])
    show.ring()
    show.publish(messages[before:])
    show.world.wait(0.5)
    assert [number for number, _ in show.shown()] == [*range(4 if before else 0, 12)]
    for _, group in groupby(show.packets, key=lambda packet: packet[1]):
        packets = list(group)
        markers = [marker for marker, *_ in packets]
        assert markers[-1] and sum(markers) == 1
        assert [payload[0] & 0x1F for *_, payload in packets].count(SPS) <= 1


def test_what_has_no_sets_at_all_is_told():
    """Covers FLV 10.1 §E.4.3.2: nothing can be shown, and the operator hears why, once."""
    show = Show()
    show.ring()
    show.publish((at, tag_of(FrameType.KEY, [slice_of(5)])) for at in range(0, 200, 40))
    assert show.packets == []
    [line] = show.events("video-unsuitable")
    assert "without parameter sets" in line["reason"]


def test_an_empty_header_changes_nothing():
    """Own design: encoders send one when they begin again."""
    show, sources = Show(), film(count=8)
    show.ring()
    messages = [(each.time, each.body) for each in sources]
    show.publish([*messages[:4], (messages[4][0], b"\x17\0\0\0\0"), *messages[4:]])
    assert [number for number, _ in show.shown()] == [*range(8)]
    assert show.events("video-unsuitable") == []


def test_hevc_by_number_is_seen_by_a_phone():
    """Covers Field §"HEVC and AV1 by number": the same packets as by its FourCC."""
    bodies = [h265_world.HEADER, h265_world.tag(h265_world.idr(), key=True)]
    bodies += [h265_world.tag(h265_world.inter(at)) for at in range(4)]
    numbered = [
        bytes((body[0] & 0x70 | 12, bool(body[0] & 15), 0, 0, 0))
        + ExVideoTag.parse(body).tracks[0].data
        for body in bodies
    ]
    sent = []
    for messages in (bodies, numbered):
        show = Show(sdp(PCMU) + H265)
        show.publish(enumerate(messages[:2]))
        show.ring()
        [line] = show.events("call-answer")
        assert line["video"] == "h265"
        show.publish((40 * at, body) for at, body in enumerate(messages[2:], 1))
        sent.append([payload for *_, payload in show.packets])
    assert sent[0] == sent[1] and len(sent[0]) == 5
