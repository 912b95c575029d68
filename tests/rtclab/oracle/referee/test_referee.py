"""The referee finds nothing in traces of our own machines, and each rule that is then broken."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.rtmfp.link import Link
from support.sip.conversation import Conversation
from support.sip.elements import Phone

from p2psip.errors import RemoteError
from p2psip.sip.message import Request, parse_message
from p2psip.strategies import sip
from rtclab.__main__ import main
from rtclab.oracle.referee.referee import referee
from rtclab.oracle.referee.traced import Traced

A, B = "10.0.0.1", "10.0.0.2"


def traced(link):
    """What was sent on the link, in the order of time."""
    return [
        Traced(at, source, destination, transport, parse_message(data))
        for at, source, destination, (transport, data) in link.sent
    ]


def call(answer=None, hold=2.0, peer=True, after=None):
    """The trace of a call from A to B, which A ends."""
    link = Link()
    alice = Phone(link, A)
    if peer:
        Phone(link, B, answer)
    made = alice.dial(B, link.now)
    link.flush()
    link.run(until=hold)
    if after is not None:
        after(made, link.now)
        link.flush()
        link.run(until=hold + 1.0)
    if peer and answer is None:
        made.bye(link.now)
        link.flush()
    link.run(until=link.now + 70.0)
    return traced(link)


def rings(made, now):
    made.ring(now)


def refuses(made, now):
    made.reject(486, "Busy Here", now)


def said(trace):
    return [str(each) for each in referee(trace)]


def which(trace, name, status=None):
    """The places of requests of this method, or of its responses with this status."""
    return [
        at
        for at, each in enumerate(trace)
        if each.message.cseq.method == name
        and (each.message.method if isinstance(each.message, Request) else each.message.status)
        == (status or name)
    ]


def moved(each, time):
    return Traced(time, each.source, each.destination, each.transport, each.message)


def sorted_by_time(trace):
    return sorted(trace, key=lambda each: each.time)


def meeting():
    """Offers of both sides that cross on their way, and are made again."""
    link = Link()
    alice, bob = Phone(link, A), Phone(link, B)
    made = alice.dial(B, link.now)
    link.run(until=2.0)
    made.reinvite(b"from alice", link.now)
    bob.calls[0].reinvite(b"from bob", link.now)
    link.run(until=12.0)
    made.bye(link.now)
    link.run(until=link.now + 70.0)
    return traced(link)


def early_media():
    """The answer in a reliable 183, an UPDATE of each side, then the 200."""
    link = Link()
    alice = Phone(link, A)
    bob = Phone(link, B, lambda call, now: call.ring(now, 183, b"answer"))
    made = alice.dial(B, link.now)
    link.run(until=2.0)
    for call in (made, *bob.calls):
        call.reinvite(b"update", link.now)
        link.run(until=link.now + 2.0)
    bob.calls[0].accept(b"late", link.now)
    link.run(until=link.now + 2.0)
    made.bye(link.now)
    link.run(until=link.now + 70.0)
    return traced(link)


def refused_offer():
    """A new offer that the other side refuses, and another one that it takes."""
    link = Link()
    alice, bob = Phone(link, A), Phone(link, B)
    made = alice.dial(B, link.now)
    link.run(until=2.0)
    for reply in (RemoteError("Not Acceptable Here", 488), b"new answer"):
        bob.reply_to_offer = reply
        made.reinvite(b"again", link.now)
        link.run(until=link.now + 2.0)
    made.bye(link.now)
    link.run(until=link.now + 70.0)
    return traced(link)


TRACES = {
    "answered": call,
    "refused": lambda: call(refuses, 5.0),
    "ringing": lambda: call(rings, 20.0),
    "nobody there": lambda: call(peer=False),
    "offers that cross": meeting,
    "early media": early_media,
    "an offer refused": refused_offer,
    "reoffered": lambda: call(after=lambda made, now: made.reinvite(b"new offer", now)),
}


@pytest.mark.parametrize("name", TRACES)
def test_our_own_machines_break_no_rule(name):
    trace = TRACES[name]()
    assert len(trace) >= 3
    assert said(trace) == []


def lines(trace):
    """The trace as JSON lines."""
    return "".join(
        json.dumps(
            {
                "time": each.time,
                "from": each.source,
                "to": each.destination,
                "transport": each.transport,
                "data": bytes(each.message).decode(),
            }
        )
        + "\n"
        for each in trace
    )


def without(trace, *places):
    return [each for at, each in enumerate(trace) if at not in places]


def again(trace, place, time):
    """The trace with one of its messages once more."""
    return sorted_by_time([*trace, moved(trace[place], time)])


def rewritten(trace, place, old, new):
    """The trace with a part of one message replaced."""
    octets = bytes(trace[place].message)
    assert old in octets
    each = trace[place]
    message = parse_message(octets.replace(old, new, 1))
    spoilt = Traced(each.time, each.source, each.destination, each.transport, message)
    return [*trace[:place], spoilt, *trace[place + 1 :]]


def rung_reliably(*times):
    """A 180 that no PRACK answers, at these times; the INVITE comes by TCP."""
    made = Conversation().ask("a", "INVITE")
    for at in times:
        made.at = at
        made.reliable(180, 7, "offer")
    return [*made.trace, moved(UNHEARD[0], 60.0)]


UNHEARD, ANSWERED, REFUSED = call(peer=False), call(), call(refuses, 5.0)
RINGING = call(rings, 20.0)
LAST = ANSWERED[-1].time
BROKEN = {
    "no repetition of an INVITE": (
        without(UNHEARD, 2),
        "t=1.500 INVITE 1 of {} should have been repeated (timer A): RFC 3261 §17.1.1.2",
    ),
    "a repetition after timer B": (
        again(UNHEARD, 0, 40.0),
        "timer B: the transaction should have ended at t=32.000 with 408: RFC 3261 §17.1.1.2",
    ),
    "a repetition too early": (
        again(UNHEARD, 0, 0.1),
        "t=0.100 INVITE 1 of {} was repeated too early for timer A, which is due at t=0.500",
    ),
    "a repetition after a response": (
        again(RINGING, 0, 9.0),
        "t=9.000 INVITE 1 of {} was repeated after a response: RFC 3261 §17.1.1.2",
    ),
    "an INVITE with no answer at first": (
        [
            moved(each, each.time + 0.6 * isinstance(each.source, str) * (each.source == B))
            for each in RINGING[:2]
        ]
        + [moved(RINGING[0], 30.0)],
        "t=0.200 a 100 should have answered INVITE 1 of {}: RFC 3261 §17.2.1",
    ),
    "a 200 after its ACK": (
        again(ANSWERED, which(ANSWERED, "INVITE", 200)[0], 1.0),
        "the 2xx to INVITE 1 of {} was repeated after its ACK: RFC 3261 §13.3.1.4",
    ),
    "a 200 without its ACK": (
        without(ANSWERED, *which(ANSWERED, "ACK")),
        "the ACK should have been sent for INVITE 1 of {}: RFC 3261 §13.2.2.4",
    ),
    "a 200 that is not repeated": (
        without(ANSWERED, *which(ANSWERED, "ACK")),
        "the 2xx to INVITE 1 of {} should have been repeated: RFC 3261 §13.3.1.4",
    ),
    "a refusal without its ACK": (
        [*without(REFUSED, *which(REFUSED, "ACK")), moved(UNHEARD[0], 60.0)],
        "the ACK should have been sent for INVITE 1 of {}: RFC 3261 §17.1.1.3",
    ),
    "a refusal that is not repeated": (
        [*without(REFUSED, *which(REFUSED, "ACK")), moved(UNHEARD[0], 60.0)],
        "the 486 to INVITE 1 of {} should have been repeated (timer G): RFC 3261 §17.2.1",
    ),
    "a refusal after its ACK": (
        again(REFUSED, which(REFUSED, "INVITE", 486)[0], 3.0),
        "the 486 to INVITE 1 of {} was repeated after its ACK: RFC 3261 §17.2.1",
    ),
    "another final response": (
        rewritten(
            again(REFUSED, which(REFUSED, "INVITE", 486)[0], 3.0), len(REFUSED), b"486", b"404"
        ),
        "INVITE 1 of {} was answered with 404 after 486: RFC 3261 §17.2.1",
    ),
    "a BYE that is not repeated": (
        [*without(ANSWERED, *which(ANSWERED, "BYE", 200)), moved(UNHEARD[0], LAST + 60.0)],
        "BYE 2 of {} should have been repeated (timer E): RFC 3261 §17.1.2.2",
    ),
    "an answer to a BYE that nobody asked for again": (
        again(ANSWERED, which(ANSWERED, "BYE", 200)[0], LAST + 2.0),
        "the 200 to BYE 2 of {} was repeated, and the request was not: RFC 3261 §17.2.2",
    ),
    "no answer to a repeated BYE": (
        [
            *ANSWERED,
            moved(ANSWERED[which(ANSWERED, "BYE")[0]], LAST + 0.1),
            moved(UNHEARD[0], LAST + 9.0),
        ],
        "the 200 to BYE 2 of {} should have been repeated: RFC 3261 §17.2.2",
    ),
    "a reliable 180 without its PRACK": (
        rung_reliably(0.1),
        "t=0.100 a PRACK should have been sent for INVITE 1 of {}: RFC 3262 §4",
    ),
    "a reliable 180 that is not repeated": (
        rung_reliably(0.1, 0.6),
        "t=1.600 the reliable response to INVITE 1 of {} should have been repeated: RFC 3262 §3",
    ),
    "a reliable 180 that is repeated too early": (
        rung_reliably(0.1, 0.2),
        "t=0.200 the 180 to INVITE 1 of {} was repeated too early for its timer, which is due at "
        "t=0.600: RFC 3262 §3",
    ),
    "a call that goes on without its PRACK": (
        rung_reliably(0.1),
        "t=32.100 INVITE 1 of {} should have been refused for want of a PRACK: RFC 3262 §3",
    ),
    "a BYE to somewhere else": (
        rewritten(ANSWERED, which(ANSWERED, "BYE")[0], b"BYE sip:", b"BYE sip:x"),
        "and not to the remote target sip:user@10.0.0.2",
    ),
    "a route that was never recorded": (
        rewritten(ANSWERED, which(ANSWERED, "BYE")[0], b"\r\nVia", b"\r\nRoute: <sip:p;lr>\r\nVia"),
        "the Route of BYE 2 of {} should have been nothing: RFC 3261 §12.2.1.1",
    ),
    "a number that is not above the last": (
        rewritten(ANSWERED, which(ANSWERED, "BYE")[0], b"CSeq: 2", b"CSeq: 1"),
        "BYE 1 is not above the number before: RFC 3261 §12.2.1.1",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_rule_is_found(name):
    trace, wanted = BROKEN[name]
    wanted = wanted.format(trace[0].message.call_id)
    assert any(wanted in line for line in said(trace)), said(trace)


def test_a_caller_without_one_contact_has_no_dialog_that_could_be_judged():
    trace = rewritten(ANSWERED, 0, b"<sip:user@10.0.0.1:5060>", b"*")
    assert trace[0].message.contacts[0].is_star
    assert said(trace) == []


def test_a_reliable_response_is_repeated_for_a_repeated_invite_as_well():
    trace = [*again(rung_reliably(0.1, 0.35), 0, 0.3)][:-1]
    assert [each.message.cseq.method for each in trace] == ["INVITE"] * 4
    assert not any("too early" in line for line in said(trace))


def test_our_own_early_media_has_offers_in_all_places():
    """So that the trace above says something."""
    trace = early_media()
    assert [len(which(trace, name)) for name in ("PRACK", "UPDATE", "ACK")] == [1, 2, 1]
    assert len(which(meeting(), "INVITE", 491)) == 2


def test_a_rule_that_is_broken_often_is_said_once():
    assert len(said([UNHEARD[0], UNHEARD[-1], moved(UNHEARD[0], 60.0)])) == 2


def test_the_command_judges_lines_of_json(tmp_path, capsys):
    path = tmp_path / "trace.jsonl"
    path.write_text(lines(ANSWERED))
    assert main(["oracle", "referee", str(path)]) == 0
    assert capsys.readouterr().out == f"no findings in {len(ANSWERED)} messages\n"
    path.write_text(lines(without(UNHEARD, 2)))
    assert main(["oracle", "referee", str(path)]) == 1
    out = capsys.readouterr().out
    assert out.startswith("t=1.500 INVITE") and out.endswith("1 finding in 6 messages\n")


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.floats(0, 40), sip.messages()), max_size=12))
def test_any_messages_in_any_order_are_judged(drawn):
    """Each comes twice, so that there are repetitions and responses to something."""
    heard = [
        Traced(at + late, "a:1", "b:1", "UDP", parse_message(bytes(message)))
        for at, message in drawn
        for late in (0.0, 0.5)
    ]
    assert all(each.clause for each in referee(sorted_by_time(heard)))


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_a_call_out_of_order_is_judged(data):
    """The messages of real calls, some lost, and at any times."""
    whole = [*ANSWERED, *REFUSED, *RINGING]
    places = data.draw(st.lists(st.sampled_from(range(len(whole))), max_size=20))
    times = data.draw(st.lists(st.floats(0, 60), min_size=len(places), max_size=len(places)))
    heard = [moved(whole[place], at) for place, at in zip(places, times, strict=True)]
    assert all(0 <= each.time <= 60 for each in referee(sorted_by_time(heard)))
