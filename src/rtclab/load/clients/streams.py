"""Players and publishers by RTMP, RTMPS, RTMPT and RTMFP: rtmplite's own client.

Own design: messages are counted as they come, and nothing is decoded.
"""

import ssl
import time
from functools import partial

import gevent

from rtclab.load.clients.client import Work, note_failure, own_url
from rtclab.load.figures import film, stamp
from rtclab.load.figures.film import MediaSource
from rtclab.load.figures.tally import AUDIO, VIDEO, Tally
from rtmplite.errors import LocalError, RemoteError
from rtmplite.flv.video import is_key_frame, is_sequence_header
from rtmplite.net.client.client import ClientStream
from rtmplite.net.client.rtmfp_client import connect
from rtmplite.net.clock import now
from rtmplite.rtmp.client import Target
from rtmplite.rtmp.wire.message import MessageType

FRAME = film.SOUND_MS / 1000  # s


def player(url: str, tls: ssl.SSLContext | None, number: int) -> Work:
    """Play the stream of `url`; all clients share it unless the URL has `{}`."""
    return partial(_play, Target.parse(own_url(url, number, each=False)), tls)


def publisher(url: str, tls: ssl.SSLContext | None, made: MediaSource, number: int) -> Work:
    """Publish a stream of its own."""
    return partial(publish, Target.parse(own_url(url, number, each=True)), tls, made)


def frame(tally: Tally, kind: int, timestamp: int, body: bytes) -> None:
    """Tell the tally of a message or tag; headers count as bytes alone."""
    if kind == MessageType.VIDEO and not is_sequence_header(body):
        mark, key = stamp.find(body, time.time_ns()), is_key_frame(body)
        tally.heard(VIDEO, now(), timestamp, len(body), mark, key=key)
    elif kind == MessageType.AUDIO:
        tally.heard(AUDIO, now(), timestamp, len(body), stamp.find(body, time.time_ns()))
    else:
        tally.packets += 1
        tally.bytes += len(body)


def _play(target: Target, tls: ssl.SSLContext | None, tally: Tally) -> None:
    tally.begin(now())
    try:
        with connect(_application(target), tls=tls) as client:
            stream = client.create_stream()
            stream.play(target.stream)
            tally.connect(now())
            stream.follow(lambda each: frame(tally, each.type_id, each.timestamp, each.payload))
            tally.fail(client.reason or "the stream has ended", refused=True)
    except (RemoteError, LocalError, OSError) as error:
        note_failure(tally, error)


def publish(target: Target, tls: ssl.SSLContext | None, made: MediaSource, tally: Tally) -> None:
    """Publish until the server or the greenlet ends it."""
    tally.begin(now())
    try:
        with connect(_application(target), tls=tls) as client:
            stream = client.create_stream()
            stream.publish(target.stream)
            tally.connect(now())
            _send(stream, made, tally)
    except (RemoteError, LocalError, OSError) as error:
        note_failure(tally, error)


def _send(stream: ClientStream, made: MediaSource, tally: Tally) -> None:
    """Send what is due, turn by turn; after a delay, all that has become due meanwhile."""
    items, began, turn = made.start(), now(), 0
    while True:
        for item in items:
            stream.write(item.kind, item.time_ms & 0xFFFFFFFF, item.body)
            is_frame = item.kind == MessageType.VIDEO and not item.is_header
            tally.sent(now(), len(item.body), frame=is_frame, key=item.is_key)
        gevent.sleep(max(0.0, began + turn * FRAME - now()))
        items, turn = made.at(turn, time.time_ns()), turn + 1


def _application(target: Target) -> Target:
    """The target without its stream, which is asked for once connected."""
    if not target.stream:
        raise LocalError(f"{target.tc_url} names no stream behind the application")
    return target
