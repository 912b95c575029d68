"""What carries others is read whole and in pieces, whatever its octets are, and within bounds."""

from hypothesis import given, settings
from hypothesis import strategies as st
from support.lint.carried_cases import (
    BROWSER,
    CLIENT,
    GATEWAY,
    KEY,
    PEER,
    RELAYED,
    SERVER,
    bound,
    channel_data,
    frame,
    head,
    post,
    sent,
    web_call,
)
from support.mutations import mutations, peak

from rtclab.unwrap.address import written
from rtclab.unwrap.breach import Breach
from rtclab.unwrap.http import HttpMessage, HttpWay
from rtclab.unwrap.turn import TurnRelays
from rtclab.unwrap.websocket import MOST, FrameReader, WebSocketMessage

OURS = b"".join(each.data for each in web_call().packets if each.source == BROWSER)
TUNNEL = post("/open/1") + post("/send/7f/0", b"\x03" + bytes(3000)) + post("/idle/7f/1")
RELAY = [each.data for each in sent(bound(), b"x", b"y").packets]


def read(data, size):
    """What a direction of HTTP carries, fed in pieces of a size."""
    way = HttpWay()
    pieces = (data[at : at + size] for at in range(0, len(data), size))
    return [each for piece in pieces for each in way.feed(piece)], way


@given(mutations(st.sampled_from([OURS, TUNNEL])), st.integers(1, 50))
@settings(max_examples=300, deadline=None)
def test_octets_are_read_alike_in_any_pieces(data, size):
    whole, one = read(data, len(data) or 1)
    pieces, other = read(data, size)
    assert whole == pieces and one.is_lost == other.is_lost


@given(mutations(st.sampled_from([OURS, TUNNEL])))
@settings(max_examples=100, deadline=None)
def test_memory_is_in_proportion_to_the_input(data):
    assert peak(lambda: read(data, 1000)) <= 32 * len(data) + (64 << 10)


def test_a_call_is_in_its_frames():
    found, _ = read(OURS, 1)
    assert isinstance(found[0], HttpMessage) and found[0].headers["sec-websocket-key"] == KEY
    assert [each.data.split()[0] for each in found[1:]] == [b"INVITE", b"ACK", b"BYE"]


def test_a_tunnel_is_in_its_bodies():
    found, _ = read(TUNNEL, 700)
    assert [len(each.body) for each in found] == [1, 3001, 1]


def test_what_cannot_be_read_is_given_up():
    for data in (
        b"GET " + bytes(70000),
        b"hello, world",
        head("POST /open/1 HTTP/1.1", "Transfer-Encoding: chunked"),
        head("POST /open/1 HTTP/1.1", "Content-Length: 99999999999"),
    ):
        assert read(data, 4096)[1].is_lost


def test_a_frame_that_is_too_long_is_not_waited_for():
    reader = FrameReader(is_client=False)
    assert not list(reader.feed(b"\x82\x7f" + (MOST + 1).to_bytes(8)))
    assert reader.is_lost and not list(reader.feed(frame(b"", masked=False)))


@given(st.binary(max_size=64), st.booleans())
def test_any_octets_are_frames_or_breaches(data, is_client):
    for each in FrameReader(is_client=is_client).feed(data):
        assert isinstance(each, WebSocketMessage | Breach)


def test_data_have_the_addresses_between_relay_and_peer():
    relays, relay, peer = TurnRelays(), written(*RELAYED), written(*PEER)
    for each in bound().packets:
        assert not list(relays.stun(each.source, each.target, each.data, 0.0))
    up, down = channel_data(0x4000, b"up"), channel_data(0x4000, b"down")
    leg = f"{CLIENT} > {SERVER}"
    assert list(relays.channel(CLIENT, SERVER, up)) == [(relay, peer, b"up", leg)]
    assert list(relays.channel(SERVER, CLIENT, down)) == [(peer, relay, b"down", leg)]
    assert not list(relays.channel(CLIENT, GATEWAY, up))


@given(st.lists(st.tuples(mutations(st.sampled_from(RELAY)), st.booleans()), max_size=8))
@settings(max_examples=200, deadline=None)
def test_any_datagrams_are_relayed_or_breaches(datagrams):
    relays = TurnRelays()
    for data, is_sent in datagrams:
        ends = (CLIENT, SERVER) if is_sent else (SERVER, CLIENT)
        found = [*relays.stun(*ends, data, 0.0), *relays.channel(*ends, data)]
        assert all(isinstance(each, Breach) or len(each.data) <= len(data) for each in found)
