"""The initiator: when it asks, whom it believes, and when it gives up."""

from dataclasses import replace

import pytest
from support.rtmfp.endpoints import CLIENT, SERVER, THIRD, PlainProfile, World, startup_datagram

from rtmplite.rtmfp.endpoint import initiator
from rtmplite.rtmfp.endpoint.initiator import OpeningState
from rtmplite.rtmfp.wire import startup_chunks
from rtmplite.rtmfp.wire.address import SocketAddress
from rtmplite.rtmfp.wire.startup_chunks import (
    InitiatorHello,
    InitiatorInitialKeying,
    ResponderHello,
    ResponderInitialKeying,
    ResponderRedirect,
    RHelloCookieChange,
)

SCHEDULE = [0, 1.5, 4.5, 9, 15, 22.5, 31.5, 42, 54, 67.5, 82.5]


class Lone:
    """An initiator whose far end is this test."""

    def __init__(self, *addresses, epd=b"server", **options):
        self.world = World()
        self.node = self.world.join(CLIENT, b"client", **options)
        self.opening = self.world.connect(self.node, epd, *(addresses or (SERVER,)))
        self.world.run(0)

    @property
    def now(self):
        return self.world.link.now

    def hear(self, chunk, session_id=0, source=SERVER):
        self.node.receive(startup_datagram(chunk, session_id), source, self.now)
        self.world.run(0)

    def hello(self, certificate=b"server", cookie=b"cookie", source=SERVER, tag=None):
        self.hear(ResponderHello(tag or self.opening.tag, cookie, certificate), source=source)

    def keying(self, component=b"skrc", session_id=9, signature=b"signed"):
        chunk = ResponderInitialKeying(session_id, component, signature)
        self.hear(chunk, self.opening.near_id)

    def times(self, kind, to=None):
        return [at for at, where, _ in self.world.sent(kind, CLIENT) if to in (None, where)]

    def last(self, kind):
        return self.world.sent(kind, CLIENT)[-1][2]


def test_hellos_go_out_on_schedule_until_the_time_is_over():
    """Covers RFC 7016 §3.5.1.1.1 [hello-backoff] [ultimate-timeout]."""
    lone = Lone()
    lone.world.run(94.99)
    assert lone.times(InitiatorHello) == SCHEDULE
    assert (lone.opening.state, lone.node.user.failed) == (OpeningState.IHELLO_SENT, [])
    lone.world.run(0.01)
    assert lone.opening.state is OpeningState.OPEN_FAILED
    assert lone.node.user.failed == [(lone.opening, lone.opening.reason, 95.0)]
    assert lone.node.deadline is None
    lone.world.run(1000)
    assert lone.times(InitiatorHello) == SCHEDULE


def test_every_address_is_asked_on_a_schedule_of_its_own():
    """Covers RFC 7016 §3.5.1.1.1 [separate-backoffs] [redirect-adds]."""
    lone = Lone(SERVER, THIRD)
    lone.world.run(5.0)
    late = ("203.0.113.77", 1)
    redirect = ResponderRedirect(lone.opening.tag, (SocketAddress(*late), SocketAddress(*SERVER)))
    lone.hear(redirect, source=THIRD)
    lone.world.run(100.0)
    assert lone.times(InitiatorHello, SERVER) == lone.times(InitiatorHello, THIRD) == SCHEDULE
    assert lone.times(InitiatorHello, late) == [5 + at for at in SCHEDULE if 5 + at < 95]
    chunks = {chunk for _, _, chunk in lone.world.sent(InitiatorHello)}
    assert chunks == {InitiatorHello(b"server", lone.opening.tag)}


def test_an_implied_redirect_means_where_it_came_from():
    """Covers RFC 7016 §3.5.1.1.1 [redirect-adds], §2.3.5 [implied-redirect]."""
    lone = Lone()
    lone.hear(ResponderRedirect(lone.opening.tag), source=THIRD)
    assert set(lone.opening.candidates) == {SERVER, THIRD}


def test_redirects_end_at_24_addresses_and_lead_nowhere_odd():
    """Covers RFC 7016 §3.5.1.1.1 [threshold-24] [redirect-adds]."""
    lone = Lone()
    odd = (SocketAddress("224.0.0.1", 1), SocketAddress("192.0.2.9", 0))
    lone.hear(ResponderRedirect(lone.opening.tag, odd))
    assert set(lone.opening.candidates) == {SERVER}
    many = tuple(SocketAddress("192.0.2.200", port) for port in range(1, 50))
    lone.hear(ResponderRedirect(b"another tag", many))
    assert len(lone.opening.candidates) == 1
    lone.hear(ResponderRedirect(lone.opening.tag, many))
    assert len(lone.opening.candidates) == 24
    lone.hear(ResponderRedirect(lone.opening.tag, many[30:]))
    assert len(lone.opening.candidates) == 24


