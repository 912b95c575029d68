"""The sockets of ICE on loopback: two agents of ours, strangers, and libnice."""

import json
import os
import socket
import subprocess
import sys
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path

import gevent
import gevent.socket
import pytest
from gevent.queue import Queue
from support.nat import nice_peer

from p2psip.nat import ice_connections
from p2psip.nat.ice import IceAgent, IceState
from p2psip.nat.ice_candidate import IceCandidate, TcpBase, TcpType
from p2psip.nat.ice_connections import MAX_STRANGERS
from p2psip.nat.ice_credentials import IceCredentials
from p2psip.net.clock import monotonic
from p2psip.net.media import ice_sockets
from p2psip.net.media.ice_sockets import IceSockets
from p2psip.net.waiting import wait_until

HOST, PATIENCE = "127.0.0.1", 60.0


@pytest.fixture
def opened():
    """What makes sockets of an agent, with a queue of the media that comes, closed at the end."""
    with ExitStack() as stack:

        def make(*, controlling=True, **options):
            agent, media = IceAgent(os.urandom, monotonic(), controlling=controlling), Queue()
            made = stack.enter_context(closing(IceSockets(agent, [HOST], media.put, **options)))
            return made, media

        yield make


def introduce(ours, theirs):
    """Signal both ways."""
    ours.begin(theirs.agent.ours, theirs.candidates)
    theirs.begin(ours.agent.ours, ours.candidates)


def exchange(ours, theirs):
    """Send a packet each way by the selected pairs."""
    for (sender, _), (_, media) in ((ours, theirs), (theirs, ours)):
        assert sender.settled.wait(PATIENCE) and sender.agent.state is IceState.COMPLETED
        sender.send(b"\x80 media")
        assert media.get(timeout=PATIENCE) == b"\x80 media"


@pytest.mark.parametrize("is_tcp", [True, False])
def test_agents_meet_by_what_they_may_use(opened, is_tcp):
    """Covers RFC 6544 §4.1 [tcp-by-choice] [host-candidates], §5.1 [passive-host-candidates].

    Covers RFC 6544 §7.1 [from-its-interface] [from-a-free-port].
    Covers RFC 6544 §7.2 [connections-are-awaited], §11.1 [ends-with-its-session].
    """
    both = [opened(controlling=each, udp=not is_tcp, tcp=is_tcp) for each in (True, False)]
    assert all((e.transport == "TCP") is is_tcp for made, _ in both for e in made.candidates)
    introduce(both[0][0], both[1][0])
    exchange(*both)
    made, _ = both[0]
    assert isinstance(made.agent.selected.base, TcpBase) is is_tcp
    assert len(made.connections) == is_tcp
    if not is_tcp:
        return
    (flow,) = made.connections
    for each, _ in both:
        assert wait_until(lambda each=each: len(each.connections) == 1, PATIENCE)
    made.connections[flow]._socket.shutdown(socket.SHUT_RDWR)  # as if the way had failed
    assert wait_until(lambda: _answered(both), PATIENCE)
    kept = [each._socket for each in both[1][0].connections.values()]
    both[1][0].close()
    assert [each.fileno() for each in kept] == [-1]
    assert wait_until(lambda: not made.connections, PATIENCE)
    assert both[1][0].connections == {} and both[1][0]._bound == []


def _answered(both):
    """Whether media goes both ways again."""
    for sender, _ in both:
        sender.send(b"\x80 again")
    gevent.sleep(0)
    return all(not media.empty() and media.get() == b"\x80 again" for _, media in both)


def test_addresses_of_others_and_refusals_are_no_way(opened):
    """Covers RFC 6544 §7.1 [from-its-interface]: what cannot be opened fails at once."""
    made, _ = opened(udp=False)
    with closing(socket.socket()) as taken:
        taken.bind((HOST, 0))  # nobody listens there
        _, port = taken.getsockname()
        refused = IceCandidate.parse(f"1 1 TCP 9 {HOST} {port} typ host tcptype passive")
        made.agent.add_tcp(TcpType.ACTIVE, ("192.0.2.1", 9))
        made.agent.locals = [e for e in made.agent.locals if e[0].tcp_type is TcpType.ACTIVE]
        made.begin(IceCredentials("peer", "a password"), [refused])
        assert made.settled.wait(PATIENCE) and made.agent.state is IceState.FAILED
    assert made.connections == {} and made.deadline is None
    made.send(b"\x80 into nothing")


