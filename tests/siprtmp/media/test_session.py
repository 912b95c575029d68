"""A session from an SDP offer to media and back, by itself: no call, no SIP, no sockets."""

import subprocess
import sys
from types import SimpleNamespace

import pytest
from support.gateway.loopback_transport import HOST, Loopback, LoopbackTransports
from support.gateway.video_rig import HEADER, idr, inter, tag
from support.sip.elements import random_source

from p2psip.errors import LocalError, RemoteError
from p2psip.sdp.session import SessionDescription
from siprtmp.media.session import MediaSession, Taps
from siprtmp.media.sink import AUDIO, DATA, VIDEO, MediaSink
from siprtmp.media.stream import Signalled, StreamSettings

ULAW = b"\x82" + b"u" * 160
BY = Signalled((HOST,))


class End(MediaSink):
    """One peer: a session with its owner, its log and its sink."""

    def __init__(self, way, port, *names, most=3, media_timeout=60.0):
        super().__init__()
        self.way, self.heard, self.lines, self.told = way, [], [], []
        self.session = MediaSession(self, self, self)
        self.session.terms.names = names
        self.transports = LoopbackTransports(way, port, most)
        self.session.open(
            self.transports,
            StreamSettings(random_source(port), f"c{port}", media_timeout),
            way.now,
        )

    # SessionOwner and MediaLog
    def on_publish_changed(self, publish):
        self.publish = publish

    def on_quiet(self, now):
        self.told.append("quiet")

    def on_silence(self, now):
        self.told.append("silence")
        self.session.close(now)

    def on_key_frame_needed(self, now):
        self.told.append("key frame needed")

    def event(self, what, **values):
        self.lines.append(what)

    warning = unsuitable = event

    # MediaSink
    def on_tag(self, type_id, timestamp, payload, now):
        self.heard.append((type_id, timestamp, payload))

    def on_digit(self, digit, now):
        self.told.append(digit)

    def on_key_frame_wanted(self):
        self.told.append("key frame wanted")

    def on_drained(self, now):
        self.told.append("drained")

    def say(self, *messages):
        for type_id, timestamp, payload in messages:
            self.way.wait(timestamp / 1000)
            self.publish(type_id, timestamp, payload, self.way.now)
        self.way.deliver()

    def of(self, type_id):
        return [payload for kind, _, payload in self.heard if kind == type_id]


def agreed(*names, **options):
    """Two ends that have agreed on these codecs."""
    way = Loopback()
    caller, callee = End(way, 4000, *names, **options), End(way, 5000, *names)
    offer = caller.session.offer(way.now)
    answer = callee.session.answer(offer, way.now, BY)
    caller.session.settle(answer, way.now, BY)
    callee.session.settle(b"", way.now, BY)
    return way, caller, callee


def sounds(count, at=0):
    return [(AUDIO, at + 20 * number, ULAW) for number in range(count)]


def test_the_owner_publishes_to_the_only_stream_without_a_call_between():
    """Own design: the session hands out the bound method, and another one when that changes."""
    way, caller, _ = agreed("pcmu")
    assert caller.publish == caller.session._audio.publish
    caller.session.hold(on=True)
    assert caller.publish == caller.session._keep
    caller.session.hold(on=False)
    assert caller.publish == caller.session._audio.publish
    caller.session.record(SimpleNamespace())
    assert caller.publish == caller.session._publish_sorted
    caller.session.close(way.now)
    assert caller.publish == caller.session._keep


def test_audio_crosses_both_ways_after_an_offer_and_an_answer():
    """Covers RFC 3264 §8.3.1: and at the end each side says goodbye, and lets its ends go."""
    way, caller, callee = agreed("pcmu", "dtmf")
    caller.say(*sounds(10))
    callee.say(*sounds(10, 300))
    way.wait(1.0)
    assert callee.of(AUDIO) == caller.of(AUDIO) == [ULAW] * 10
    assert caller.session.statistics.codec == "pcmu" and caller.session.statistics.sent == 10
    assert caller.session.format.audio_format == (8, 8000) and not caller.session.format.video
    caller.session.close(way.now)
    callee.session.close(way.now)
    way.deliver()
    assert not way.ends and not way.timers and caller.transports.open_ends == 0
    caller.say(*sounds(1, 2000))
    assert len(callee.of(AUDIO)) == 10