def test_a_redirect_with_many_destinations_costs_little(monkeypatch):
    """Own design: of 9,000 in one packet 64 are read, and 24 looked at, of use or not."""
    read, looked_at = [], []
    parse, sendable = startup_chunks.parse_address, initiator.is_sendable
    monkeypatch.setattr(
        startup_chunks, "parse_address", lambda *args: (read.append(args), parse(*args))[1]
    )
    monkeypatch.setattr(
        initiator, "is_sendable", lambda address: (looked_at.append(address), sendable(address))[1]
    )
    lone = Lone()
    useless = SocketAddress("224.0.0.1", 1)
    packet = ResponderRedirect(lone.opening.tag, (useless,) * 9000).encode()
    redirect = ResponderRedirect.parse(packet)
    assert len(read) == len(redirect.redirect_destinations) == startup_chunks.MAX_DESTINATIONS
    lone.opening.on_redirect(redirect, THIRD, lone.now)
    assert len(looked_at) == 24 and set(lone.opening.candidates) == {SERVER}


def test_redirects_come_too_late_once_somebody_has_answered():
    """Covers RFC 7016 §3.5.1.1.1 [redirect-adds]: only in S_IHELLO_SENT."""
    lone, early = Lone(), SocketAddress("203.0.113.77", 5)
    lone.hear(ResponderRedirect(lone.opening.tag, (early,)))
    assert ("203.0.113.77", 5) in lone.opening.candidates
    lone.hello()
    lone.hear(ResponderRedirect(lone.opening.tag, (SocketAddress(*THIRD),)))
    assert THIRD not in lone.opening.candidates


def test_tags_are_new_and_long():
    """Covers RFC 7016 §3.5.1.1.1 [tag-unguessable] [unique-tag]."""
    drawn = [bytes(16), bytes(16), bytes(15) + b"\1"]

    class Repeats(PlainProfile):
        pass

    lone = Lone(profile=Repeats(b"client", None))
    lone.node.endpoint._openings._random = lambda size: drawn.pop(0)[:size]
    one = lone.world.connect(lone.node, b"one", SERVER)
    two = lone.world.connect(lone.node, b"two", SERVER)
    assert (one.tag, two.tag) == (bytes(16), bytes(15) + b"\1")
    assert len(lone.opening.tag) == 16 != lone.opening.tag.count(0)


def test_the_first_right_answer_is_taken():
    """Covers RFC 7016 §3.5.1.1.1 [first-rhello] [iikeying-sent], §2.3.7 [has-cookie]."""
    lone = Lone(SERVER, THIRD)
    lone.hello(b"server#1", b"cookie 1", THIRD)
    lone.hello(b"server#2", b"cookie 2", SERVER)
    opening = lone.opening
    assert (opening.state, opening.address) == (OpeningState.KEYING_SENT, THIRD)
    assert opening.far_certificate == b"server#1"
    ((_, to, keying),) = lone.world.sent(InitiatorInitialKeying)
    assert to == THIRD
    assert keying.cookie_echo == b"cookie 1"
    assert keying.initiator_session_id == opening.near_id != 0
    assert keying.initiator_certificate == b"client"
    assert keying.signature == b"signed"
    lone.world.run(10)
    assert lone.times(InitiatorHello) == [0, 0]
    lone.hello(b"server#2", b"cookie 2", SERVER)
    assert opening.far_certificate == b"server#1"


@pytest.mark.parametrize("certificate", [b"another", b"bad server", b"", b"serve"])
def test_a_wrong_certificate_is_ignored(certificate):
    """Covers RFC 7016 §3.5.1.1.1 [rhello-certificate-selected]."""
    lone = Lone()
    lone.hello(certificate)
    assert lone.opening.state is OpeningState.IHELLO_SENT


def test_a_certificate_that_is_not_authentic_is_ignored():
    """Covers RFC 7016 §3.5.1.1.1 [rhello-certificate-authentic]."""
    lone = Lone(epd=b"bad")
    lone.hello(b"bad server")
    assert lone.opening.state is OpeningState.IHELLO_SENT


def test_another_tag_is_ignored():
    """Own design: it answers an opening that is decided, or nobody's."""
    lone = Lone()
    lone.hello(tag=b"another")
    assert lone.opening.state is OpeningState.IHELLO_SENT


@pytest.mark.parametrize(("cookie", "certificate"), [(b"c" * 4097, b""), (b"c", bytes(4097))])
def test_what_would_not_fit_a_keying_is_ignored(cookie, certificate):
    """Own design: a cookie of 60 KB would make packets that are never whole."""
    lone = Lone()
    lone.hello(b"server" + certificate, cookie)
    assert lone.opening.state is OpeningState.IHELLO_SENT


