"""The pictures of a call: whole ones pass in time, broken ones never."""

from itertools import pairwise

import pytest
from support.gateway.video_rig import HEADER, PHONE, PPS, SPS, VideoRig, idr, inter, tag, video_plan

from p2psip.rtp.feedback import Pli
from p2psip.rtp.payload.h264 import H264Fragment, read_h264
from p2psip.rtp.rtcp import ReceiverReport, parse_compound
from p2psip.rtp.source_description import SourceDescription
from rtmplite.flv.avc import join_units, split_units
from rtmplite.flv.video import (
    AvcPacketType,
    CodecId,
    FrameType,
    VideoTag,
    is_key_frame,
    is_sequence_header,
)
from siprtmp.media.sink import VIDEO
from siprtmp.media.stream import Signalled
from siprtmp.media.video_from_phone import ASK_SECONDS
from siprtmp.media.video_to_phone import REPEAT_OCTETS

MODE_1 = "profile-level-id=42e01f;packetization-mode=1"
MODE_0 = "profile-level-id=42e01f"


def sent_units(rig):
    """The NAL units that the phone got, fragments put together."""
    units, parts = [], b""
    for *_, payload in rig.sent:
        read = read_h264(payload)
        if isinstance(read, H264Fragment):
            parts = bytes([read.header]) + read.data if read.start else parts + read.data
            units += [parts] if read.end else []
        else:
            units += read
    return units


def test_a_published_stream_reaches_the_phone_from_its_key_frame():
    """Covers RFC 6184 §5.1: sets first, one time a picture, the marker on its last."""
    rig = VideoRig(video_plan())
    rig.publish(HEADER, tag(inter(1)), at=0)
    assert not rig.sent  # it depends on a picture that the phone has not
    rig.publish(tag(idr(2, 3000), key=True), at=40)
    rig.publish(tag(inter(3)), at=80)
    kinds = [unit[0] & 31 for unit in sent_units(rig)]
    assert kinds == [7, 8, 5, 1]
    assert sent_units(rig)[2:] == [idr(2, 3000), inter(3)]
    stamps = [packet[4] for packet in rig.sent]
    first, last = stamps[0], stamps[-1]
    assert last - first & 0xFFFFFFFF == 40 * 90 and set(stamps) == {first, last}
    markers = [packet[2] for packet in rig.sent]
    assert markers.count(True) == 2 and markers[-1]
    assert max(len(packet[-1]) for packet in rig.sent) <= 1200
    assert {packet[1] for packet in rig.sent} == {99}


@pytest.mark.parametrize("octets", [100, 1200, 4000])
def test_packets_have_the_size_that_was_set(octets):
    """Covers RFC 6184 §5.8: also those that repeat pictures for a phone that has lost some."""
    rig = VideoRig(video_plan(), max_octets=octets)
    rig.publish(HEADER, tag(idr(0, 3000), key=True), at=0)
    rig.stream.want_key_frame(rig.now)
    rig.publish(tag(inter(1)), at=40)
    assert [unit[0] & 31 for unit in sent_units(rig)] == [7, 8, 5, 7, 8, 5, 1]
    largest = max(len(packet[-1]) for packet in rig.sent)
    assert 0.8 * min(octets, 3000) < largest <= octets


def test_pictures_wait_until_they_get_through():
    """Covers RFC 8656 §11.1: the group is not lost at a relay that is not ready yet."""
    rig = VideoRig(video_plan())
    rig.is_ready = False
    rig.publish(HEADER, tag(idr(1), key=True), tag(inter(2)), at=0)
    assert not rig.sent
    rig.is_ready = True
    rig.publish(tag(inter(3)), at=40)
    assert [unit[0] & 31 for unit in sent_units(rig)] == [7, 8, 5, 1, 1]


def test_a_file_is_sent_at_its_pace_and_its_reader_held_back():
    """Own design of `pacing`: no picture of a file is dropped."""
    rig = VideoRig(video_plan())
    rig.publish(HEADER, at=0)
    for number in range(100):
        rig.stream.publish(
            VIDEO, number * 40, tag(idr(number) if number == 0 else inter(number)), rig.now
        )
    assert rig.holding == [True]
    rig.wait(10.0)
    assert rig.holding == [True, False]
    moments = [packet[0] for packet in rig.sent]
    assert len(sent_units(rig)) == 102 and moments == sorted(moments)
    assert moments[-1] == pytest.approx(99 * 0.04, abs=0.05)


