"""Agents on loopback: two phones call each other, and one talks to a registrar that refuses."""

import socket

import gevent
import pytest
from support.sip.agents import agent_with
from support.sip.phones import FRAMES, answering, talk, uri, wait_for
from support.sockets import UdpClient

from p2psip.errors import LocalError, RemoteError
from p2psip.sip.address import Address
from p2psip.sip.uri import Uri
from p2psip.ua.replaces import Replaces


def test_a_call_carries_sound_both_ways_and_is_hung_up(alice, bob):
    at_bob, at_alice, rang = [], [], []
    taken = answering(bob, at_bob)
    call = alice.call(
        uri(bob),
        timeout=20,
        on_audio=lambda payload, timestamp: at_alice.append((payload, timestamp)),
        on_ringing=lambda status, reason: rang.append(status),
    )
    wait_for(lambda: taken)
    assert rang == [180]
    assert call.is_up and taken[0].is_up and call.id == taken[0].id
    assert (call.direction, taken[0].direction) == ("out", "in")
    assert taken[0].remote.display == "Alice"
    assert call.codec.name == taken[0].codec.name == "PCMU"
    talk(call)
    talk(taken[0])
    wait_for(lambda: len(at_bob) == len(at_alice) == len(FRAMES))
    for heard in (at_bob, at_alice):
        assert [payload for payload, _ in heard] == FRAMES
        first = heard[0][1]
        assert [(at - first) % 2**32 for _, at in heard] == [160 * n for n in range(len(FRAMES))]
    call.hangup()
    call.hangup()  # changes nothing
    assert taken[0].wait_ended(20)
    assert (call.reason, taken[0].reason) == ("hung up", "BYE")
    assert not call.send_audio(FRAMES[0])
    assert call.statistics.packets_sent == taken[0].statistics.packets_received == len(FRAMES)
    assert taken[0].statistics.lost == 0
    assert alice.calls == bob.calls == []


def test_the_callee_may_hang_up_too(alice, bob):
    taken = answering(bob)
    call = alice.call(uri(bob), timeout=20)
    wait_for(lambda: taken)
    assert not call.wait_ended(0.01)
    taken[0].hangup()
    assert call.wait_ended(20) and call.reason == "BYE"


def test_a_refusal_is_an_error_with_its_status(alice, bob):
    bob.on_call = lambda call: call.reject(603, "Decline")
    with pytest.raises(RemoteError, match="Decline") as refused:
        alice.call(uri(bob), timeout=20)
    assert refused.value.status == 603


def test_who_has_no_on_call_is_unavailable(alice, bob):
    with pytest.raises(RemoteError) as refused:
        alice.call(uri(bob), timeout=20)
    assert refused.value.status == 480


def test_without_a_media_port_the_caller_hears_503(alice, make):
    """Covers RFC 3261 §21.5.4: and the phone goes on."""
    with PlainSocket() as busy:
        taken = busy.socket.getsockname()[1] // 2 * 2
        full = make("carol", rtp_ports=(taken, taken + 1))
        with pytest.raises(RemoteError, match="No Media Port") as refused:
            alice.call(uri(full), timeout=20)
    assert refused.value.status == 503 and full.calls == []


def test_a_handler_that_fails_refuses_the_call(alice, bob):
    def on_call(call):
        raise ZeroDivisionError

    bob.on_call = on_call
    with pytest.raises(RemoteError) as refused:
        alice.call(uri(bob), timeout=20)
    assert refused.value.status == 603


def test_nobody_of_that_name(alice, bob):
    """Covers RFC 3261 §8.2.2.1 [404-for-another-user]."""
    with pytest.raises(RemoteError) as refused:
        alice.call(uri(bob).replace("bob", "carol"), timeout=20)
    assert refused.value.status == 404


def test_no_codec_in_common_is_488_and_nobody_is_told(alice, make):
    """Covers RFC 3261 §13.3.1.3 [488-for-the-offer]."""
    told = []
    carol = make("carol", codecs=("speex/16000",))
    carol.on_call = told.append
    with pytest.raises(RemoteError) as refused:
        alice.call(uri(carol), timeout=20)
    assert refused.value.status == 488
    assert told == [] == carol.calls


