"""The video tracks of a stream as layers that viewers of WHEP choose, seen in the packets sent."""

import json

import pytest
from support.gateway.h264_world import HEADER, SPS, header_of, main_sps, tag_of
from support.gateway.video_threads import Pretended
from support.gateway.whip_world import LINES, World, offer, units

from rtmplite.flv.avc import AvcConfig, join_units
from rtmplite.flv.enhanced import MultitrackType
from rtmplite.flv.enhanced_video import ExVideoTag, VideoFourCc, VideoPacketType, VideoTrack
from rtmplite.flv.video import FrameType
from siprtmp.web import layers

LINES["two"] = LINES["vp8"].replace(" 96\n", " 96 98\n", 1) + LINES["h264"].partition("\n")[2]
KEY, INTER = FrameType.KEY, FrameType.INTER
RELATION = "urn:ietf:params:whep:ext:core"
CONFIG = bytes(AvcConfig.of([SPS], [b"\x68\xce\x3c\x80"]))
STEP = 40  # ms from frame to frame


def tracks(kind, *found, packet=VideoPacketType.CODED_FRAMES, codec=VideoFourCc.AVC):
    """A message of tracks, each a number and what it has."""
    each = tuple(VideoTrack(codec, data, number) for number, data in found)
    layout = MultitrackType.MANY_TRACKS if len(found) > 1 else MultitrackType.ONE_TRACK
    return bytes(ExVideoTag(kind, packet, each, layout))


def header(track, config=CONFIG, codec=VideoFourCc.AVC):
    return tracks(KEY, (track, config), packet=VideoPacketType.SEQUENCE_START, codec=codec)


def unit(kind, name):
    return (b"\x65" if kind is KEY else b"\x41") + name


class Layered(World):
    """A world whose stream `obs` has the tracks 0, 1 and 2 of H.264, the latter as by OBS."""

    def __init__(self):
        super().__init__()
        self.at, self.viewers = 0, {}
        self.live = self.registry.open("live", "obs")
        self.begin()

    def begin(self):
        self.live.begin(self.now)
        self.live.write(9, self.at, HEADER, self.now)
        self.live.write(8, self.at, b"\xaf\x00\x11\x90", self.now)
        for track in (1, 2):
            self.live.write(9, self.at, header(track), self.now)

    def show(self, *kinds):
        """A frame of each track for each kind, named by track and time."""
        for kind in kinds:
            self.at += STEP
            self.now = self.at / 1000
            named = [unit(kind, b"%d at %d" % (track, self.at)) for track in range(3)]
            self.live.write(9, self.at, tag_of(kind, named[:1]), self.now)
            for track in (1, 2):
                body = tracks(kind, (track, join_units([named[track]])))
                self.live.write(9, self.at, body, self.now)

    def watch(self, query="", kinds=("audio", "h264")):
        return self.ask("POST", "/live/obs/whep", offer(*kinds, flow="recvonly"),
                        QUERY_STRING=query)  # fmt: skip

    def play(self):
        """Have a browser play that connects at once: its layers' address, and its packets."""
        where, heard = self.view("obs", offer("audio", "h264", flow="recvonly"))
        return f"{where}/layer", heard

    def choose(self, where, name, **more):
        body = json.dumps({"encodingId": name} if name else {}).encode()
        return self.ask("POST", where, body, "application/json", **more)

    def told(self, where):
        (line,) = json.loads(self.ask("GET", where).body).items()
        return line


@pytest.fixture
def world():
    return Layered()


def seen(packets):
    """The names of the frames in packets, in order."""
    return [each[1:].decode() for each in units(packets)]


def names(told):
    return [each["encodingId"] for each in told[1]["layers"]]


def test_an_answer_names_the_layers_and_they_are_told(world):
    """Covers WHEP §4.9 [extensions-are-linked]."""
    got = world.watch()
    where = f"{got.headers['Location']}/layer"
    assert got.status == 201 and got.links == [
        f'<{where}>; rel="{RELATION}:layer"',
        f'<{where}>; rel="{RELATION}:server-sent-events"; events="layers"',
    ]
    world.show(KEY, *[INTER] * 25, KEY)
    line, told = world.told(where)
    assert line == "1" and told["chosen"] == "0" and names((line, told)) == ["0", "1", "2"]
    for each in told["layers"]:
        assert (each["codec"], each["width"], each["height"]) == ("h264", 320, 240)
        assert each["bitrate"] > 1000
    assert world.ask("GET", got.headers["Location"]).body == b""


