"""Video that is made into what browsers show, once for all that play a stream."""

import pytest
from support.gateway.h264_world import header_of, main_sps, tag_of
from support.gateway.video_threads import Pretended, at_once
from support.gateway.whip_world import LINES, RTP, World, offer, units

from p2psip.rtp.payload.h264_access_units import IDR
from rtmplite.flv.video import is_key_frame, is_sequence_header
from siprtmp.media.video.video_worker import MAX_SECONDS
from siprtmp.web.made_video import KEY_SECONDS

STEP = 0.04  # s from frame to frame
REORDERED = [(1, 80), (2, 120), (2, 0)]  # the third is shown before the second
LINES["both"] = LINES["vp8"].replace(" 96\n", " 96 98\n", 1) + LINES["h264"].partition("\n")[2]
LINES["h265"] = "m=video 9 UDP/TLS/RTP/SAVPF 97\na=rtpmap:97 H265/90000\n"


def playing(*kinds):
    return offer(*kinds, flow="recvonly")


class Made(World):
    """A world that may make video, whose threads work when the test says so."""

    def __init__(self):
        self.transcoders = Pretended()
        super().__init__()

    def live(self, name="obs", reorder=2):
        live = self.registry.open("live", name)
        live.begin(self.now)
        live.write(9, 0, header_of(main_sps(reorder=reorder)), self.now)
        live.write(8, 0, b"\xaf\x00\x11\x90", self.now)
        return live

    def show(self, live, frames=((2, 0),), then=True):
        """Publish frames, by their kinds and composition times, and make what is to be made."""
        for kind, composition in frames:
            self.now += STEP
            body = tag_of(kind, [b"\x65frame" if kind == 1 else b"\x41frame"], composition)
            live.write(9, round(1000 * self.now), body, self.now)
            if then:
                self.transcoders.work(self.now)

    def works(self):
        """How often frames were made since this was asked last."""
        count, self.transcoders.converted = len(self.transcoders.converted), []
        return count


@pytest.fixture
def world():
    return Made()


def kinds(packets):
    return [unit[0] & 0x1F for unit in units(packets)]


def made_of(packets):
    """The number in each frame, which is 99 in those that `Pretended` makes."""
    return [unit[3] for unit in units(packets)]


def test_b_frames_are_taken_out_once_for_all_viewers(world):
    live = world.live()
    world.show(live, REORDERED)
    seen = [world.view("obs", playing("audio", "h264"))[1] for _ in range(3)]
    assert world.transcoders.asked == [("h264", world.transcoders.limits, 0)]
    world.transcoders.work(world.now)
    world.works()
    world.show(live, [(2, 0)] * 4)
    assert world.works() == 4
    assert [made_of(packets)[-4:] for packets in seen] == [[99] * 4] * 3
    assert live.players == 3
    events = [event for event, _ in world.events]
    assert "b-frames" not in events and events.count("transcoding") == 1
    [values] = [values for event, values in world.events if event == "transcoding"]
    assert (values["app"], values["name"], values["to"]) == ("live", "obs", "h264 32x24")


def test_nothing_is_made_before_a_browser_connects_nor_after_the_last_has_gone(world):
    live = world.live()
    world.show(live, REORDERED)
    assert world.ask("POST", "/live/obs/whep", playing("audio", "h264")).status == 201
    world.show(live)
    assert world.transcoders.asked == [] and world.works() == 0
    places = [world.view("obs", playing("audio", "h264"))[0] for _ in range(2)]
    world.show(live)
    assert world.works() == 2  # what was kept, and the frame
    assert world.ask("DELETE", places[0]).status == 200
    world.show(live)
    assert world.works() == 1
    assert world.ask("DELETE", places[1]).status == 200
    world.show(live)
    assert world.works() == 0
    world.view("obs", playing("audio", "h264"))
    assert len(world.transcoders.asked) == 2


def test_the_first_viewer_gets_the_present_frame_of_the_kept_group(world):
    """All that is kept is decoded, and the last frame of it made, as a key frame."""
    live = world.live()
    world.show(live, [*REORDERED, (2, 0)])
    _, seen = world.view("obs", playing("audio", "h264"))
    world.transcoders.work(world.now)
    assert world.transcoders.converted == [(5, 4, False)]  # with the header
    assert kinds(seen) == [IDR] and made_of(seen) == [99]


