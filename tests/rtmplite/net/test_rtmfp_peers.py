"""Clients that meet through a server, and servers that send clients elsewhere: real sockets."""

import os
import socket
import subprocess
import sys
from contextlib import closing, contextmanager

import gevent
import pytest
from support.peers.process import Process
from support.sockets import until

from rtmplite.cli.tool import main
from rtmplite.errors import LocalError, RemoteError
from rtmplite.flv import file
from rtmplite.live.streams import Registry
from rtmplite.net.client.rtmfp_client import RtmfpClient
from rtmplite.net.clock import now
from rtmplite.net.connection_limit import ConnectionLimit
from rtmplite.net.server.rtmfp_listener import OtherServers, PeerConnectivity, RtmfpListener
from rtmplite.net.server.rtmp_listener import RtmpListener
from rtmplite.rtmfp.netconnection.media_flows import RELIABLE
from rtmplite.rtmfp.netconnection.server import RtmfpServerConnection
from rtmplite.rtmp.application import LiveApplication
from rtmplite.rtmp.server import ServerConnection

SOUND = [(8, 20 * number, b"\x82" + bytes((number,)) * 160) for number in range(20)]


@contextmanager
def serving(**options):
    """A server with the application `live`, and its URL."""
    registry, applications = Registry(), {"live": LiveApplication()}.get

    def connection(peer):
        return RtmfpServerConnection(applications, registry, os.urandom, now())

    server = RtmfpListener("127.0.0.1", 0, connection, **options)
    server.start()
    server.url = "rtmfp://{}:{}/live".format(*server.address)
    try:
        yield server
    finally:
        server.stop()


@contextmanager
def connected(server, count=2):
    clients = [RtmfpClient.connect(server.url) for _ in range(count)]
    try:
        yield clients
    finally:
        for client in clients:
            client.close()


def heard(stream, count):
    found = []
    while len(found) < count and (message := stream.read(30.0)) is not None:
        if message.type_id == 8:
            found.append((message.type_id, message.timestamp, message.payload))
    return found


def play(publishing, stream, messages=SOUND):
    for message in messages:
        publishing.write(*message)
    return heard(stream, len(messages))


def test_media_go_on_when_the_server_is_gone():
    """Covers RFC 7425 §5.4.1 [peer-by-fingerprint]: introduced, they need it no more."""
    with serving() as server, connected(server) as (alice, bob):
        publishing = alice.publish_direct("song")
        stream = bob.play_from(alice.peer_id, "song")
        assert play(publishing, stream) == SOUND
        server.stop()
        assert until(lambda: alice.closed and bob.closed)
        assert play(publishing, stream) == SOUND
        (session,) = [peer.session for peer in bob._peers.sessions]
        assert session.address[1] == alice._port.address[1]
        publishing.delete()
        assert stream.read(30.0) is None and stream.ended


def test_both_play_from_each_other_and_a_third():
    """Each with one port, whatever it is used for."""
    with serving() as server, connected(server, 3) as clients:
        publishings = [client.publish_direct(f"of {n}") for n, client in enumerate(clients)]
        streams = [
            clients[player].play_from(clients[n].peer_id, f"of {n}")
            for n in range(3)
            for player in range(3)
            if n != player
        ]
        assert [publishing.players for publishing in publishings] == [2, 2, 2]
        for n, publishing in enumerate(publishings):
            publishing.write(8, n, b"\x82%d" % n)
        assert [heard(stream, 1)[0][1] for stream in streams] == [0, 0, 1, 1, 2, 2]
        streams[0].delete()
        assert until(lambda: publishings[0].players == 1)


