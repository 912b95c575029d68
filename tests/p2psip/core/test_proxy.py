"""Forwarding: one request in, one or more out, the best answer back."""

import pytest
from homes import ALICE, BOB, CAROL, FAR, HOME, Home, Member, register, request, store
from hypothesis import event, given
from hypothesis import strategies as st
from link import Link, calm, storm

from p2psip.core.proxy import ROUTE_PROOF
from p2psip.core.response_context import TIMER_C, best_response
from p2psip.sip.build import response_to
from p2psip.sip.message import Request, Response
from p2psip.sip.uri import Uri


def forked(*phones, message=None, home=None, now=0.0, **options):
    """A home that has forwarded a request for bob: it, and the request each phone got."""
    home = home or Home(**options)
    for number, phone in enumerate(phones):
        home.hear(register(contact=f"<sip:bob@{phone}>", cseq=number + 1), source=phone)
    home.wait(0.0)
    sent = home.hear(message or request(), now=now)
    branches = {to: out for out, to, _ in sent if isinstance(out, Request)}
    return home, branches


def reply(home, branch, status, *headers, now=1.0, tag="t", source=BOB):
    """Let a phone answer; the responses that go on, by status."""
    response = response_to(branch, status, to_tag=tag, headers=headers)
    return statuses(home.hear(response, source=source, now=now))


def statuses(sent):
    return [out.status for out, to, _ in sent if isinstance(out, Response) and to == ALICE]


def methods(sent):
    return [(out.method, to) for out, to, _ in sent if isinstance(out, Request)]


# What is forwarded


def test_a_request_goes_on_as_a_proxy_should_send_it():
    """Covers RFC 3261 §16.6 and RFC 5393 §5.3.3."""
    _, branches = forked(BOB, message=request("INVITE", "sip:bob@home", ("X-New", "a;b")))
    out = branches[BOB]
    assert str(out.uri) == f"sip:bob@{BOB}" and out.max_forwards == 69
    assert out.headers.get("Max-Breadth") == "60" and out.headers.get("X-New") == "a;b"
    assert len(out.vias) == 2 and out.via.host == HOME and out.vias[1].host == ALICE
    [mark] = out.record_routes
    assert mark.uri.host == HOME and mark.uri.param("lr") is not None
    assert out.to.tag is None and out.call_id == "call"


def test_a_contact_with_more_than_a_request_uri_may_hold():
    """Covers RFC 3261 §16.6 step 2."""
    home = Home()
    home.hear(register(contact=f"<sip:bob@{BOB};method=BYE;x=1?Subject=hi>"))
    [out] = [m for m, _, _ in home.hear(request()) if isinstance(m, Request)]
    assert str(out.uri) == f"sip:bob@{BOB};x=1"


def test_who_sends_no_max_forwards_gets_one():
    """Covers RFC 3261 §16.6 step 3."""
    _, branches = forked(BOB, message=request("INVITE", "sip:bob@home", ("Max-Forwards", None)))
    assert branches[BOB].max_forwards == 70


@pytest.mark.parametrize(
    ("header", "status", "extra"),
    [
        (("Max-Forwards", 0), 483, None),
        (("Proxy-Require", "foo, bar"), 420, "foo, bar"),
        (("Max-Breadth", 0), 440, None),
        (("Max-Breadth", "many"), 400, None),
    ],
)
def test_what_is_not_forwarded(header, status, extra):
    """Covers RFC 3261 §16.3 and RFC 5393 §5.3.3."""
    home = Home()
    home.hear(register(), source=BOB)
    [*_, (response, to, _)] = home.hear(request("INVITE", "sip:bob@home", header))
    assert (response.status, to) == (status, ALICE)
    assert response.headers.get("Unsupported") == extra and len(home.proxy) == 0


# Loops


def test_a_request_that_comes_back_unchanged_has_looped():
    """Covers RFC 5393 §4.2.2."""
    home, branches = forked(BOB)
    back = branches[BOB].replace(uri=Uri.parse("sip:bob@home"))
    [(response, *_)] = [s for s in home.hear(back, source=BOB) if s[0].status != 100]
    assert response.status == 482


