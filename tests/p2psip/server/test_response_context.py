"""The branches of one forwarded request, and the response that goes back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.sip.homes import (
    ALICE,
    BOB,
    CAROL,
    FAR,
    Home,
    forked,
    methods,
    register,
    request,
    statuses,
)

from p2psip.server.response_context import RING, TIMER_C, best_response
from p2psip.sip.build import response_to
from p2psip.sip.message import Request


def reply(home, branch, status, *headers, now=1.0, tag="t", source=BOB):
    """Let a phone answer; the responses that go on, by status."""
    response = response_to(branch, status, to_tag=tag, headers=headers)
    return statuses(home.hear(response, source=source, now=now))


# Answers


def test_progress_and_the_answer_pass():
    """Covers RFC 3261 §16.7 [progress-at-once] [100-stays] [by-the-server-transaction]."""
    home, branches = forked(BOB)
    assert reply(home, branches[BOB], 100) == []
    assert reply(home, branches[BOB], 180) == [180]
    assert reply(home, branches[BOB], 200) == [200]
    assert reply(home, branches[BOB], 200) == [200]  # repeated until the ACK
    home.wait(200.0)
    assert home.idle


def test_the_answer_comes_back_with_the_vias_of_the_request():
    """Covers RFC 3261 §16.7 [processed-first]."""
    home, branches = forked(BOB)
    sent = home.hear(response_to(branches[BOB], 180, to_tag="t"), source=BOB)
    [(response, to, _)] = sent
    assert to == ALICE and len(response.vias) == 1 and response.via.host == ALICE
    assert response.to.tag == "t"


def reasons_of(sent):
    """What the CANCELs among these messages give as their reasons."""
    requests = [message for message, *_ in sent if isinstance(message, Request)]
    return [
        v for each in requests if each.method == "CANCEL" for v in each.headers.values("Reason")
    ]


def test_a_caller_that_gives_up_without_a_reason_is_no_answer_elsewhere():
    """Covers RFC 3326 §3.1: the phones list the call as missed."""
    home, branches = forked(BOB)
    reply(home, branches[BOB], 180)
    cancel = request("CANCEL")
    cancel = cancel.replace(headers=cancel.headers.with_("Via", request().via))
    sent = home.hear(cancel, now=2.0)
    assert methods(sent) == [("CANCEL", BOB)] and reasons_of(sent) == []


def test_one_answers_and_the_others_stop_ringing():
    """Covers RFC 3261 §16.7 [final-cancels-the-rest], §16.1 [forks] [forks-with-state].

    And RFC 3326 §3.1: no phone lists the call as missed.
    """
    home, branches = forked(BOB, CAROL)
    for phone in (BOB, CAROL):
        assert reply(home, branches[phone], 180, source=phone) == [180]
    sent = home.hear(response_to(branches[BOB], 200, to_tag="b"), source=BOB, now=2.0)
    assert statuses(sent) == [200] and methods(sent) == [("CANCEL", CAROL)]
    assert reasons_of(sent) == ['SIP;cause=200;text="Call completed elsewhere"']
    sent = home.hear(response_to(branches[CAROL], 487, to_tag="c"), source=CAROL, now=3.0)
    assert statuses(sent) == [] and methods(sent) == [("ACK", CAROL)]
    home.wait(200.0)
    assert home.idle


def test_both_answer_and_the_caller_hears_of_both():
    """Covers RFC 3261 §16.7 [later-2xx-at-once]."""
    home, branches = forked(BOB, CAROL)
    assert reply(home, branches[BOB], 200, tag="b") == [200]
    assert reply(home, branches[CAROL], 200, tag="c", source=CAROL) == [200]
    assert reply(home, branches[BOB], 200, tag="b", now=1.5) == [200]


def test_a_global_refusal_stops_everybody():
    """Covers RFC 3261 §16.7 [6xx-cancels]: but only when all have stopped it is passed."""
    home, branches = forked(BOB, CAROL)
    reply(home, branches[CAROL], 180, source=CAROL)
    sent = home.hear(response_to(branches[BOB], 603, to_tag="b"), source=BOB, now=2.0)
    assert statuses(sent) == [] and ("CANCEL", CAROL) in methods(sent)
    assert reasons_of(sent) == ["SIP;cause=603"]
    assert reply(home, branches[CAROL], 487, source=CAROL, now=3.0) == [603]


def test_a_refusal_waits_for_the_others():
    """Covers RFC 3261 §16.7 [others-wait] [always-a-final] [best-of-all]."""
    home, branches = forked(BOB, CAROL)
    assert reply(home, branches[BOB], 486) == []
    assert reply(home, branches[CAROL], 404, source=CAROL) == [486]


def test_cancelling_cancels_all_that_ring():
    """Covers RFC 3261 §16.10 [cancels-all] [cancel-is-200], RFC 3326 §2 [reason-goes-on]."""
    home, branches = forked(BOB, CAROL)
    reply(home, branches[BOB], 180)
    reasons = ('SIP;cause=200;text="Call completed elsewhere"', "Q.850;cause=16")
    cancel = request("CANCEL", "sip:bob@home", *(("Reason", value) for value in reasons))
    cancel = cancel.replace(headers=cancel.headers.with_("Via", request().via))
    sent = home.hear(cancel, now=2.0)
    assert statuses(sent) == [200] and methods(sent) == [("CANCEL", BOB)]
    [told] = [message for message, to, _ in sent if to == BOB]
    assert told.headers.values("Reason") == reasons
    # carol's phone is late: no CANCEL before its first word, RFC 3261 §9.1
    sent = home.hear(response_to(branches[CAROL], 180, to_tag="c"), source=CAROL, now=2.1)
    assert ("CANCEL", CAROL) in methods(sent)
    assert reply(home, branches[BOB], 487, now=3.0) == []
    assert reply(home, branches[CAROL], 487, now=3.0, source=CAROL) == [487]
    home.wait(300.0)
    assert home.idle


def test_a_lost_branch_is_a_408():
    """Covers RFC 3261 §16.7 [408-without-answers]: whoever is silent counts as a time-out."""
    home, branches = forked(BOB)
    assert [s for s in statuses(home.wait(100.0)) if s >= 200][:1] == [408]
    home.wait(300.0)
    assert home.idle
    home, branches = forked(BOB, CAROL)
    reply(home, branches[BOB], 486)
    assert [s for s in statuses(home.wait(100.0)) if s >= 200][:1] == [486]


def test_no_way_to_a_phone_is_our_own_failure():
    """Covers RFC 3261 §16.9 [error-is-503], §16.7 [503-stays] [503-becomes-500]."""
    home = Home()
    home.hear(register(contact=f"<sip:bob@{BOB};transport=tls>"))
    sent = home.hear(request()) + home.wait(0.1)
    assert [s for s in statuses(sent) if s >= 200] == [500]


def test_timer_c_ends_what_rings_for_ever():
    """Covers RFC 3261 §16.6 [timer-c-is-long], §16.8 [timer-c-ends-it] [heard-is-cancelled].

    And §16.7 [1xx-resets-timer-c] [reset-is-long]: any 1xx but 100.
    """
    home, branches = forked(BOB)
    reply(home, branches[BOB], 180, now=1.0)
    assert home.proxy.deadline == 1.0 + TIMER_C
    reply(home, branches[BOB], 180, now=100.0)
    reply(home, branches[BOB], 100, now=150.0)
    assert home.proxy.deadline == 100.0 + TIMER_C
    assert TIMER_C > 180
    assert methods(home.wait(99.0 + TIMER_C)) == []
    assert methods(home.wait(101.0 + TIMER_C))[0] == ("CANCEL", BOB)
    sent = reply(home, branches[BOB], 487, now=102.0 + TIMER_C)
    assert sent == [487] and home.proxy.deadline is None


def test_timer_c_does_not_need_a_provisional():
    """Covers RFC 3261 §16.6 [timer-c-is-set], §16.8 [silent-is-408].

    T1 is so long that timer B comes later.
    """
    home, branches = forked(BOB, t1=5.0)
    sent = home.wait(TIMER_C + 1)
    assert next(s for s in statuses(sent) if s >= 200) == 408
    assert statuses(home.hear(response_to(branches[BOB], 200), source=BOB, now=TIMER_C + 2)) == []


def test_a_request_that_is_no_invite_is_forked_too():
    """Covers RFC 3261 §16.7: the first final 2xx is the answer, and others are dropped.

    Covers RFC 3428 §6 [forks].
    """
    home, branches = forked(BOB, CAROL, message=request("MESSAGE"))
    assert home.proxy.deadline is None  # timer F is shorter than any timer C
    assert reply(home, branches[BOB], 202) == [202]
    assert reply(home, branches[CAROL], 200, source=CAROL) == []
    home.wait(200.0)
    assert home.idle


# Which failure is the best


def finals(*of):
    message = request()
    return [response_to(message, status, to_tag=str(n)) for n, status in enumerate(of)]


@pytest.mark.parametrize(
    ("of", "best"),
    [
        ([404, 486, 480], 486),
        ([480, 404], 480),
        ([408, 404], 404),
        ([500, 404], 404),
        ([404, 302], 302),
        ([302, 603, 404], 603),
        ([606, 600], 606),
        ([503], 500),
        ([503, 408], 408),
        ([486, 407], 407),
        ([486, 415, 480], 415),
        ([486, 420], 420),
        ([486, 484], 484),
        ([403, 401], 401),
        ([415, 401], 401),
        ([415, 407], 407),
        ([404, 480], 480),
        ([480, 486], 486),
    ],
)
def test_the_best_failure(of, best):
    """Covers RFC 3261 §16.7 [6xx-first] [lowest-class] [helpful-first] [503-becomes-500]."""
    assert best_response(finals(*of)).status == best


def test_all_challenges_are_put_together():
    """Covers RFC 8760 §2.5 and RFC 3261 §16.7 [challenges-together].

    Covers RFC 8760 §2.5 [all-are-passed-on] [order-is-kept].
    Covers RFC 3261 §22.3 [407-goes-back] [challenges-together].
    """
    first, second, third = finals(407, 401, 486)
    first = first.replace(
        headers=first.headers.append("Proxy-Authenticate", "A").append("Proxy-Authenticate", "B")
    )
    second = second.replace(
        headers=second.headers.append("WWW-Authenticate", "C").append("WWW-Authenticate", "D")
    )
    best = best_response([third, first, second])
    assert best.headers.values("Proxy-Authenticate") == ("A", "B")
    assert best.headers.values("WWW-Authenticate") == ("C", "D")


@given(st.lists(st.integers(300, 699), min_size=1, max_size=6))
def test_some_failure_is_always_the_best(of):
    """Covers RFC 3261 §16.7 [6xx-first] [lowest-class] [503-stays], §21.5.4 [503-as-500]."""
    best = best_response(finals(*of)).status
    assert best in of or (best == 500 and 503 in of)
    classes = {status // 100 for status in of}
    assert best // 100 == (6 if 6 in classes else min(classes))


# Breadth


def test_breadth_is_shared_and_used_again():
    """Covers RFC 5393 §5.3.3 [stays-within] [uses-all-of-it], §5.3.3.1 [uses-it-again]."""
    phones = [f"10.0.1.{n}" for n in range(4)]
    message = request("INVITE", "sip:bob@home", ("Max-Breadth", 3))
    home, branches = forked(*phones, message=message)
    assert list(branches) == phones[:3]
    assert [branch.headers.get("Max-Breadth") for branch in branches.values()] == ["1"] * 3
    sent = home.hear(response_to(branches[phones[0]], 486, to_tag="x"), source=phones[0], now=1.0)
    assert ("INVITE", phones[3]) in methods(sent)
    home, branches = forked(*phones, message=request("INVITE", "sip:bob@home"))
    assert sum(int(branch.headers.get("Max-Breadth")) for branch in branches.values()) == 60


@pytest.mark.parametrize(("came", "goes"), [(1, 1), (7, 7), (60, 60), (61, 60), (2**32 - 1, 60)])
def test_breadth_is_passed_on_whole_up_to_a_maximum(came, goes):
    """Covers RFC 5393 §5.3.3 [not-per-hop] [has-a-maximum] [maximum-is-60] [overwrites-larger].

    And RFC 5393 §5.3.3 [overwrites-within-maximum].
    """
    _, branches = forked(BOB, message=request("INVITE", "sip:bob@home", ("Max-Breadth", came)))
    assert branches[BOB].headers.all("Max-Breadth") == (str(goes),)


def test_a_breadth_of_more_than_32_bits_is_refused():
    """Covers RFC 5393 §5.3.3 [has-a-maximum] [overwrites-larger] [overwrites-within-maximum]."""
    home = Home()
    home.hear(register(), source=BOB)
    sent = home.hear(request("INVITE", "sip:bob@home", ("Max-Breadth", 2**32)))
    assert [message.status for message, *_ in sent] == [400]


def test_of_several_breadths_one_goes_on():
    """Covers RFC 5393 §5.3.3 [exactly-one]."""
    several = ("Max-Breadth", 3), ("Max-Breadth", 4)
    _, branches = forked(BOB, message=request("INVITE", "sip:bob@home", *several))
    assert branches[BOB].headers.all("Max-Breadth") == ("3",)


@pytest.mark.parametrize(("came", "goes"), [(None, "60"), (7, "7"), (61, "60")])
def test_the_ack_of_an_answer_has_one_breadth_too(came, goes):
    """Covers RFC 5393 §5.3.3 [exactly-one] [not-per-hop] [adds-max-breadth]."""
    home, branches = forked(BOB)
    [(answer, *_)] = home.hear(response_to(branches[BOB], 200, to_tag="t"), source=BOB)
    way = ("Route", answer.record_routes[0])
    ack = request("ACK", f"sip:bob@{BOB}", way, ("Max-Breadth", came), to=";tag=t")
    ack = ack.replace(headers=ack.headers.with_("To", str(answer.to)))
    [(out, to, _)] = home.hear(ack)
    assert (out.method, to) == ("ACK", BOB) and out.headers.all("Max-Breadth") == (goes,)


@pytest.mark.parametrize("phones", range(1, 5))
@pytest.mark.parametrize("breadth", range(1, 9))
def test_all_branches_together_have_the_breadth_that_came(phones, breadth):
    """Covers RFC 5393 §5.3.3 [stays-within] [uses-all-of-it] [exactly-one]."""
    bells = [f"10.0.1.{n}" for n in range(phones)]
    message = request("INVITE", "sip:bob@home", ("Max-Breadth", breadth))
    _, branches = forked(*bells, message=message)
    shares = [branch.headers.all("Max-Breadth") for branch in branches.values()]
    assert all(len(share) == 1 for share in shares)
    assert sum(int(share) for [share] in shares) == breadth
    assert len(branches) == min(phones, breadth)


def test_who_waits_for_breadth_is_not_called_after_an_end():
    """Covers RFC 3261 §16.7 [6xx-ends-forking]: and a 2xx, for targets that were not tried yet."""
    for end in (200, 603):
        message = request("INVITE", "sip:bob@home", ("Max-Breadth", 1))
        home, branches = forked(BOB, CAROL, message=message)
        assert list(branches) == [BOB]
        assert reply(home, branches[BOB], end) == [end]
        assert not [m for m in methods(home.wait(200.0)) if m[0] == "INVITE"]


# One after the other


def ranked(*phones, message=None):
    """A home with phones of bob's, each with its q, and the requests that are out at first."""
    home = Home()
    for number, (phone, q) in enumerate(phones):
        contact = f"<sip:bob@{phone}>;q={q}"
        home.hear(register(contact=contact, cseq=number + 1), source=phone)
    home.wait(0.0)
    sent = home.hear(message or request())
    return home, {to: out for out, to, _ in sent if isinstance(out, Request)}