def test_the_usual_packet_has_no_call_more_than_its_stream_needs():
    """Own design: a session of audio alone hands out the method of its stream."""
    _, caller, _ = agreed("pcmu")
    assert caller.session.publish == caller.session._audio.publish


def test_video_crosses_beside_the_audio_and_goes_with_its_line():
    """Covers RFC 3264 §8.2: a later answer without it closes its transport, and audio goes on."""
    way, caller, callee = agreed("pcmu", "h264")
    assert callee.transports.open_ends == 2
    pictures = [HEADER, tag(idr(), key=True), tag(inter(1)), tag(inter(2))]
    caller.say(*((VIDEO, 40 * at, body) for at, body in enumerate(pictures)), *sounds(5, 160))
    way.wait(1.0)
    assert len(callee.of(VIDEO)) >= 3 and callee.of(AUDIO)
    assert callee.session.format.video == "h264" and callee.session.format.size == (320, 240)
    callee.session.request_key_frame(way.now)
    way.wait(2.0)
    assert "key frame wanted" in caller.told
    callee.session.terms.names = ("pcmu",)
    offer = caller.session.offer_again(None, BY)
    lines = SessionDescription.parse(offer)
    refused = bytes(lines).replace(b"m=video 4002", b"m=video 0")
    answer = callee.session.answer(refused, way.now, BY, again=True)
    caller.session.conclude(answer, way.now, BY, ours=offer)
    callee.session.confirm(way.now, BY)
    assert caller.transports.open_ends == callee.transports.open_ends == 1
    caller.say((VIDEO, 2000, tag(idr(), key=True)), *sounds(3, 2020))
    way.wait(3.0)
    assert len(callee.of(AUDIO)) == 8


def test_a_tunnel_begins_with_what_was_published_before():
    """Covers RFC 3264 §6.1: then all messages pass as they are, metadata too."""
    way = Loopback()
    caller, callee = End(way, 4000, "pcmu", "flv"), End(way, 5000, "pcmu", "flv")
    aac = b"\xaf\x00\x12\x10"
    for type_id, payload in ((AUDIO, aac), (VIDEO, HEADER), (VIDEO, tag(idr(), key=True))):
        caller.publish(type_id, 0, payload, way.now)
    answer = callee.session.answer(caller.session.offer(way.now), way.now, BY)
    caller.session.settle(answer, way.now, BY)
    callee.session.settle(b"", way.now, BY)
    caller.say((DATA, 20, b"\x02\x00\x01x"), (AUDIO, 40, b"\xaf\x01sound"))
    way.wait(1.0)
    assert {HEADER, tag(idr(), key=True)} <= set(callee.of(VIDEO))
    assert callee.of(AUDIO)[-1] == b"\xaf\x01sound" and callee.of(DATA) == [b"\x02\x00\x01x"]
    assert caller.session.terms.plan.x_flv is not None and caller.session.format is None


def test_a_session_on_hold_keeps_what_is_published_for_later():
    """Covers RFC 3264 §8.4."""
    way, caller, callee = agreed("pcmu", "h264")
    caller.session.hold(True)
    caller.say(*sounds(2))
    assert not callee.heard and not caller.session.statistics.sent  # at once, before any answer
    held = caller.session.offer_again(None, BY)
    answer = callee.session.answer(held, way.now, BY, again=True)
    caller.session.conclude(answer, way.now, BY, ours=held)
    assert callee.session.is_held and not caller.session.is_held
    caller.say(*sounds(3, 40), (VIDEO, 100, HEADER), (VIDEO, 120, tag(idr(), key=True)))
    way.wait(0.5)
    assert not callee.heard and caller.published.gop.has_frames
    caller.session.hold(False)
    again = caller.session.offer_again(None, BY)
    caller.session.conclude(
        callee.session.answer(again, way.now, BY, again=True), way.now, BY, ours=again
    )
    caller.say(*sounds(3, 600), (VIDEO, 660, tag(inter(1))))
    way.wait(1.0)
    assert callee.of(AUDIO) and HEADER in callee.of(VIDEO)


def test_keys_go_as_events_where_they_were_agreed_on():
    """Covers RFC 4733 §2.5.1.2: and are refused where they were not."""
    way, caller, callee = agreed("pcmu", "dtmf")
    caller.say(*sounds(5))
    assert caller.session.press("1#", way.now)
    way.wait(2.0)
    assert callee.told == ["1", "#"]
    _, silent, _ = agreed("pcmu")
    assert not silent.session.press("1", 0.0)


