"""Clients that play from each other: introduced, through translators, in bad weather."""

import json
from random import Random

import pytest
from support.rtmfp.link import storm
from support.rtmfp.peer_world import SERVER, PeerWorld, codes, media, translated

from rtmplite.errors import LocalError
from rtmplite.rtmfp.netconnection.messages import FlowMetadata
from rtmplite.rtmfp.p2p.direct import CLOSED, FAILED, REFUSED, SUCCESS
from rtmplite.rtmfp.p2p.peers import DEFAULT_PEER_LIMITS, PeerLimits
from rtmplite.rtmfp.session.send_flow import FlowSender
from rtmplite.rtmfp.session.session import State
from rtmplite.rtmfp.wire.control_chunks import Ping
from rtmplite.rtmfp.wire.flow_chunks import FlowException, UserData, read_flow_options

ALICE, BOB, CAROL = ("198.51.100.1", 40000), ("203.0.113.2", 50000), ("203.0.113.3", 50000)
SOUND = [(8, 20 * number, b"\x82" + bytes((number,)) * 160) for number in range(10)]


class Pair:
    """Alice, who publishes "song", and Bob; both are connected to a server."""

    def __init__(self, weather=None, limits=DEFAULT_PEER_LIMITS, **options):
        self.world = PeerWorld(weather, **options)
        self.alice = self.world.client(ALICE, limits=limits)
        self.bob = self.world.client(BOB)
        self.live = self.alice.peers.publish("song", self.world.now)

    def play(self, name="song", seconds=3.0):
        stream = self.bob.play(self.alice.peer_id, name)
        self.world.run(seconds)
        return stream

    def write(self, messages=SOUND):
        for type_id, time, payload in messages:
            self.live.write(type_id, time, payload, self.world.now)
        self.world.run()


def audio(events):
    return [message for message in media(events) if message[0] == 8]


@pytest.mark.parametrize("behind", [(), (ALICE,), (BOB,), (ALICE, BOB)])
def test_one_client_plays_from_another(behind):
    """Covers RFC 7425 §5.4.1 [peer-by-fingerprint] [play-on-flow], §5.4.2 [stream-begin].

    Covers RFC 7016 §3.5.1.6 [introduction]: through a translator before either, or both; what is
    played never comes near the server, which may even be gone.
    """
    pair = Pair(translated(*behind))
    stream = pair.play()
    del pair.world.link.nodes[SERVER]
    before = len(pair.world.link.sent)
    pair.write()
    events = stream.events()
    assert audio(events) == SOUND
    assert codes(events)[0] == SUCCESS and "NetStream.Play.Start" in codes(events)
    sent = pair.world.link.sent[before:]
    assert any((source, to) == (ALICE, BOB) for _, source, to, _ in sent)
    big = [(source, to) for _, source, to, data in sent if len(data) > 160]
    assert set(big) == {(ALICE, BOB)}


@pytest.mark.parametrize("seed", range(4))
def test_in_a_storm(seed):
    """Covers RFC 7425 §5.4.2 [return-flows]: what must arrive does, in its order."""
    pair = Pair(storm(Random(seed), loss=0.2, duplicates=0.2, spread=0.2))
    pair.world.run(60)
    stream = pair.play(seconds=60)
    pair.live.write(18, 0, b"\x02\x00\x02hi", pair.world.now)
    pair.world.run(60)
    assert (18, 0, b"\x02\x00\x02hi") in media(stream.events())


def test_the_flows_are_as_the_text_draws_them():
    """Covers RFC 7425 §5.4.1 [nonzero-stream], §5.4.2 [return-flows] [stream-begin]: Figure 6."""
    pair = Pair()
    stream = pair.play()
    pair.write()
    (peer,) = pair.bob.peers.sessions
    (control,) = peer.session.send_flows.values()
    assert control.metadata == bytes(FlowMetadata(stream.stream_id)) != bytes(FlowMetadata(0))
    (asked,) = pair.alice.peers.sessions
    assert [flow.associated for flow in asked.session.recv_flows.values()] == [None]
    returning = list(peer.session.recv_flows.values())
    assert len(returning) == 2  # sound, and the rest
    assert {flow.associated for flow in returning} == {control}
    assert {flow.metadata for flow in returning} == {control.metadata}


