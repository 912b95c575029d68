"""Which hellos are answered."""

import pytest
from support.rtmfp.endpoints import CLIENT, SERVER, THIRD, World, startup_datagram

from rtmplite.rtmfp.endpoint.endpoint_listener import Forwarded
from rtmplite.rtmfp.endpoint.initiator import OpeningState
from rtmplite.rtmfp.wire.address import SocketAddress
from rtmplite.rtmfp.wire.control_chunks import ForwardedInitiatorHello
from rtmplite.rtmfp.wire.startup_chunks import InitiatorHello, ResponderHello, ResponderRedirect


class Forward:
    """A client of a server that forwards hellos to it."""

    def __init__(self, forwarded=Forwarded.HELLO):
        self.world = World()
        self.server = self.world.join(SERVER, b"server")
        self.client = self.world.join(CLIENT, b"client", forwarded=forwarded)
        self.world.connect(self.client, b"server", SERVER)
        self.world.run(1)

    def forward(self, epd=b"client", ip=THIRD[0], port=THIRD[1], tag=b"tag"):
        hello = ForwardedInitiatorHello(epd, SocketAddress(ip, port), tag)
        self.server.session.queue_chunk(hello)
        self.world.run(1)
        return [(to, chunk) for _, to, chunk in self.world.sent(ResponderHello, CLIENT)]


def test_a_forwarded_hello_is_answered_as_if_it_had_come_directly():
    """Covers RFC 7016 §3.5.1.1.2 [fihello-answered]."""
    ((to, hello),) = Forward().forward()
    assert (to, hello.tag_echo, hello.responder_certificate) == (THIRD, b"tag", b"client")


def test_a_forwarded_hello_may_be_answered_with_an_implied_redirect():
    """Covers RFC 7016 §3.5.1.1.2 [fihello-answered]: the asker's hello comes the straight way.

    The asker may be told of the peer by nobody else.
    """
    forward = Forward(Forwarded.REDIRECT)
    asker = forward.world.join(THIRD, b"asker")
    opening = forward.world.connect(asker, b"client", ("203.0.113.99", 1))
    forward.forward(tag=opening.tag)
    ((_, to, redirect),) = forward.world.sent(ResponderRedirect, CLIENT)
    assert (to, redirect) == (THIRD, ResponderRedirect(opening.tag))
    assert opening.state is OpeningState.OPEN
    assert opening.address == CLIENT


def test_a_forwarded_hello_may_be_ignored():
    """Covers RFC 7016 §3.5.1.1.2 [fihello-answered]."""
    forward = Forward(Forwarded.IGNORE)
    assert forward.forward() == []
    assert forward.world.sent(ResponderRedirect) == []


def test_a_storm_of_forwarded_hellos_makes_us_no_weapon():
    """Covers RFC 7016 §5 [resources-bounded]: a forwarder chooses whom our answers go to."""
    forward = Forward()
    for number in range(500):
        for host in range(4):
            victim = SocketAddress(f"10.{number >> 8}.{number & 255}.{host}", 9)
            hello = ForwardedInitiatorHello(b"client", victim, b"tag")
            forward.server.session.queue_chunk(hello)
        forward.world.run(0.002 if number < 499 else 0.5)
    answered = forward.world.sent(ResponderHello, CLIENT)
    assert 20 <= len(answered) <= 40
    assert forward.client.endpoint.ignored["forwarded hellos"] >= 1900


@pytest.mark.parametrize("fields", [{"epd": b"another"}, {"ip": "224.0.0.1"}, {"port": 0}])
def test_odd_forwarded_hellos_are_ignored(fields):
    """Covers RFC 7016 §5 [resources-bounded]: nobody makes us send anywhere."""
    assert Forward().forward(**fields) == []


def test_a_client_cannot_make_its_server_disturb_others():
    """Own design: a forwarder is who we have turned to, not who has turned to us."""
    forward = Forward()
    hello = ForwardedInitiatorHello(b"server", SocketAddress(*THIRD), b"tag")
    forward.client.session.queue_chunk(hello)
    forward.world.run(1)
    assert all(to != THIRD for _, to, _ in forward.world.sent(ResponderHello))
    assert forward.server.endpoint.ignored == {"forwarded hello": 1}


def test_forwarded_hellos_are_limited_like_others():
    """Covers RFC 7016 §5 [resources-bounded]."""
    forward = Forward()
    for _ in range(30):
        hello = ForwardedInitiatorHello(b"client", SocketAddress(*THIRD), b"tag")
        forward.server.session.queue_chunk(hello)
    forward.world.run(0.1)
    assert len(forward.world.sent(ResponderHello, CLIENT)) == 4


def test_a_forwarded_hello_of_absurd_length_is_ignored():
    """Own design: one in fragments could be as long."""
    forward = Forward()
    hello = ForwardedInitiatorHello(b"client", SocketAddress(*THIRD), bytes(5000))
    forward.client.endpoint.hellos.on_forwarded(hello, True, 1.0)
    assert forward.client.endpoint.ignored == {"long field": 1}


@pytest.mark.parametrize("hello", [(bytes(5000), b"tag"), (b"server", bytes(5000))])
def test_hellos_of_absurd_length_are_ignored(hello):
    """Own design: what comes back in the answer had better be short."""
    world = World()
    server = world.join(SERVER, b"server")
    server.receive(startup_datagram(InitiatorHello(*hello)), CLIENT, 0.0)
    world.run(1)
    assert world.link.sent == []
    assert server.endpoint.ignored == {"long field": 1}