def test_after_dropped_pictures_the_next_is_a_key_frame():
    """A live publisher stalls and hurries: nothing is sent that depends on what was dropped.

    The publisher is asked for a key frame, since a browser sends no other.
    """
    rig = VideoRig(video_plan())
    rig.publish(HEADER, tag(idr(0), key=True), at=0)
    rig.publish(tag(inter(1)), at=40)
    rig.wait(4.0)
    for number in range(2, 60):
        key = number in (30, 55)
        rig.stream.publish(
            VIDEO, number * 40, tag(idr(number) if key else inter(number), key=key), rig.now
        )
    for number in range(60, 140):
        rig.publish(tag(inter(number)), at=4000 + (number - 59) * 40)
    rig.wait(12.0)
    assert rig.wanted
    seen = [unit for unit in sent_units(rig) if unit[0] & 31 in (1, 5)]
    numbers = [unit[3] for unit in seen]
    for before, after in pairwise(numbers):
        assert after == before + 1 or seen[numbers.index(after)][0] & 31 == 5


def test_what_waits_is_not_sent_after_a_hold_or_to_another_address():
    """Covers RFC 3264 §8.3.2 [no-old-formats]: nor is the reader held back for it."""
    for later in (video_plan(direction="recvonly"), video_plan(port=7000)):
        rig = VideoRig(video_plan())
        rig.publish(HEADER, tag(idr(0), key=True), at=0)
        for number in range(1, 60):
            rig.stream.publish(VIDEO, number * 40, tag(inter(number)), rig.now)
        assert rig.holding == [True]
        before = len(rig.sent)
        rig.stream.start(later, rig.now, Signalled(hosts=("198.51.100.1",)))
        rig.wait(5.0)
        assert len(rig.sent) == before and rig.holding == [True, False]


def test_an_address_that_is_no_longer_proven_is_sent_nothing_more():
    """See `Consent`: the same answer, by a signalling host that is another one now."""
    rig = VideoRig(video_plan())
    rig.publish(HEADER, tag(idr(0), key=True), at=0)
    before = len(rig.sent)
    rig.stream.start(video_plan(), rig.now, Signalled(hosts=("198.51.100.1",)))
    rig.publish(tag(inter(1)), at=40)
    assert len(rig.sent) == before > 0


def test_a_unit_too_long_for_mode_0_is_said_and_smaller_pictures_go_on():
    """Covers RFC 6184 §6.2: a NAL unit a packet."""
    rig = VideoRig(video_plan(MODE_0))
    rig.publish(HEADER, tag(idr(0, 3000), key=True), at=0)
    assert not rig.sent and len(rig.unsuitable) == 1 and rig.stream.figures.unsuitable == 1
    rig.publish(tag(idr(1, 100), key=True), at=40)
    assert [unit[0] & 31 for unit in sent_units(rig)] == [7, 8, 5] and len(rig.unsuitable) == 1


def test_a_publisher_of_another_codec_is_told_once():
    rig = VideoRig(video_plan())
    for at in (0, 40, 80):
        rig.publish(b"\x12" + bytes(50), at=at)
    assert len(rig.unsuitable) == 1 and rig.stream.figures.unsuitable == 3 and not rig.sent


@pytest.mark.parametrize("direction", ["recvonly", "inactive"])
def test_nothing_is_sent_to_a_phone_that_takes_none(direction):
    """Covers RFC 3264 §8.4."""
    rig = VideoRig(video_plan(direction=direction))
    rig.publish(HEADER, tag(idr(), key=True), at=0)
    assert not rig.sent


def test_a_third_party_gets_nothing_until_it_has_sent():
    """See `Consent`: pictures would be a flood."""
    rig = VideoRig(video_plan(), hosts=("198.51.100.1",))
    rig.publish(HEADER, tag(idr(0, 3000), key=True), at=0)
    rig.publish(tag(inter(1)), at=40)
    assert not rig.sent
    rig.picture(0, idr())
    rig.publish(tag(inter(2)), at=80)
    assert [unit[3] for unit in sent_units(rig)[2:]] == [0, 1, 2]  # all since the key frame
    stamps = sorted({packet[4] - rig.sent[0][4] & 0xFFFFFFFF for packet in rig.sent})
    assert stamps == [0, 3600, 7200]  # each at its own time


def test_the_host_of_the_sound_may_have_pictures():
    """Baresip gives its media on another address than its SIP, and mirrors need to see first."""
    rig = VideoRig(video_plan(), hosts=("198.51.100.1",))
    rig.heard.add(PHONE[0])
    rig.publish(HEADER, tag(idr(), key=True), at=0)
    assert rig.sent
    elsewhere = VideoRig(video_plan(), hosts=("198.51.100.1",))
    elsewhere.heard.add("203.0.113.7")
    elsewhere.publish(HEADER, tag(idr(), key=True), at=0)
    assert not elsewhere.sent


