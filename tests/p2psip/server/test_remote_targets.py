"""Where requests within dialogs go, when one side names a third party as target or route."""

import pytest
from support.sip.homes import (
    ALICE,
    BOB,
    FAR,
    OUTSIDER,
    Home,
    forked,
    methods,
    register,
    request,
    store,
)

from p2psip.server.judge import Lenient
from p2psip.sip.address import Address
from p2psip.sip.build import response_to
from p2psip.sip.message import Response
from p2psip.sip.uri import Uri

ASKED = ("ACK", "INVITE", "MESSAGE", "REFER", "BYE")
ELSEWHERE = [
    ("Contact", f"<sip:v@{FAR}>"),
    ("Contact", f"<sip:v@{FAR}:25;transport=tcp>"),
    ("Contact", f"<sip:bob@home;maddr={FAR}>"),
    ("Contact", "<sip:v@far>"),
    ("Record-Route", f"<sip:{FAR};lr>"),
    ("Record-Route", f"<sip:{FAR};x=y>"),
]
USERS = store("alice", "bob")


class Strict(Lenient):
    """Lets nobody call a target or route that a peer has named."""

    def may_follow(self, request):
        return False


class Owner:
    """Takes a call, and whatever becomes of it."""

    def __getattr__(self, name):
        return lambda *news: None


def naming(field, value):
    """The header that one side writes, beside its own Contact where that is not the one."""
    own = [("Contact", f"<sip:bob@{BOB}>")] if field == "Record-Route" else []
    return [*own, (field, value)]


def answered(home, branches, field, value):
    """The callee's 200, with our own Record-Route under what it adds."""
    fine = response_to(branches[BOB], 200, to_tag="t", headers=naming("Contact", value))
    if field == "Record-Route":
        routes = [value, *branches[BOB].headers.all("Record-Route")]
        fine = response_to(branches[BOB], 200, to_tag="t", headers=naming(field, value)[:1])
        fine = fine.replace(headers=fine.headers.with_("Record-Route", *routes))
    return home.hear(fine, source=BOB)


def from_the_caller(home, method, cseq, *more):
    asked = request(method, "sip:x@home", ("Route", "<sip:home;lr>"), *more, to=";tag=t", cseq=cseq)
    return home.hear(asked)


def from_the_callee(home, method, cseq):
    fields = [("From", "<sip:bob@home>;tag=t"), ("To", "<sip:alice@home>;tag=a")]
    asked = request(method, "sip:x@home", ("Route", "<sip:home;lr>"), *fields, cseq=cseq)
    return home.hear(asked, source=BOB)


@pytest.mark.parametrize("options", [{}, {"users": USERS, "judge": Strict()}])
@pytest.mark.parametrize(("field", "value"), ELSEWHERE)
def test_a_callee_sends_no_request_of_its_caller_elsewhere(field, value, options):
    """Own design: to where it was seen instead, of RFC 3261 §12.2.1.1."""
    home, branches = forked(BOB, **options)
    assert FAR not in {to for _, to, _ in answered(home, branches, field, value)}
    for number, method in enumerate(ASKED):
        sent = from_the_caller(home, method, 3 + number)
        assert {(out.method, to, how) for out, to, how in sent if hasattr(out, "method")} == {
            (method, BOB, "UDP")
        }
    assert {to for _, to, _ in home.wait(until=200.0)} <= {ALICE, BOB}


@pytest.mark.parametrize("options", [{}, {"users": USERS, "judge": Strict()}])
@pytest.mark.parametrize(("field", "value"), ELSEWHERE)
def test_a_caller_sends_no_request_of_its_callee_elsewhere(field, value, options):
    """Own design: to where it was seen instead, of RFC 3261 §12.2.1.1."""
    home, branches = forked(
        BOB, message=request("INVITE", "sip:bob@home", (field, value)), **options
    )
    answered(home, branches, "Contact", f"<sip:bob@{BOB}>")
    for number, method in enumerate(ASKED[1:]):
        sent = from_the_callee(home, method, 3 + number)
        assert {(m, to) for m, to in methods(sent) if m == method} == {(method, ALICE)}
    assert {to for _, to, _ in home.wait(until=200.0)} <= {ALICE, BOB}


def test_a_refresh_is_judged_as_the_beginning_is():
    """Own design: of RFC 3261 §12.2.1.2 and §12.2.2, at either side."""
    home, branches = forked(BOB, users=USERS, judge=Strict())
    answered(home, branches, "Contact", f"<sip:bob@{BOB}>")
    elsewhere = ("Contact", f"<sip:v@{FAR}>")
    [(asked, to, _), *_] = from_the_caller(home, "UPDATE", 3, elsewhere)
    assert to == BOB
    home.hear(response_to(asked, 200, headers=[elsewhere]), source=BOB)
    assert methods(from_the_caller(home, "INFO", 4)) == [("INFO", BOB)]
    assert methods(from_the_callee(home, "INFO", 5))[-1] == ("INFO", ALICE)