def test_keyings_go_out_on_schedule_until_the_time_is_over():
    """Covers RFC 7016 §3.5.1.1.1 [keying-backoff] [ultimate-timeout]."""
    lone = Lone()
    lone.world.run(7.0)
    lone.hello()
    lone.world.run(200)
    assert lone.times(InitiatorInitialKeying) == [7 + at for at in SCHEDULE if 7 + at < 95]
    assert lone.opening.state is OpeningState.OPEN_FAILED
    assert lone.node.user.failed == [(lone.opening, lone.opening.reason, 95.0)]


def test_the_schedule_begins_when_the_key_is_computed():
    """Covers RFC 7016 §3.5.1.1.1 [keying-backoff]: Diffie-Hellman takes its time."""
    lone = Lone(slow=0.25)
    lone.hello()
    lone.world.run(5)
    assert lone.times(InitiatorInitialKeying) == [0.25, 1.75, 4.75]


def test_a_session_opens_with_a_good_rikeying():
    """Covers RFC 7016 §3.5.1.1.1 [rikeying-accepted] [initiator-open]."""
    lone = Lone()
    lone.hello()
    lone.keying(b"skrc", 9)
    assert lone.opening.state is OpeningState.OPEN
    ((session, opening, _),) = lone.node.user.sessions
    assert opening is lone.opening
    assert (session.near_id, session.far_id) == (opening.near_id, 9)
    assert (session.address, session.far_certificate) == (SERVER, b"server")
    assert (session.near_nonce, session.far_nonce) == (b"near", b"far")
    assert lone.node.endpoint.openings == []


def test_bad_rikeyings_change_nothing_and_a_good_one_still_counts():
    """Covers RFC 7016 §3.5.1.1.1 [rikeying-accepted], §3.3 [zero-is-startup].

    Covers RFC 7016 §2.3.8 [rikeying-only-in]: for the session, and no other.
    """
    lone = Lone()
    lone.keying()  # before there is an IIKeying
    lone.hello()
    lone.keying(b"bad component")
    lone.keying(signature=b"forged")
    lone.keying(session_id=0)
    lone.hear(ResponderInitialKeying(9, b"skrc", b"signed"), session_id=0)
    lone.hear(ResponderInitialKeying(9, b"skrc", b"signed"), lone.opening.near_id ^ 1)
    assert lone.opening.state is OpeningState.KEYING_SENT
    lone.world.run(1.5)
    assert lone.times(InitiatorInitialKeying) == [0, 1.5]
    lone.keying()
    assert lone.opening.state is OpeningState.OPEN


def test_one_rikeying_is_computed_at_a_time():
    """Own design: Diffie-Hellman for each copy of a packet would be work for nothing."""
    lone = Lone(slow=0.25)
    lone.hello()
    lone.world.run(0.3)
    for component in (b"bad", b"skrc"):
        lone.keying(component)
        lone.keying(component)
    assert len(lone.node.jobs) == 1
    lone.world.run(0.3)
    assert lone.opening.state is OpeningState.KEYING_SENT
    lone.keying()
    lone.world.run(0.3)
    assert lone.opening.state is OpeningState.OPEN


def test_a_far_end_without_a_common_key_agreement_is_no_use():
    """Own design: it is who we wanted, and will be no other when asked again."""
    lone = Lone()
    lone.hello(b"server incompatible")
    assert lone.opening.state is OpeningState.OPEN_FAILED
    assert lone.node.user.failed[0][1] == "nothing in common"


def test_the_cookie_is_changed_once():
    """Covers RFC 7016 §3.5.1.2 [adopts-new-cookie] [changes-once], §2.3.6 [signs-again].

    Covers RFC 7016 §2.3.6 [cookie-change-only-in]: for the session, and no other.
    """
    lone = Lone()
    change = RHelloCookieChange(b"cookie", b"new cookie")
    lone.hello()
    lone.world.run(1.0)
    lone.hear(replace(change, old_cookie=b"not this"), lone.opening.near_id)
    lone.hear(change, 0)
    assert lone.last(InitiatorInitialKeying).cookie_echo == b"cookie"
    lone.hear(change, lone.opening.near_id)
    lone.hear(RHelloCookieChange(b"new cookie", b"a third"), lone.opening.near_id)
    lone.world.run(5.0)
    keyings = [keying for _, _, keying in lone.world.sent(InitiatorInitialKeying)]
    assert [keying.cookie_echo for keying in keyings] == [b"cookie"] + 3 * [b"new cookie"]
    assert lone.times(InitiatorInitialKeying) == [0, 1, 2.5, 5.5]
    # only the cookie has changed
    assert replace(keyings[-1], cookie_echo=b"cookie", received=b"") == keyings[0]
    lone.keying()
    assert lone.opening.state is OpeningState.OPEN