def test_giving_up_cancels(alice, bob):
    """Covers RFC 3261 §9.1."""
    ringing = []
    bob.on_call = ringing.append
    with pytest.raises(TimeoutError):
        alice.call(uri(bob), timeout=0.2)
    wait_for(lambda: ringing and ringing[0].is_over)
    assert ringing[0].reason == "CANCEL"
    with pytest.raises(RemoteError) as gone:
        ringing[0].answer()
    assert gone.value.status == 487
    assert alice.calls == bob.calls == []


def test_what_a_caller_must_not_do(alice, bob):
    taken = answering(bob)
    call = alice.call(uri(bob), timeout=20)
    wait_for(lambda: taken)
    for wrong in (call.answer, call.reject, taken[0].answer):
        with pytest.raises(LocalError):
            wrong()
    taken[0].reject()  # too late: nothing happens
    assert call.is_up and taken[0].is_up


@pytest.mark.parametrize("target", ["", "tel:+15551234", "sips:@example.com", "<sip:bob@x", "a b"])
def test_what_cannot_be_called(alice, target):
    with pytest.raises(LocalError):
        alice.call(target, timeout=1)
    assert alice.calls == []


@pytest.mark.parametrize(
    "options",
    [
        {"listen": ("0.0.0.0", 0)},
        {"codecs": ("speex/fast",)},
        {"codecs": ("",)},
        {"domain": "b@d"},
        {"domain": "bad domain"},
    ],
)
def test_what_cannot_be_an_agent(options):
    with pytest.raises(LocalError):
        agent_with(**options)


def test_a_bare_name_is_one_of_our_domain(make, bob):
    host, port = bob.address
    taken = answering(bob)
    carol = make("carol", domain=f"{host}:{port}")
    carol.call("bob", timeout=20)
    wait_for(lambda: taken)
    assert str(taken[0].remote.uri) == f"sip:carol@{host}:{port}"


def test_speex_is_sent_by_explicit_timestamps(make):
    alice, bob = (make(user, codecs=("speex/16000",)) for user in ("alice", "bob"))
    heard = []
    answering(bob, heard)
    call = alice.call(uri(bob), timeout=20)
    for at in (0, 320, 1600):
        call.send_audio(b"frame", at)
    call.send_audio(b"next")
    wait_for(lambda: len(heard) == 4)
    first = heard[0][1]
    assert [(at - first) % 2**32 for _, at in heard] == [0, 320, 1600, 1920]


def test_the_parameters_of_a_bare_uri_are_its_own(alice, bob):
    taken = answering(bob)
    call = alice.call(f"{uri(bob)};transport=tcp", timeout=5)
    wait_for(lambda: taken)
    assert bob._driver.connections == 1 and call.remote.uri.param("transport") == "tcp"


def test_a_private_call_shows_no_name(alice, bob):
    """Covers RFC 3261 §8.1.1.3 [anonymous], §20.20 [anonymous-by-name].

    And RFC 3323 §4.1.1.3 [anonymous-host], §4.1 [anonymous-from] [nothing-of-the-user]
    [uris-without-names], §4.1.1.1 [named-anonymous], §4.1.1.2 [contact-without-user],
    §4.2 [asks-the-network]; RFC 3325 §9.3.
    """
    taken = answering(bob)
    call = alice.call(uri(bob), timeout=5, private=True)
    wait_for(lambda: taken)
    invite = taken[0]._signalling.invite
    assert str(invite.from_.uri) == "sip:anonymous@anonymous.invalid"
    assert invite.from_.display == "Anonymous" and invite.headers["Privacy"] == "id"
    assert b"alice" not in bytes(invite)
    taken[0].hangup()  # finds its way to a Contact without a name
    assert call.wait_ended(5) and call.reason == "BYE"


