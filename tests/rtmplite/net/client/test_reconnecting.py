"""Streams that move from server to server, with real sockets."""

import os
from dataclasses import replace

import gevent
import pytest
from support.limits import patience

from rtmplite.errors import RemoteError
from rtmplite.live.streams import Registry
from rtmplite.net.client.client import REDIRECTS, ClientStream
from rtmplite.net.client.reconnecting import Player, Publisher, begin
from rtmplite.net.client.rtmp_client import RtmpClient
from rtmplite.net.clock import now
from rtmplite.net.server.rtmp_listener import RtmpListener
from rtmplite.rtmp.application import LiveApplication
from rtmplite.rtmp.client import Target
from rtmplite.rtmp.reconnect import request
from rtmplite.rtmp.server import ServerConnection

HEADER, KEY, INTER = b"\x90av01cfg", b"\x91av01idr", b"\xa1av01p"


class Place:
    """A server and what is live there."""

    def __init__(self):
        self.registry, self.live = Registry(), {"live": LiveApplication()}
        self.server = RtmpListener(
            "127.0.0.1",
            0,
            lambda peer: ServerConnection(self.live.get, self.registry, os.urandom, now()),
        )
        self.server.start()
        self.url = "rtmp://{}:{}/live".format(*self.server.address)

    def client(self):
        """A connected client and a stream."""
        client = RtmpClient.connect(self.url)
        return client, client.create_stream()

    def publishing(self):
        """A publisher of `demo`."""
        return Publisher.open(f"{self.url}/demo", timeout=20.0)

    def playing(self):
        """A player of `demo`."""
        return Player.open(f"{self.url}/demo", timeout=20.0)


@pytest.fixture
def places():
    """Two servers."""
    found = [Place(), Place()]
    yield found
    for place in found:
        place.server.stop()


def read(playing, count):
    """So many messages of audio and video, as time and payload."""
    got = []
    while len(got) < count:
        message = playing.read(20.0)
        assert message is not None, f"only {got}"
        if message.type_id != 18:
            got.append((message.timestamp, message.payload))
    return got


def until(condition):
    """Let the others run until something holds."""
    with patience():
        while not condition():
            gevent.sleep(0.01)


def test_a_publisher_moves_at_a_key_frame(places):
    """Covers E-RTMP v2 §"Message Flow When Handling NetConnection.Connect.ReconnectRequest"
    [leave-at-boundary] [careful-overlap].
    """
    here, there = places
    publishing, watching, waiting = here.publishing(), here.playing(), there.playing()
    publishing.write(9, 0, HEADER)
    publishing.write(9, 0, KEY)
    assert len(here.server.ask_to_reconnect(there.url)) == 2
    until(lambda: publishing.client.reconnect_to == there.url)
    for time in (40, 80):
        publishing.write(9, time, INTER)
        until(lambda: publishing._seeking is None or publishing._seeking.ready())
    publishing.write(9, 120, KEY)
    publishing.write(9, 160, INTER)
    assert read(waiting, 3) == [(120, HEADER), (120, KEY), (160, INTER)]
    assert read(watching, 4) == [(0, HEADER), (0, KEY), (40, INTER), (80, INTER)]
    until(lambda: not watching.read(0.1) and watching.client._machine.target.tc_url == there.url)
    publishing.write(9, 200, KEY)
    assert [payload for _, payload in read(watching, 1)] in ([HEADER], [KEY])
    until(lambda: here.registry.get("live", "demo") is None)
    for each in (publishing, watching, waiting):
        each.close()


def test_a_player_moves_where_the_new_server_begins(places):
    """Covers E-RTMP v2 §"Message Flow When Handling NetConnection.Connect.ReconnectRequest"
    [leave-at-boundary] [careful-overlap]: nothing twice, nothing left out.
    """
    here, there = places
    one, other, playing = here.publishing(), there.publishing(), here.playing()
    for each in (one, other):
        each.write(9, 0, HEADER)
        each.write(9, 0, KEY)
    assert read(playing, 2) == [(0, HEADER), (0, KEY)]
    here.server.ask_to_reconnect(there.url)
    one.client.reconnect_to = None  # this one stays
    until(lambda: playing.client.reconnect_to)
    playing.read(0.1)
    until(lambda: playing._seeking is None or playing._seeking.ready())
    playing.read(0.1)
    one.client.reconnect_to = None
    for time, frame in ((40, INTER), (80, KEY), (120, INTER)):
        one.write(9, time, frame)
        other.write(9, time, frame)
    assert read(playing, 4) == [(40, INTER), (80, HEADER), (80, KEY), (120, INTER)]
    assert playing.client._machine.target.tc_url == there.url
    for each in (one, other, playing):
        each.close()


