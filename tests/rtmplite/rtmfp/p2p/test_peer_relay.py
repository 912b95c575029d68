"""A server between two of its clients."""

import pytest
from support.rtmfp.peer_world import SERVER, PeerWorld, codes, media, translated

from rtmplite.rtmfp.crypto.epd import Epd
from rtmplite.rtmfp.netconnection.messages import RELAY_COMMAND
from rtmplite.rtmfp.p2p.direct import CLOSED, SUCCESS
from rtmplite.rtmfp.p2p.peer_relay import FLOWS
from rtmplite.rtmp.application import LiveApplication
from rtmplite.rtmp.client import Reply

ALICE, BOB, CAROL = ("198.51.100.1", 40000), ("203.0.113.2", 50000), ("203.0.113.3", 50000)
SOUND = [(8, 20 * number, b"\x82" + bytes((number,)) * 160) for number in range(50)]


class Relayed:
    """Alice publishes, Bob cannot reach her; the server stands between, if asked to."""

    def __init__(self, weather=None, **options):
        options = {"introduces": True, "relays": True} | options
        self.world = PeerWorld(weather or translated(ALICE, BOB, symmetric=True), **options)
        self.world.user.applications["other"] = LiveApplication()
        self.alice, self.bob = self.world.client(ALICE), self.world.client(BOB)
        self.live = self.alice.peers.publish("song", self.world.now)

    def relay(self, client=None, of=None):
        client = client or self.bob
        wanted = self.alice.peer_id.hex() if of is None else of
        client.machine.events()
        number = client.machine.call(RELAY_COMMAND, wanted)
        self.world.run(1)
        replies = [each for each in client.machine.events() if isinstance(each, Reply)]
        (reply,) = [each for each in replies if each.transaction_id == number]
        return bytes.fromhex(reply.values[-1]) if reply.succeeded else None

    def play(self, seconds=3.0):
        stream = self.bob.play(self.relay(), "song")
        self.world.run(seconds)
        return stream

    def write(self, messages=SOUND):
        for type_id, time, payload in messages:
            self.live.write(type_id, time, payload, self.world.now)
            self.world.run(0.02)
        self.world.run()


def audio(events):
    return [message for message in media(events) if message[0] == 8]


def test_who_cannot_meet_is_relayed():
    """Covers RFC 7016 §3.5.1.4 [redirect-for-others], §3.5.1.6 [introduction].

    Behind translators that nobody gets through: introduced they do not find each other; by way of
    the server they do.
    """
    meeting = Relayed()
    direct = meeting.bob.play(meeting.alice.peer_id, "song")
    meeting.world.run(20)
    assert codes(direct.events()) == []
    meeting.bob.peers.give_up(direct, meeting.world.now)
    stream = meeting.play()
    meeting.write()
    events = stream.events()
    assert audio(events) == SOUND and SUCCESS in codes(events)
    between = [1 for _, source, to, _ in meeting.world.link.sent if {source, to} == {ALICE, BOB}]
    arrived = [peer.session.address for peer in meeting.bob.peers.sessions]
    assert [address[0] for address in arrived] == [SERVER[0]] and arrived != [SERVER]
    assert len(between) < 40  # hellos, and no more after that
    (middle,) = meeting.world.user.peer_relays.bridges
    assert middle.moved > sum(len(payload) for _, _, payload in SOUND)


def test_each_end_sees_a_stand_in():
    """Own design: neither learns where the other is, nor its peer id by RTMFP."""
    meeting = Relayed(introduces=False)
    seen = []
    meeting.alice.peers.may_play = lambda peer_id, name: seen.append(peer_id) or True
    meeting.play()
    assert seen == [meeting.relay(meeting.alice, meeting.bob.peer_id.hex())]
    assert seen != [meeting.bob.peer_id]
    addresses = [peer.session.address[0] for peer in meeting.alice.peers.sessions]
    assert addresses == [SERVER[0]]


def test_both_directions_in_one_pair_of_sessions():
    """Own design: who is played from may play back, by the id that it sees."""
    meeting = Relayed()
    stream = meeting.play()
    back = meeting.bob.peers.publish("back", meeting.world.now)
    (seen,) = [peer.peer_id for peer in meeting.alice.peers.sessions]
    reverse = meeting.alice.play(seen, "back")
    meeting.world.run()
    meeting.write(SOUND[:3])
    back.write(*SOUND[7], meeting.world.now)
    meeting.world.run()
    assert audio(stream.events()) == SOUND[:3] and audio(reverse.events()) == [SOUND[7]]
    assert len(meeting.world.user.peer_relays.bridges) == 1


@pytest.mark.parametrize("end", ["player", "publisher", "server", "player's connection"])
def test_the_end_reaches_the_other_side(end):
    """Covers RFC 7016 §3.5.5 [flows-end], RFC 7425 §5.4.3 [publisher-closes]."""
    meeting = Relayed()
    stream = meeting.play()
    now = meeting.world.now
    assert meeting.live.players == 1
    if end == "player":
        stream.send("deleteStream", 1.0)
    elif end == "publisher":
        for peer in meeting.alice.peers.sessions:
            for each in list(peer.streams):
                each.close(now)
    elif end == "server":
        meeting.world.user.peer_relays.stop(meeting.world.now)
    else:
        meeting.world.user.peer_relays.forget(meeting.bob.peer_id, meeting.world.now)
    meeting.world.run(5)
    assert meeting.live.players == 0
    assert stream.closed and codes(stream.events())[-1] == CLOSED
    if end == "server":
        assert len(meeting.world.link.nodes) == 3


