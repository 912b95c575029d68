"""Chunks and packets in a wrong place change nothing."""

from support.rtmfp.endpoints import (
    CLIENT,
    SERVER,
    THIRD,
    World,
    met,
    startup_datagram,
)

from rtmplite.rtmfp.crypto.epd import Epd
from rtmplite.rtmfp.endpoint.initiator import OpeningState
from rtmplite.rtmfp.wire.chunks import UnknownChunk
from rtmplite.rtmfp.wire.startup_chunks import (
    InitiatorHello,
    InitiatorInitialKeying,
    ResponderHello,
    ResponderInitialKeying,
    ResponderRedirect,
    RHelloCookieChange,
)

FOURTH = ("203.0.113.77", 1935)
URL = Epd(ancillary_data=b"rtmfp://example.com/live").encode()


def test_chunks_in_the_wrong_place_are_ignored():
    """Covers RFC 7016 §3.3 [default-key-for-zero], §2.2.2 [session-0].

    Each of them would mean something in session 0, and none does in another.
    """
    world, server, client, _ = met()
    sent = len(world.link.sent)
    keying = world.connect(client, b"nobody", THIRD)
    client.receive(startup_datagram(ResponderHello(keying.tag, b"c", b"nobody")), THIRD, 1.0)
    asking = world.connect(client, b"nobody else", THIRD)
    cookie = world.sent(InitiatorInitialKeying)[0][2].cookie_echo
    for chunk in (
        InitiatorHello(b"client", b"tag"),
        InitiatorInitialKeying(7, cookie, b"x", b"skic", b"signed"),
        ResponderHello(asking.tag, b"c", b"nobody else"),
        ResponderRedirect(asking.tag),
        UnknownChunk(0x55, b""),
    ):
        client.receive(startup_datagram(chunk, keying.near_id), THIRD, 1.0)
        server.receive(startup_datagram(chunk, 12345), THIRD, 1.0)
        in_session = startup_datagram(chunk, client.session.near_id)
        client.receive(in_session, SERVER, 1.0)
    world.run(0)
    assert len(world.link.sent) == sent + 3  # two hellos and a keying
    assert asking.state is OpeningState.IHELLO_SENT
    assert server.endpoint.ignored == {"session ID": 5}
    assert client.session.invalid == 5


def number_of_an_opening(world, node):
    """A session ID that a node has given out, in an opening that nobody goes on with."""
    opening = world.connect(node, b"nobody", FOURTH)
    hello = ResponderHello(opening.tag, b"c", b"nobody")
    node.receive(startup_datagram(hello), FOURTH, world.link.now)
    world.run(0)
    assert opening.near_id
    return opening.near_id


def test_the_four_packets_are_heeded_in_the_right_place_only():
    """Covers RFC 7016 §2.3.2 [ihello-only-in], §2.3.4 [rhello-only-in].

    And §2.3.7 [iikeying-only-in], §2.3.8 [rikeying-only-in].  Each comes first where another kind
    belongs.
    """
    world = World(weather=lambda *_: ())  # all is lost but what is handed over here
    server, client = world.join(SERVER, b"server"), world.join(CLIENT, b"client")
    elsewhere = {node: number_of_an_opening(world, node) for node in (server, client)}
    opening = world.connect(client, b"server", SERVER)

    def hand_over(node, kind, session_id):
        world.run(0)
        source = CLIENT if node is server else SERVER
        node.receive(startup_datagram(world.sent(kind)[-1][2], session_id), source, 0.0)
        world.run(0)

    hand_over(server, InitiatorHello, elsewhere[server])
    assert world.sent(ResponderHello) == []
    hand_over(server, InitiatorHello, 0)
    assert len(world.sent(ResponderHello)) == 1
    hand_over(client, ResponderHello, elsewhere[client])
    assert opening.state is OpeningState.IHELLO_SENT
    hand_over(client, ResponderHello, 0)
    assert opening.state is OpeningState.KEYING_SENT
    hand_over(server, InitiatorInitialKeying, elsewhere[server])
    assert world.sent(ResponderInitialKeying) == []
    hand_over(server, InitiatorInitialKeying, 0)
    assert len(world.sent(ResponderInitialKeying)) == 1
    hand_over(client, ResponderInitialKeying, 0)
    assert opening.state is OpeningState.KEYING_SENT
    hand_over(client, ResponderInitialKeying, opening.near_id)
    assert opening.state is OpeningState.OPEN


def test_the_other_answers_are_heeded_in_the_right_place_only():
    """Covers RFC 7016 §2.3.5 [redirect-only-in], §2.3.6 [cookie-change-only-in]."""
    world, _, client, _ = met()
    elsewhere = number_of_an_opening(world, client)
    opening = world.connect(client, b"nobody else", THIRD)
    redirect = ResponderRedirect(opening.tag)
    client.receive(startup_datagram(redirect, elsewhere), CLIENT, 1.0)
    assert CLIENT not in opening.candidates
    client.receive(startup_datagram(redirect), CLIENT, 1.0)
    assert CLIENT in opening.candidates
    hello = ResponderHello(opening.tag, b"c", b"nobody else")
    client.receive(startup_datagram(hello), THIRD, 1.0)
    world.run(0)
    for session_id, cookie in ((0, b"c"), (opening.near_id, b"new")):
        change = RHelloCookieChange(b"c", b"new")
        client.receive(startup_datagram(change, session_id), THIRD, 1.0)
        world.run(0)
        assert world.sent(InitiatorInitialKeying)[-1][2].cookie_echo == cookie
