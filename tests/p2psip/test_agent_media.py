"""Two agents on loopback: keys between the sound, and sound that is encrypted."""

import gevent
import pytest
from gevent import socket
from support.sip.phones import FRAMES, answering, talk, uri, wait_for

from p2psip.errors import LocalError, RemoteError
from p2psip.nat.stun import BINDING, StunClass, StunMessage
from p2psip.nat.turn import TurnMethod


def test_keys_are_heard_once_each_with_their_length_between_the_sound(alice, bob):
    """Covers RFC 4733 §2.5.1.2 [same-base-as-audio] and §2.5.1.1 [only-events-listed]."""
    at_bob, keys = [], []
    taken = answering(bob, at_bob)
    call = alice.call(uri(bob), timeout=20)
    wait_for(lambda: taken)
    taken[0].on_digit = lambda digit, seconds: keys.append((digit, seconds))
    talk(call)
    assert call.send_digits("7#", 0.06)
    gevent.sleep(0)
    assert call.send_audio(FRAMES[0])  # left out: the key is in its place
    wait_for(lambda: len(keys) == 4)
    assert keys == [("7", None), ("7", 0.06), ("#", None), ("#", 0.06)]
    wait_for(lambda: not call._audio._keys.busy)
    talk(call, FRAMES[:1])
    wait_for(lambda: len(at_bob) == len(FRAMES) + 1)
    last, first = at_bob[-2][1], at_bob[-1][1]
    assert first - last & 0xFFFFFFFF >= 160 * 2  # the sound left out takes its time
    with pytest.raises(LocalError):
        call.send_digits("1X")
    call.hangup()
    assert not call.send_digits("1")


def test_a_call_by_srtp_carries_sound_both_ways_on_hold_and_after(make, bob):
    """Covers RFC 4568 §5.1.2 [tag-and-suite-kept] and §5.1.3 [echo-verified]."""
    alice = make("alice", srtp=True)
    at_bob, at_alice = [], []
    taken = answering(bob, at_bob)
    call = alice.call(uri(bob), timeout=20, on_audio=lambda data, at: at_alice.append((data, at)))
    wait_for(lambda: taken)
    assert call.is_encrypted and taken[0].is_encrypted
    talk(call)
    talk(taken[0])
    wait_for(lambda: len(at_bob) == len(at_alice) == len(FRAMES))
    assert [data for data, _ in at_bob] == [data for data, _ in at_alice] == FRAMES
    call.hold()
    wait_for(lambda: taken[0].is_held)
    call.hold(False)
    wait_for(lambda: not taken[0].is_held)
    talk(call, FRAMES[:2])
    wait_for(lambda: len(at_bob) == len(FRAMES) + 2)
    assert taken[0]._audio._transport._srtp.refused == 0


def test_sound_in_clear_is_not_heard_in_a_call_by_srtp(make, bob):
    """Covers RFC 3711 §3.3 and RFC 4568 §5.1.2."""
    alice = make("alice", srtp=True)
    at_bob = []
    taken = answering(bob, at_bob)
    call = alice.call(uri(bob), timeout=20)
    wait_for(lambda: taken)
    heard = taken[0]._audio
    call._audio._transport._port.send_rtp(bytes.fromhex("80000001000000000000cafe") + FRAMES[0])
    wait_for(lambda: heard._transport._srtp.refused)
    assert at_bob == []
    plain = make("carol")
    with pytest.raises(RemoteError) as refused:
        heard.answer(plain._open_audio("127.0.0.1", lambda *_: None, lambda *_: None).offer())
    assert refused.value.status == 488


def test_no_keys_go_to_a_phone_that_knows_none(alice, bob, monkeypatch):
    """Covers RFC 4733 §2.5.1.1 [only-events-listed]."""
    monkeypatch.setattr("p2psip.net.phone.audio_codecs.KEYS", "0-9")
    taken = answering(bob)
    call = alice.call(uri(bob), timeout=20)
    wait_for(lambda: taken)
    assert call.send_digits("9") and not call.send_digits("9#")


@pytest.mark.parametrize("srtp", [False, True])
def test_sound_and_reports_share_a_port_where_both_phones_agree(make, bob, srtp):
    """Covers RFC 5761 §5.1.1 [mux-is-answered] [no-mux-unanswered], with and without SRTP.

    Covers RFC 5761 §7 [told-below-srtp].
    """
    alice = make("alice", rtcp_mux=True, srtp=srtp)
    at_bob = []
    taken = answering(bob, at_bob)
    call = alice.call(uri(bob), timeout=20)
    wait_for(lambda: taken)
    ends = [each._audio for each in (call, taken[0])]
    for end in ends:
        assert end._transport._port.rtcp_mux
        assert end._transport._port.remote_rtcp == end._transport._port.remote
    talk(call)
    wait_for(lambda: len(at_bob) == len(FRAMES))
    for end, other in (ends, ends[::-1]):
        end._transport.send_rtcp(end._session.reporter._compound(1.0))
        wait_for(lambda other=other: other._session.last_heard is not None)
    taken[0].hold()  # the answerer's offer keeps to one port
    wait_for(lambda: call.is_held)
    assert all(end._transport._port.rtcp_mux for end in ends)
    assert [end._session.invalid for end in ends] == [0, 0]


def test_a_phone_is_told_how_it_is_heard(make, alice):
    """Covers RFC 3611 §4.7: by the report at the end of the answerer, if not before."""
    bob = make("bob", voip_metrics=True)
    at_bob = []
    taken = answering(bob, at_bob)
    call = alice.call(uri(bob), timeout=20)
    wait_for(lambda: taken)
    assert call.remote_metrics is None
    talk(call)
    wait_for(lambda: len(at_bob) == len(FRAMES))
    heard = taken[0]._audio
    talk(taken[0], FRAMES[:1])  # or there is nothing to end
    call._audio._on_rtcp(heard._session.bye(1.0), 1.0)
    metrics = call.remote_metrics
    assert metrics.ssrc == call._audio._session.ssrc
    assert (metrics.loss_rate, metrics.gap_duration) == (0, 20 * len(FRAMES))
    assert taken[0].remote_metrics is None and call._audio._metrics() is None


def test_stun_at_the_ports_of_the_sound_gets_nothing(alice, bob):
    """Own design: they are no servers, so that no forged source is sent anything by them."""
    at_bob = []
    taken = answering(bob, at_bob)
    call = alice.call(uri(bob), timeout=20)
    wait_for(lambda: taken)
    port = taken[0]._audio._transport._port
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        stranger.bind(("127.0.0.1", 0))
        for method in (BINDING, TurnMethod.ALLOCATE):
            whole = StunMessage.write(StunClass.REQUEST, method, bytes(12), fingerprint=True).data
            for data in (whole, whole[:-1], whole[:20], whole * 2):
                for place in (port.rtp_port, port.rtcp_port):
                    stranger.sendto(data, ("127.0.0.1", place))
        talk(call)
        wait_for(lambda: len(at_bob) == len(FRAMES))  # and so all that came before is read
        stranger.setblocking(False)
        with pytest.raises(BlockingIOError):
            stranger.recv(2000)
    assert [data for data, _ in at_bob] == FRAMES