@pytest.mark.parametrize(
    ("values", "found"),
    [
        (["<tel:+1>, <sip:ann@home>"], "sip:ann@home"),
        (["<tel:+1>"], "tel:+1"),
        (["<tel:+1>", "<sip:"], None),
        (["<sip:ann@home>"], "sip:ann@home"),
        ([], None),
    ],
)
def test_an_asserted_identity_counts_if_its_sender_is_trusted(alice, bob, values, found):
    """Covers RFC 3325 §8 [not-of-strangers] and RFC 3261 §8.2.2 [odd-values-pass]."""
    taken = answering(bob)
    to = Address(Uri.parse(uri(bob)))
    for trusted in (frozenset(), {"127.0.0.1"}):
        bob.trusted, fields = trusted, [("P-Asserted-Identity", each) for each in values]
        call = alice._new_call("127.0.0.1")
        call.dial(alice._inviter(to, fields))
        call.wait_answered(5)
        wait_for(lambda: taken)
        asserted = taken.pop().asserted
        assert (str(asserted.uri) if asserted else None) == (found if trusted else None)
        call.hangup()


@pytest.mark.parametrize("is_trusted", [False, True])
def test_who_may_do_what_is_judged_by_an_asserted_identity(alice, bob, monkeypatch, is_trusted):
    """Covers RFC 3325 §8 [not-of-strangers]: a From is not proven, an assertion is."""
    heard, taken, request = [], answering(bob), alice._request
    assertion = ("P-Asserted-Identity", "<sip:ann@home>")

    def asserted(method, to, headers, *more):
        return request(method, to, [*headers, assertion], *more)

    def judge(what, sender):
        heard.append(sender.uri.user)
        return False

    monkeypatch.setattr(alice, "_request", asserted)
    bob.trusted = frozenset({"127.0.0.1"} if is_trusted else ())
    bob.on_message = lambda message: judge(message, message.sender)
    bob.on_refer = bob.on_replace = bob.serving.may_watch = judge
    call = alice.call(uri(bob), timeout=20)
    wait_for(lambda: taken)
    alice.message(uri(bob), "hello", timeout=20)
    for ask in (
        lambda: alice.refer(uri(bob), uri(alice), timeout=20),
        lambda: alice.subscribe(uri(bob), "dialog", lambda *told: None, timeout=20),
    ):
        with pytest.raises(RemoteError):
            ask()
    fields = [("Replaces", Replaces.of(call._signalling.dialog)), assertion]
    other = alice._new_call("127.0.0.1")
    other.dial(alice._inviter(Address(Uri.parse(uri(bob))), fields))
    with pytest.raises(RemoteError, match="Forbidden"):
        other.wait_answered(20)
    assert heard == ["ann" if is_trusted else "alice"] * 4


def test_options_tell_what_a_phone_can_do(alice, bob):
    """Covers RFC 3261 §8.2.1 [looks-at-the-method], §11 [takes-options].

    And RFC 3261 §11.1 [options-with-contact] [options-say-accept], §11.2 [lists-abilities].
    """
    asked, decide = [], bob._stack.core.recipient

    def recipient(request, flow, now):
        asked.append(request)
        return decide(request, flow, now)

    bob._stack.core.recipient = recipient
    response = alice.options(uri(bob), timeout=20)
    assert response.status == 200
    assert "INVITE" in response.headers.get("Allow")
    assert asked[0].headers["Accept"] == "application/sdp" and len(asked[0].contacts) == 1
    with pytest.raises(RemoteError) as refused:
        alice.options(uri(bob).replace("bob", "carol"), timeout=20)
    assert refused.value.status == 404


def test_who_is_no_registrar_refuses_to_register(make, bob):
    """Covers RFC 3261 §8.2.1, §10.2.6 [domain-is-the-registrar]."""
    host, port = bob.address
    bobs = make("bob", domain=f"{host}:{port}")
    with pytest.raises(RemoteError) as refused:
        bobs.register(timeout=20)
    assert refused.value.status == 405
    assert not bobs.registered
    assert bobs.unregister()  # there is nothing to take back


def test_a_registrar_that_is_silent(make):
    with PlainSocket() as silent, pytest.raises(TimeoutError):
        make("bob", domain=silent.domain).register(timeout=0.1)