def test_a_stranger_has_nothing_sent_elsewhere_that_it_could_not_send_itself():
    """Own design: RFC 3261 §16.5 lets only users of ours send to other domains, in dialogs too."""
    asked = request("INVITE", "sip:bob@home", OUTSIDER)
    home, branches = forked(BOB, message=asked, users=USERS)
    answered(home, branches, "Contact", f"<sip:v@{FAR}>")
    assert methods(from_the_caller(home, "ACK", 1, OUTSIDER)) == [("ACK", BOB)]
    assert methods(from_the_caller(home, "INFO", 2, OUTSIDER)) == [("INFO", BOB)]


def test_a_target_that_is_allowed_is_told_once_of_each_request_while_it_is_silent():
    """Covers RFC 3261 §12.2.1.1: a user may send there anyway."""
    home, branches = forked(BOB, users=USERS, trusting=False)
    answered(home, branches, "Contact", f"<sip:v@{FAR}>")
    told = []
    for number, method in enumerate(ASKED):
        told += from_the_caller(home, method, 3 + number)
    told += home.wait(until=200.0)
    assert [out.method for out, to, _ in told if to == FAR] == list(ASKED)


def call_for_ann(home, *more):
    """A call that a user agent of this process takes from ALICE, and has acknowledged."""
    sent = home.hear(request("INVITE", "sip:ann@home", *more))
    fine = next(m for m, _, _ in sent if isinstance(m, Response) and m.status == 200)
    home.hear(request("ACK", "sip:ann@home", to=f";tag={fine.to.tag}"))


@pytest.mark.parametrize(("judge", "where"), [(Strict(), ALICE), (None, FAR)])
@pytest.mark.parametrize(
    "named", [each for each in ELSEWHERE if "x=y" not in each[1] and ":25" not in each[1]]
)
def test_a_caller_sends_no_request_of_our_user_agents_elsewhere(named, judge, where):
    """Own design: of RFC 3261 §12.2.1.1; what a judge allows is followed."""

    def route(asked):
        return lambda server, now: calls.append(taken(server, now))

    def taken(server, now):
        call = home.agent.incoming(server, home.stack.contact("ann"), Owner(), now)
        call.accept(b"answer", now)
        return call

    calls = []
    home = Home(route=route, judge=judge)
    call_for_ann(home, named)
    calls[0].bye(1.0)
    assert "BYE" in [out.method for out, to, _ in home.wait(until=60.0) if to == where]


@pytest.mark.parametrize(("judge", "where"), [(Strict(), BOB), (None, FAR)])
def test_a_callee_sends_no_request_of_our_user_agents_elsewhere(judge, where):
    """Own design: the ACK and all that follows it, of RFC 3261 §13.2.2.4 and §12.2.1.1."""
    home = Home(judge=judge)
    to, me = (Address(Uri.parse(f"sip:x@{host}")) for host in (BOB, "home"))
    call = home.agent.invite(to, me, home.stack.contact("ann"), b"offer", Owner(), 0.0)
    [(invite, *_)] = home.said()
    fine = response_to(invite, 200, to_tag="t", headers=[("Contact", f"<sip:v@{FAR}>")])
    acks = home.hear(fine, source=BOB) + home.hear(fine, source=BOB)
    assert methods(acks) == [("ACK", where)] * 2
    call.bye(1.0)
    assert methods(home.said()) == [("BYE", where)]


def test_an_ack_of_a_stranger_goes_by_no_route_of_its_own():
    """Covers RFC 5627 §6.1: to the device that a GRUU names, and to nobody whom a Route names."""
    home = Home()
    device = ';+sip.instance="<urn:uuid:f81d4fae-7dec-11d0-a765-00a0c91e6bf6>"'
    supported = ("Supported", "gruu")
    fine = home.hear(register("bob", f"<sip:bob@{BOB}>{device}", supported))[0][0]
    gruu = Address.parse(fine.headers["Contact"]).param("pub-gruu").strip('"')
    ack = request("ACK", gruu, to=";tag=t")
    assert [(m, to) for m, to in methods(home.hear(ack))] == [("ACK", BOB)]
    routed = request("ACK", gruu, ("Route", f"<sip:{FAR};lr>"), to=";tag=t", cseq=2)
    assert not methods(home.hear(routed))
