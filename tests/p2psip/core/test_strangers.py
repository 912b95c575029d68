"""A caller whose INVITE may be a forgery is answered no more often than it asks."""

from support.rtmfp.link import Link
from support.sip.elements import Phone, Script
from support.sip.flows import A, B, ack, first_request, phones, settle

from p2psip.ua.ua import CallState


def doubting():
    """A phone that picks up at once, and a script that has called it."""
    link = Link()
    script, bob = Script(link, A), Phone(link, B, trusting=False)
    invite = first_request()
    return link, script, bob, invite, script.say(invite, B)


def heard(script):
    """What came, by method or status."""
    return [getattr(message, "status", 0) or message.method for message in script.heard]


def test_an_invite_alone_draws_two_answers_and_no_bye():
    """Covers RFC 3261 §13.3.1.4, as far as a stranger is owed it."""
    link, script, bob, _, response = doubting()
    assert response.status == 200
    link.run()
    assert heard(script) == [200, 200] and bob.log == [("ended", bob.calls[0], "no ACK")]
    assert bob.idle


def test_each_copy_of_the_invite_is_answered():
    """Own design: it is what a caller sends that waits for an answer."""
    link, script, bob, invite, _ = doubting()
    for seconds in (0.5, 1.0, 2.0):
        script.say(invite, B, wait=seconds)
    link.run()
    answers = heard(script)
    assert set(answers) == {200} and 4 < len(answers) < 3 * 4 and bob.idle


def test_an_ack_makes_the_caller_a_peer_as_any_other():
    """Covers RFC 3261 §13.3.1.4: it has what only the source of the INVITE was told."""
    link, script, bob, invite, response = doubting()
    script.say(ack(invite, response), B)
    assert bob.calls[0].state is CallState.UP
    bob.calls[0].bye(link.now)
    link.run(until=link.now + 0.1)
    assert heard(script) == [200, "BYE"]
    settle(link, bob)


def test_a_call_that_nobody_acknowledges_is_hung_up_without_a_word():
    """Covers RFC 3261 §15: the BYE has to wait for the ACK, and none comes."""
    link, script, bob, _, _ = doubting()
    bob.calls[0].bye(link.now)
    link.run()
    assert heard(script) == [200, 200] and bob.log == [] and bob.idle


def test_bad_weather_stops_no_call():
    """Own design: the caller repeats its INVITE until it has the answer."""
    lost = []

    def weather(parcel, source, destination):
        lost.append(parcel) if parcel[1].startswith(b"SIP/2.0 200") and len(lost) < 4 else None
        return () if lost and lost[-1] is parcel else (0.01,)

    link, alice, bob = phones(weather=weather, trusting=False)
    alice.dial(B, 0.0)
    link.run(until=10.0)
    assert len(lost) == 4 and alice.calls[0].state is bob.calls[0].state is CallState.UP
    settle(link, alice, bob)
