"""Video between two ends over a bad link: what is lost comes again, or a new key frame does."""

from random import Random

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from support.rtmfp.link import Link, calm, storm
from support.sip.video_phones import ALL, FRAME, VideoPhone

from p2psip.rtp import fast
from p2psip.rtp.feedback import Fir, Nack, Pli

DELAY = 0.03  # s one way


def call(weather=None, feedback=ALL, **options):
    """Alice films, Bob looks; both have the feedback that was agreed on."""
    link = Link(weather or calm(DELAY))
    alice = VideoPhone(1, "bob", feedback, **options)
    bob = VideoPhone(2, "alice", feedback, films=False, **options)
    link.join("alice", alice), link.join("bob", bob)
    return link, alice, bob


def losing(lost, delay=DELAY):
    """Lose those of the video packets, by their count from 1, for which `lost(count)` is true."""
    count = 0

    def weather(data, source, destination):
        nonlocal count
        if source == "bob" or fast.looks_like_rtcp(data):
            return (delay,)
        count += 1
        return () if lost(count) else (delay,)

    return weather


def numbers(phone):
    return [number for number, _ in phone.screen.shown]


def kinds(phone):
    return {type(each) for each in phone.asked}


def test_a_good_link_needs_no_request():
    """Covers RFC 4585 §6.2.1 and §6.3.1: nothing is asked for without a loss."""
    link, alice, bob = call()
    link.run(until=4.0)
    assert numbers(bob)[:90] == list(range(1, 91)) and alice.encoder.keys == [1]
    assert alice.asked == [] and alice.sender.resends.repeated == 0


@pytest.mark.parametrize("srtp", [False, True])
def test_lost_packets_are_sent_again_in_time(srtp):
    """Covers RFC 4585 §6.2.1 and RFC 3711 §3.3.2 [window-of-64]: a repeated packet is opened.

    No picture is missing, none is shown twice, and none waits for longer than two round trips.
    """
    link, alice, bob = call(losing(lambda count: count % 20 == 5), srtp=srtp, report_interval=1.0)
    link.run(until=6.0)
    assert numbers(bob)[:140] == list(range(1, 141)) and alice.encoder.keys == [1]
    assert kinds(alice) == {Nack} and bob.receiver.losses.recovered > 5
    assert bob.receiver.losses.given_up == 0
    waits = [at - (number - 1) * FRAME for number, at in bob.screen.shown]
    assert max(waits) < 0.3 and bob.receiver.invalid == 0


def test_a_picture_that_cannot_be_repaired_has_a_key_frame_sent():
    """Covers RFC 4585 §6.3.1."""
    link, alice, bob = call(losing(lambda count: count == 60), frozenset({"nack pli", "ccm fir"}))
    link.run(until=4.0)
    assert kinds(alice) == {Pli} and len(alice.encoder.keys) == 2
    shown = numbers(bob)
    [gap] = [at for at, number in enumerate(shown) if number != at + 1][:1]
    assert shown[gap] == alice.encoder.keys[1] and shown[gap] - shown[gap - 1] < 12
    assert shown[gap:] == list(range(shown[gap], shown[-1] + 1)) and shown[-1] > 95


def test_after_an_outage_the_picture_comes_back():
    """Covers RFC 4585 §6.3.1: what is too much to repair is not asked for, but a key frame is."""
    link, alice, bob = call(losing(lambda count: 100 <= count < 300))
    link.run(until=10.0)
    assert alice.encoder.keys[-1] > 100 and numbers(bob)[-1] == alice.encoder.number - 1
    assert alice.sender.resends.repeated < 130


def test_without_feedback_nothing_is_asked_and_nothing_damaged_is_shown():
    """Covers RFC 4585 §4.2."""
    link, alice, bob = call(losing(lambda count: count == 60), frozenset(), early=False)
    link.run(until=4.0)
    assert alice.asked == [] and bob.screen.needs_key
    assert numbers(bob) == list(range(1, numbers(bob)[-1] + 1))


def test_a_new_viewer_gets_a_key_frame():
    """Covers RFC 5104 §4.3.1.2 [refresh-on-fir] [fir-if-unusable]."""
    link, alice, bob = call()
    link.run(until=2.0)
    bob.receiver.join(link.now)
    link.run(until=4.0)
    assert kinds(alice) == {Fir} and len(alice.encoder.keys) == 2


def test_sound_and_picture_of_one_time_belong_together():
    """Covers RFC 3550 §6.4.1: the sender's clock tells when each picture was taken."""
    link, _, bob = call()
    link.run(until=3.0)
    assert bob.receiver.time_of(int(2.0 * 90000)) == pytest.approx(1e9 + 2.0, abs=0.001)


@settings(max_examples=12)
@given(
    st.integers(0, 2**32),
    st.sampled_from([0.02, 0.1, 0.3]),
    st.sets(st.sampled_from(sorted(ALL))).map(frozenset),
    st.booleans(),
)
def test_no_picture_is_shown_damaged_and_after_the_storm_all_are_shown(seed, loss, feedback, srtp):
    """Covers RFC 4585 §6.2.1, §6.3.1: `Screen` asserts that each picture is whole, and its base."""
    random = Random(seed)
    link, alice, bob = call(storm(random, loss, 0.1, DELAY, 0.05), feedback, srtp=srtp)
    link.run(until=1.2)
    link.weather = calm(DELAY)
    link.run(until=2.0)
    if not feedback & {"nack pli", "ccm fir"}:
        alice.encoder.wants_key = True  # as encoders do from time to time
        event("no request for key frames")
    link.run(until=6.0)
    shown = numbers(bob)
    assert shown == sorted(set(shown)) and shown[-1] >= alice.encoder.number - 2
    event(f"key frames {min(len(alice.encoder.keys), 4)}")
    assert len(alice.encoder.keys) <= 8