def test_several_streams_share_a_session():
    """Covers RFC 7425 §5.4 [several-streams], §5.4.2 [return-flows]: until the last one ends."""
    pair = Pair()
    other = pair.alice.peers.publish("other", pair.world.now)
    back = pair.bob.peers.publish("back", pair.world.now)
    streams = [pair.bob.play(pair.alice.peer_id, name) for name in ("song", "other")]
    pair.world.run()
    reverse = pair.alice.play(pair.bob.peer_id, "back")
    pair.world.run()
    for number, live in enumerate((pair.live, other, back)):
        live.write(8, number, b"\x82" + bytes((number,)), pair.world.now)
    pair.world.run()
    heard = [audio(stream.events()) for stream in (*streams, reverse)]
    assert heard == [[(8, n, b"\x82" + bytes((n,)))] for n in range(3)]
    assert len(pair.alice.peers.sessions) == len(pair.bob.peers.sessions) == 1
    streams.append(pair.bob.play(pair.alice.peer_id, "song"))
    assert [stream.stream_id for stream in streams] == [1, 2, 3]
    pair.world.run()
    for stream in (streams[0], streams[2], reverse):
        stream.send("deleteStream", 1.0)
    pair.world.run()
    other.write(8, 3, b"\x82\x03", pair.world.now)
    pair.world.run()
    assert audio(streams[1].events()) == [(8, 3, b"\x82\x03")]
    streams[1].send("deleteStream", 1.0)
    pair.world.run()
    assert pair.alice.peers.sessions == pair.bob.peers.sessions == []


def test_the_player_ends_it():
    """Covers RFC 7425 §5.4.3 [publisher-closes]: and the session, which is used no more."""
    pair = Pair()
    stream = pair.play()
    assert pair.live.players == 1
    (session,) = [peer.session for peer in pair.bob.peers.sessions]
    stream.send("deleteStream", 1.0)
    pair.world.run()
    assert pair.live.players == 0 and stream.transport.is_over
    assert codes(stream.events())[-1] == CLOSED
    assert session.state is not State.OPEN
    assert pair.bob.peers.sessions == pair.alice.peers.sessions == []
    assert len(pair.alice.node.connections) == len(pair.bob.node.connections) == 1


def test_the_flow_of_the_question_ends():
    """Covers RFC 7425 §5.4.3 [publisher-closes]: whatever else may come of the subscriber."""
    pair = Pair()
    pair.play()
    (peer,) = pair.bob.peers.sessions
    (question,) = peer.session.send_flows.values()
    question.close(pair.world.now)
    pair.world.run()
    assert pair.live.players == 0


def test_the_publisher_ends_it():
    """Covers RFC 7425 §5.4.3 [exception-closes]: by rejecting the subscriber's flow.

    And §5.3.5.3 [code-zero].
    """
    pair = Pair()
    stream = pair.play()
    (peer,) = pair.alice.peers.sessions
    (publication,) = peer.streams
    publication.close(pair.world.now)
    pair.world.run()
    assert stream.closed and codes(stream.events())[-1] == CLOSED
    assert pair.live.players == 0


def test_an_end_that_is_only_that_of_the_publishing():
    """RFC 7425 §5.4.2: the next one is played by who is there."""
    pair = Pair()
    stream = pair.play()
    pair.write()
    pair.live.end(pair.world.now)
    pair.world.run()
    assert "NetStream.Play.UnpublishNotify" in codes(stream.events())
    pair.live = pair.alice.peers.publish("song", pair.world.now)
    pair.write()
    assert audio(stream.events()) == SOUND and not stream.closed