def test_after_a_hold_the_phone_sees_at_once():
    """Covers RFC 3264 §8.4 and §8.3.2 [new-formats-at-once] [no-old-formats]."""
    rig = VideoRig(video_plan())
    rig.publish(HEADER, tag(idr(0), key=True), at=0)
    rig.stream.start(video_plan(direction="recvonly"), rig.now, Signalled(hosts=(PHONE[0],)))
    before = len(rig.sent)
    for number in range(1, 6):
        key = number == 3
        rig.publish(tag(idr(number) if key else inter(number), key=key), at=40 * number)
    assert len(rig.sent) == before
    rig.stream.start(video_plan(), rig.now, Signalled(hosts=(PHONE[0],)))
    rig.publish(tag(inter(6)), at=240)
    units = sent_units(rig)[3:]
    assert [unit[0] & 31 for unit in units] == [7, 8, 5, 1, 1, 1]
    assert [unit[3] for unit in units[2:]] == [3, 4, 5, 6]


def test_a_phone_s_picture_becomes_one_tag():
    """Covers FLV 10.1 §E.4.3.1: the header once, then a tag for a picture of several slices."""
    rig = VideoRig(video_plan())
    rig.picture(9000, SPS, PPS, idr(1, 300), idr(2, 300))
    rig.now = 0.1
    rig.picture(18000, inter(3))
    types = {type_id for type_id, *_ in rig.tags}
    header, key, other = (payload for *_, payload in rig.tags)
    assert types == {9} and is_sequence_header(header) and is_key_frame(key)
    assert split_units(VideoTag.parse(key).data, 4) == [idr(1, 300), idr(2, 300)]
    assert not is_key_frame(other)
    assert rig.tags[2][1] - rig.tags[1][1] == 100
    assert rig.stream.figures.size == (320, 240) and rig.alive > 2


def test_a_lost_packet_freezes_the_picture_until_a_key_frame():
    """Covers RFC 6184 §5.8: what has lost a part is not passed on, nor what depends on it.

    Covers RFC 5168 §3 [feedback-first].
    """
    rig = VideoRig(video_plan(feedback=["nack pli"]))
    rig.picture(9000, SPS, PPS, idr(1))
    rig.picture(18000, inter(1))
    rig.wait(1.0)
    rig.picture(90000, inter(2, 500), lost=[2])
    rig.wait(1.2)
    rig.picture(99000, inter(3))
    rig.wait(3.0)
    assert len(rig.tags) == 3  # header, key frame, the picture after it
    requests = [each for report in rig.reports for each in parse_compound(report)]
    assert any(isinstance(each, Pli) for each in requests) and not rig.asked
    rig.picture(270000, idr(4))
    rig.picture(279000, inter(5))
    assert len(rig.tags) == 5
    told = len(rig.reports)
    rig.wait(6.0)
    later = [each for report in rig.reports[told:] for each in parse_compound(report)]
    assert not any(isinstance(each, Pli) for each in later) and not rig.asked  # no longer


def test_a_phone_without_feedback_is_asked_by_sip_and_not_too_often():
    """Covers RFC 5168 §4: from its first picture on that cannot be decoded."""
    rig = VideoRig(video_plan())
    rig.wait(2.0)
    assert not rig.asked
    rig.picture(0, inter())
    rig.picture(3000, inter())
    rig.wait(2.0 + 3.5 * ASK_SECONDS)
    assert rig.asked == [2.0 + ASK_SECONDS * at for at in range(4)]


def test_a_new_player_has_the_phone_asked():
    rig = VideoRig(video_plan())
    rig.picture(0, SPS, PPS, idr())
    rig.picture(3000, inter())
    rig.wait(5.0)
    asked = len(rig.asked)
    rig.stream.ask_key_frame(rig.now)
    rig.wait(5.0 + ASK_SECONDS / 2)
    assert len(rig.asked) == asked + 1


def begun(pictures=4, octets=40):
    """A call whose phone has seen a key frame and the pictures after it."""
    rig = VideoRig(video_plan())
    rig.publish(HEADER, tag(idr(0), key=True), at=0)
    for number in range(1, pictures):
        rig.publish(tag(inter(number, octets)), at=40 * number)
    return rig, len(rig.sent)