def test_a_lower_q_rings_after_the_higher_has_refused():
    """Covers RFC 3261 §16.6: serial forking; and §16.7: the best of all failures."""
    home, branches = ranked((FAR, 0.1), (BOB, 0.9), (CAROL, 0.9))
    assert set(branches) == {BOB, CAROL}
    assert sorted(out.headers["Max-Breadth"] for out in branches.values()) == ["30", "30"]
    assert reply(home, branches[BOB], 486) == []
    sent = home.hear(response_to(branches[CAROL], 404, to_tag="c"), source=CAROL, now=1.0)
    [last] = [out for out, to, _ in sent if isinstance(out, Request) and out.method == "INVITE"]
    assert str(last.uri) == f"sip:bob@{FAR}" and last.headers["Max-Breadth"] == "60"
    assert statuses(sent) == []
    assert reply(home, last, 480, source=FAR) == [486]


def test_nobody_else_rings_once_a_call_is_answered_or_refused_by_all():
    """Covers RFC 3261 §16.7 steps 5 and 10."""
    for status in (200, 603):
        home, branches = ranked((BOB, 1.0), (CAROL, 0.5))
        sent = home.hear(response_to(branches[BOB], status, to_tag="t"), source=BOB, now=1.0)
        assert statuses(sent) == [status] and ("INVITE", CAROL) not in methods(sent)
        home.wait(300.0)
        assert home.idle