def test_a_request_that_comes_back_changed_spirals_on():
    """Covers RFC 5393 §4.2.2: another Request-URI is another matter."""
    home, branches = forked(BOB)
    home.hear(register("carol", f"<sip:carol@{CAROL}>", call="c"))
    back = branches[BOB].replace(uri=Uri.parse("sip:carol@home"))
    assert ("INVITE", CAROL) in methods(home.hear(back, source=BOB))


def test_the_same_request_by_another_way_is_no_loop():
    """Covers RFC 5393 §4.2.2: our own Via has to be on it."""
    home, _ = forked(BOB)
    via = f"SIP/2.0/UDP {ALICE};branch=z9hG4bKelsewhere"
    again = request("INVITE", "sip:bob@home", ("Via", via))
    assert ("INVITE", BOB) in methods(home.hear(again))
    assert len(home.proxy) == 2
    for number, branch in enumerate((request(), again)):
        cancel = branch.replace(
            method="CANCEL", headers=branch.headers.with_("CSeq", "1 CANCEL").without("Contact")
        )
        home.hear(cancel, now=1.0 + number)
    home.wait(200.0)
    assert home.idle and not home.proxy._under_way


def test_a_contact_that_only_dns_knows_to_be_ours_leads_nowhere():
    """What the proxy sends to itself by mistake is not trusted as a user of the process is."""
    home = Home()
    home.hear(register(contact="<sip:bob@mirror>"))
    sent = home.hear(request("INVITE", "sip:bob@home", ("From", "<sip:x@away>;tag=a")))
    assert [s for s in statuses(sent) if s >= 200] == [403]
    home.wait(200.0)
    assert home.idle


# Answers


def test_progress_and_the_answer_pass():
    """Covers RFC 3261 §16.7: 1xx but 100, and every 2xx."""
    home, branches = forked(BOB)
    assert reply(home, branches[BOB], 100) == []
    assert reply(home, branches[BOB], 180) == [180]
    assert reply(home, branches[BOB], 200) == [200]
    assert reply(home, branches[BOB], 200) == [200]  # repeated until the ACK
    home.wait(200.0)
    assert home.idle


def test_the_answer_comes_back_with_the_vias_of_the_request():
    """Covers RFC 3261 §16.7 step 3."""
    home, branches = forked(BOB)
    sent = home.hear(response_to(branches[BOB], 180, to_tag="t"), source=BOB)
    [(response, to, _)] = sent
    assert to == ALICE and len(response.vias) == 1 and response.via.host == ALICE
    assert response.to.tag == "t"


def test_one_answers_and_the_others_stop_ringing():
    """Covers RFC 3261 §16.7 step 10."""
    home, branches = forked(BOB, CAROL)
    for phone in (BOB, CAROL):
        assert reply(home, branches[phone], 180, source=phone) == [180]
    sent = home.hear(response_to(branches[BOB], 200, to_tag="b"), source=BOB, now=2.0)
    assert statuses(sent) == [200] and methods(sent) == [("CANCEL", CAROL)]
    sent = home.hear(response_to(branches[CAROL], 487, to_tag="c"), source=CAROL, now=3.0)
    assert statuses(sent) == [] and methods(sent) == [("ACK", CAROL)]
    home.wait(200.0)
    assert home.idle


def test_both_answer_and_the_caller_hears_of_both():
    """Covers RFC 3261 §16.7 step 5."""
    home, branches = forked(BOB, CAROL)
    assert reply(home, branches[BOB], 200, tag="b") == [200]
    assert reply(home, branches[CAROL], 200, tag="c", source=CAROL) == [200]
    assert reply(home, branches[BOB], 200, tag="b", now=1.5) == [200]


def test_a_global_refusal_stops_everybody():
    """Covers RFC 3261 §16.7 steps 5, 6 and 10: but only when all have stopped it is passed."""
    home, branches = forked(BOB, CAROL)
    reply(home, branches[CAROL], 180, source=CAROL)
    sent = home.hear(response_to(branches[BOB], 603, to_tag="b"), source=BOB, now=2.0)
    assert statuses(sent) == [] and ("CANCEL", CAROL) in methods(sent)
    assert reply(home, branches[CAROL], 487, source=CAROL, now=3.0) == [603]


