"""Both sides of a call as one stream: by one clock, to the end of the call, and for few."""

import math
import struct
import sys
import weakref
from array import array

import numpy as np
import pytest
from support.gateway.gateway_world import AUDIO, BOB, PCMU, Desk, GatewayWorld, sdp
from support.gateway.video_rig import HEADER, PPS, SPS, VideoRig, idr, inter
from support.peers.tones import levels

from p2psip.errors import LocalError
from p2psip.rtp.payload import g711
from rtmplite.amf import amf0
from siprtmp.calls.codec_names import EXTRA
from siprtmp.calls.mixed import mixed_call
from siprtmp.edge.gateway import Gateway
from siprtmp.media.transcode import audio_decoder
from siprtmp.media.transcode.audio_decoder import AudioDecoder
from siprtmp.media.translate.audio_formats import OPUS
from siprtmp.operation.arguments import ConfigError
from siprtmp.settings.load import load
from siprtmp.settings.table import Settings

pytest.importorskip("av")

VIDEO, DATA = 9, 18
RATE = 16_000
SAID, HEARD = 500, 1300  # Hz: to the phone, and from it
LOUD, FAINT = 3000, 25.0  # of 32768, and dB below the loudest tone
H264 = b"m=video 6000 RTP/AVP 99\r\na=rtpmap:99 H264/90000\r\na=fmtp:99 packetization-mode=1\r\n"


def wave(hz, number, rate=8000):
    """A block of 20 ms of a tone."""
    block = rate // 50
    turns = (hz * n / rate for n in range(block * number, block * (number + 1)))
    return array("h", (int(6000 * math.sin(math.tau * each)) for each in turns))


def ulaw(number):
    """A packet of the phone, of G.711."""
    header = struct.pack("!BBHII", 0x80, 0, number, 160 * number, 7)
    return header + g711.encode_ulaw(wave(HEARD, number))


def l16(number):
    """One of linear samples, which FLV does not have."""
    samples = wave(HEARD, number, 16_000)
    samples.byteswap()
    return struct.pack("!BBHII", 0x80, 112, number, 320 * number, 7) + bytes(samples)


def said(number):
    """A tag of the publisher."""
    return b"\x82" + g711.encode_ulaw(wave(SAID, number))


class Film:
    """The messages of a mix, as a recorder takes them; `ends` counts its publications."""

    def __init__(self, world, name):
        self._name, self._header = name, b""
        self.messages, self.ends = [], 0
        world.registry.on_begin.append(self._begun)

    def _begun(self, live, now):
        if (live.app, live.name) == (mixed_call.APP, self._name):
            live.tap(self)

    def write(self, *message):
        self.messages.append(message)

    def end(self, now):
        self.ends += 1

    def of(self, type_id):
        return [(at, payload) for kind, at, payload, _ in self.messages if kind == type_id]

    def clear(self):
        self.messages.clear()

    def tones(self):
        """The tones that a player hears from now on: those that are nearly the loudest."""
        ears = AudioDecoder(RATE)
        ears.decode(self._header)
        samples = array("h")
        for _, tag in self.of(AUDIO):
            samples += ears.decode(tag)
        assert max(samples) > LOUD
        found = levels(np.array(samples) / 32768, RATE, (SAID, HEARD))
        return {hz for hz in found if found[hz] > max(found.values()) - FAINT}

    def keep_header(self):
        self._header = next(tag for _, tag in self.of(AUDIO) if tag[1] == 0)


class Show:
    """The name "show" is published, and a phone has called it."""

    def __init__(self, world, offer=None, packet=ulaw):
        self.world, self.film, self.number, self.packet = world, Film(world, "show"), 0, packet
        self.desk, self.tool = Desk(world.link), world.tool()
        self.stream = self.tool.publish("show")
        self.call = self.desk.ring("show", world.now, offer)
        world.wait(0.1)
        if self.film.messages:
            self.film.keep_header()

    def talk(self, packets, says=True, hears=True):
        """Both sides say their tone, or one of them, for packets of 20 ms."""
        world = self.world
        for _ in range(packets):
            number, self.number = self.number, self.number + 1
            if says:
                self.tool.write(AUDIO, 20 * number, self.stream, said(number))
            if hears:
                world.gateway.audio.on_rtp(self.packet(number), world.now)
            world.wait(0.02)


@pytest.fixture
def world():
    return GatewayWorld(mix_calls=True)


@pytest.fixture
def show(world):
    return Show(world)