def test_a_cookie_is_not_changed_before_it_was_sent():
    """Covers RFC 7016 §3.5.1.2 [adopts-new-cookie]."""
    lone = Lone(slow=0.25)
    lone.hello()
    lone.hear(RHelloCookieChange(b"cookie", b"new cookie"), lone.opening.near_id)
    lone.world.run(1.0)
    assert lone.last(InitiatorInitialKeying).cookie_echo == b"cookie"
    lone.hear(RHelloCookieChange(b"cookie", bytes(5000)), lone.opening.near_id)
    assert lone.last(InitiatorInitialKeying).cookie_echo == b"cookie"
    lone.hear(RHelloCookieChange(b"cookie", b"new cookie"), lone.opening.near_id)
    lone.world.run(1.0)
    assert lone.last(InitiatorInitialKeying).cookie_echo == b"new cookie"


def test_a_second_opening_to_the_same_identity_gives_way():
    """Covers RFC 7016 §3.5.1.1.1 [duplicate-aborted]: while the first one is keying, and after."""
    lone = Lone()
    lone.hello(b"server#1")
    twin = lone.world.connect(lone.node, b"serv", THIRD)
    lone.hello(b"server#2", tag=twin.tag, source=THIRD)
    assert (twin.state, twin.instead) == (OpeningState.CLOSED, lone.opening)
    lone.keying()
    third = lone.world.connect(lone.node, b"server", THIRD)
    lone.hello(b"server#1", tag=third.tag, source=THIRD)
    assert (third.state, third.instead) == (OpeningState.CLOSED, lone.node.session)
    assert [opening for opening, _, _ in lone.node.user.failed] == [twin, third]
    assert lone.times(InitiatorInitialKeying) == [0]


def test_what_is_no_duplicate_goes_on():
    """Covers RFC 7016 §3.5.1.1.1 [duplicate-aborted]: both conditions must hold."""
    lone = Lone()
    lone.hello(b"server#1")
    lone.keying()
    # Another identity; and the same identity, whose first certificate does not match the wish.
    for epd, certificate in ((b"serve", b"server2"), (b"server#2", b"server#2")):
        opening = lone.world.connect(lone.node, epd, THIRD)
        lone.hello(certificate, tag=opening.tag, source=THIRD)
        assert opening.state is OpeningState.KEYING_SENT
    lone.node.session.abort(lone.now)
    lone.world.run(0)
    again = lone.world.connect(lone.node, b"server#1", THIRD)
    lone.hello(b"server#1", tag=again.tag, source=THIRD)
    assert again.state is OpeningState.KEYING_SENT


@pytest.mark.parametrize("moment", ["asking", "computing", "keying", "agreeing"])
def test_an_opening_can_be_cancelled_at_any_time(moment):
    """Own design: nobody is told, nothing is sent, and nothing comes of what is in work."""
    lone = Lone(slow=0.25)
    if moment != "asking":
        lone.hello()
    if moment in ("keying", "agreeing"):
        lone.world.run(0.3)
    if moment == "agreeing":
        lone.keying()
    lone.opening.cancel(lone.now)
    count = len(lone.world.link.sent)
    lone.opening.cancel(lone.now)
    lone.opening.tick(lone.now)
    lone.world.run(200)
    assert lone.opening.state is OpeningState.CLOSED
    assert len(lone.world.link.sent) == count
    assert lone.node.user.failed == lone.node.user.sessions == []
    assert lone.node.endpoint.openings == []


def test_session_ids_are_never_zero_and_never_twice():
    """Covers RFC 7016 §3.5.1.1.1 [unique-near-id], §3.3 [zero-is-startup]."""
    lone = Lone()
    drawn = [0, 5, 5, 0, 6]
    lone.node.endpoint.table._random = lambda size: drawn.pop(0).to_bytes(size, "big")
    lone.hello()
    other = lone.world.connect(lone.node, b"other", THIRD)
    lone.hello(b"other", tag=other.tag, source=THIRD)
    assert (lone.opening.near_id, other.near_id) == (5, 6)
    lone.keying()
    drawn = [5, 7]
    third = lone.world.connect(lone.node, b"third", THIRD)
    lone.hello(b"third", tag=third.tag, source=THIRD)
    assert third.near_id == 7


def test_openings_say_what_they_are():
    """Own design: for logs."""
    lone = Lone()
    assert "S_IHELLO_SENT" in repr(lone.opening)