def test_a_silent_peer_is_asked_and_then_given_up():
    """Own design: by the owner, which alone knows how to ask."""
    way, caller, callee = agreed("pcmu", media_timeout=10.0)
    callee.session.close(way.now)
    way.wait(6.0)
    assert caller.told == ["quiet"]
    caller.session.alive(way.now)
    way.wait(30.0)
    assert caller.told == ["quiet", "quiet", "silence"] and not caller.session.is_open


def test_another_sink_is_heard_and_hears_from_then_on():
    """Own design: for a transfer, and for a stream behind an announcement."""
    way, caller, callee = agreed("pcmu")
    caller.say(*sounds(2))
    other = MediaSink()
    got = []
    other.on_tag = lambda *message: got.append(message)
    callee.session.give_to(other)
    caller.say(*sounds(2, 100))
    way.wait(1.0)
    assert len(callee.of(AUDIO)) == 2 and len(got) == 2


def test_what_is_published_is_recorded_and_what_is_sent_is_tapped():
    """Own design: a recording has each message as it came, a mix what leaves for the peer."""
    way, caller, _ = agreed("pcmu")
    kept, sent = End(way, 7000, "pcmu"), []
    kept.write = lambda *message: kept.heard.append(message[:3])
    kept.end = lambda now: kept.told.append("end")
    caller.session.record(kept)
    caller.session.tap(Taps(lambda codec, payload: sent.append(payload), lambda *tag: None), 0.0)
    messages = sounds(3)
    caller.say(*messages)
    way.wait(1.0)
    assert kept.heard == messages and sent == [b"u" * 160] * 3
    caller.session.publish_ended(way.now)
    assert kept.told == ["end"] and caller.told == ["drained"]
    caller.session.record(None)
    assert caller.session.publish == caller.session._audio.publish


def test_without_a_transport_for_video_there_is_audio_alone():
    """Covers RFC 3264 §5.1: and without one for audio there is no session."""
    way = Loopback()
    poor = End(way, 4000, "pcmu", "h264", most=1)
    offer = SessionDescription.parse(poor.session.offer(way.now))
    assert [line.kind for line in offer.media] == ["audio"]
    assert poor.lines == ["video-without-port"]
    with pytest.raises(LocalError):
        End(way, 6000, "pcmu", most=0)


def test_an_answer_without_a_codec_in_common_changes_nothing():
    """Covers RFC 3264 §6."""
    way = Loopback()
    caller, callee = End(way, 4000, "pcmu"), End(way, 5000, "pcma")
    with pytest.raises(RemoteError) as caught:
        callee.session.answer(caller.session.offer(way.now), way.now, BY)
    assert caught.value.status == 488 and callee.session.terms.plan is None
    with pytest.raises(RemoteError):
        callee.session.settle(b"", way.now, BY)


def test_a_session_knows_neither_sip_calls_nor_rtmp_connections():
    """Own design: what a browser's session needs as well is all that is loaded."""
    code = (
        "import sys, siprtmp.media.session\n"
        "print([each for each in sys.modules if each.startswith("
        "('siprtmp.calls', 'siprtmp.edge', 'p2psip.ua', 'p2psip.stack', 'p2psip.transaction', "
        "'rtmplite.rtmp', 'rtmplite.net', 'gevent'))])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"


def test_what_is_published_while_it_rings_is_the_beginning_of_the_video():
    """Covers RFC 3264 §5.1: a picture from before it rang is not shown beside later ones."""
    way = Loopback()
    caller, callee = End(way, 4000, "pcmu", "h264"), End(way, 5000, "pcmu", "h264")
    caller.publish(VIDEO, 0, HEADER, way.now)
    caller.publish(VIDEO, 0, tag(idr(1), key=True), way.now)
    offer = caller.session.offer(way.now)
    caller.publish(VIDEO, 40, tag(idr(2), key=True), way.now)
    answer = callee.session.answer(offer, way.now, BY)
    caller.session.settle(answer, way.now, BY)
    callee.session.settle(b"", way.now, BY)
    caller.say((VIDEO, 80, tag(inter(3))), (VIDEO, 120, tag(inter(4))))
    way.wait(1.0)
    assert callee.of(VIDEO)[:3] == [HEADER, tag(idr(2), key=True), tag(inter(3))]