def test_flows_for_media_may_end_at_any_time():
    """Covers RFC 7425 §5.4.2 [flows-come-and-go]: that means nothing for the stream."""
    pair = Pair()
    stream = pair.play()
    (peer,) = pair.alice.peers.sessions
    (publication,) = peer.streams
    pair.write()
    transport = publication.transport
    transport.enqueue(lambda now: transport._output.close_stream(stream.stream_id, now))
    pair.world.run()
    pair.write()
    assert audio(stream.events()) == SOUND * 2


@pytest.mark.parametrize("reason", ["nothing", "another", "forbidden"])
def test_what_is_not_played(reason):
    """Own design: who publishes nothing lets nobody in; who forbids it says so."""
    pair = Pair()
    pair.alice.peers.may_play = lambda peer_id, name: peer_id != pair.bob.peer_id
    if reason == "nothing":
        pair.live.end(pair.world.now)
        stream = pair.play(seconds=10)
        assert codes(stream.events()) == [SUCCESS, CLOSED] and pair.alice.peers.sessions == []
    else:
        stream = pair.play("song" if reason == "forbidden" else "another")
        assert "NetStream.Play.StreamNotFound" in codes(stream.events())
        assert stream.closed and pair.live.players == 0


def test_a_peer_that_answers_nothing():
    """Covers RFC 7016 §3.5.1.1.1 [ultimate-timeout]: told as Flash Player tells it."""
    pair = Pair()
    stream = pair.bob.play(bytes(32), "song")
    pair.world.run(100)
    assert codes(stream.events()) == [FAILED, CLOSED] and stream.closed
    given_up = pair.bob.play(bytes(32), "song")
    pair.bob.peers.give_up(given_up, pair.world.now)
    pair.world.run(1)
    assert pair.bob.node.endpoint.openings == [] and given_up.transport.is_over


def test_a_captured_peer_is_answered_as_it_was(corpus):
    """Covers RFC 7425 §5.4.1 [nonzero-stream]: who connects as to a server is refused.

    In the capture one program asks the other for a NetConnection, which refuses the flow.
    """
    path = corpus / "rtmfp" / "p2p_introduction.decrypted.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    direct = [line for line in lines if str(line["key"]).startswith("s3")]
    payloads = {
        chunk["name"]: bytes.fromhex(chunk["payload"])
        for line in direct
        for chunk in line["chunks"]
    }
    asked = UserData.parse(payloads["User Data"])
    refused = FlowException.parse(payloads["Flow Exception Report"])
    pair = Pair()
    pair.play()
    (peer,) = pair.bob.peers.sessions
    sender = Sender()
    metadata, _ = read_flow_options(asked.options)
    flow = peer.session.open_flow(metadata, pair.world.now, sender=sender)
    flow.send(asked.data, pair.world.now)
    pair.world.run()
    assert metadata == bytes(FlowMetadata(0)) and b"connect" in asked.data
    assert sender.codes == [refused.exception] == [0]


class Sender(FlowSender):
    """Remembers why a flow was rejected."""

    def __init__(self):
        self.codes = []

    def on_exception(self, flow, code, now):
        self.codes.append(code)


def test_who_is_no_peer():
    """Own design: neither are we."""
    pair = Pair()
    for peer_id in (b"short", pair.bob.peer_id):
        with pytest.raises(LocalError, match="no peer"):
            pair.bob.peers.play(peer_id, pair.world.now)
    with pytest.raises(LocalError, match="published already"):
        pair.alice.peers.publish("song", pair.world.now)
    del pair.world.link.nodes[SERVER]
    pair.bob.machine.transport.connection_lost(pair.world.now, "gone")
    pair.bob.machine.transport.session = None
    with pytest.raises(LocalError, match="no server"):
        pair.bob.peers.play(pair.alice.peer_id, pair.world.now)


