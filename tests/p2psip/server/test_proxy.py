"""Forwarding: one request in, one or more out, the best answer back."""

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from support.rtmfp.link import Link, calm, storm
from support.sip.homes import (
    ALICE,
    BOB,
    CAROL,
    HOME,
    Home,
    Member,
    forked,
    methods,
    register,
    request,
    statuses,
    store,
)

from p2psip.server.proxied_dialogs import SILENCE
from p2psip.sip.build import response_to
from p2psip.sip.message import Request
from p2psip.sip.uri import Uri

# What is forwarded


def test_a_request_goes_on_as_a_proxy_should_send_it():
    """Covers RFC 3261 §16.6 [target-is-the-uri] [one-hop-less] [transaction-per-target].

    Covers RFC 3261 §16.6 [mark-is-sip] [mark-has-lr].
    And RFC 5393 §5.3.3 [adds-60].

    And RFC 5393 §4.2.1 [via-on-top] [branch-is-unique].
    """
    _, branches = forked(BOB, message=request("INVITE", "sip:bob@home", ("X-New", "a;b")))
    out = branches[BOB]
    assert str(out.uri) == f"sip:bob@{BOB}" and out.max_forwards == 69
    assert out.headers.get("Max-Breadth") == "60" and out.headers.get("X-New") == "a;b"
    assert len(out.vias) == 2 and out.via.host == HOME and out.vias[1].host == ALICE
    assert out.via.branch.startswith("z9hG4bK") and out.via.branch != out.vias[1].branch
    [mark] = out.record_routes
    assert mark.uri.host == HOME and mark.uri.param("lr") is not None and mark.uri.scheme == "sip"
    assert out.to.tag is None and out.call_id == "call"


def test_a_contact_with_more_than_a_request_uri_may_hold():
    """Covers RFC 3261 §16.6 [only-what-a-uri-may-have]."""
    home = Home()
    home.hear(register(contact=f"<sip:bob@{BOB};method=BYE;x=1?Subject=hi>"))
    [out] = [m for m, _, _ in home.hear(request()) if isinstance(m, Request)]
    assert str(out.uri) == f"sip:bob@{BOB};x=1"


def test_who_sends_no_max_forwards_gets_one():
    """Covers RFC 3261 §16.6 [adds-max-forwards] [adds-70]."""
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
    """Covers RFC 3261 §16.3 and RFC 5393 §5.3.3 [440-when-too-narrow].

    Covers RFC 3261 §16.3 [checks-come-first] [is-refused] [zero-hops-stay] [483-for-zero-hops].
    And RFC 3261 §16.3 [420-for-proxy-require] [420-names-them], §20.29 [asks-the-proxy].
    """
    home = Home()
    home.hear(register(), source=BOB)
    [*_, (response, to, _)] = home.hear(request("INVITE", "sip:bob@home", header))
    assert (response.status, to) == (status, ALICE)
    assert response.headers.get("Unsupported") == extra and len(home.proxy) == 0


def test_a_response_without_a_transaction_goes_no_further():
    """Covers RFC 6026 §6 [strays-not-forwarded], §7.3 [strays-not-forwarded].

    And RFC 6026 §8.2 [strays-not-forwarded]; it would go to the Via below ours.
    """
    home, branches = forked(BOB)
    answer = response_to(branches[BOB], 200, to_tag="t")
    ours, callers = answer.vias
    other = str(ours).replace(ours.branch, ours.branch + "x")
    stray = answer.replace(headers=answer.headers.with_("Via", other, callers))
    assert home.hear(stray, source=BOB) == [] and home.stack.counters.stray == 1
    home.wait(200.0)
    assert home.hear(answer, source=BOB, now=200.0) == [] and home.stack.counters.stray == 2


# Loops


def test_a_request_that_comes_back_unchanged_has_looped():
    """Covers RFC 5393 §4.1 [no-loop-when-forking].

    And RFC 5393 §4.2.2 [checks-before-forwarding] [loop-is-482] [compares-the-values]
    [looks-at-our-vias].
    """
    for phones in ((BOB,), (BOB, CAROL)):
        home, branches = forked(*phones)
        back = branches[BOB].replace(uri=Uri.parse("sip:bob@home"))
        vias = [str(via).replace(":5060", "") for via in back.vias]
        plain = back.replace(headers=back.headers.with_("Via", *vias))
        for each in (back, plain):
            [(response, *_)] = [s for s in home.hear(each, source=BOB) if s[0].status != 100]
            assert response.status == 482


