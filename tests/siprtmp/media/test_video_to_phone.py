"""Pictures that are too much for a phone are made smaller; all others pass as they are."""

import pytest
from support.gateway.video_rig import HEADER, PHONE, VideoRig, idr, inter, tag, video_plan
from support.gateway.video_threads import Pretended

from p2psip.rtp.feedback import Fir, Pli
from p2psip.rtp.payload.h264 import read_h264
from p2psip.rtp.rtcp import ReceiverReport, SenderReport, parse_compound, unix_time
from p2psip.rtp.source_description import SourceDescription
from rtmplite.flv.avc import AvcConfig
from rtmplite.flv.video import AvcPacketType, CodecId, FrameType, VideoTag
from siprtmp.media.sink import VIDEO
from siprtmp.media.stream import Signalled
from siprtmp.media.translate.codec_limits import CodecLimits

LOW = "profile-level-id=42e00b;packetization-mode=1"
SORENSON = b"\x12" + bytes(50)
SMALL = bytes.fromhex("6742c00cda0507ec0440000003004000000603c50aa8")  # 320x240, level 1.2


class Rig(VideoRig):
    """A leg whose pictures may be made; `work` does what the threads have to do."""

    def __init__(self, *fmtps, limits=None, plan=None):
        self.threads = Pretended(limits or CodecLimits())
        super().__init__(plan or video_plan(*fmtps), transcoding=self.threads)

    def show(self, *bodies, at):
        """Publish, and have all made that is to be made."""
        self.publish(*bodies, at=at)
        self.threads.work(self.now)

    @property
    def numbers(self):
        """The numbers of the pictures that the phone got; those that were made have 99."""
        units = [unit for *_, payload in self.sent for unit in read_h264(payload)]
        return [unit[3] for unit in units if unit[0] & 31 in (1, 5)]

    @property
    def ticks(self):
        return sorted({packet[4] - self.sent[0][4] & 0xFFFFFFFF for packet in self.sent})


def begin(rig):
    rig.show(HEADER, at=0)
    rig.show(tag(idr(0), key=True), at=0)
    rig.show(tag(inter(1)), at=40)
    rig.show(tag(inter(2)), at=80)


def test_a_level_that_is_too_high_has_pictures_made():
    """Covers RFC 6184 §8.2.2: the phone's level is a limit; times stay those of the publisher."""
    rig = Rig(LOW)
    begin(rig)
    assert rig.numbers == [99, 99, 99] and rig.ticks == [0, 3600, 7200]
    [(codec, limits, slice_octets)] = rig.threads.asked
    assert (codec, limits.level, limits.blocks, slice_octets) == ("h264", 1.1, 396, 0)
    assert rig.made == [("h264 320x240 > h264 32x24", "level 3.1")]
    assert rig.stream.figures.transcodes == ["h264 320x240 > h264 32x24"]


@pytest.mark.parametrize("fmtp", ["profile-level-id=42e01f", "profile-level-id=64001f"])
def test_what_the_phone_takes_passes(fmtp):
    rig = Rig(f"{fmtp};packetization-mode=1")
    begin(rig)
    assert rig.numbers == [0, 1, 2] and not rig.threads.asked and not rig.stream.figures.transcodes


def test_without_the_option_everything_passes():
    rig = VideoRig(video_plan(LOW))
    rig.publish(HEADER, tag(idr(0), key=True), at=0)
    assert len(rig.sent) == 1 and not rig.made and not rig.stream.figures.transcodes


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        (CodecLimits(width=160), "size 320x240"),
        (CodecLimits(level=1.1), "level 3.1"),
        (CodecLimits(baseline=True), ""),
        (CodecLimits(width=320, height=240), ""),
    ],
)
def test_the_operator_s_limits_count_as_well(limits, reason):
    rig = Rig("profile-level-id=42e01f;packetization-mode=1", limits=limits)
    begin(rig)
    assert [said for _, said in rig.made] == ([reason] if reason else [])
    assert bool(rig.threads.asked) == bool(reason)