def test_by_way_of_the_server():
    """The relay mode, where clients are not introduced: neither learns where the other is."""
    with (
        serving(peer_connectivity=PeerConnectivity(False, True)) as server,
        connected(server) as (alice, bob),
    ):
        publishing = alice.publish_direct("song")
        stream = bob.play_from(alice.peer_id, "song", reach_timeout=0.2)
        assert play(publishing, stream) == SOUND
        ports = {alice._port.address[1], bob._port.address[1]}
        far = {
            peer.session.address[1] for client in (alice, bob) for peer in client._peers.sessions
        }
        assert len(far) == 2 and not far & {*ports, server.address[1]}
        (middle,) = server._relay.peer_relays.bridges
        assert middle.moved > sum(len(payload) for _, _, payload in SOUND)
        bob.close()
        assert until(lambda: publishing.players == 0 and middle.is_over)


def test_the_host_of_a_relay_can_be_told():
    """For a server behind a translator, or one that listens everywhere."""
    peer_connectivity = PeerConnectivity(False, True, "127.0.0.2")
    with serving(peer_connectivity=peer_connectivity) as server, connected(server) as (alice, bob):
        alice.publish_direct("song")
        bob.call("standIn", alice.peer_id.hex())
        (relay,) = server._relay.peer_relays._by_client.values()
        assert relay.place.address[0] == "127.0.0.2"
        port = relay.place.address[1]
    with closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as free:
        free.bind(("127.0.0.1", port))  # stopped, it holds no port


@pytest.mark.parametrize("relayed", [True, False])
def test_who_is_not_found(relayed):
    """A server that introduces nobody, and a peer that nobody knows."""
    with (
        serving(peer_connectivity=PeerConnectivity(False)) as server,
        connected(server) as (alice, bob),
    ):
        alice.publish_direct("song")
        with pytest.raises(RemoteError, match="cannot be reached"):
            bob.play_from(alice.peer_id, "song", timeout=0.5, reach_timeout=0.3, relayed=relayed)
        assert bob._port.endpoint.openings == []
        with pytest.raises(LocalError, match="no peer"):
            bob.play_from(bob.peer_id, "song")


def test_who_is_refused():
    """The publisher has the last word."""
    with serving() as server, connected(server) as (alice, bob):
        alice.publish_direct("song")
        alice.may_play = lambda peer_id, name: name != "song"
        with pytest.raises(RemoteError, match="There is no song"):
            bob.play_from(alice.peer_id, "song")
        assert alice.may_play(b"", "other") and until(lambda: not bob._direct)


def test_as_fast_as_a_peer_takes_it():
    """Who writes reliably waits for the slowest, and nothing is lost."""
    with serving() as server, connected(server) as (alice, bob):
        alice._peers.lifetimes = RELIABLE
        publishing = alice.publish_direct("film")
        stream = bob.play_from(alice.peer_id, "film")
        film = [(9, number, b"\x17\x01" + bytes(30_000)) for number in range(60)]
        writing = gevent.spawn(lambda: [publishing.write(*each) for each in film])
        times = []
        while len(times) < len(film) and (message := stream.read(30.0)) is not None:
            times += [message.timestamp] * (message.type_id == 9)
        assert times == list(range(60))
        writing.get(timeout=30)


def test_a_server_that_sends_all_to_another():
    """Covers RFC 7016 §3.5.1.7 [referred]: the client ends up there by itself."""
    with serving() as other:
        other_servers = OtherServers((other.address,), refers=True)
        with serving(other_servers=other_servers) as server, connected(server, 3):
            assert until(lambda: len(other.connections) == 3)
            assert server.connections == []


def test_a_full_server_sends_the_rest_to_another():
    """Covers RFC 7016 §3.5.1.7 [referred]: and takes clients again when there is room."""
    with serving() as other:
        other_servers = OtherServers((other.address,))
        with serving(other_servers=other_servers, connection_limit=ConnectionLimit(1)) as server:
            first = RtmfpClient.connect(server.url)
            second = RtmfpClient.connect(server.url)
            assert (len(server.connections), len(other.connections)) == (1, 1)
            first.close()
            assert until(lambda: not server.connections)
            third = RtmfpClient.connect(server.url)
            assert len(server.connections) == 1
            second.close()
            third.close()