def test_a_refusal_waits_for_the_others():
    """Covers RFC 3261 §16.7 step 6."""
    home, branches = forked(BOB, CAROL)
    assert reply(home, branches[BOB], 486) == []
    assert reply(home, branches[CAROL], 404, source=CAROL) == [486]


def test_cancelling_cancels_all_that_ring():
    """Covers RFC 3261 §16.10."""
    home, branches = forked(BOB, CAROL)
    reply(home, branches[BOB], 180)
    cancel = request("CANCEL")
    cancel = cancel.replace(headers=cancel.headers.with_("Via", request().via))
    sent = home.hear(cancel, now=2.0)
    assert statuses(sent) == [200] and methods(sent) == [("CANCEL", BOB)]
    # carol's phone is late: no CANCEL before its first word, RFC 3261 §9.1
    sent = home.hear(response_to(branches[CAROL], 180, to_tag="c"), source=CAROL, now=2.1)
    assert ("CANCEL", CAROL) in methods(sent)
    assert reply(home, branches[BOB], 487, now=3.0) == []
    assert reply(home, branches[CAROL], 487, now=3.0, source=CAROL) == [487]
    home.wait(300.0)
    assert home.idle


def test_a_lost_branch_is_a_408():
    """Covers RFC 3261 §16.7 and §16.8: whoever is silent counts as a time-out."""
    home, branches = forked(BOB)
    assert [s for s in statuses(home.wait(100.0)) if s >= 200][:1] == [408]
    home.wait(300.0)
    assert home.idle
    home, branches = forked(BOB, CAROL)
    reply(home, branches[BOB], 486)
    assert [s for s in statuses(home.wait(100.0)) if s >= 200][:1] == [486]


def test_no_way_to_a_phone_is_our_own_failure():
    """Covers RFC 3261 §16.9, §16.7 step 6: a 503 is not passed on."""
    home = Home()
    home.hear(register(contact="<sip:bob@no.such.host>"))
    sent = home.hear(request()) + home.wait(0.1)
    assert [s for s in statuses(sent) if s >= 200] == [500]


def test_timer_c_ends_what_rings_for_ever():
    """Covers RFC 3261 §16.6 step 11, §16.7 step 2 and §16.8: any 1xx but 100 extends it."""
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
    """Covers RFC 3261 §16.8: with a T1 so long that timer B comes later."""
    home, branches = forked(BOB, t1=5.0)
    sent = home.wait(TIMER_C + 1)
    assert next(s for s in statuses(sent) if s >= 200) == 408
    assert statuses(home.hear(response_to(branches[BOB], 200), source=BOB, now=TIMER_C + 2)) == []


def test_a_request_that_is_no_invite_is_forked_too():
    """Covers RFC 3261 §16.7: the first final 2xx is the answer, and others are dropped."""
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
    ],
)
def test_the_best_failure(of, best):
    """Covers RFC 3261 §16.7 step 6."""
    assert best_response(finals(*of)).status == best


def test_all_challenges_are_put_together():
    """Covers RFC 8760 §2.5 and RFC 3261 §16.7 step 7."""
    first, second, third = finals(407, 401, 486)
    first = first.replace(
        headers=first.headers.append("Proxy-Authenticate", "A").append("Proxy-Authenticate", "B")
    )
    second = second.replace(headers=second.headers.append("WWW-Authenticate", "C"))
    best = best_response([third, first, second])
    assert best.headers.values("Proxy-Authenticate") == ("A", "B")
    assert best.headers.values("WWW-Authenticate") == ("C",)