@pytest.mark.parametrize(
    ("limits", "bits", "reason"),
    [(None, 40_000, "kbit/s"), (CodecLimits(rate=10), 0, "25 pictures a second")],
)
def test_rates_are_judged_at_key_frames(limits, bits, reason):
    """Covers RFC 8866 §5.8: what the phone takes of bits a second, as they are measured."""
    rig = Rig(limits=limits, plan=video_plan(bits=bits))
    rig.show(HEADER, at=0)
    for number in range(60):
        key = number % 30 == 0
        rig.show(tag(idr(number, 300) if key else inter(number, 300), key=key), at=40 * number)
    assert rig.numbers[:30] == list(range(30)) and set(rig.numbers[30:]) == {99}
    assert rig.ticks == [3600 * number for number in range(60)]
    assert len(rig.made) == 1 and rig.made[0][1].endswith(reason)


def test_the_phone_s_wish_reaches_the_encoder_and_nobody_else():
    """Covers RFC 5104 §4.3.1.2 [refresh-on-fir] and RFC 4585 §6.3.1."""
    rig = Rig(LOW)
    begin(rig)
    source = rig.sent[0][5]
    for feedback in (Pli(9, source), Fir(9, ((source, 1),))):
        rig.wait(rig.now + 2.0)
        report = ReceiverReport(9, ()), SourceDescription.of_cname(9, "bob@host"), feedback
        rig.stream.on_rtcp(b"".join(map(bytes, report)), rig.now)
        before = len(rig.sent)
        rig.show(tag(inter(5)), at=round(rig.now * 1000) + 40)
        assert rig.threads.converted[-1] == (1, 0, True)
        kinds = [unit[0] & 31 for *_, payload in rig.sent[before:] for unit in read_h264(payload)]
        assert kinds == [7, 8, 5]  # the sets, and no picture twice
    assert rig.stream.figures.wanted == 2 and not rig.wanted


def test_a_unit_too_long_for_mode_0_has_smaller_slices_made():
    """Covers RFC 6184 §6.2: also in the middle of a call."""
    rig = Rig("profile-level-id=42e01f")
    begin(rig)
    assert rig.numbers == [0, 1, 2]
    rig.show(tag(inter(3, 3000)), at=120)
    rig.show(tag(inter(4)), at=160)
    assert rig.threads.asked[0][2] == 1200 and set(rig.numbers[3:]) == {99}
    assert not rig.unsuitable and rig.ticks[-1] == 160 * 90


def test_another_codec_is_made_into_h264():
    rig = Rig()
    for at in (0, 40):
        rig.show(SORENSON, at=at)
    assert len(rig.threads.asked) == 1 and rig.numbers == [99, 99]
    assert rig.made[0][1] == "video codec SORENSON_H263"


def test_what_cannot_be_made_is_told_once():
    rig = Rig()
    rig.threads.error = "video codec ON2_VP6"
    for at in (0, 40, 80):
        rig.show(SORENSON, at=at)
    assert rig.unsuitable == ["video codec ON2_VP6"] and rig.stream.figures.unsuitable == 1
    assert not rig.sent and not rig.made


def small(level=SMALL):
    config = bytes(AvcConfig.of([level], [bytes.fromhex("68ce3c80")]))
    header = VideoTag(FrameType.KEY, CodecId.AVC, AvcPacketType.SEQUENCE_HEADER, 0, config)
    return bytes(header)


def test_a_publisher_that_changes_is_judged_again():
    rig = Rig("profile-level-id=42e00c;packetization-mode=1")
    begin(rig)
    rig.show(small(), at=120)
    rig.show(tag(idr(7), key=True), at=120)
    assert rig.numbers == [99, 99, 99, 7] and not rig.stream.figures.transcodes
    rig.show(small(), at=160)
    rig.show(tag(inter(8)), at=160)
    rig.show(HEADER, at=200)
    rig.show(tag(idr(9), key=True), at=200)
    rig.show(HEADER, at=240)  # once more
    rig.show(tag(inter(10)), at=240)
    assert rig.numbers[3:] == [7, 8, 99, 99] and len(rig.threads.asked) == 2