def test_a_server_that_others_have_filled_sends_the_first_on():
    """Covers RFC 7016 §3.5.1.7 [referred]: they came to another listener, unseen by this one."""
    connection_limit = ConnectionLimit(1)
    with serving() as other:
        other_servers = OtherServers((other.address,))
        with serving(other_servers=other_servers, connection_limit=connection_limit) as server:
            assert connection_limit.admits("192.0.2.9")
            client = RtmfpClient.connect(server.url)
            assert (len(server.connections), len(other.connections)) == (0, 1)
            client.close()


class Tool(Process):
    """One run of the command line."""

    def __init__(self, folder, *words):
        super().__init__(folder, [sys.executable, "-m", "rtmplite", *words])

    def wait(self, word):
        self.wait_until(lambda: word in self.output, what=word)
        return self.output.split(word)[1].split()[0]


def media(path):
    return [(tag.tag_type, tag.timestamp, tag.data) for tag in file.read_flv(path.read_bytes())[1]]


def test_from_peer_to_peer_by_command_line(tmp_path, corpus):
    """`publish --direct`, `play --peer`, by a server that `--rtmfp-redirect-to` has led to."""
    source, played = corpus / "flv" / "ruffle_aac_mono_44100hz.flv", tmp_path / "played.flv"
    words = "serve", "--rtmp", "127.0.0.1:0", "--rtmfp", "127.0.0.1:0"
    with Tool(tmp_path / "serve", *words) as server:
        there = server.wait("rtmfp=")
        with Tool(tmp_path / "first", *words, "--rtmfp-redirect-to", there) as first:
            url = f"rtmfp://{first.wait('rtmfp=')}/live/demo"
            with Tool(tmp_path / "publish", "publish", "--direct", source, url) as publish:
                peer = publish.wait("peer ")
                play = Tool(tmp_path / "play", "play", "--peer", peer, url, "-o", played).start()
                assert play.finish() == publish.finish() == 0
        assert "publishing" not in server.output + first.output
    assert media(played) == media(source)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["play", "--peer", "00", "rtmp://127.0.0.1:1/live/x"], "refused"),
        (["serve", "--rtmfp-redirect-to", "nowhere"], "not HOST:PORT"),
        (["serve", "--rtmfp-redirect-to", ","], "names no server"),
        (["serve", "--rtmfp-relay-host", "example"], "--rtmfp-relay-host example"),
    ],
)
def test_what_the_command_line_does_not_take(words, complaint):
    """One line that says what is wrong."""
    if words[0] == "serve":
        words += ["--rtmp", "127.0.0.1:0", "--rtmfp", "127.0.0.1:0"]
    run = subprocess.run(
        [sys.executable, "-m", "rtmplite", *words], capture_output=True, text=True, timeout=100
    )
    assert run.returncode in (1, 2) and complaint in run.stderr
    assert len(run.stderr.splitlines()) == 1


def test_peers_speak_rtmfp(capsys):
    """An RTMP server introduces nobody; an id is 32 bytes in digits, a stream has a name."""
    applications = {"live": LiveApplication()}.get
    tcp = RtmpListener(
        "127.0.0.1",
        0,
        lambda peer: ServerConnection(applications, Registry(), os.urandom, now()),
    )
    tcp.start()
    url = "rtmp://{}:{}/live/x".format(*tcp.address)
    assert main(["play", "--peer", "00" * 32, url]) == 2
    tcp.stop()
    assert "peers speak rtmfp" in capsys.readouterr().err
    with serving() as server:
        for peer in ("zz", "00"):
            assert main(["play", "--peer", peer, server.url + "/x"]) == 2
            assert "is no peer" in capsys.readouterr().err
        assert main(["dump", "--peer", "00" * 32, server.url]) == 2
        assert "names no stream" in capsys.readouterr().err