def test_a_loop_is_seen_after_another_branch_has_answered():
    """Covers RFC 5393 §4.1 [no-loop-when-forking]: over TCP the answer ends the transaction.

    Covers RFC 3261 §16.7 [kept-to-the-end].
    """
    home = Home()
    for number, phone in enumerate((BOB, CAROL)):
        home.hear(register(contact=f"<sip:bob@{phone}>", cseq=number + 1), source=phone)
    home.wait(0.0)
    branches = {to: out for out, to, _ in home.hear(request("MESSAGE"), transport="TCP")}
    assert statuses(home.hear(response_to(branches[BOB], 200, to_tag="t"), source=BOB)) == [200]
    back = branches[CAROL].replace(uri=Uri.parse("sip:bob@home"))
    assert [message.status for message, *_ in home.hear(back, source=CAROL)] == [482]
    home.wait(200.0)
    assert home.idle and not home.proxy._under_way


def test_a_loop_is_a_loop_under_another_method():
    """Covers RFC 5393 §4.2.1 [same-for-any-method]."""
    home, branches = forked(BOB)
    back = branches[BOB]
    headers = back.headers.with_("CSeq", f"{back.cseq.number} MESSAGE")
    back = back.replace(method="MESSAGE", uri=Uri.parse("sip:bob@home"), headers=headers)
    assert [s[0].status for s in home.hear(back, source=BOB)] == [482]


@pytest.mark.parametrize(
    "header",
    [("Call-ID", "other"), ("CSeq", "2 INVITE"), ("From", "<sip:alice@home>;tag=other")],
)
def test_another_transaction_to_the_same_place_is_no_loop(header):
    """Covers RFC 5393 §4.2.4 [differs-by-transaction]."""
    home, branches = forked(BOB)
    back = branches[BOB].replace(uri=Uri.parse("sip:bob@home"))
    back = back.replace(headers=back.headers.with_(*header))
    assert ("INVITE", BOB) in methods(home.hear(back, source=BOB))


def test_a_request_that_comes_back_changed_spirals_on():
    """Covers RFC 5393 §4.2.1 [covers-target-and-route] [covers-choice], §4.2.2."""
    home, branches = forked(BOB)
    home.hear(register("carol", f"<sip:carol@{CAROL}>", call="c"))
    back = branches[BOB].replace(uri=Uri.parse("sip:carol@home"))
    assert ("INVITE", CAROL) in methods(home.hear(back, source=BOB))


def test_a_route_of_a_request_tells_a_spiral_from_a_loop():
    """Covers RFC 5393 §4.2.1 [covers-target-and-route] [covers-choice]."""
    home, branches = forked(BOB)
    back = branches[BOB].replace(uri=Uri.parse("sip:bob@home"))
    back = back.replace(headers=back.headers.with_("Route", f"<sip:{CAROL};lr>"))
    assert ("INVITE", CAROL) in methods(home.hear(back, source="127.0.0.1"))


def test_the_same_request_by_another_way_is_no_loop():
    """Covers RFC 5393 §4.2.2 [looks-at-our-vias], RFC 3261 §16.3 [merged-pass].

    Our own Via has to be on it.
    """
    home, _ = forked(BOB)
    via = f"SIP/2.0/UDP {ALICE};branch=z9hG4bKelsewhere"
    neighbour = f"SIP/2.0/UDP {HOME}:5099;branch=z9hG4bKneighbour"
    again = request("INVITE", "sip:bob@home", ("Via", via), ("Via", neighbour))
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
    """It would answer itself, and that is no answer: `p2psip.server.contact_probe`."""
    home = Home()
    home.hear(register(contact="<sip:bob@mirror>"))
    home.wait(0.0)
    sent = home.hear(request("INVITE", "sip:bob@home", ("From", "<sip:x@away>;tag=a")))
    assert [s for s in statuses(sent) if s >= 200] == [480]
    home.wait(200.0)
    assert home.idle


# Within a dialog


def test_each_side_gets_a_route_by_its_own_transport():
    """Covers RFC 3261 §16.7 [rules-of-requests] [transport-only-where-known].

    And §16.6 [transport-only-where-known]: caller by TCP, callee by UDP.
    """
    home = Home()
    home.hear(register(), source=BOB)
    sent = home.hear(request(), transport="TCP")
    [out] = [m for m, to, _ in sent if to == BOB]
    sent = home.hear(response_to(out, 200, to_tag="t"), source=BOB)
    [(back, to, transport)] = sent
    assert (to, transport) == (ALICE, "TCP")
    assert back.record_routes[0].uri.param("transport") == "tcp"
    assert out.record_routes[0].uri.param("transport") is None


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
    home.wait(link.now + 2 * SILENCE)  # a BYE that the storm has taken
    assert not home.proxy._under_way and home.proxy.deadline is None
    assert not home.proxy.dialogs._known