def test_a_late_viewer_begins_at_once_with_what_was_made_since_the_last_key_frame(world):
    live = world.live()
    world.show(live, REORDERED)
    _, early = world.view("obs", playing("audio", "h264"))
    world.show(live, [(2, 0)] * 3)
    _, late = world.view("obs", playing("audio", "h264"))
    assert late == []
    world.show(live)
    assert kinds(late) == kinds(early) == [IDR, 1, 1, 1, 1] and made_of(late) == [99] * 5
    assert not any(wants_key for _, _, wants_key in world.transcoders.converted)


def test_a_key_frame_is_made_for_a_viewer_that_lacks_one_and_once_for_all(world):
    live = world.live()
    world.show(live, REORDERED)
    seen = []
    for _ in range(2):
        seen.append(world.view("obs", playing("audio", "h264"))[1])
        world.show(live)
    world.works()
    for peer in world.sessions._by_peer:
        peer.session.want_key_frame(world.now)
        world.show(live, [(2, 0)] * 2)
    asked = [wants_key for _, _, wants_key in world.transcoders.converted]
    assert asked == [True, False, False, False]  # the second one is told to wait
    assert kinds(seen[0]).count(IDR) == 2
    world.now += KEY_SECONDS
    world.works()
    world.show(live)
    assert [wants_key for _, _, wants_key in world.transcoders.converted] == [True]


def test_what_passes_is_not_made(world):
    """A stream without B-frames, to a browser that has its codec."""
    live = world.live(reorder=0)
    world.show(live, [(1, 0), (2, 0)])
    _, seen = world.view("obs", playing("audio", "both"))
    world.show(live)
    assert world.transcoders.asked == [] and seen and {each[1] & 0x7F for each in seen} == {98}


def test_a_browser_that_has_h264_gets_that_and_one_without_gets_vp8(world):
    world.show(world.live(), REORDERED)
    for kind in ("both", "vp8", "both", "h264"):
        world.view("obs", playing("audio", kind))
    assert [codec for codec, _, _ in world.transcoders.asked] == ["h264", "vp8"]


def test_a_browser_without_a_codec_that_is_made_is_refused(world):
    world.show(world.live(), REORDERED)
    got = world.ask("POST", "/live/obs/whep", playing("audio", "h265"))
    assert got.status == 422 and b"the stream has AVC and AAC" in got.body
    assert b"--transcode-video" not in got.body


def test_without_the_option_the_cure_names_it():
    world = World()
    live = world.live()
    got = world.ask("POST", "/live/obs/whep", playing("audio", "vp8"))
    assert got.status == 422 and b"start the gateway with --transcode-video" in got.body
    live.write(9, 0, header_of(main_sps(reorder=2)), 0.0)
    got = world.ask("POST", "/live/obs/whep", playing("audio", "h264"))
    assert got.status == 422 and b"start the gateway with --transcode-video" in got.body
    [values] = [values for event, values in world.events if event == "b-frames"]
    assert "--transcode-video" in values["cure"]


def test_a_viewer_sees_made_video_from_the_first_b_frame_on(world):
    """From a key frame on, with nothing of the stream's own behind it."""
    live = world.live(reorder=0)
    world.show(live, [(1, 0), (2, 0)])
    _, seen = world.view("obs", playing("audio", "h264"))
    world.show(live)
    count = len(seen)
    world.show(live, REORDERED)
    assert [codec for codec, _, _ in world.transcoders.asked] == ["h264"]
    assert world.transcoders.converted == [(4, 3, False)]  # the B-frame among what is kept, once
    world.show(live, [(2, 0)] * 3)
    numbers = made_of(seen[count:])
    begun = numbers.index(99)
    assert numbers[begun:] == [99] * (len(numbers) - begun) and len(numbers) >= begun + 3
    assert kinds(seen[count:])[begun] == IDR
    assert len(world.sessions) == 1 and live.players == 1


def test_another_publication_passes_again(world):
    live = world.live()
    world.show(live, REORDERED)
    _, seen = world.view("obs", playing("audio", "h264"))
    world.show(live)
    live.begin(world.now)
    live.write(9, 0, header_of(main_sps(reorder=0)), world.now)
    world.works()
    count = len(seen)
    world.show(live, [(1, 0), (2, 0), (2, 0)])
    assert world.works() == 0 and len(seen) > count and 99 not in made_of(seen[count:])
    assert world.sessions._made == {}