def test_strangers_are_few_and_get_nothing(opened, monkeypatch):
    """Covers RFC 6544 §7.2 [connections-are-accepted]: noise ends a connection at once."""
    monkeypatch.setattr(ice_connections, "GREETING_SECONDS", 1e9)
    made, media = opened(udp=False)
    passive = next(e for e in made.candidates if e.tcp_type is TcpType.PASSIVE)
    with ExitStack() as stack:
        count = MAX_STRANGERS + 4
        connect = partial(gevent.socket.create_connection, passive.address)
        strangers = [stack.enter_context(connect()) for _ in range(count)]
        assert wait_until(lambda: len(made.connections) == MAX_STRANGERS, PATIENCE)
        for each in strangers[-3:]:
            each.sendall(b"GET / HTTP/1.1\r\n\r\n")
        assert wait_until(lambda: len(made.connections) <= MAX_STRANGERS - 3, PATIENCE)
        other, _ = opened(udp=False, controlling=False)
        introduce(made, other)
        assert other.settled.wait(PATIENCE) and other.agent.state is IceState.COMPLETED
    assert media.empty()


def test_what_a_peer_does_not_read_is_lost_beyond_a_limit(opened, monkeypatch):
    """Own design: whole packets, and the connection goes on."""
    monkeypatch.setattr(ice_sockets, "MAX_QUEUED", 20_000)
    both = [opened(controlling=each, udp=False) for each in (True, False)]
    introduce(both[0][0], both[1][0])
    exchange(*both)
    (made, _), (_, media) = both
    (connection,) = made.connections.values()
    count = 0
    while connection.waiting <= 20_000:  # nobody reads while nobody waits
        made.send(b"\x80%08d" % count + bytes(5000))
        count += 1
    made.send(b"\x80 lost" + bytes(5000))
    for number in range(count):
        assert media.get(timeout=PATIENCE)[:9] == b"\x80%08d" % number
    assert wait_until(lambda: not connection.waiting, PATIENCE)
    exchange(*both)


class Nice:
    """libnice in a process of its own; `attributes` are those of its description."""

    def __init__(self, role):
        words = [sys.executable, str(Path(nice_peer.__file__)), role, HOST]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self.process = subprocess.Popen(words, **pipes)
        lines = json.loads(self.process.stdout.readline())["sdp"].splitlines()
        self.attributes = [each[2:].split(":", 1) for each in lines if each.startswith("a=")]
        said = dict(self.attributes)
        self.credentials = IceCredentials(said["ice-ufrag"], said["ice-pwd"])
        values = [value for name, value in self.attributes if name == "candidate"]
        self.candidates = [IceCandidate.parse(each) for each in values]

    def take(self, credentials, candidates):
        lines = ["m=audio 9 ICE/SDP", "c=IN IP4 0.0.0.0", f"a=ice-ufrag:{credentials.ufrag}"]
        lines += [f"a=ice-pwd:{credentials.password}", *(f"a=candidate:{e}" for e in candidates)]
        print(json.dumps("\n".join(lines) + "\n"), file=self.process.stdin, flush=True)

    def close(self):
        """End it; what it has told."""
        told, _ = self.process.communicate(timeout=PATIENCE)
        return [json.loads(line) for line in told.splitlines()]


@pytest.fixture
def nice():
    """What starts libnice, which is ended at the end."""
    try:
        nice_peer.load()
    except OSError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"libnice10 is not installed: {error}")
    started = []

    def start(role):
        started.append(Nice(role))
        return started[-1]

    yield start
    for each in started:
        each.process.kill()
        each.process.communicate()


@pytest.mark.parametrize("role", ["controlling", "controlled"])
@pytest.mark.parametrize("who", ["we", "they"])
def test_we_meet_libnice_by_tcp_alone(opened, nice, role, who):
    """RFC 6544 §7, whoever connects and whoever nominates: media goes there and back."""
    peer = nice(role)
    made, media = opened(controlling=role == "controlled", udp=False)
    theirs, ours = {
        "we": (TcpType.PASSIVE, TcpType.ACTIVE),
        "they": (TcpType.ACTIVE, TcpType.PASSIVE),
    }[who]
    peer.take(made.agent.ours, [each for each in made.candidates if each.tcp_type is ours])
    made.begin(peer.credentials, [each for each in peer.candidates if each.tcp_type is theirs])
    assert made.settled.wait(PATIENCE) and made.agent.state is IceState.COMPLETED
    assert made.agent.selected.local.tcp_type is ours and len(made.connections) == 1
    made.send(b"\x80 from us")
    assert media.get(timeout=PATIENCE) == b"\x80 back: \x80 from us"
    told = peer.close()
    assert {"heard": b"\x80 from us".hex()} in told and {"state": "ready"} in told
    assert wait_until(lambda: not made.connections, PATIENCE)
