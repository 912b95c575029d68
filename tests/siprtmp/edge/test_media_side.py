"""The side of a gateway that has the media ports of its calls."""

from types import SimpleNamespace

import gevent
import pytest
from gevent.event import AsyncResult
from support.gateway.gateway_world import Log

import siprtmp.edge.media_side as side
from p2psip.errors import LocalError
from p2psip.net.local_network import LocalNetwork
from siprtmp.edge.media_side import MediaSide
from siprtmp.media.session import MediaSession
from siprtmp.media.sink import MediaSink
from siprtmp.media.translate.conversion import Transcoded
from siprtmp.operation.arguments import ConfigError
from siprtmp.settings.table import MediaSettings
from siprtmp.settings.types import VideoLimits


def media_side(*, log=None, **options):
    """One on loopback, with these settings."""
    network = LocalNetwork("127.0.0.1")
    settings = MediaSettings(**options)
    return MediaSide(settings, 60.0, "127.0.0.1", network, log)


def session(media, *names, share=None):
    """A session that has offered these codecs, and so has ports for their lines."""
    owner = SimpleNamespace(on_quiet=None, on_silence=None, on_key_frame_needed=None, on_digit=None)
    owner.on_publish_changed = lambda publish: None
    made = MediaSession(owner, log := SimpleNamespace(), MediaSink())
    log.unsuitable = lambda what, **values: None
    made.terms.names = ("pcmu", *names)
    media.open(made, lambda now: None, (), 0.0, share)
    made.offer(0.0)
    return made


def test_pictures_have_packets_of_the_size_that_was_set():
    """Own design: --video-packet-size."""
    made = session(media_side(video_packet_size=700), "h264")
    assert made._video._settings.max_octets == 700
    made.close(0.0)


def test_each_call_has_a_name_of_its_own():
    """Covers RFC 3550 §6.5.1 [cname-is-unique]: its streams share it."""
    media = media_side()
    made = [session(media, "h264") for _ in range(3)]
    try:
        names = {each._settings.cname for each in made}
        assert len(names) == 3 and all(name.endswith("@127.0.0.1") for name in names)
        assert all(each._video._settings is each._audio._settings for each in made)
    finally:
        for each in made:
            each.close(0.0)


def test_the_ports_of_a_call_are_its_hosts_until_they_are_closed():
    """Own design: of audio and of video; half of all are for calls without an ACK."""
    media = media_side(rtp_ports=(42000, 42031), log=(log := Log()))
    waiting = [media.shares.of("192.0.2.7") for _ in range(4)]
    held = [session(media, share=share) for share in waiting[:2]]
    held.append(session(media, "h264", share=waiting[2]))
    assert media.sessions == 3
    with pytest.raises(LocalError):
        session(media, share=waiting[3])
    assert log.lines == [("no-media-port", {"reason": "192.0.2.7 holds too many ports"})]
    waiting[1].confirm()
    other = session(media, share=waiting[3])
    ours = session(media)
    for each in (*held, other, ours):
        each.close(0.0)
    assert not media.shares.all.used and not media.shares.waiting.used and not media.sessions


def test_pictures_are_made_in_threads_and_come_back_to_the_loop():
    """Own design: --transcode-video."""
    assert side.video_transcoding(None) is None
    made = side.video_transcoding(VideoLimits(640, 360, 15, 500, True))
    limits = made.limits
    assert (limits.width, limits.height, limits.rate) == (640, 360, 15)
    assert limits.bits == 500_000 and limits.baseline and not limits.level
    done, came = AsyncResult(), []
    made.run(
        lambda: came.append(gevent.getcurrent()) or Transcoded([]), lambda *given: done.set(given)
    )
    given, now = done.get(timeout=20)
    assert given == Transcoded([]) and now > 0 and came != [gevent.getcurrent()]


def test_a_pyav_without_encoders_is_refused(monkeypatch):
    monkeypatch.setattr(side.video_encoder, "missing", lambda: ["libx264"])
    with pytest.raises(ConfigError, match="no libx264"):
        media_side(transcode_video=VideoLimits())
