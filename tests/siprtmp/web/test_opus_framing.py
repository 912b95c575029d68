"""Audio that is made into Opus once for all browsers that play a stream."""

import gc
from itertools import pairwise
from types import SimpleNamespace

import pytest

pytest.importorskip("av")
pytest.importorskip("numpy")

from support.gateway.audio_world import HZ, snr, tags
from support.gateway.whip_world import World, offer

from siprtmp.media.transcode.audio_decoder import AudioDecoder
from siprtmp.media.transcode.to_rtp import TranscodedToRtp
from siprtmp.media.translate.conversion import AudioHeader
from siprtmp.media.translate.opus_passing import opus_tag
from siprtmp.web.opus_framing import OpusFraming, packed, unpacked

HEADER = 12  # octets of RTP


class Browsers(World):
    """A world whose browsers connect at once, and keep the RTP that they get."""

    transcoding = True

    def view(self, sdp=None):
        return super().view("obs", sdp or offer("audio", flow="recvonly"))

    def play(self, live, messages):
        for at, body in messages:
            self.now = (at + 1000 & 0xFFFFFFFF) / 1000  # priming comes before 0
            live.write(8, at, body, self.now)
            for peer in self.sessions._by_peer:
                peer.session.tick(self.now)


def transcoders():
    gc.collect()
    return sum(isinstance(each, TranscodedToRtp) for each in gc.get_objects())


def samples(packets):
    """What a browser hears of its packets, at 8 kHz."""
    decoder, out = AudioDecoder(8000), []
    decoder.decode(tags("enhanced opus")[0][1])
    for packet in packets:
        out += decoder.decode(opus_tag(packet[HEADER:]))
    return out


def test_viewers_share_one_transcoder_until_the_last_has_left():
    world = Browsers()
    header, *frames = tags("aac")
    live = world.registry.open("live", "obs")
    world.play(live, [header])
    before = transcoders()
    (first, heard), (second, heard_too) = world.view(), world.view()
    world.play(live, frames)
    assert transcoders() - before == 1
    payloads = [packet[HEADER:] for packet in heard]
    assert len(payloads) > 40 and [packet[HEADER:] for packet in heard_too] == payloads
    for at in (slice(2, 4), slice(4, 8), slice(8, 12)):  # each has its own numbers and source
        assert heard[0][at] != heard_too[0][at]
    decibels, hz = snr(samples(heard))
    assert decibels > 20 and abs(hz - HZ) <= 1
    made = [values for event, values in world.events if event == "transcoding"]
    assert made == [{"app": "live", "name": "obs", "codec": "aac", "to": "opus"}]
    world.ask("DELETE", first)
    assert transcoders() - before == 1
    world.ask("DELETE", second)
    assert transcoders() == before


def test_a_browser_that_sets_a_limit_has_opus_made_for_it_alone():
    world = Browsers()
    header, *frames = tags("aac")
    live = world.registry.open("live", "obs")
    world.play(live, [header])
    before = transcoders()
    sdp = offer("audio", flow="recvonly").replace(
        b"opus/48000/2\n", b"opus/48000/2\na=fmtp:111 maxaveragebitrate=16000\n"
    )
    (_, heard), (_, limited) = world.view(), world.view(sdp)
    world.play(live, frames)
    assert transcoders() - before == 2
    made = [values["codec"] for event, values in world.events if event == "transcoding"]
    assert sorted(made) == ["aac", "aac"]  # of the source, not of what was made for others
    assert sum(map(len, limited)) < 0.7 * sum(map(len, heard))


def test_opus_passes_and_makes_no_transcoder():
    world = Browsers()
    live = world.registry.open("live", "obs")
    messages = tags("enhanced opus")
    world.play(live, messages[:1])
    before = transcoders()
    _, heard = world.view()
    world.play(live, messages[1:])
    assert transcoders() == before
    assert [opus_tag(packet[HEADER:]) for packet in heard] == [
        body for _, body in messages[1 : len(heard) + 1]
    ]
    assert len(heard) > 40


def framing():
    events = []
    log = SimpleNamespace(
        event=lambda what, **values: events.append((what, values)),
        unsuitable=lambda what, **values: events.append((what, values)),
    )
    return OpusFraming(AudioHeader(), log), events


def test_times_are_those_of_the_publisher():
    """Also over the end of RTMP's clock, and with what is made from a later moment on."""
    for start in (0, 5000, (1 << 32) - 500):
        made, times = framing()[0], []
        for at, body in tags("aac"):
            data = made(8, at + start & 0xFFFFFFFF, body)
            times += [at for _, at, _ in unpacked(data)]
        assert len(times) > 40
        assert {b - a & 0xFFFFFFFF for a, b in pairwise(times)} == {20}
        assert (times[0] - start + 100 & 0xFFFFFFFF) < 200


def test_what_cannot_be_decoded_is_said_once():
    made, events = framing()
    for at in range(3):
        assert made(8, at, b"\xf0device sound") == b""
    assert [(what, values["codec"]) for what, values in events] == [
        ("sound-unsuitable", "device_specific")
    ]


def test_g711_of_another_rate_is_made_by_that_rate():
    """Own design: see `RealRate`; libav's muxer writes 16,000 samples a second as 8,000."""
    made, events = framing()
    total = 0
    for number in range(400):  # twice as much audio as time
        total += len(list(unpacked(made(8, number * 10, b"\x82" + b"\xff" * 160))))
    assert made._transcoder._decoder._g711_rate == 16000
    assert events[0][1]["codec"] == "g711_mu_law" and total > 150


def test_other_messages_are_as_they_were():
    made, _ = framing()
    for message in ((9, 1 << 32, b"video"), (18, 3, b""), (8, 4, b"")):
        assert made(*message) == packed(*message)
    assert list(unpacked(packed(9, 5, b"a") + packed(8, 6, b""))) == [(9, 5, b"a"), (8, 6, b"")]


def test_nothing_is_made_where_nothing_may_be():
    """Without the extra, the session of each viewer says what it cannot hear."""
    world = Browsers()
    world.transcoding = False
    header, *frames = tags("aac")
    live = world.registry.open("live", "obs")
    world.play(live, [header])
    before = transcoders()
    _, heard = world.view()
    world.play(live, frames)
    assert transcoders() == before and not heard
    said = [values for event, values in world.events if event == "sound-unsuitable"]
    assert [(each["codec"], each["agreed"]) for each in said] == [("aac", "opus")]