def test_both_sides_are_one_track_of_aac(world, show):
    """Covers FLV 10.1 §E.4.2.1: the header once, then frames, by a time that never goes back."""
    show.talk(60)
    assert show.film.tones() == {SAID, HEARD}
    sound = show.film.of(AUDIO)
    assert {tag[0] for _, tag in sound} == {0xAF} and [tag[1] for _, tag in sound].count(0) == 1
    times = [at for at, _ in sound]
    assert times == sorted(times) and 1150 < times[-1] < 1350
    [(_, metadata)] = show.film.of(DATA)
    described = amf0.decode(metadata)[1]
    assert (described["audiocodecid"], described["audiosamplerate"]) == (10.0, 48000.0)
    assert not described["hasVideo"]


def test_a_call_in_wideband_is_mixed_in_wideband():
    """Covers RFC 3551 §4.5.11: either side is decoded from its own codec."""
    world = GatewayWorld(mix_calls=True, transcode=True)
    show = Show(world, sdp("112", maps=("112 L16/16000",)), l16)
    show.talk(50)
    [mix] = world.gateway.mixes._mixes.values()
    assert show.film.tones() == {SAID, HEARD} and mix._rate == 16_000


def test_who_says_nothing_is_silence(world, show):
    """Own design: one clock goes on for both."""
    show.talk(30, says=False)
    show.film.clear()
    show.talk(30, says=False)
    assert show.film.tones() == {HEARD}
    show.talk(10, hears=False)
    show.film.clear()
    show.talk(30, hears=False)
    assert show.film.tones() == {SAID}


def test_a_side_on_hold_is_silence(world, show):
    """Covers RFC 3264 §8.4: what is not sent to the phone is not heard in the mix either."""
    show.talk(10)
    show.call.reinvite(sdp(PCMU, more=("sendonly",)), world.now)
    world.wait()
    show.talk(10)
    show.film.clear()
    show.talk(40)
    assert show.film.tones() == {HEARD}
    world.wait(1.0)  # the phone is silent as well
    times = [at for at, _ in show.film.of(AUDIO)]
    assert times[-1] - times[0] > 1700


def test_a_file_that_is_published_at_once_is_mixed_at_its_pace(world, show):
    """Own design: what is sent to the phone is mixed when it is sent."""
    for number in range(24):
        show.tool.write(AUDIO, 20 * number, show.stream, said(number))
    world.wait(0.2)
    show.film.clear()
    world.wait(0.25)
    assert show.film.tones() == {SAID}


def test_it_ends_with_the_call_and_comes_with_the_next(world, show):
    """Covers RTMP 1.0 §7.2.2.3."""
    show.talk(5)
    show.call.bye(world.now)
    world.wait()
    assert show.film.ends == 1 and not world.registry.get("mixed", "show")
    show.desk.ring("show", world.now)
    world.wait(0.1)
    assert world.registry.get("mixed", "show").publishing
    assert [what for what, _ in world.gateway.log.lines].count("mix-start") == 2
    assert world.is_clean()


def test_a_mix_that_has_ended_keeps_no_codec(world, show):
    """Own design: whatever still refers to it, such as the phone's stream of which it is a sink."""
    show.talk(10)
    [mix] = world.gateway.mixes._mixes.values()
    codecs = [weakref.ref(each) for each in (mix._aac, mix._from_phone, mix._to_phone)]
    assert all(each() is not None for each in codecs)
    show.call.bye(world.now)
    world.wait()
    assert [each() for each in codecs] == [None] * 3


def test_a_client_with_an_identity_is_mixed_under_the_name_of_its_stream(world):
    """Covers RFC 3261 §13.2.2.4."""
    Desk(world.link)
    alice = world.rich("alice@home")
    alice.call("invite", BOB, "pcmu")
    world.wait()
    assert world.registry.get("mixed", alice.peer.server.id).publishing and world.is_clean()


def test_without_the_option_no_call_is_mixed():
    """Own design: and no packet of a call takes a way around."""
    world = GatewayWorld()
    film, desk, tool = Film(world, "show"), Desk(world.link), world.tool()
    tool.publish("show")
    desk.ring("show", world.now)
    world.wait(0.1)
    assert world.gateway.audio._send_rtp == world.gateway.media.send_rtp and not film.messages