def test_a_player_reads_on_if_the_old_server_has_played_the_new_ones_key_frame(places):
    """Covers E-RTMP v2 §"Message Flow When Handling NetConnection.Connect.ReconnectRequest"
    [leave-at-boundary]: the publisher has gone over before it; nothing twice, nothing left out.
    """
    here, there = places
    one, other, playing = here.publishing(), there.publishing(), here.playing()
    other.write(9, 0, HEADER)
    for message in ((0, HEADER), (80, KEY), (120, INTER)):
        one.write(9, *message)
    assert read(playing, 3) == [(0, HEADER), (80, KEY), (120, INTER)]
    one.client.reconnect_to = None  # this one goes without looking back
    here.server.ask_to_reconnect(there.url)
    until(lambda: playing.client.reconnect_to)
    playing.read(0.1)
    until(lambda: playing._seeking is None or playing._seeking.ready())
    playing.read(0.1)
    one.close()
    for message in ((80, KEY), (120, INTER), (160, INTER), (200, INTER)):
        other.write(9, *message)
    assert read(playing, 3) == [(160, HEADER), (160, INTER), (200, INTER)]
    for each in (other, playing):
        each.close()


def test_nobody_goes_where_nobody_is(places):
    """A server that does not answer, or is no server: all stay where they are."""
    here, there = places
    there.server.stop()
    publishing, playing = here.publishing(), here.playing()
    for url in (there.url, "http://127.0.0.1/live"):
        here.server.ask_to_reconnect(url)
        clients = publishing.client, playing.client
        until(lambda url=url, each=clients: [one.reconnect_to for one in each] == [url, url])
        publishing._not_before = playing._not_before = 0.0
        publishing.write(8, 20, b"\xb2sound")
        assert read(playing, 1) == [(20, b"\xb2sound")]
        until(lambda: publishing._seeking is None or publishing._seeking.ready())
        publishing.write(8, 40, b"\xb2sound")
        assert read(playing, 1) == [(40, b"\xb2sound")]
    publishing.close()
    playing.close()


def test_what_names_no_place_is_ignored(places):
    """A URL that is none does not harm the connection."""
    client, _ = places[0].client()
    places[0].server.connections[0].send_command(request("//[::1"))
    assert client.call("FCSubscribe", "x") is None
    assert client.reconnect_to is None
    client.close()


@pytest.mark.parametrize(("url", "goes"), [("rtmps://b/live", True), ("rtmp://b/live", False)])
def test_nobody_is_led_out_of_tls(places, url, goes):
    """Own design: what somebody asked to be encrypted stays so, whatever the server says."""
    client, _ = places[0].client()
    client._machine.target = replace(client.target, secure=True)
    places[0].server.connections[0].send_command(request(url))
    assert client.call("FCSubscribe", "x") is None
    assert client.reconnect_to == (url if goes else None)
    client.close()


def test_a_server_that_stops_waits_for_those_it_asked(places):
    """Covers E-RTMP v2 §"Message Flow When Handling NetConnection.Connect.ReconnectRequest"
    [old-server-goes-on]: until they have left, but no longer than it was told to.
    """
    here, there = places
    publishing, playing = here.publishing(), here.playing()
    publishing.write(8, 0, b"\xb2sound")
    began = now()
    stopping, time = gevent.spawn(here.server.stop, 600.0, there.url), 0
    until(lambda: publishing.client.reconnect_to)
    with patience():
        while not stopping.ready():
            time += 20
            publishing.write(8, time, b"\xb2sound")
            playing.read(0.02)
            gevent.sleep(0.01)
    assert now() - began < 600.0
    assert there.registry.get("live", "demo").publishing
    publishing.close()
    playing.close()


def test_a_server_does_not_wait_for_those_who_cannot(places):
    """A client that never heard of it, and one that does not go."""
    here = places[0]
    old = RtmpClient.connect(here.url, properties={"capsEx": 0.0})
    began = now()
    here.server.stop(5.0)
    assert now() - began < 2.0
    stays, _ = places[1].client()
    began = now()
    places[1].server.stop(0.3)
    assert 0.3 <= now() - began < 2.0
    until(lambda: stays.closed and old.closed)


class Sending(LiveApplication):
    """Sends who plays or publishes elsewhere."""

    def __init__(self, url):
        self.url = url

    def on_publish(self, connection, stream, name, now):
        stream.redirect(self.url, "", now)

    on_play = on_publish


def test_who_begins_goes_where_he_is_sent(places):
    """Covers Field §"Redirects": by the status of a stream, some times and no more."""
    here, there = places
    here.live["live"] = Sending(there.url)
    target = Target.parse(f"{here.url}/demo")
    client, stream, found = begin(target, RtmpClient.connect, ClientStream.publish)
    assert found.tc_url == there.url and found.stream == "demo"
    stream.write(9, 0, KEY)
    until(lambda: there.registry.get("live", "demo").has_begun)
    client.close()
    there.live["live"] = Sending(here.url)
    reached = []

    def connect(where):
        reached.append(where)
        return RtmpClient.connect(where)

    with pytest.raises(RemoteError, match="Ask "):
        begin(target, connect, ClientStream.play)
    assert len(reached) == REDIRECTS + 1
    there.live["live"] = Sending("http://nowhere")
    with pytest.raises(RemoteError, match="Ask http://nowhere"):
        begin(target, connect, ClientStream.play)
    until(lambda: not here.server.connections and not there.server.connections)
