"""Viewers of streams that are fetched for them, and of streams that are very old."""

import gevent
import pytest
from support.limits import patience
from support.rtmp.flv_world import (
    AVC,
    INTER,
    KEY,
    SOUND,
    all_of,
    status,
    studios,
    web_messages,
    web_socket,
)
from wsproto import events as ws

from rtmplite.amf import amf0
from rtmplite.flv import file
from rtmplite.flv.framing import LAST, WEEK
from rtmplite.net.clock import now
from rtmplite.net.connection_limit import ConnectionLimit
from rtmplite.net.http import flv_http

META = amf0.encode("onMetaData", {"videocodecid": 7.0})
MORE_THAN_SIGNED = LAST + 1000  # ms


@pytest.fixture
def studio():
    with studios() as make:
        yield make


def fetching(room, name="demo"):
    """Let `name` be fetched when somebody wants it; how many players wanted it, in order."""
    seen = []

    def joined(live, moment):
        room.live = live
        seen.append(live.players)

    room.registry.fetchers.append(lambda app, wanted: wanted == name)
    room.registry.on_audience.append(joined)
    return seen


def until(condition):
    with patience(20):
        while not condition():
            gevent.sleep(0.001)


def tags_of(client):
    return [(tag.tag_type, tag.timestamp, tag.data) for tag in file.read_flv(all_of(client))[1]]


def test_a_stream_is_fetched_for_a_viewer(studio):
    """It misses nothing of it: not the header that tells what there is, nor the first key frame."""
    room = studio()
    seen = fetching(room)
    client = room.get()
    until(lambda: seen == [1])
    assert room.http.viewers == 0
    for kind, data in ((18, META), (9, AVC), (9, KEY)):
        room.live.write(kind, 0, data, now())
    until(lambda: room.http.viewers == 1)
    room.live.write(9, 40, INTER, now())
    room.live.end(now())
    head, _, body = all_of(client).partition(b"\r\n\r\n")
    header, tags = file.read_flv(body)
    assert head.startswith(b"HTTP/1.1 200") and header == file.FlvHeader(False, True)
    assert [tag.data for tag in tags] == [META, AVC, KEY, INTER]
    assert seen == [1, 0] and not list(room.registry)


def test_a_stream_is_fetched_for_a_page(studio):
    """By WebSocket, a message a tag."""
    room = studio()
    seen = fetching(room)
    client, connected = web_socket(room)
    until(lambda: seen == [1])
    room.live.write(9, 0, KEY, now())
    until(lambda: room.http.viewers == 1)
    room.live.end(now())
    data = [
        bytes(event.data)
        for event in web_messages(client, connected)
        if isinstance(event, ws.BytesMessage)
    ]
    assert [tag.data for tag in file.read_flv(b"".join(data))[1]] == [KEY]


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_what_cannot_be_fetched_is_not_waited_for_for_ever(studio, monkeypatch, method):
    """Then nobody is there any more for whom to fetch it."""
    monkeypatch.setattr(flv_http, "FETCHING", 0.01)
    connection_limit = ConnectionLimit()
    room = studio(connection_limit=connection_limit)
    seen = fetching(room)
    assert status(room.get("/live/demo.flv", method)) == 404
    assert seen == [1, 0] and not list(room.registry) and len(connection_limit) == 0
    assert status(room.get("/live/other.flv", method)) == 404 and seen == [1, 0]


def test_who_asks_whether_there_is_such_a_stream(studio):
    """HEAD is answered as GET would be."""
    room = studio()
    seen = fetching(room)
    client = room.get("/live/demo.flv", "HEAD")
    until(lambda: seen == [1])
    room.live.write(9, 0, KEY, now())
    assert status(client) == 200 and room.http.viewers == 0


def test_nothing_is_fetched_for_who_may_not_watch(studio):
    """Who is refused makes us do nothing."""
    room = studio(admits=lambda *question: None)
    seen = fetching(room)
    assert status(room.get()) == 404 and seen == []


def test_somebody_is_told_when_a_viewer_has_left(studio):
    """Once for each who was there, and of nobody else."""
    left = []
    room = studio(admits=lambda app, name, query, host: lambda: left.append((name, query)))
    room.begin()
    assert status(room.get("/live/demo.flv?a=1", "HEAD")) == 200
    client, _ = room.watch("/live/demo.flv?a=2")
    room.watch("/live/demo.flv?a=3")
    assert left == []
    client.close()
    until(lambda: left)
    room.live.end(now())
    until(lambda: len(left) == 2)
    assert left == [("demo", "a=2"), ("demo", "a=3")]


@pytest.mark.parametrize("start", [MORE_THAN_SIGNED, 0xFFFFFF00])
def test_a_stream_that_is_old_plays(studio, start):
    """Covers FLV 10.1 §E.4.1: no time is negative, and they go on where 32 bits end."""
    room = studio()
    room.begin()
    room.live.write(9, start, KEY, now())
    client, _ = room.watch()
    for at, data in ((500, KEY), (540, INTER), (0, None)):
        if data:
            room.live.write(9, (start + at) & 0xFFFFFFFF, data, now())
    room.live.write(18, 0, amf0.encode("onCuePoint"), now())
    room.live.end(now())
    _, *tags = tags_of(client)
    times = [at for kind, at, _ in tags if kind == 9]
    assert WEEK <= times[0] <= LAST // 2 and times == [times[0], times[0] + 500, times[0] + 540]
    assert tags[-1][:2] == (18, 0)


def test_bytes_are_made_once_for_who_comes_before_the_first_message(studio, monkeypatch):
    """However old the stream turns out to be, and for those who come later as well."""
    room = studio()
    room.live.begin(now())
    early = [room.watch()[0] for _ in range(3)]
    room.live.write(9, MORE_THAN_SIGNED, KEY, now())
    late, _ = room.watch()
    made, inner = [], file.framed
    monkeypatch.setattr("rtmplite.flv.framing.framed", lambda tag: made.append(tag) or inner(tag))
    room.live.write(9, MORE_THAN_SIGNED + 40, KEY, now())
    assert len(made) == 1
    room.live.end(now())
    watched = [tags_of(client) for client in (*early, late)]
    assert watched[0] == watched[1] == watched[2] and watched[3] == watched[0][1:]
    assert watched[0][0][1] + 40 == watched[0][1][1] < LAST // 2


def test_a_file_ends_where_its_times_end(studio):
    """Who asks again gets another one; nobody else notices."""
    room = studio()
    room.begin()
    client, _ = room.watch()
    room.live.write(9, LAST, KEY, now())
    late, _ = room.watch()
    room.live.write(9, LAST + 1, KEY, now())
    assert [at for _, at, _ in tags_of(client)] == [0, 0, LAST]
    assert room.http.viewers == 1
    room.live.end(now())
    assert [at for _, at, _ in tags_of(late)][1:] == [WEEK + (LAST % WEEK), 2 * WEEK]


def test_a_publisher_may_begin_a_little_before_0(studio):
    """ffmpeg's sound does, by the encoder's delay: no player sees 49 days in that."""
    room = studio()
    room.live.begin(now())
    client, _ = room.watch()
    for at in (0xFFFFFFE9, 0, 23):
        room.live.write(8, at, SOUND, now())
    room.live.end(now())
    times = [at for _, at, _ in tags_of(client)]
    assert times == sorted(times) and times[0] >= 0 and times[-1] - times[0] == 46