def test_video_of_another_codec_is_made_when_the_publisher_changes_to_it(world):
    """A browser that has answered for H.264 gets that, when AV1 comes."""
    live = world.live(reorder=0)
    world.show(live, [(1, 0)])
    world.view("obs", playing("audio", "h264"))
    live.write(9, 100, b"\x90av01\x81\x04\x0c\x00", world.now)
    assert [codec for codec, _, _ in world.transcoders.asked] == ["h264"]


def test_audio_alone_makes_no_video(world):
    world.show(world.live(), REORDERED)
    world.view("obs", playing("audio"))
    assert world.transcoders.asked == []


def test_the_end_of_the_stream_ends_the_work(world):
    live = world.live()
    world.show(live, REORDERED)
    world.view("obs", playing("audio", "h264"))
    world.show(live, then=False)
    live.end(world.now)
    world.transcoders.work(world.now)
    assert len(world.sessions) == 0 and world.sessions._made == world.sessions._watches == {}


def test_frames_that_are_too_many_are_left_out_and_said_once(world):
    live = world.live()
    world.show(live, REORDERED)
    world.view("obs", playing("audio", "h264"))
    world.show(live, [(2, 0)] * round(3 * MAX_SECONDS / STEP), then=False)
    late = [values for event, values in world.events if event == "media-late"]
    assert len(late) == 1 and late[0]["kind"] == "pictures" and late[0]["name"] == "obs"
    assert len(world.transcoders.jobs) == 1


def test_what_cannot_be_decoded_is_said_once(world):
    live = world.live()
    world.show(live, REORDERED)
    world.view("obs", playing("audio", "h264"))
    for error in ("broken h264", "", "broken h264"):
        world.transcoders.error = error
        world.show(live)
    said = [values for event, values in world.events if event == "video-unsuitable"]
    assert len(said) == 1 and said[0]["reason"] == "broken h264"


def test_vp8_is_made_of_h264():
    """By a real encoder: the first packet begins a key frame of the size that was published."""
    pytest.importorskip("av")
    from siprtmp.media.transcode.video_encoder import H264, VideoEncoder

    world = World.__new__(World)
    world.transcoders = at_once(lambda: world.now)
    world.__init__()
    encoder, live = VideoEncoder(H264, (64, 48), 25, 100_000), world.registry.open("live", "obs")
    live.begin(0.0)
    for time, body in frames(encoder, 3):
        live.write(9, time, body, world.now)
    _, seen = world.view("obs", playing("audio", "vp8"))
    for time, body in frames(encoder, 3, first=3):
        world.now = time / 1000
        live.write(9, time, body, world.now)
    first = seen[0]
    assert first[1] & 0x7F == 96
    assert (64).to_bytes(2, "little") + (48).to_bytes(2, "little") in first[RTP : RTP + 20]


def frames(encoder, count, first=0):
    """Tags of grey pictures."""
    from av.video.frame import VideoFrame

    for number in range(first, first + count):
        picture = VideoFrame(64, 48, "yuv420p")
        for plane in picture.planes:
            plane.update(bytes([128]) * plane.buffer_size)
        picture.pts = 40 * number
        yield from encoder.encode(picture, False)


class Viewer:
    """One that has other frames already, and takes no kept ones."""

    def __init__(self):
        self.seen = []

    def show_video(self, timestamp, payload, at):
        self.seen.append((is_sequence_header(payload), is_key_frame(payload)))


def test_a_viewer_that_has_other_frames_waits_for_a_key_frame_and_its_header(world):
    live, viewer = world.live(), Viewer()
    world.show(live, REORDERED)
    world.view("obs", playing("audio", "h264"))
    world.show(live)
    made = world.sessions.made_video(live, "h264")
    made.want_key_frame()
    world.show(live)
    made.join(viewer, world.now, is_new=False)
    world.show(live, [(2, 0)] * 3)
    assert viewer.seen == []
    world.now += KEY_SECONDS
    world.show(live, [(2, 0)] * 2)
    assert viewer.seen == [(True, False), (False, True), (False, False)]