def test_a_phone_that_asks_gets_the_pictures_again_before_the_next():
    """Covers RFC 5104 §4.3.1.2: the publisher is told; who can't make one is helped out."""
    rig, before = begun()
    source = rig.sent[0][5]
    report = ReceiverReport(9, ()), SourceDescription.of_cname(9, "bob@host"), Pli(9, source)
    rig.stream.on_rtcp(b"".join(map(bytes, report)), rig.now)
    assert rig.wanted == [rig.now] and len(rig.sent) == before
    rig.publish(tag(inter(4)), at=160)
    units, stamps = sent_units(rig), [packet[4] for packet in rig.sent]
    assert [unit[3] for unit in units if unit[0] & 31 in (1, 5)] == [0, 1, 2, 3] * 2 + [4]
    assert [unit[0] & 31 for unit in units][6:9] == [7, 8, 5]
    ticks = [stamp - stamps[0] & 0xFFFFFFFF for stamp in stamps]
    assert ticks == sorted(ticks) and ticks[-1] == 160 * 90  # a true time line
    assert len(set(ticks[before:])) == 5


def test_a_key_frame_makes_a_repetition_needless():
    rig, _ = begun()
    rig.stream.want_key_frame(rig.now)
    rig.publish(tag(idr(4), key=True), at=160)
    rig.publish(tag(inter(5)), at=200)
    assert [unit[3] for unit in sent_units(rig)[6:] if unit[0] & 31 in (1, 5)] == [4, 5]


def test_what_is_large_or_was_just_repeated_is_not_repeated():
    """Own design: the path has just lost something."""
    rig, before = begun(pictures=5, octets=REPEAT_OCTETS // 4)
    rig.stream.want_key_frame(rig.now)
    rig.publish(tag(inter(9)), at=200)
    assert len(rig.sent) == before + 1 and rig.wanted
    rig, before = begun()
    rig.stream.want_key_frame(rig.now)
    rig.publish(tag(inter(4)), at=160)
    count = len(rig.sent)
    for at in (1200, 2160):
        rig.wait(at / 1000)
        rig.stream.want_key_frame(rig.now)
        rig.publish(tag(inter(at)), at=at)
        assert (len(rig.sent) > count + 1) == (at > 2000)
        count = len(rig.sent)
    assert len(rig.wanted) == 2  # a second between them


def test_pictures_in_another_order_are_not_repeated():
    """B-frames: no other times could keep the order in which they are shown."""
    rig = VideoRig(video_plan())
    rig.publish(HEADER, tag(idr(0), key=True), at=0)
    for at, shown in ((40, 120), (80, 80), (120, 120)):
        late = VideoTag(FrameType.INTER, CodecId.AVC, AvcPacketType.NALU, shown - at + 40,
                        join_units([inter(at)]))  # fmt: skip
        rig.publish(bytes(late), at=at)
    before = len(rig.sent)
    rig.stream.want_key_frame(rig.now)
    rig.publish(tag(inter(4)), at=240)
    assert len(rig.sent) == before + 1


def test_other_sources_and_types_are_no_pictures():
    """Covers RFC 3550 §5.1 and RFC 3264 §6.1."""
    rig = VideoRig(video_plan())
    rig.picture(0, idr(), payload_type=34)
    rig.stream.on_rtp(b"junk", 0.0)
    rig.stream.on_rtcp(b"junk", 0.0)
    assert not rig.tags and rig.stream.figures.received == 0


def test_it_ends_with_a_bye_and_then_is_silent():
    """Covers RFC 3550 §6.6."""
    rig = VideoRig(video_plan())
    rig.remote_rtcp = (PHONE[0], PHONE[1] + 1)
    rig.publish(HEADER, tag(idr(), key=True), at=0)
    assert rig.stream._to_phone.gop.has_frames
    rig.stream.close(rig.now)
    rig.stream.close(rig.now)
    assert rig.closed == 1 and len(rig.reports) == 1 and rig.stream.deadline is None
    assert not rig.stream._to_phone.gop.has_frames  # what remembers the call keeps no pictures
    rig.stream.publish(VIDEO, 40, tag(idr(), key=True), rig.now)
    rig.picture(0, idr())
    assert len(sent_units(rig)) == 3 and not rig.tags


@pytest.mark.parametrize(("avpf", "most", "least"), [(False, 25, 10), (True, 10_000, 60)])
def test_reports_are_frequent_where_the_profile_allows_it(avpf, most, least):
    """RFC 3550 §6.2: one in 5 s on average under AVP, though it has messages of AVPF."""
    rig = VideoRig(video_plan(feedback=["nack pli"], avpf=avpf))
    rig.remote_rtcp = (PHONE[0], PHONE[1] + 1)
    rig.publish(HEADER, tag(idr(0), key=True), at=0)
    for number in range(1, 600):
        rig.publish(tag(inter(number % 100)), at=number * 100)
    reports = [each for each in rig.reports if each[1] in (200, 201)]
    assert least <= len(reports) <= most