def test_event_source_is_told_the_same(world):
    where, _ = world.play()
    got = world.ask("GET", where, HTTP_ACCEPT="text/event-stream")
    assert got.headers["Content-Type"] == "text/event-stream"
    lines = dict(line.split(": ", 1) for line in got.body.decode().splitlines() if line)
    assert lines["event"] == "layers" and json.loads(lines["data"]) == dict([world.told(where)])
    assert got.body.endswith(b"\n\n") and int(lines["retry"]) >= 1000


def test_a_chosen_layer_begins_at_its_key_frame_and_the_old_one_plays_until_then(world):
    world.show(KEY)
    where, heard = world.play()
    world.show(INTER)
    assert seen(heard) == ["0 at 40", "0 at 80"]
    del heard[:]
    got = world.choose(where, "1")
    assert got.status == 200 and json.loads(got.body)["1"]["chosen"] == "1"
    world.show(INTER, KEY, INTER)
    assert seen(heard) == ["0 at 120", "0 at 160", "1 at 160", "1 at 200"]
    del heard[:]
    world.choose(where, "2")
    world.show(INTER, KEY, INTER)
    assert seen(heard) == ["1 at 240", "1 at 280", "2 at 280", "2 at 320"]
    del heard[:]
    assert json.loads(world.ask("DELETE", where).body)["1"]["chosen"] == "0"
    world.show(INTER, KEY, INTER)
    assert seen(heard) == ["2 at 360", "0 at 400", "0 at 440"]
    assert len(world.sessions) == 1 and world.live.players == 1


def test_no_two_frames_of_a_browser_have_one_time(world):
    """Packets of one RTP time are one frame to it."""
    world.show(KEY)
    where, heard = world.play()
    for name in ("1", "2", "", "1"):
        world.choose(where, name)
        world.show(KEY, INTER)
    times = [int.from_bytes(each[4:8], "big") for each in heard if units([each])]
    assert len(times) == len(set(times)) == 11 and times == sorted(times)


def test_a_wish_may_be_taken_back_before_it_is_granted(world):
    world.show(KEY)
    where, heard = world.play()
    world.show(INTER)
    world.choose(where, "1")
    world.choose(where, "")
    world.choose(where, "2")
    assert world.told(where)[1]["chosen"] == "2"
    world.choose(where, "0")
    world.show(KEY, INTER)
    assert seen(heard) == ["0 at 40", "0 at 80", "0 at 120", "0 at 160"]


def test_a_late_viewer_begins_with_the_kept_frames_of_its_layer(world):
    """They are kept from the first viewer on, and those that the stream itself had.

    One that names no layer has the default.  Covers WHEP §4.9 [extensions-are-optional].
    """
    world.show(KEY, INTER)
    early, _ = world.play()
    world.show(INTER)
    got = world.watch("layer=2")
    assert got.status == 201 and world.told(f"{got.headers['Location']}/layer")[1]["chosen"] == "2"
    _, heard = connected(world)
    world.show(INTER)
    assert seen(heard) == ["2 at 40", "2 at 80", "2 at 120", "2 at 160"]
    late = world.watch()
    world.choose(f"{late.headers['Location']}/layer", "1")  # before it is connected
    _, heard = connected(world)
    world.show(INTER)
    assert seen(heard) == [f"1 at {at}" for at in range(40, 201, 40)]
    assert world.told(early)[1]["chosen"] == "0"


def connected(world):
    """Let the newest browser connect: its transport, and its packets."""
    transport, heard = world.transports[-1], []
    world.connect(transport, heard)
    return transport, heard