def test_peers_have_limits():
    """Covers RFC 7016 §5 [resources-bounded]: so many peers, each with so many streams.

    A peer that does nothing makes room.
    """
    pair = Pair(limits=PeerLimits(sessions=1, streams=2))
    streams = [pair.bob.play(pair.alice.peer_id, "song") for _ in range(3)]
    pair.world.run()
    assert pair.live.players == 2
    assert REFUSED in codes(streams[2].events())
    carol = pair.world.client(CAROL)
    crowded = carol.play(pair.alice.peer_id, "song")
    pair.world.run(3)
    assert not audio(crowded.events()) and pair.live.players == 2
    (peer,) = pair.alice.peers.sessions
    for stream in list(peer.streams):
        stream.close(pair.world.now)
    pair.world.run(3)
    again = carol.play(pair.alice.peer_id, "song")
    pair.world.run(3)
    assert SUCCESS in codes(again.events()) and pair.live.players == 1


def test_how_often_to_look_whether_a_peer_is_there():
    """Covers RFC 7425 §5.3.4 [client-obeys]: what the server says of peers."""
    pair = Pair()
    pair.play()
    (peer,) = pair.bob.peers.sessions
    assert peer.session.keepalive.interval == pair.bob.machine.transport.peer_keepalive == 20.0


def test_a_peer_that_moves_is_followed():
    """Covers RFC 7016 §3.5.4.2 [answer-moves]: a translator may give a new port."""
    pair = Pair()
    stream = pair.play()
    moved = ("203.0.113.2", 50001)
    pair.world.link.nodes[moved] = pair.world.link.nodes.pop(BOB)
    (peer,) = pair.bob.peers.sessions
    peer.session.queue_chunk(Ping())
    pair.world.run()
    pair.write()
    assert audio(stream.events()) == SOUND
    (publication,) = pair.alice.peers.sessions[0].streams
    assert publication.peer_address == moved


def test_a_peer_publishes_nothing_to_us():
    """Covers RFC 7425 §5.4.1 [play-on-flow]: a direct stream goes one way."""
    pair = Pair()
    stream = pair.bob.peers.play(pair.alice.peer_id, pair.world.now)
    stream.send("createStream")
    stream.send("publish", "mine")
    pair.world.run()
    assert "NetStream.Publish.Rejected" in codes(stream.events()) and stream.closed


@pytest.mark.parametrize("seed", range(12))
def test_both_ask_for_each_other_at_once(seed):
    """Covers RFC 7016 §3.5.1.3 [far-prevails] [near-prevails]: however it goes, both play."""
    random = Random(seed)
    pair = Pair(lambda data, source, destination: (random.uniform(0.01, 0.5),))
    back = pair.bob.peers.publish("back", pair.world.now)
    pair.world.run(3)
    forth = [pair.bob.play(pair.alice.peer_id, "song") for _ in range(2)]
    pair.world.link.run(pair.world.now + random.uniform(0, 0.6))
    reverse = pair.alice.play(pair.bob.peer_id, "back")
    pair.world.run(20)
    pair.live.write(*SOUND[0], pair.world.now)
    back.write(*SOUND[1], pair.world.now)
    pair.world.run(5)
    heard = [audio(stream.events()) for stream in (*forth, reverse)]
    assert heard == [[SOUND[0]], [SOUND[0]], [SOUND[1]]]
    assert len(pair.bob.node.endpoint.sessions) == 2


def test_another_session_with_the_peer_serves():
    """Covers RFC 7016 §3.5.1.1.1 [duplicate-aborted]: what waited for one goes into the other."""
    pair = Pair()
    back = pair.bob.peers.publish("back", pair.world.now)
    reverse = pair.alice.play(pair.bob.peer_id, "back")
    pair.world.run()
    ours = pair.bob.peers._sessions.pop(pair.alice.peer_id)  # as if it were not known yet
    stream = pair.bob.play(pair.alice.peer_id, "song")
    pair.bob.peers._sessions[pair.alice.peer_id] = ours
    pair.world.run()
    pair.write()
    back.write(*SOUND[1], pair.world.now)
    pair.world.run()
    assert audio(stream.events()) == SOUND and audio(reverse.events()) == [SOUND[1]]
    assert len(pair.alice.peers.sessions) == len(pair.bob.peers.sessions) == 1
