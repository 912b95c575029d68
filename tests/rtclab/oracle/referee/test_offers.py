"""The referee finds each broken rule of offer and answer, and nothing in what is allowed."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.corpus_lines import CORPUS
from support.sip.conversation import (
    ANSWER,
    NEW_ANSWER,
    NEW_OFFER,
    OFFER,
    Conversation,
    sdp,
)

from p2psip.strategies.sdp import odd_sessions
from rtclab.oracle.referee.referee import referee
from rtclab.oracle.referee.trace import read
from rtclab.oracle.referee.traced import Traced


def said(conversation):
    return [str(each) for each in referee(conversation.trace)]


def call():
    return Conversation().call()


def early(**options):
    """A call that rings, with the answer in a reliable 183, up to its PRACK."""
    made = Conversation().ask("a", "INVITE", OFFER).reliable(183, 7, ANSWER, number=1)
    return made.prack(7, **options)


def offerless():
    return Conversation().ask("a", "INVITE")


TWO_LINES = ("audio 5004 RTP/AVP 0", "video 5006 RTP/AVP 34")
GOOD = {
    "offer in INVITE": call(),
    "offer in 2xx": offerless().answer("b", 200, body=sdp(2)).ask("a", "ACK", sdp(1)),
    "answer in a reliable 183": early().answer("b", 200, "PRACK").answer("b", 200, number=1),
    "the same again in the 2xx": early()
    .answer("b", 200, "PRACK")
    .answer("b", 200, body=ANSWER, number=1),
    "offer in a reliable 183": offerless()
    .reliable(183, 7, sdp(2))
    .prack(7, sdp(1))
    .answer("b", 200, "PRACK")
    .answer("b", 200, number=1)
    .ask("a", "ACK"),
    "offer in PRACK": early(body=NEW_OFFER).answer("b", 200, "PRACK", NEW_ANSWER),
    "a reliable 180 without the answer": Conversation()
    .ask("a", "INVITE", OFFER)
    .reliable(180, 7)
    .prack(7)
    .answer("b", 200, "PRACK")
    .answer("b", 200, number=1, body=ANSWER)
    .ask("a", "ACK"),
    "preview of the answer": Conversation()
    .ask("a", "INVITE", OFFER)
    .answer("b", 183, body=ANSWER)
    .answer("b", 200, body=ANSWER)
    .ask("a", "ACK"),
    "UPDATE before the 2xx": early()
    .answer("b", 200, "PRACK")
    .ask("a", "UPDATE", NEW_OFFER)
    .answer("b", 200, "UPDATE", NEW_ANSWER)
    .answer("b", 200, number=1)
    .ask("a", "ACK"),
    "re-INVITE of the callee": call()
    .ask("b", "INVITE", sdp(2, 2))
    .answer("a", 200, body=OFFER)
    .ask("b", "ACK"),
    "re-INVITE that is refused, and the old session again": call()
    .ask("a", "INVITE", NEW_OFFER)
    .answer("b", 488)
    .ask("a", "ACK")
    .ask("a", "UPDATE", OFFER)
    .answer("b", 200, "UPDATE", ANSWER),
    "re-INVITE that is refused, and another one of the same version": call()
    .ask("a", "INVITE", NEW_OFFER)
    .answer("b", 488)
    .ask("a", "ACK")
    .ask("a", "INVITE", sdp(1, 2, more="a=inactive\r\n"))
    .answer("b", 200, body=sdp(2, 2, more="a=inactive\r\n"))
    .ask("a", "ACK"),
    "offers that cross": call()
    .ask("a", "INVITE", NEW_OFFER)
    .wait(-0.2)
    .ask("b", "INVITE", sdp(2, 2))
    .answer("b", 491)
    .wait(-0.2)
    .answer("a", 491)
    .ask("a", "ACK")
    .ask("b", "ACK")
    .wait(2.1)
    .ask("b", "INVITE", sdp(2, 2))
    .answer("a", 200, body=NEW_OFFER)
    .ask("b", "ACK"),
    "offer that meets another in a request": call()
    .ask("a", "UPDATE", NEW_OFFER)
    .wait(-0.2)
    .ask("b", "UPDATE", sdp(2, 2))
    .answer("a", 491, "UPDATE")
    .answer("b", 491, "UPDATE"),
    "UPDATE without an offer": call().ask("a", "UPDATE").answer("b", 200, "UPDATE"),
    "a line that is refused": Conversation().call(
        sdp(1, media=TWO_LINES), sdp(2, media=("audio 5004 RTP/AVP 0", "video 0 RTP/AVP 34"))
    ),
    "bodies that are no descriptions": Conversation().call("offer", "answer"),
    "bodies of another type": Conversation()
    .ask("a", "INVITE", "isup", kind="application/isup")
    .answer("b", 200, body="isup", kind="application/isup")
    .ask("a", "ACK", "isup", kind="application/isup"),
    "an answer of another type": Conversation()
    .ask("a", "INVITE", OFFER)
    .answer("b", 200, body="-", kind="application/pkcs7-mime")
    .ask("a", "ACK"),
    "a trace that begins within a call": Conversation()
    .ask("a", "ACK", ANSWER, number=1)
    .ask("a", "PRACK", ANSWER)
    .answer("b", 200, "PRACK")
    .ask("b", "UPDATE", sdp(2, 2))
    .answer("a", 200, "UPDATE", OFFER),
    "an offer that nobody answered": call()
    .ask("a", "UPDATE", NEW_OFFER)
    .wait(33.0)
    .ask("a", "UPDATE", NEW_OFFER)
    .answer("b", 200, "UPDATE", NEW_ANSWER),
    "requests after the BYE": call().ask("a", "BYE").ask("b", "UPDATE", OFFER),
}


@pytest.mark.parametrize("name", GOOD)
def test_what_is_allowed_is_no_finding(name):
    assert said(GOOD[name]) == []


def answered(offer, answer):
    return Conversation().call(offer, answer)


BROKEN = {
    "a 2xx without the answer": (
        Conversation().ask("a", "INVITE", OFFER).answer("b", 200),
        "t=0.250 the 200 to INVITE 1 of call should have had the answer to the offer of "
        "INVITE 1 of call: RFC 3261 §13.2.1",
    ),
    "an ACK without the answer": (
        offerless().answer("b", 200, body=sdp(2)).ask("a", "ACK"),
        "t=0.500 ACK 1 of call should have had the answer to the offer of the 200 to "
        "INVITE 1 of call: RFC 3261 §13.2.2.4",
    ),
    "an ACK that answers nothing": (
        Conversation().ask("a", "INVITE", OFFER).answer("b", 200, body=ANSWER)
        .ask("a", "ACK", OFFER),
        "t=0.500 ACK 1 of call answers no offer: RFC 3261 §13.2.1",
    ),
    "no offer in INVITE and 2xx": (
        offerless().answer("b", 200),
        "the 200 to INVITE 1 of call should have had the offer, as INVITE 1 of call has none: "
        "RFC 3261 §13.2.1",
    ),
    "no offer in the first reliable response": (
        offerless().reliable(180, 7),
        "t=0.250 the 180 to INVITE 1 of call should have had the offer, as INVITE 1 of call has "
        "none: RFC 3262 §5",
    ),
    "a PRACK without the answer": (
        offerless().reliable(183, 7, sdp(2)).prack(7),
        "t=0.500 PRACK 2 of call should have had the answer to the offer of the 183 to INVITE 1 "
        "of call: RFC 3262 §5",
    ),
    "a 200 to PRACK without the answer": (
        early(body=NEW_OFFER).answer("b", 200, "PRACK"),
        "the 200 to PRACK 2 of call should have had the answer to the offer of PRACK 2 of call: "
        "RFC 3262 §5",
    ),
    "an offer in the PRACK of no answer": (
        Conversation().ask("a", "INVITE", OFFER).reliable(180, 7).prack(7, NEW_OFFER),
        "t=0.500 PRACK 2 of call has an offer, and acknowledges no answer: RFC 6337 §3.2",
    ),
    "a 2xx before the PRACK of its answer": (
        Conversation().ask("a", "INVITE", OFFER).reliable(183, 7, ANSWER).answer("b", 200),
        "t=0.500 the 200 to INVITE 1 of call came before the PRACK of a description: RFC 3262 §5",
    ),
    "another answer in the 2xx": (
        early().answer("b", 200, "PRACK").answer("b", 200, number=1, body=NEW_ANSWER),
        "the 200 to INVITE 1 of call has another description than the response before: "
        "RFC 3261 §13.2.1",
    ),
    "another answer than its preview": (
        Conversation().ask("a", "INVITE", OFFER).answer("b", 183, body=ANSWER)
        .answer("b", 200, body=NEW_ANSWER),
        "the 200 to INVITE 1 of call has another description than the response before: "
        "RFC 3261 §13.2.1",
    ),
    "UPDATE before the answer": (
        Conversation().ask("a", "INVITE", OFFER).answer("b", 180).ask("a", "UPDATE", NEW_OFFER),
        "t=0.500 the offer of UPDATE 2 of call was made while that of INVITE 1 of call waited: "
        "RFC 3311 §5.1",
    ),
    "UPDATE before the first offer": (
        offerless().answer("b", 180).ask("a", "UPDATE", OFFER),
        "t=0.500 the offer of UPDATE 2 of call came before the first one was answered: "
        "RFC 3311 §5.1",
    ),
    "UPDATE of the callee before the PRACK": (
        Conversation().ask("a", "INVITE", OFFER).reliable(183, 7, ANSWER)
        .ask("b", "UPDATE", NEW_ANSWER),
        "t=0.500 the offer of UPDATE 1 of call came before the PRACK of the answer: RFC 3311 §5.1",
    ),
    "UPDATE before the answer that is accepted": (
        Conversation().ask("a", "INVITE", OFFER).answer("b", 180).ask("a", "UPDATE", NEW_OFFER)
        .answer("b", 200, "UPDATE", ANSWER),
        "t=0.750 UPDATE 2 of call was answered with 200, and 500 was due at t=0.500: RFC 3311 §5.2",
    ),
    "a 500 without Retry-After": (
        Conversation().ask("a", "INVITE", OFFER).answer("b", 180).ask("a", "UPDATE", NEW_OFFER)
        .answer("b", 500, "UPDATE"),
        "t=0.750 the 500 to UPDATE 2 of call should have had a Retry-After: RFC 3311 §5.2",
    ),
    "a 200 to UPDATE without the answer": (
        call().ask("b", "UPDATE", sdp(2, 2)).answer("a", 200, "UPDATE"),
        "the 200 to UPDATE 1 of call should have had the answer to the offer of UPDATE 1 of call: "
        "RFC 3311 §5.2",
    ),
    "a 200 to UPDATE that answers nothing": (
        call().ask("b", "UPDATE").answer("a", 200, "UPDATE", OFFER),
        "the 200 to UPDATE 1 of call answers no offer: RFC 3261 §13.2.1",
    ),
    "a second re-INVITE of the same side": (
        call().ask("a", "INVITE", NEW_OFFER).ask("a", "INVITE", NEW_OFFER),
        "t=1.000 INVITE 3 of call was sent while INVITE 2 of call was under way: RFC 3261 §14.1",
    ),
    "a re-INVITE while the other side's is open": (
        call().ask("a", "INVITE", NEW_OFFER).answer("b", 180).ask("b", "INVITE", sdp(2, 2)),
        "t=1.250 INVITE 1 of call was sent while INVITE 2 of call was under way: RFC 3261 §14.1",
    ),
    "a re-INVITE that meets one, and is accepted": (
        call().ask("a", "INVITE", NEW_OFFER).wait(-0.2).ask("b", "INVITE", sdp(2, 2))
        .answer("a", 200, body=OFFER),
        "t=1.050 INVITE 1 of call was answered with 200, and 491 was due at t=0.800: "
        "RFC 3261 §14.2",
    ),
    "the earlier of two that meet is accepted": (
        call().ask("a", "INVITE", NEW_OFFER).wait(-0.2).ask("b", "INVITE", sdp(2, 2))
        .answer("b", 200, body=NEW_ANSWER),
        "t=1.050 INVITE 2 of call was answered with 200, and 491 was due at t=0.750: "
        "RFC 3261 §14.2",
    ),
    "the earlier of two UPDATEs that meet is accepted": (
        call().ask("a", "UPDATE", NEW_OFFER).wait(-0.2).ask("b", "UPDATE", sdp(2, 2))
        .answer("b", 200, "UPDATE", NEW_ANSWER),
        "t=1.050 UPDATE 2 of call was answered with 200, and 491 was due at t=0.750: "
        "RFC 3311 §5.2",
    ),
    "a 500 in place of a 491": (
        call().ask("a", "UPDATE", NEW_OFFER).wait(-0.2).ask("b", "UPDATE", sdp(2, 2))
        .answer("a", 500, "UPDATE", fields=["Retry-After: 3"]),
        "UPDATE 1 of call was answered with 500, and 491 was due at t=0.800: RFC 3311 §5.2",
    ),
    "an offer in a 2xx while one waits": (
        call().ask("a", "INVITE").answer("b", 180).ask("a", "UPDATE", NEW_OFFER)
        .answer("b", 200, body=sdp(2, 2), number=2),
        "t=1.500 the offer of the 200 to INVITE 2 of call was made while that of UPDATE 3 of call "
        "waited: RFC 3264 §4",
    ),
    "an offer too soon after a 491": (
        call().ask("a", "INVITE", NEW_OFFER).answer("b", 491).ask("a", "ACK")
        .ask("a", "INVITE", NEW_OFFER),
        "t=1.500 INVITE 3 of call came too early after a 491, and was due at t=3.100: "
        "RFC 3261 §14.1",
    ),
    "a re-INVITE that is refused after its answer": (
        call().ask("a", "INVITE", NEW_OFFER).reliable(183, 7, NEW_ANSWER).prack(7)
        .answer("b", 200, "PRACK").answer("b", 488, number=2),
        "t=1.750 INVITE 2 of call was refused with 488 after its session was agreed on, which "
        "should have stayed as before: RFC 3261 §14.1",
    ),
    "the old version with another text after a refusal": (
        call().ask("a", "INVITE", NEW_OFFER).answer("b", 488).ask("a", "ACK")
        .ask("a", "UPDATE", sdp(1, 1, more="a=sendonly\r\n")),
        "t=1.500 UPDATE 3 of call: another description under o= version 1: RFC 3264 §8",
    ),
    "fewer lines than offered": (
        answered(sdp(1, media=TWO_LINES), ANSWER),
        "the 200 to INVITE 1 of call: 1 media answer 2: RFC 3264 §6",
    ),
    "lines in another order": (
        answered(sdp(1, media=TWO_LINES), sdp(2, media=TWO_LINES[::-1])),
        "medium 1 is video, and was offered as audio: RFC 3264 §6.1",
    ),
    "a stream that is off is accepted": (
        answered(sdp(1, media=("audio 0 RTP/AVP 0",)), ANSWER),
        "audio 1 was offered with port 0, and got port 5004: RFC 3264 §8.2",
    ),
    "no format of the offer": (
        answered(sdp(1, media=("audio 5004 RTP/AVP 8",)), ANSWER),
        "audio 1 is answered with 0; the offer has 8: RFC 3264 §6.1",
    ),
    "both sides only send": (
        answered(sdp(1, more="a=sendonly\r\n"), sdp(2, more="a=sendonly\r\n")),
        "audio 1: sendonly answers sendonly: RFC 3264 §6.1",
    ),
    "another time": (
        answered(OFFER, sdp(2, times="1 0")),
        "the 200 to INVITE 1 of call: t= is not that of the offer: RFC 3264 §6",
    ),
    "another text of the same version": (
        call().ask("a", "INVITE", sdp(1, 1, more="a=sendonly\r\n")),
        "t=0.750 INVITE 2 of call: another description under o= version 1: RFC 3264 §8",
    ),
    "a lower version": (
        Conversation().call(sdp(1, 5)).ask("a", "INVITE", NEW_OFFER),
        "INVITE 2 of call: o= version 2 after 5: RFC 3264 §8",
    ),
    "a line that is gone": (
        answered(sdp(1, media=TWO_LINES), sdp(2, media=TWO_LINES)).ask("a", "INVITE", NEW_OFFER),
        "INVITE 2 of call: 1 media after 2: RFC 3264 §8",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_rule_is_found_with_its_time_and_clause(name):
    conversation, wanted = BROKEN[name]
    assert any(wanted in line for line in said(conversation)), said(conversation)


WHOLE = [
    each for made in (*GOOD.values(), *(made for made, _ in BROKEN.values())) for each in made.trace
]


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_conversations_out_of_order_are_judged(data):
    """Their messages at any times, some lost and some twice."""
    drawn = st.tuples(st.sampled_from(range(len(WHOLE))), st.floats(0, 80))
    places = data.draw(st.lists(drawn, max_size=30))
    trace = [
        Traced(at, WHOLE[place].source, WHOLE[place].destination, "UDP", WHOLE[place].message)
        for place, at in sorted(places, key=lambda each: each[1])
    ]
    assert all(0 <= each.time <= 80 and each.clause for each in referee(trace))


SIDES, BODIES = st.sampled_from("ab"), st.sampled_from(["", OFFER, ANSWER, NEW_OFFER])
NUMBERS, RSEQS = st.integers(1, 3), st.integers(7, 8)
METHODS = st.sampled_from(["INVITE", "UPDATE", "PRACK"])
STATUSES = st.sampled_from([180, 183, 200, 488, 491, 500])
KINDS = st.sampled_from(["application/sdp", "application/sdp", "text/plain"])
REQUESTS = st.tuples(SIDES, METHODS | st.sampled_from(["ACK", "BYE"]), BODIES, KINDS, RSEQS)
RESPONSES = st.tuples(SIDES, METHODS, BODIES, KINDS, RSEQS, STATUSES)
WAITS = st.sampled_from([-0.2, -0.2, 0.0, 40.0])


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(REQUESTS | RESPONSES, NUMBERS, WAITS), max_size=20), st.booleans())
def test_conversations_without_sense_are_judged(drawn, is_late):
    """Every message that offers are in, by either side, in any order."""
    made = offerless().reliable(183, 7, OFFER) if is_late else Conversation().call()
    for (side, method, body, kind, rseq, *status), number, wait in drawn:
        if status:
            fields = [f"RSeq: {rseq}", "Require: 100rel"][: 2 * (status[0] == 183)]
            options = {"fields": fields, "number": number, "kind": kind}
            made.answer(side, status[0], method, body, **options)
        else:
            fields = [f"RAck: {rseq} {number} INVITE"]
            made.ask(side, method, body, fields=fields, number=number, kind=kind)
        made.wait(wait)
    assert all(each.clause for each in referee(made.trace))


@settings(max_examples=100, deadline=None)
@given(st.lists(odd_sessions(), min_size=3, max_size=3))
def test_descriptions_of_any_form_are_judged(drawn):
    first, answer, second = (each.decode("latin-1") for each in drawn)
    made = Conversation().call(first, answer).ask("b", "INVITE", second)
    assert all(each.time <= made.at and each.clause for each in referee(made.trace))


CAPTURES = sorted((CORPUS / "pcap" / "sip").glob("*.pcap*"))
ELSEWHERE = ("RFC 3261 §12.", "RFC 3261 §17.", "RFC 3261 §13.2.2.4", "RFC 3261 §13.3.1.4")


@pytest.mark.skipif(not CAPTURES, reason="the corpus of recordings is absent")
def test_recorded_calls_break_no_rule_of_offers_but_one():
    """Those of transactions and dialogs aside: SIPp's `uas` has one answer for all offers."""
    found = [
        (path.stem, each.clause)
        for path in CAPTURES
        for each in referee(read(path.read_bytes()).heard)
        if not each.clause.startswith(ELSEWHERE)
    ]
    assert found == [("sipp_call_g711a_dtmf", "RFC 3264 §6.1")]