def test_a_slow_player_holds_the_publisher_up_and_costs_little():
    """Own design: `middle.HIGH` and the receive window are all that is kept for it."""
    meeting = Relayed()
    stream = meeting.play()
    stream.pause_reading()
    picture = b"\x27\x01" + bytes(20_000)
    for number in range(200):
        meeting.live.write(9, 40 * number, b"\x17" + picture, meeting.world.now)
        meeting.world.run(0.04)
    kept = sum(
        session.queued + session.buffered
        for middle in meeting.world.user.peer_relays.bridges
        for session in middle.sessions
    )
    assert kept < 2_000_000 < 200 * len(picture)
    stream.resume_reading()
    meeting.world.run(30)
    assert len(media(stream.events())) > 10


def test_who_may_not_ask_for_a_stand_in():
    """Own design: as with introductions, and the answer is the same for all."""
    meeting = Relayed()
    stranger = meeting.world.client(CAROL, "other")
    assert meeting.relay(stranger) is None
    for of in ("", "zz", "00" * 32, meeting.bob.peer_id.hex()):
        assert meeting.relay(of=of) is None
    assert meeting.world.places == 0
    peer_id = meeting.relay()
    sneaking = stranger.play(peer_id, "song")
    meeting.world.run(5)
    assert not audio(sneaking.events()) and meeting.live.players == 0
    assert meeting.world.places == 1


def test_there_are_no_more_stand_ins_than_allowed():
    """Covers RFC 7016 §5 [resources-bounded]: a port each is a lot."""
    meeting = Relayed()
    meeting.world.user.peer_relays._most = 1
    assert meeting.relay() is not None
    assert meeting.relay(meeting.alice, meeting.bob.peer_id.hex()) is None
    stream = meeting.bob.play(meeting.relay(), "song")  # which needs two
    meeting.world.run(5)
    assert meeting.live.players == 0 and codes(stream.events())[-1] == CLOSED
    meeting.world.user.peer_relays.forget(meeting.alice.peer_id, meeting.world.now)
    assert meeting.relay(meeting.alice, meeting.bob.peer_id.hex()) is not None


def test_a_publisher_that_does_not_answer():
    """Own design: then the first session is closed as well."""
    meeting = Relayed()
    peer_id = meeting.relay()
    del meeting.world.link.nodes[ALICE]
    stream = meeting.bob.play(peer_id, "song")
    meeting.world.run(100)
    assert stream.closed and meeting.world.user.peer_relays._opening == []


def test_nobody_has_us_ask_at_addresses_of_many():
    """Covers RFC 7016 §5 [resources-bounded]: a client may say that it is anywhere."""
    meeting = Relayed()
    many, one = ("224.0.0.1", 1), ("203.0.113.77", 1)
    connection = meeting.world.user.peer_relays.connection_of(meeting.alice.peer_id)
    connection.listed = (many, one)
    meeting.bob.play(meeting.relay(), "song")
    meeting.world.run(3)
    asked = {destination for _, _, destination, _ in meeting.world.link.sent}
    assert one in asked and many not in asked


def test_a_player_that_leaves_while_the_publisher_is_asked():
    """Own design: nobody is reminded of it any more, and its first session ends."""
    meeting = Relayed()
    peer_id = meeting.relay()
    del meeting.world.link.nodes[ALICE]
    stream = meeting.bob.play(peer_id, "song")
    meeting.world.run(3)
    peer_relays = meeting.world.user.peer_relays
    (asked,) = peer_relays._opening
    peer_relays.forget(meeting.bob.peer_id, meeting.world.now)
    meeting.world.run(3)
    assert peer_relays._opening == [] and asked[2].is_over
    assert stream.closed


def test_flows_have_a_limit_and_only_what_may_be_associated_passes():
    """Covers RFC 7016 §5 [resources-bounded]; a flow of another kind passes as it is."""
    meeting = Relayed()
    meeting.play()
    (middle,) = meeting.world.user.peer_relays.bridges
    (peer,) = meeting.bob.peers.sessions
    codes_heard = []
    for number in range(FLOWS + 2):
        flow = peer.session.open_flow(b"GC%d" % number, meeting.world.now)
        flow.sender.on_exception = lambda flow, code, now: codes_heard.append(code)
        flow.send(b"gossip", meeting.world.now)
        meeting.world.run(0.05)
    meeting.world.run(3)
    assert len(codes_heard) == FLOWS + 2  # Alice wants none of them, and says so through us
    assert len(middle._pipes) < 8


def test_stand_ins_are_asked_for_by_their_own_id():
    """RFC 7016 §3.5.1.4: who asks for one is sent to its port."""
    meeting = Relayed()
    peer_relays = meeting.world.user.peer_relays
    peer_id = meeting.relay()
    assert peer_relays.addresses_of(Epd(fingerprint=peer_id).encode()) == [(SERVER[0], 40001)]
    assert peer_relays.addresses_of(Epd(fingerprint=bytes(32)).encode()) == []
    assert peer_relays.get(meeting.alice.peer_id).peer_id == peer_id