def test_a_late_viewer_of_the_default_track_gets_that_alone(world):
    """The headers and key frames of other tracks are none of its own."""
    world.show(KEY, INTER)
    _, heard = world.play()
    world.show(INTER)
    assert seen(heard) == ["0 at 40", "0 at 80", "0 at 120"]


def test_viewers_of_the_default_track_are_given_no_other(world):
    """What another track costs is the same for any number of them."""
    where, _ = world.play()
    peer = next(iter(world.sessions._by_peer))
    given, peer.session.publish = [], lambda type_id, *rest: given.append(type_id)
    world.show(KEY, INTER)
    assert given == [9, 9]
    world.choose(where, "1")
    world.show(KEY, INTER)
    assert given == [9] * 6  # with the header, at the key frame


def test_several_tracks_in_one_message_are_taken_apart(world):
    where, heard = world.play()
    world.choose(where, "2")
    for kind in (KEY, INTER):
        found = [(track, join_units([unit(kind, b"%d" % track)])) for track in range(3)]
        world.at += STEP
        world.live.write(9, world.at, tracks(kind, *found), world.at / 1000)
    assert seen(heard) == ["2", "2"]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b'{"encodingId": "7"}', 422),
        (b'{"rid": "1", "mediaId": "1"}', 200),
        (b"{}", 200),
        (b'{"encodingId": 1}', 400),
        (b"[]", 400),
        (b"nonsense", 400),
        (b"[" * 60000, 400),
        (b"\xff", 400),
        (b'{"encodingId": "' + b"x" * 65536, 413),
    ],
)
def test_a_wish_is_a_name_in_json(world, body, status):
    where, _ = world.play()
    got = world.ask("POST", where, body, "application/json")
    assert got.status == status
    if status == 422:
        assert got.body == b"No such layer: the stream has 0 and 1 and 2.\n"


def test_the_resource_of_layers_takes_its_own_methods(world):
    where, _ = world.play()
    assert world.ask("POST", where, b"{}", "text/plain").status == 415
    got = world.ask("PATCH", where)
    assert got.status == 405 and got.headers["Allow"] == "OPTIONS, GET, HEAD, POST, DELETE"
    assert world.ask("HEAD", where).body == b"" and world.ask("OPTIONS", where).status == 200
    assert world.ask("GET", where[:-7] + "x/layer").status == 404
    assert len(world.sessions) == 1  # DELETE of a layer is not that of the session
    assert world.ask("DELETE", where).status == 200 and len(world.sessions) == 1


def test_publishers_and_listeners_have_no_layers(world):
    published, listens = world.publish(), world.watch(kinds=("audio",))
    for got in (published, listens):
        assert got.status == 201 and got.links == []
        assert world.ask("GET", f"{got.headers['Location']}/layer").status == 404


def test_an_offer_for_no_layer_of_the_stream_is_refused(world):
    got = world.watch("layer=9")
    assert got.status == 422 and b"the stream has 0 and 1 and 2" in got.body
    assert len(world.sessions) == 0 and world.left == 1 and world.transports == []
    assert world.watch("layer=0").status == 201


def test_a_layer_of_another_codec_is_refused_by_name(world):
    """It is one to choose for a browser that has the codec."""
    world.live.write(9, 0, header(3, b"", VideoFourCc.VP8), 0.0)
    got = world.watch()
    where = f"{got.headers['Location']}/layer"
    assert names(world.told(where)) == ["0", "1", "2"]
    refused = world.choose(where, "3")
    assert refused.status == 422
    assert refused.body == b"Layer 3 is vp8, and the session has h264.\n"
    got = world.watch(kinds=("audio", "two"))
    where = f"{got.headers['Location']}/layer"
    assert names(world.told(where)) == ["0", "1", "2", "3"]
    assert world.choose(where, "3").status == 200


def test_a_layer_with_b_frames_is_refused_by_name(world):
    where, heard = world.play()
    reordered = bytes(AvcConfig.of([main_sps(reorder=2)], [b"\x68\xce\x3c\x80"]))
    world.choose(where, "1")
    world.show(KEY, INTER)
    assert seen(heard)[-1] == "1 at 80"
    world.live.write(9, world.at, header(1, reordered), world.now)
    assert world.told(where)[1]["chosen"] == "0"  # it goes back by itself
    refused = world.choose(where, "1")
    assert refused.status == 422 and b"B-frames" in refused.body and b"-bf 0" in refused.body
    assert names(world.told(where)) == ["0", "2"]
    world.show(KEY, INTER)
    assert seen(heard)[-2:] == ["0 at 120", "0 at 160"]