def test_the_phones_pictures_come_along_in_time(world):
    """Covers FLV 10.1 §E.4.3.1: with the header first, from a key frame on."""
    show = Show(world, sdp(PCMU) + H264)
    show.talk(20)
    [leg], rig = world.gateway.videos, VideoRig()
    assert not show.film.of(VIDEO)
    for at, units in ((0, (SPS, PPS, idr())), (3600, (inter(),))):
        for datagram in rig.datagrams(at, *units):
            leg.on_rtp(datagram, world.now)
        show.talk(2)
    pictures = show.film.of(VIDEO)
    assert pictures[0][1] == HEADER and [tag[0] >> 4 for _, tag in pictures] == [1, 1, 2]
    [mix] = world.gateway.mixes._mixes.values()
    now = mix._mixer.clock(world.now)
    # two packets of sound wait to be heard, and so does what is seen with them
    assert pictures[1][0] == pytest.approx(now - 80 + 40, abs=25)
    assert pictures[2][0] - pictures[1][0] == 40
    described = [amf0.decode(payload)[1] for _, payload in show.film.of(DATA)]
    assert described[0]["hasVideo"] and described[-1]["width"] == 320.0
    show.call.bye(world.now)
    world.wait()
    assert world.is_clean()


def test_the_operator_mixes_one_call_and_ends_that(world):
    """Own design: from the middle of a call on, with what a decoder needs."""
    world = GatewayWorld()
    show = Show(world)
    show.talk(5)
    [call], mixes = world.gateway.context.calls, world.gateway.mixes
    assert mixes.start(call, world.now) == mixes.start(call, world.now) == "mixed/show"
    show.talk(5)
    show.film.keep_header()
    show.talk(40)
    assert show.film.tones() == {SAID, HEARD}
    assert mixes.stop(call, world.now) == "mixed/show" and mixes.stop(call, world.now) is None
    show.talk(5)
    assert show.film.ends == 1 and not world.registry.get("mixed", "show")
    mixes.start(call, world.now)
    assert len(mixes) == 1 and world.is_clean()


def test_what_cannot_be_mixed_is_said(world, monkeypatch):
    """Own design: see the log event `mix-refused`."""
    mixes = world.gateway.mixes
    desk, tool = Desk(world.link, answers=b""), world.tool()
    tool.publish(BOB)
    world.wait()
    [call] = world.gateway.context.calls
    with pytest.raises(LocalError, match="not answered"):
        mixes.start(call, world.now)
    world.registry.open("mixed", BOB).begin(world.now)
    desk.calls[0].accept(sdp(PCMU), world.now)
    world.wait()
    reasons = [each["reason"] for what, each in world.gateway.log.lines if what == "mix-refused"]
    assert reasons == [f"mixed/{BOB} is published already"] and not len(mixes)
    monkeypatch.setattr(audio_decoder, "is_available", lambda: False)
    with pytest.raises(LocalError, match=EXTRA):
        mixes.start(call, world.now)
    desk.ring("team", world.now)
    world.wait(0.1)
    assert len(world.gateway.rooms) == 1 and not len(mixes)  # nor is a room


def test_the_option_needs_a_telephone_and_the_extra(monkeypatch):
    """Own design: said at the start, before anything is opened."""
    with pytest.raises(ConfigError, match="--mix-calls needs --sip"):
        load(["--mix-calls", "--sip", "off"])
    monkeypatch.setitem(sys.modules, "av", None)
    said = r"--mix-calls needs the extra transcode: pip install 'siprtmp\[transcode\]'"
    with pytest.raises(ConfigError, match=said):
        Gateway(Settings.of(mix_calls=True))


def test_sound_that_makes_no_sense_hurts_nobody(world, show):
    """Covers FLV 10.1 §E.4.2.1."""
    [mix] = world.gateway.mixes._mixes.values()
    mix.write(AUDIO, 0, b"\xa2\x00", world.now)
    mix.write(AUDIO, 0, b"", world.now)
    mix.write(VIDEO, 0, b"", world.now)
    mix._on_sent(OPUS, b"\xff" * 40)
    show.talk(40)
    assert show.film.tones() == {SAID, HEARD}


def test_playing_is_for_those_who_may_call_and_publishing_for_nobody(world, show):
    """Covers RTMP 1.0 §7.2.2.1 and §7.2.2.6."""
    player, nameless = world.tool(mixed_call.APP), world.tool(mixed_call.APP)
    player.play("show")
    show.talk(5)
    assert any(kind == AUDIO for kind, _, _ in player.media())
    nameless.play("")
    player.publish("show")
    world.gateway.admit(False)
    stranger = world.tool(mixed_call.APP)
    stranger.play("show")
    show.talk(5)
    assert nameless.codes() == ["NetStream.Play.StreamNotFound"]
    assert stranger.codes() == ["NetStream.Play.Failed"] and not stranger.media()
    assert player.codes()[-1] == "NetStream.Publish.BadName"
