"""Both sides of a mixed call in one picture, as soon as both have pictures, and not before."""

from itertools import pairwise

import pytest
from support.gateway.gateway_world import AUDIO, PCMU, Desk, GatewayWorld, sdp
from support.gateway.numbered_film import film, number_of
from support.gateway.video_rig import VideoRig
from support.gateway.video_threads import Pretended, at_once

from p2psip.rtp.payload import g711
from rtmplite.amf import amf0
from rtmplite.flv.avc import AvcConfig, split_units
from rtmplite.flv.video import VideoTag, is_key_frame, is_sequence_header
from siprtmp.calls.mixed import mixed_call
from siprtmp.media.transcode.side_by_side import HALF, HEIGHT, WIDTH
from siprtmp.media.transcode.video_decoder import VideoDecoder

VIDEO, DATA = 9, 18
SILENCE = b"\x82" + bytes((g711.ULAW_SILENCE,)) * 160  # 20 ms
H264 = (
    b"m=video 6000 RTP/AVP 99\r\na=rtpmap:99 H264/90000\r\n"
    b"a=fmtp:99 profile-level-id=42e01f;packetization-mode=1\r\n"
)


class Call:
    """The name "show" is published, and a phone with pictures has called it."""

    def __init__(self, *, mix=True, pictures=True, offer=None):
        if pictures is True:
            pictures = at_once(lambda: self.world.now)
        self.world = GatewayWorld(mix_calls=mix, pictures=pictures or None)
        self.messages = []
        self.world.registry.on_begin.append(self._begun)
        self.desk, self.tool = Desk(self.world.link), self.world.tool()
        self.stream = self.tool.publish("show")
        self.call = self.desk.ring("show", self.world.now, offer or sdp(PCMU) + H264)
        self.world.wait(0.1)
        self.film, self.sent, self.rig, self.shown = film(count=60), 0, VideoRig(), 0

    def _begun(self, live, now):
        if live.app == mixed_call.APP:
            live.tap(self)

    def write(self, type_id, at, payload, now):
        self.messages.append((type_id, at, payload))

    def end(self, now):
        """The mix is over."""

    def go(self, count, *, publisher=True, phone=True):
        """Let both sides show so many pictures, 25 a second, the phone those from its first."""
        for _ in range(count):
            if publisher:
                self.publish()
            if phone:
                self.send()
            self.world.wait(0.04)

    def publish(self):
        header = self.film[0].body if not self.sent else None
        for body in (header, self.film[1 + self.sent].body):
            if body:
                self.tool.write(VIDEO, 40 * self.sent, self.stream, body)
        for at in (0, 20):
            self.tool.write(AUDIO, 40 * self.sent + at, self.stream, SILENCE)
        self.sent += 1

    def send(self):
        [leg] = self.world.gateway.videos
        units = []
        if not self.shown:
            config = AvcConfig.parse(VideoTag.parse(self.film[0].body).data)
            units += [*config.sps, *config.pps]
        units += split_units(VideoTag.parse(self.film[1 + self.shown].body).data)
        for datagram in self.rig.datagrams(3600 * self.shown, *units):
            leg.on_rtp(datagram, self.world.now)
        self.shown += 1

    def of(self, type_id):
        return [(at, body) for kind, at, body in self.messages if kind == type_id]

    def shows(self):
        """What a player sees: time, size and the numbers in both halves of the large ones."""
        decoder, out = VideoDecoder(), []
        for at, body in self.of(VIDEO):
            for frame in decoder.decode(body, at):
                out.append((frame.pts, frame.width, *numbers(frame)))
        return out

    def described(self):
        return [amf0.decode(payload)[1] for _, payload in self.of(DATA)]