def test_hold_and_resume_by_the_other_side(alice, bob):
    """Covers RFC 3264 §8.4."""
    taken = answering(bob)
    call = alice.call(uri(bob), timeout=20)
    wait_for(lambda: taken)
    for hold in (True, False):
        taken[0].hold(hold, timeout=5)
        assert call.is_held is hold
        assert call.send_audio(FRAMES[0]) is not hold
    assert call.is_up and taken[0].is_up


def test_a_hold_that_is_refused_changes_nothing(alice, bob, monkeypatch):
    """Covers RFC 3261 §14.1: the session stays as it was, also for the next offer."""
    taken = answering(bob)
    call = alice.call(uri(bob), timeout=5)
    wait_for(lambda: taken)

    def refuse(sdp):
        raise RemoteError("Not Acceptable Here", 488)

    with monkeypatch.context() as patch:
        patch.setattr(taken[0]._audio, "answer", refuse)
        with pytest.raises(RemoteError, match="488"):
            call.hold(timeout=5)
    assert not taken[0].is_held and call.send_audio(FRAMES[0])
    taken[0].hold(timeout=5)
    call.hold(timeout=5)
    taken[0].resume(timeout=5)
    assert not call.is_held and taken[0].is_held
    call.resume(timeout=5)
    assert not taken[0].is_held
    monkeypatch.setattr(taken[0]._audio, "answer", lambda sdp: taken[0].hangup() or refuse(sdp))
    with pytest.raises(RemoteError, match="487"):
        call.hold(timeout=5)
    call.hold()  # of a call that is over, nothing


class PlainSocket:
    """A UDP port where nobody answers."""

    def __enter__(self):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.domain = f"127.0.0.1:{self.socket.getsockname()[1]}"
        return self

    def __exit__(self, *error):
        self.socket.close()


@pytest.mark.parametrize("place", ["IP4 phone.invalid", "IP6 2001:db8::1", "IP4 1.2.3"])
def test_media_that_cannot_be_reached_is_refused_and_leaves_nothing(bob, place):
    """Covers RFC 3261 §21.4.26: a name or an address of another family in the offer."""
    answering(bob)
    body = (
        f"v=0\r\no=- 1 1 IN {place}\r\ns=-\r\nc=IN {place}\r\nt=0 0\r\nm=audio 4000 RTP/AVP 0\r\n"
    )
    invite = (
        f"INVITE {uri(bob)} SIP/2.0\r\nVia: SIP/2.0/UDP 127.0.0.1;rport;branch=z9hG4bK1\r\n"
        f"From: <sip:a@b>;tag=1\r\nTo: <{uri(bob)}>\r\nCall-ID: 1\r\nCSeq: 1 INVITE\r\n"
        "Contact: <sip:a@127.0.0.1>\r\nContent-Type: application/sdp\r\n"
        f"Content-Length: {len(body)}\r\n\r\n{body}"
    )
    answer = UdpClient(bob.address).ask(invite.encode())
    assert answer.startswith(b"SIP/2.0 488")
    assert not bob.calls and not bob._ua.calls and not bob._stack.transactions


def test_each_side_hears_of_the_end_once(alice, bob):
    taken, ended = answering(bob), []
    call = alice.call(uri(bob), timeout=20)
    wait_for(lambda: taken)
    call.on_ended = lambda reason: ended.append(("alice", reason))
    taken[0].on_ended = lambda reason: ended.append(("bob", reason))
    call.hangup()
    call.hangup()
    wait_for(lambda: len(ended) == 2)
    assert ended == [("alice", "hung up"), ("bob", "BYE")]


def test_an_agent_serves_until_it_is_closed(bob):
    serving = gevent.spawn(bob.serve_forever)
    gevent.sleep(0)
    assert not serving.ready()
    bob.close(timeout=0.5)
    serving.join(5)
    assert serving.successful()


def test_a_message_is_read_or_refused(alice, bob):
    heard = []
    bob.on_message = heard.append
    assert alice.message(uri(bob), "hello").status == 200
    assert [(m.sender.uri.user, m.text) for m in heard] == [("alice", "hello")]
    with pytest.raises(RemoteError, match="405"):
        bob.message(uri(alice), "nobody reads this")