def test_a_layer_plays_where_the_default_track_cannot(world):
    """The default track gets B-frames: they are of those that have it."""
    (one, heard), (other, _) = world.play(), world.play()
    world.choose(one, "1")
    world.show(KEY)
    world.live.write(9, world.at, header_of(main_sps(reorder=2)), world.now)
    assert world.ask("GET", other).status == 404 and world.ask("GET", one).status == 200
    world.show(KEY)
    assert seen(heard)[-1] == "1 at 80" and names(world.told(one))[1:] == ["1", "2"]
    assert world.ask("DELETE", one).status == 422  # it stays where it is
    world.show(INTER)
    assert seen(heard)[-1] == "1 at 120"


def test_another_publication_begins_with_its_default_track(world):
    where, heard = world.play()
    world.choose(where, "1")
    world.show(KEY)
    world.at = 0
    world.begin()
    assert world.told(where)[1]["chosen"] == "0" and len(world.sessions) == 1
    del heard[:]
    world.show(KEY, INTER)
    assert seen(heard) == ["0 at 40", "0 at 80"]
    world.choose(where, "2")
    world.show(KEY)
    assert seen(heard)[-1] == "2 at 120"
    world.live.end(world.now)
    assert len(world.sessions) == 0 and world.sessions._layers == {}
    assert world.registry.budget.used == 0


def test_a_browser_that_leaves_its_layer_leaves_nothing_behind(world):
    where, _ = world.play()
    world.choose(where, "1")
    world.show(KEY)
    world.choose(where, "2")
    world.ask("DELETE", where[:-6])
    assert len(world.sessions) == 0 and world.live.players == 0
    found = world.sessions.layers(world.live, world.now).all()
    assert [each._viewers for each in found] == [{}, {}, {}]


def test_tracks_are_bounded(world):
    where, _ = world.play()
    for track in range(256):
        world.live.write(9, 0, header(track), 0.0)
    assert len(names(world.told(where))) == layers.MAX_LAYERS
    world.live.write(9, 0, b"\x96\x01avc", 0.0)  # cut short


def test_a_stream_of_one_track_has_that_layer(world):
    live = World.live(world, "other")
    got = world.ask("POST", "/live/other/whep", offer("audio", "h264", flow="recvonly"))
    where = f"{got.headers['Location']}/layer"
    live.write(9, 40, tag_of(KEY, [b"\x65frame"]), 0.0)
    assert names(world.told(where)) == ["0"] and world.choose(where, "0").status == 200
    assert world.choose(where, "1").body == b"No such layer: the stream has 0.\n"


def test_frames_of_a_layer_are_kept_only_if_the_stream_keeps_its_own(world):
    world.registry.keeps_groups = False
    world.show(KEY, INTER)
    world.play()
    world.watch("layer=1")
    _, heard = connected(world)
    world.show(INTER, KEY, INTER)
    assert seen(heard) == ["1 at 160", "1 at 200"]


class Making(Layered):
    """One that may make video."""

    def __init__(self):
        self.transcoders = Pretended()
        super().__init__()


def test_a_viewer_goes_from_made_video_to_a_layer_and_back():
    world = Making()
    world.live.write(9, 0, header_of(main_sps(reorder=2)), 0.0)
    where, heard = world.play()
    world.choose(where, "1")
    world.show(KEY, INTER)
    assert seen(heard)[-2:] == ["1 at 40", "1 at 80"]
    world.transcoders.work(world.now)
    world.ask("DELETE", where)
    assert world.told(where)[1]["chosen"] == "0"
    before = len(heard)
    for kind in (KEY, INTER):
        world.show(kind)
        world.transcoders.work(world.now)
    made = units(heard[before:])
    assert made and not any(b"1 at" in each for each in made)