def numbers(frame):
    """The numbers in both halves, or of a small picture."""
    if frame.width != WIDTH:
        return (number_of(frame),)
    light, found = frame.to_ndarray(format="gray"), []
    for left in (0, HALF):
        row, step = light[HEIGHT // 2, left + 80 : left + 560], 120
        found.append(sum((int(row[step * at + 60]) > 125) << at for at in range(4)))
    return tuple(found)


def test_both_sides_are_seen_in_one_picture():
    """Covers FLV 10.1 §E.4.3.1: the publisher on the left, and one size from the beginning."""
    call = Call()
    call.go(3, phone=False)
    assert not call.of(VIDEO)
    call.go(20)
    shown = call.shows()
    assert {width for _, width, *_ in shown} == {WIDTH}
    assert shown[-1][2:] in ((22 % 16, 19 % 16), (22 % 16, 18 % 16))
    times = [at for at, *_ in shown]
    assert [b - a for a, b in pairwise(times[5:])] == pytest.approx([40] * (len(times) - 6), abs=5)
    assert len(shown) > 15  # a picture for each of one side's, not for each of both
    described = call.described()[-1]
    assert (described["hasVideo"], described["width"], described["height"]) == (True, 1280, 360)
    assert call.world.is_clean()


def test_a_picture_is_seen_when_its_sound_is_heard():
    """Own design: as long after it came as the sound waits in the mix."""
    call = Call()
    call.go(20)
    [mix] = call.world.gateway.mixes._mixes.values()
    heard_at = mix._mixer.clock(call.world.now) + 1000 * mix._publisher.delay
    call.go(1, phone=False)
    assert call.shows()[-1][0] == pytest.approx(heard_at, abs=25)


def test_a_phone_alone_is_passed_on_as_it_is():
    """Own design: not decoded, until the publisher shows something too."""
    call = Call()
    call.go(6, publisher=False)
    alone = call.shows()
    assert [width for _, width, *_ in alone] == [64] * 6 and [n for *_, n in alone] == [*range(6)]
    assert call.described()[-1]["width"] == 64
    call.go(10)
    assert call.shows()[-1][1] == WIDTH and call.described()[-1]["width"] == WIDTH
    headers = [body for _, body in call.of(VIDEO) if is_sequence_header(body)]
    times = [at for at, _ in call.of(VIDEO)]
    assert times == sorted(times)
    assert len(headers) == 2
    assert call.world.is_clean()


@pytest.mark.parametrize("mix", [True, False])
def test_a_header_comes_with_its_key_frame_and_never_without(mix):
    """Covers FLV 10.1 §E.4.3.2: also where the phone's size gives way to that of both sides."""
    call = Call(mix=mix)
    if not mix:  # the operator begins in the middle: the phone's header is from before
        call.go(4, publisher=False)
        [call_] = call.world.gateway.context.calls
        call.world.gateway.mixes.start(call_, call.world.now)
        call.go(2, publisher=False)
        call.shown = 0  # the phone's next key frame
    call.go(4, publisher=False)
    call.go(8)
    shown = call.of(VIDEO)
    headers = [at for at, (_, body) in enumerate(shown) if is_sequence_header(body)]
    assert len(headers) == 2
    for at in headers:
        (time, _), (next_time, picture) = shown[at : at + 2]
        assert time == next_time and is_key_frame(picture)
    assert call.world.is_clean()


def test_a_publisher_alone_is_not_seen():
    """Own design: the stream is the phone's, with both sounds."""
    call = Call()
    call.go(10, phone=False)
    assert not call.of(VIDEO) and call.world.is_clean()


def test_without_transcoding_the_phone_alone_is_seen():
    """Own design: nothing is decoded that the operator has not asked for."""
    call = Call(pictures=False)
    call.go(10)
    assert {width for _, width, *_ in call.shows()} == {64} and call.world.is_clean()


def test_a_side_that_stops_keeps_its_last_picture():
    """Own design: the other side goes on, and so does the sound."""
    call = Call()
    call.go(10)
    call.messages[:] = [each for each in call.messages if each[0] != AUDIO]
    call.go(10, phone=False)
    assert call.shows()[-1][2:] == (19 % 16, 9)
    assert len(call.of(AUDIO)) > 10
    last = len(call.shows())
    call.go(10, publisher=False)
    assert len(call.shows()) > last + 6 and call.shows()[-1][2:] == (19 % 16, 19 % 16)


def test_the_operator_mixes_a_call_with_pictures_from_its_middle_on():
    """Own design: from the next key frame of each side on."""
    call = Call(mix=False)
    call.go(5)
    [call_] = call.world.gateway.context.calls
    call.world.gateway.mixes.start(call_, call.world.now)
    call.go(3)
    call.sent = call.shown = 0  # the films begin again
    call.go(10)
    assert call.shows()[-1][1:] in ((WIDTH, 9, 9), (WIDTH, 9, 8))
    call.world.gateway.mixes.stop(call_, call.world.now)
    count = len(call.messages)
    call.go(5)
    assert len(call.messages) == count and call.world.is_clean()


def test_pictures_that_come_with_a_later_offer_are_seen_too():
    """Covers RFC 3264 §8.1: a call of sound alone, to which the phone adds its camera."""
    call = Call(offer=sdp(PCMU))
    call.call.reinvite(sdp(PCMU) + H264, call.world.now)
    call.world.wait(0.1)
    call.go(5)
    call.sent = 0  # the next key frame
    call.go(10)
    assert call.shows()[-1][1:] in ((WIDTH, 9, 14), (WIDTH, 9, 13)) and call.world.is_clean()


def test_a_player_that_comes_has_a_key_frame_made():
    """Covers RFC 5104 §3.5.1: by the encoder, where no group of pictures is kept."""
    call = Call()
    call.go(10)
    player = call.world.tool(mixed_call.APP)
    player.play("show")
    call.go(4)
    pictures = [body for kind, _, body in player.media() if kind == VIDEO]
    assert is_sequence_header(pictures[0]) and is_key_frame(pictures[1])


def test_it_is_told_to_the_operator():
    """Own design: once, as everything that is made."""
    call = Call()
    call.go(10)
    lines = [line for what, line in call.world.gateway.log.lines if what == "transcoding"]
    made = [(each["codec"], each["to"], each["reason"]) for each in lines]
    assert made == [("h264 64x48 + h264 64x48", "h264 1280x360", "both sides in one picture")]


def test_threads_that_are_too_slow_cost_pictures_and_no_sound():
    """Own design: what waits is dropped up to the next key frames, which are asked for."""
    threads = Pretended()
    call = Call(pictures=threads)
    call.go(5)
    call.messages.clear()
    call.go(50)  # two seconds without a thread
    assert not call.of(VIDEO) and len(call.of(AUDIO)) > 80
    assert "NetStream.Publish.KeyFrameWanted" in call.tool.codes()
    [mix] = call.world.gateway.mixes._mixes.values()
    assert mix._video._work.dropped > 25
    threads.work(call.world.now)
    call.sent = call.shown = 0  # a key frame of each
    call.go(3)
    threads.work(call.world.now)
    assert call.of(VIDEO) and call.world.is_clean()