def test_a_phone_that_others_wait_for_rings_for_a_time():
    """Covers RFC 3261 §16.10: a proxy may cancel at any time; its 487 is not the caller's."""
    home, branches = ranked((BOB, 1.0), (CAROL, 0.5))
    reply(home, branches[BOB], 180)
    assert methods(home.wait(RING - 0.1)) == [] and home.proxy.deadline == RING
    assert methods(home.wait(RING)) == [("CANCEL", BOB)]
    sent = home.hear(response_to(branches[BOB], 487, to_tag="t"), source=BOB, now=RING + 0.1)
    assert ("INVITE", CAROL) in methods(sent) and statuses(sent) == []
    [second] = [out for out, to, _ in sent if to == CAROL]
    reply(home, second, 180, source=CAROL, now=RING + 0.2)
    assert ("CANCEL", CAROL) not in methods(home.wait(3 * RING))  # nobody waits for it
    assert reply(home, second, 404, source=CAROL, now=3 * RING) == [480]


def test_a_caller_who_gives_up_between_two_phones_is_answered():
    """Covers RFC 3261 §16.10: the phones that wait are left alone."""
    home, branches = ranked((BOB, 1.0), (CAROL, 0.5))
    reply(home, branches[BOB], 180)
    cancel = request("CANCEL")
    home.hear(cancel.replace(headers=cancel.headers.with_("Via", request().via)), now=2.0)
    sent = home.hear(response_to(branches[BOB], 487, to_tag="t"), source=BOB, now=2.1)
    assert statuses(sent) == [487] and ("INVITE", CAROL) not in methods(sent)
    home.wait(300.0)
    assert home.idle


def test_a_request_that_is_no_invite_goes_to_all_at_once():
    """Covers RFC 3261 §17.1.2.2: its client does not wait for a second try."""
    _, branches = ranked((BOB, 1.0), (CAROL, 0.5), message=request("MESSAGE"))
    assert set(branches) == {BOB, CAROL}


def test_what_cannot_be_read_in_a_response_goes_on_as_it_came():
    """Covers RFC 3261 §16.7 [fields-stay]: the caller has its answer, whatever stands beside it."""
    home, branches = forked(BOB)
    fine = response_to(branches[BOB], 200, to_tag="t", headers=[("Contact", "<sip:bob@[b>")])
    odd = [("Record-Route", '"x'), ("Via", "SIP/2.0/UDP [::"), ("Require", '"')]
    for name, value in odd:
        fine = fine.replace(headers=fine.headers.append(name, value))
    [(told, to, _)] = home.hear(fine, source=BOB)
    assert (told.status, to, len(told.headers.values("Via"))) == (200, ALICE, 1)
    assert told.headers["Contact"] == "<sip:bob@[b>"
    assert told.headers.values("Record-Route")[-1] == '"x'