@given(st.lists(st.integers(300, 699), min_size=1, max_size=6))
def test_some_failure_is_always_the_best(of):
    """Covers RFC 3261 §16.7 step 6: 6xx, or the lowest class; never a 503."""
    best = best_response(finals(*of)).status
    assert best in of or (best == 500 and 503 in of)
    classes = {status // 100 for status in of}
    assert best // 100 == (6 if 6 in classes else min(classes))


# Breadth


def test_breadth_is_shared_and_used_again():
    """Covers RFC 5393 §5.3.3 and §5.5."""
    phones = [f"10.0.1.{n}" for n in range(4)]
    message = request("INVITE", "sip:bob@home", ("Max-Breadth", 3))
    home, branches = forked(*phones, message=message)
    assert list(branches) == phones[:3]
    assert [branch.headers.get("Max-Breadth") for branch in branches.values()] == ["1"] * 3
    sent = home.hear(response_to(branches[phones[0]], 486, to_tag="x"), source=phones[0], now=1.0)
    assert ("INVITE", phones[3]) in methods(sent)
    home, branches = forked(*phones, message=request("INVITE", "sip:bob@home"))
    assert sum(int(branch.headers.get("Max-Breadth")) for branch in branches.values()) == 60


def test_who_waits_for_breadth_is_not_called_after_an_end():
    """Covers RFC 3261 §16.7 step 10 for targets that were not tried yet."""
    for end in (200, 603):
        message = request("INVITE", "sip:bob@home", ("Max-Breadth", 1))
        home, branches = forked(BOB, CAROL, message=message)
        assert list(branches) == [BOB]
        assert reply(home, branches[BOB], end) == [end]
        assert not [m for m in methods(home.wait(200.0)) if m[0] == "INVITE"]


# Within a dialog


def test_each_side_gets_a_route_by_its_own_transport():
    """Covers RFC 3261 §16.7 step 8: caller by TCP, callee by UDP."""
    home = Home()
    home.hear(register(), source=BOB)
    sent = home.hear(request(), transport="TCP")
    [out] = [m for m, to, _ in sent if to == BOB]
    sent = home.hear(response_to(out, 200, to_tag="t"), source=BOB)
    [(back, to, transport)] = sent
    assert (to, transport) == (ALICE, "TCP")
    assert back.record_routes[0].uri.param("transport") == "tcp"
    assert out.record_routes[0].uri.param("transport") is None
    proofs = {m.record_routes[0].uri.param(ROUTE_PROOF) for m in (out, back)}
    assert len(proofs) == 1


def dialog(home, branches):
    """The Route of a dialog that was set up through `home`."""
    sent = home.hear(response_to(branches[BOB], 200, to_tag="t"), source=BOB)
    return sent[0][0].record_routes[0]


def within(method, uri, route, **options):
    return request(method, uri, ("Route", route), to=";tag=t", cseq=2, **options)


def test_a_dialog_goes_on_through_us():
    """Covers RFC 3261 §16.4, §16.11: by the proof in our Route."""
    home, branches = forked(BOB)
    route = dialog(home, branches)
    [(out, to, _)] = home.hear(within("ACK", f"sip:bob@{BOB}", route))
    assert (out.method, to, out.routes) == ("ACK", BOB, ()) and out.max_forwards == 69
    [(out, to, _)] = home.hear(within("BYE", f"sip:bob@{BOB}", route))
    assert (out.method, to, out.routes) == ("BYE", BOB, ())
    assert not home.hear(
        request("ACK", f"sip:b@{BOB}", ("Route", route), ("Max-Forwards", 0), to=";tag=t", cseq=3)
    )


def test_from_either_side():
    """Covers RFC 3261 §16.4: the callee's requests carry the tags the other way round."""
    home, branches = forked(BOB)
    route = dialog(home, branches)
    fields = [("From", "<sip:bob@home>;tag=t"), ("To", "<sip:alice@home>;tag=a")]
    message = request("BYE", f"sip:alice@{ALICE}", ("Route", route), *fields, cseq=7)
    assert ("BYE", ALICE) in methods(home.hear(message, source=BOB))


@pytest.mark.parametrize(
    "route", [f"<sip:{HOME};lr>", f"<sip:{HOME};lr;proof=0123456789abcdef>", None]
)
def test_without_the_proof_a_dialog_is_none_of_ours(route):
    home, branches = forked(BOB)
    dialog(home, branches)
    sent = home.hear(within("BYE", f"sip:bob@{FAR}", route, user="x", call="other"))
    assert methods(sent) == [] and home.hear(within("ACK", f"sip:bob@{FAR}", route)) == []


def test_a_proof_is_good_for_its_dialog_alone():
    home, branches = forked(BOB)
    route = dialog(home, branches)
    for options in ({"call": "other"}, {"user": "x"}):
        message = within("BYE", f"sip:bob@{FAR}", route, **options)
        message = message.replace(headers=message.headers.with_("From", "<sip:x@away>;tag=z"))
        assert methods(home.hear(message)) == []


def test_a_strict_router_before_us():
    """Covers RFC 3261 §16.4: our own Route in the Request-URI, the target last in the Routes."""
    home, branches = forked(BOB)
    route = dialog(home, branches)
    message = within("BYE", str(route.uri), f"<sip:bob@{BOB}>")
    [(out, to, _)] = home.hear(message)
    assert (str(out.uri), out.routes, to) == (f"sip:bob@{BOB}", (), BOB)


def test_a_route_beyond_us_is_followed():
    """Covers RFC 3261 §16.6 step 6."""
    home, branches = forked(BOB)
    route = dialog(home, branches)
    message = within("BYE", f"sip:bob@{BOB}", f"{route}, <sip:{CAROL};lr>")
    [(out, to, _)] = home.hear(message)
    assert (to, len(out.routes)) == (CAROL, 1)


# Whole calls in any weather


class Ringing(Member):
    """A phone that rings, and after `after` seconds accepts (200), refuses, or does nothing."""

    def __init__(self, link, address, user, after, status, transport):
        super().__init__(link, address, user, transport=transport, answer=self._ring)
        self.after, self.status, self._due = after, status, None
        self.machines.append(_Finger(self))

    def _ring(self, call, now):
        call.ring(now)
        if self.status:
            self._due = now + self.after, call

    def press(self, now):
        _, call = self._due
        self._due = None
        if call.state == "ringing":
            if self.status == 200:
                call.accept(b"answer", now)
            else:
                call.reject(self.status, "No", now)


class _Finger:
    def __init__(self, phone):
        self.phone = phone

    @property
    def deadline(self):
        return self.phone._due[0] if self.phone._due else None

    def tick(self, now):
        self.phone.press(now)


PHONES = st.lists(
    st.tuples(
        st.integers(0, 40),
        st.sampled_from([200, 200, 486, 404, 603, 0]),
        st.sampled_from(["UDP", "TCP"]),
    ),
    min_size=1,
    max_size=4,
)


@given(
    PHONES,
    st.one_of(st.none(), st.integers(0, 30)),
    st.one_of(st.none(), st.randoms(use_true_random=False)),
    st.booleans(),
)
def test_every_call_has_one_outcome_and_leaves_nothing(phones, cancel_at, random, with_users):
    """Covers RFC 3261 §16.7, §16.10: forks, refusals, CANCEL, silence, whatever the weather."""
    link = Link(calm())
    home = Home(link, users=store("alice", "bob") if with_users else None)
    alice = Member(link, ALICE, "alice", answer_timeout=100.0)
    ringing = [Ringing(link, f"10.0.1.{n}", "bob", *script) for n, script in enumerate(phones)]
    for phone in ringing:
        phone.register(link.now)
        link.run(until=link.now + 1)
    assert home.registrar.count(link.now) == len(phones)
    link.weather = storm(random, loss=0.2) if random else calm()
    call = alice.call("bob", link.now)
    if cancel_at is not None:
        link.run(until=link.now + cancel_at)
        call.bye(link.now)
    link.run(until=link.now + 150)
    link.weather = calm()
    happened = [name for name in alice.events(call) if name != "ringing"]
    event(f"caller: {happened}, cancelled: {cancel_at is not None}")
    up = [c for phone in ringing for c in phone.calls if c.state == "up"]
    if random is None and cancel_at is None:
        expected = {status for _, status, _ in phones}
        if happened == ["accepted"]:
            assert 200 in expected and len(up) == 1
        else:
            assert happened == ["rejected"] and (200 not in expected or 603 in expected)
    assert len(happened) <= 1 or happened == ["accepted", "ended"]
    call.bye(link.now)
    for phone in ringing:
        for other in phone.calls:
            other.bye(link.now)
    link.run(until=link.now + 400)
    for node in (home, alice, *ringing):
        assert node.idle, (node.address, node.stack.transactions, node.agent.dialogs)
    assert not home.proxy._under_way and home.proxy.deadline is None