def test_all_since_the_last_key_frame_are_made_for_a_phone_that_comes_later():
    rig = Rig(plan=video_plan(LOW, direction="recvonly"))
    for at, body in ((0, HEADER), (0, tag(idr(0), key=True)), (40, tag(inter(1)))):
        rig.publish(body, at=at)
    rig.stream.start(video_plan(LOW), rig.now, Signalled(hosts=(PHONE[0],)))
    rig.show(tag(inter(2)), at=80)
    assert rig.threads.converted == [(4, 3, False)]
    rig.show(tag(inter(3)), at=120)
    assert rig.numbers == [99, 99] and rig.ticks == [0, 3600]


def test_a_file_waits_in_front_of_the_encoder():
    """Own design of `pacing`: no picture of a file is dropped, and its reader is held back."""
    rig = Rig(LOW)
    rig.show(HEADER, at=0)
    for number in range(60):
        rig.stream.publish(
            VIDEO, 40 * number, tag(inter(number) if number else idr(), key=not number), 0.0
        )
        rig.threads.work(0.0)
    assert rig.holding == [True] and len(rig.threads.converted) < 4
    for at in range(100):
        rig.wait(at * 0.04)
        rig.threads.work(rig.now)
    assert len(rig.numbers) == 60 and rig.holding == [True, False]


def test_a_file_that_turns_out_to_be_too_much_keeps_its_order():
    """Own design: what waits already leaves as it is, before what is made."""
    rig = Rig(plan=video_plan(bits=40_000))
    rig.show(HEADER, at=0)
    for number in range(60):
        key = number % 30 == 0
        body = tag(idr(number, 300) if key else inter(number, 300), key=key)
        rig.stream.publish(VIDEO, 40 * number, body, 0.0)
    assert rig.holding == [True]
    for at in range(100):
        rig.wait(at * 0.04)
        rig.threads.work(rig.now)
    assert rig.numbers == [*range(30), *[99] * 30] and rig.holding == [True, False]
    ticks = [packet[4] - rig.sent[0][4] & 0xFFFFFFFF for packet in rig.sent]
    assert ticks == sorted(ticks) and rig.ticks == [3600 * at for at in range(60)]


def test_a_file_that_changes_is_followed_at_once():
    """Own design: what waits for the old encoder is dropped, rather than mixed up with the new."""
    rig = Rig(LOW)
    begin(rig)
    for number in range(3, 60):
        rig.stream.publish(VIDEO, 40 * number, tag(inter(number)), rig.now)
    assert rig.holding == [True]
    rig.stream.publish(VIDEO, 2400, small(), rig.now)
    assert rig.holding == [True, False]
    rig.show(tag(idr(7), key=True), at=2400)
    rig.show(tag(inter(8)), at=2440)
    assert len(rig.threads.asked) == 2 and rig.ticks[-1] == 2440 * 90


def test_what_is_made_belongs_to_the_sound_of_its_own_time():
    """Covers RFC 3550 §6.4.1 [timestamp-of-the-report]: not to that of the end of the work."""
    rig = Rig(LOW)
    begin(rig)
    first = rig.sent[0][4]
    rig.publish(tag(inter(3)), at=1000)
    rig.wait(1.3)
    rig.threads.work(rig.now)
    del rig.reports[:]
    while not rig.reports:
        rig.wait(rig.stream.deadline)
    [report] = [x for x in parse_compound(rig.reports[0]) if isinstance(x, SenderReport)]
    ticks = report.timestamp - first & 0xFFFFFFFF
    assert ticks / 90_000 == pytest.approx(unix_time(report.ntp), abs=0.001)


def test_a_hold_ends_the_work():
    """Covers RFC 3264 §8.3.2 [no-old-formats]: what is still being made is not sent."""
    rig = Rig(LOW)
    begin(rig)
    rig.publish(tag(inter(3)), at=120)
    before = len(rig.sent)
    rig.stream.start(video_plan(LOW, direction="recvonly"), rig.now, Signalled(hosts=(PHONE[0],)))
    rig.threads.work(rig.now)
    assert len(rig.sent) == before and not rig.stream.figures.transcodes
