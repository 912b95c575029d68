"""What a proxy keeps, changes and takes away, for requests that no other test sends."""

import pytest
from support.sip.elements import PORT
from support.sip.homes import (
    ALICE,
    BOB,
    CAROL,
    FAR,
    HOME,
    OUTSIDER,
    Home,
    answer_to,
    finals,
    forked,
    forwarded,
    methods,
    register,
    request,
    statuses,
)
from support.sip.stacks import Asker
from support.sip.stacks import request as bare

from p2psip.server.response_context import TIMER_C
from p2psip.sip.build import response_to
from p2psip.sip.message import Request
from p2psip.sip.uri import Uri
from p2psip.stack.stack import Flow, Listener, Locate

TLS = Listener("TLS", HOME, 5061)


def within(home, branches, method, *more, cseq=2):
    """A request of Alice in the dialog that Bob's 200 begins, if it has not begun yet."""
    sent = home.hear(response_to(branches[BOB], 200, to_tag="t"), source=BOB)
    route = ("Route", answer_to(sent).record_routes[0])
    return request(method, f"sip:bob@{BOB}", route, *more, to=";tag=t", cseq=cseq)


# Before a request goes on


def test_an_invite_that_waits_is_answered_with_100_and_nothing_else_is():
    """Covers RFC 3261 §16.2 [trying-as-a-uas] [no-trying-for-others]."""
    home, _ = forked(BOB)
    assert statuses(home.wait(1.0)) == [100]
    home, _ = forked(BOB, message=request("MESSAGE"))
    assert statuses(home.wait(20.0)) == []


def test_a_method_that_nobody_knows_takes_every_step():
    """Covers RFC 3261 §16.2 [same-steps-for-any-method], §16.6 [marks-unknown-methods]."""
    us = ("Route", f"<sip:{HOME};lr>")
    home, branches = forked(BOB, message=request("XYZZY", "sip:bob@home", us, ("Max-Forwards", 5)))
    out = branches[BOB]
    assert (out.method, str(out.uri), out.routes) == ("XYZZY", f"sip:bob@{BOB}", ())
    assert out.max_forwards == 4 and home.stack.is_ours(out.record_routes[0].uri)
    last = request("XYZZY", "sip:bob@home", ("Max-Forwards", 0), cseq=2)
    assert finals(home.hear(last)) == [483]
    assert statuses(home.hear(response_to(out, 299, to_tag="t"), source=BOB)) == [299]


def test_a_method_that_nobody_knows_passes_within_a_dialog():
    """Covers RFC 3261 §16.3 [unknown-pass]."""
    home, branches = forked(BOB)
    message = within(home, branches, "XYZZY", ("X-Unknown", "y"))
    [(out, to, _)] = home.hear(message)
    assert (out.method, to, out.headers["X-Unknown"]) == ("XYZZY", BOB, "y")
    for cseq, (method, passes) in enumerate([("INFO", True), ("PUBLISH", False)], 3):
        asked = message.headers.with_("CSeq", f"{cseq} {method}")
        sent = home.hear(message.replace(method=method, headers=asked))
        assert methods(sent) == ([(method, BOB)] if passes else [])


@pytest.mark.parametrize("field", [("CSeq", "1 OPTIONS"), ("Proxy-Require", '"x')])
def test_what_the_proxy_reads_is_to_be_well_formed(field):
    """Covers RFC 3261 §16.3 [fit-for-a-transaction] [well-formed]."""
    home = Home()
    home.hear(register(), source=BOB)
    sent = home.hear(request("INVITE", "sip:bob@home", field))
    assert finals(sent) == [400] and methods(sent) == []


def test_a_request_for_elsewhere_is_checked_as_well():
    """Covers RFC 3261 §16.3 [checks-come-first] [zero-hops-stay]."""
    sent = Home().hear(request("INVITE", "sip:x@far", ("Max-Forwards", 0)), source="127.0.0.1")
    assert finals(sent) == [483] and methods(sent) == []
    sent = Home().hear(request("INVITE", "sip:zoe@home", OUTSIDER, ("Max-Forwards", 0)))
    assert finals(sent) == [483]  # before it is seen that nobody is there


def test_a_scheme_that_leads_nowhere():
    """Covers RFC 3261 §16.3 [416-for-schemes]."""
    assert finals(Home().hear(request("INVITE", "nobody:knows"))) == [416]


# Routes


@pytest.mark.parametrize(
    ("uri", "routes"),
    [
        (f"sip:{HOME}:5060;lr", "<sip:bob@home>"),  # by a strict router
        (f"sip:{HOME};lr", "<sip:home;lr>, <sip:bob@home>"),
        ("sip:bob@home", f"<sip:{HOME};lr>"),
        ("sip:bob@home", f"<sip:home;lr>, <sip:{HOME}:5060;lr>"),
    ],
)
def test_our_route_is_taken_away(uri, routes):
    """Covers RFC 3261 §16.4 [looks-at-the-target] [strict-router-undone] [goes-on-as-mended].

    And §16.4 [own-route-is-removed].
    """
    home = Home()
    home.hear(register(), source=BOB)
    sent = home.hear(request("INVITE", uri, OUTSIDER, ("Route", routes)))
    assert forwarded(sent) == [(f"sip:bob@{BOB}", BOB, "UDP")]
    assert [m.routes for m, to, _ in sent if to == BOB] == [()]


def test_the_target_that_a_strict_router_put_last_is_a_route_no_longer():
    """Covers RFC 3261 §16.4 [strict-router-undone] [looks-at-the-target]."""
    route = ("Route", "<sip:x@far>")
    sent = Home().hear(request("INVITE", f"sip:{HOME};lr", route), source="127.0.0.1")
    assert forwarded(sent) == [("sip:x@far", FAR, "UDP")]
    assert [m.routes for m, to, _ in sent if to == FAR] == [()]


@pytest.mark.parametrize(
    ("uri", "goes"),
    [
        (f"sip:x@far;maddr={HOME}", "sip:x@far"),
        (f"sip:x@far:5060;maddr={HOME};transport=tcp;y=z", "sip:x@far;y=z"),
        ("sip:x@far;maddr=home", "sip:x@far"),
        (f"sip:x@nowhere;maddr={FAR}", f"sip:x@nowhere;maddr={FAR}"),
    ],
)
def test_a_maddr_of_ours_is_taken_away(uri, goes):
    """Covers RFC 3261 §16.4 [maddr-is-looked-at] [own-maddr-is-dropped]."""
    sent = Home().hear(request("INVITE", uri), source="127.0.0.1")
    assert forwarded(sent) == [(goes, FAR, "UDP")]


def test_a_user_of_ours_is_called_whatever_the_maddr():
    """Covers RFC 3261 §16.5: our own domain counts, see `Domains.of`."""
    home = Home()
    home.hear(register(), source=BOB)
    sent = home.hear(request("INVITE", f"sip:bob@home;maddr={FAR}", OUTSIDER))
    assert forwarded(sent) == [(f"sip:bob@{BOB}", BOB, "UDP")]


def test_a_target_looked_up_for_sips_is_looked_up_for_sips_behind_a_route():
    """Covers RFC 3261 §16.6 [secure-target-secure-hop]."""
    stack = Home(listeners=(TLS,)).stack
    stack.request(bare("OPTIONS", "sips:bob@b.com", 1, ("Route", f"<sip:{FAR};lr>")), Asker(), 0.0)
    stack.request(bare("OPTIONS", "sips:bob@b.com", 2, ("Route", "<sip:p.com;lr>")), Asker(), 0.0)
    send, locate = stack.take_orders()
    assert (send.flow.transport, send.flow.remote) == ("TLS", (FAR, 5061))
    assert locate == Locate(1, Uri.parse("sips:p.com;lr"))


# Targets


def test_a_contact_that_is_registered_twice_is_one_target():
    """Covers RFC 3261 §16.5 [each-target-once]: though one of them has another parameter."""
    home = Home()
    home.hear(register())
    home.hear(register(contact=f"<sip:bob@{BOB};x=1>", call="other"))
    assert len(methods(home.hear(request("INVITE", "sip:bob@home")))) == 1


def test_a_foreign_target_stays_alone():
    """Covers RFC 3261 §16.5 [foreign-alone] [adds-none]: a redirection goes back as it is."""
    home = Home()
    sent = home.hear(request("INVITE", "sip:x@far"), source="127.0.0.1")
    [out] = [m for m, to, _ in sent if to == FAR]
    moved = response_to(out, 302, to_tag="t", headers=[("Contact", f"<sip:x@{BOB}>")])
    sent = home.hear(moved, source=FAR)
    assert finals(sent) == [302] and methods(sent) == [("ACK", FAR)]
    assert answer_to(sent).headers["Contact"] == f"<sip:x@{BOB}>"


# The copy that goes on


def test_what_a_proxy_does_not_read_goes_on_as_it_came():
    """Covers RFC 3261 §16.3 [rest-is-ignored], §16.6 [copies-all-fields] [removes-none].

    And §16.6 [keeps-their-order] [keeps-order-of-values] [copies-the-body].
    """
    odd = [
        ("Date", "when?"),
        ("X-Odd", "2, 1"),
        ("Subject", '"half'),
        ("X-Odd", "0"),
        ("Warning", "?,,"),
        ("Content-Type", "text/plain"),
    ]
    sent = request("MESSAGE", "sip:bob@home", *odd).replace(body=b"\0 body\r\n\r\n")
    _, branches = forked(BOB, message=sent)
    out = branches[BOB]
    ours = {"Via", "Max-Forwards", "Max-Breadth", "Record-Route", "Content-Length"}
    kept, came = ([pair for pair in m.headers if pair[0] not in ours] for m in (out, sent))
    assert kept == came and out.body == sent.body


def test_an_ack_goes_to_a_target_without_what_a_uri_may_not_have():
    """Covers RFC 3261 §16.6 [only-what-a-uri-may-have]: it has no branch of its own."""
    home, branches = forked(BOB)
    contact = ("Contact", f"<sip:bob@{BOB};method=BYE;x=1?Subject=hi>")
    fine = response_to(branches[BOB], 200, to_tag="t", headers=[contact])
    [(back, *_)] = home.hear(fine, source=BOB)
    route = ("Route", back.record_routes[0])
    for method in ("ACK", "INFO"):
        sent = home.hear(request(method, "sip:x", route, to=";tag=t", cseq=1 + (method == "INFO")))
        assert forwarded(sent) == [(f"sip:bob@{BOB};x=1", BOB, "UDP")]


def test_a_repeated_ack_has_the_same_branch():
    """Covers RFC 3261 §16.11 [same-branch-again]."""
    home, branches = forked(BOB)
    ack = within(home, branches, "ACK", cseq=1)
    first, second = ([m.via.branch for m, _, _ in home.hear(ack)] for _ in range(2))
    other = ack.replace(headers=ack.headers.with_("CSeq", "2 ACK"))
    [third] = [m.via.branch for m, _, _ in home.hear(other)]
    assert first == second != [third] and third.startswith("z9hG4bK")


def test_our_record_route_is_on_top_in_a_dialog_as_well():
    """Covers RFC 3261 §16.6 [mark-on-top] [marks-within-dialogs]."""
    before = ("Record-Route", f"<sip:{FAR};lr>")
    home, branches = forked(BOB, message=request("INVITE", "sip:bob@home", before))
    [(again, *_)] = home.hear(within(home, branches, "INVITE", before))[-1:]
    for out in (branches[BOB], again):
        ours, theirs = out.record_routes
        assert home.stack.is_ours(ours.uri) and theirs.uri.host == FAR


def test_what_a_datagram_need_not_have_a_stream_has():
    """Covers RFC 3261 §16.6 [stream-needs-a-length]."""
    home = Home()
    home.hear(register(contact=f"<sip:bob@{BOB};transport=tcp>"), transport="TCP")
    message = request("MESSAGE", "sip:bob@home", ("Content-Type", "text/plain"))
    data = bytes(message.replace(body=b"hello")).replace(b"Content-Length: 5\r\n", b"")
    assert b"Content-Length" not in data
    home.stack.receive(data, Flow("UDP", (ALICE, PORT), (HOME, PORT)), 0.0)
    [order] = home.stack.take_orders()
    assert order.flow.transport == "TCP" and b"\r\nContent-Length: 5\r\n" in order.data


def test_a_phone_that_is_registered_by_sips_is_called_by_sip_over_tls():
    """Covers RFC 3261 §16.6 [marks-what-came-in-the-clear] and RFC 5630 §5.3.

    The caller has no TLS, and can end the call all the same.
    """
    home = Home(listeners=(TLS,))
    binding = register(contact=f"<sips:bob@{BOB}:5061>")
    binding = binding.replace(uri=binding.uri.replace(scheme="sips"))
    home.hear(binding, source=BOB, transport="TLS")
    sent = home.hear(request("INVITE", "sip:bob@home"))
    assert forwarded(sent) == [(f"sip:bob@{BOB}:5061", BOB, "TLS")]
    [out] = [m for m, to, _ in sent if to == BOB]
    assert out.headers.all("Record-Route") == (f"<sip:{HOME}:5061;transport=tls;lr>",)
    contact = ("Contact", f"<sip:bob@{BOB}:5061>")
    fine = response_to(out, 200, to_tag="t", headers=[contact])
    [(back, _, how)] = home.hear(fine, source=BOB, transport="TLS")
    assert how == "UDP" and back.headers.all("Record-Route") == (f"<sip:{HOME}:5060;lr>",)
    route = ("Route", back.record_routes[0])
    bye = request("BYE", str(back.contacts[0].uri), route, to=";tag=t", cseq=2)
    assert forwarded(home.hear(bye)) == [(f"sip:bob@{BOB}:5061", BOB, "TLS")]


# The response that goes back


def test_after_a_spiral_our_last_record_route_is_the_one_for_the_caller():
    """Covers RFC 3261 §16.6 [mark-is-found-again]: that of the first time is another side's."""
    home = Home()
    home.hear(register(), source=BOB)
    first = ("Record-Route", f"<sip:{HOME}:5060;lr>")
    sent = home.hear(request("INVITE", "sip:bob@home", first), transport="TCP")
    [out] = [m for m, to, _ in sent if to == BOB]
    assert out.headers.all("Record-Route") == (first[1], first[1])
    other = "<sip:10.0.0.7;lr>"
    answer = response_to(out, 200, to_tag="t")
    for routes, expected in (
        ([first[1], first[1]], (f"<sip:{HOME}:5060;transport=tcp;lr>", first[1])),
        ([other, first[1]], (other, first[1])),  # a phone that has changed ours
        ([], ()),
    ):
        answer = answer.replace(headers=answer.headers.with_("Record-Route", *routes))
        [(back, *_)] = home.hear(answer, source=BOB)
        assert back.headers.all("Record-Route") == expected


@pytest.mark.parametrize("status", [180, 200, 486])
@pytest.mark.parametrize("tag", ["b7", None])
def test_a_response_goes_back_as_it_came(status, tag):
    """Covers RFC 3261 §16.7 [no-tag-of-ours] [tag-is-kept] [tag-of-refusals] [processed-first].

    And §16.7 [body-as-it-came] [fields-stay] [received-stays].
    """
    home, branches = forked(BOB)
    odd = [("X-Odd", "2, 1"), ("Date", "when?"), ("X-Odd", "0")]
    answer = response_to(
        branches[BOB],
        status,
        to_tag=tag,
        headers=odd,
        body=b"\0 body",
        content_type="text/plain",
    )
    without = [answer.headers.values("Via")[0], f"SIP/2.0/UDP {ALICE};branch=z9hG4bKcall1INVITE"]
    changed = answer.replace(headers=answer.headers.with_("Via", *without))
    [back] = [m for m, to, _ in home.hear(changed, source=BOB) if to == ALICE]
    skipped = ("Via", "Content-Length", "Record-Route")
    kept, came = ([pair for pair in m.headers if pair[0] not in skipped] for m in (back, answer))
    assert kept == came and back.body == answer.body and back.to.tag == tag
    assert len(back.vias) == 1 and back.via.received == ALICE


def test_a_tag_of_the_request_is_the_tag_of_every_response():
    """Covers RFC 3261 §16.7 [tag-is-kept]."""
    home, branches = forked(BOB)
    [(out, *_)] = home.hear(within(home, branches, "INFO"))
    [(back, *_)] = home.hear(response_to(out, 486), source=BOB)
    assert (back.status, back.to.tag) == (486, "t")


def test_after_an_answer_nothing_but_another_2xx_passes():
    """Covers RFC 3261 §16.7 [later-2xx-at-once]."""
    home, branches = forked(BOB, CAROL)
    assert statuses(home.hear(response_to(branches[BOB], 200, to_tag="b"), source=BOB)) == [200]
    for status, passed in ((180, []), (200, [200])):
        answer = response_to(branches[CAROL], status, to_tag="c")
        assert statuses(home.hear(answer, source=CAROL)) == passed


def test_the_answer_to_a_cancel_of_ours_goes_no_further():
    """Covers RFC 3261 §16.7 [own-answers-stay]."""
    home, branches = forked(BOB, CAROL)
    home.hear(response_to(branches[CAROL], 180, to_tag="c"), source=CAROL)
    sent = home.hear(response_to(branches[BOB], 200, to_tag="b"), source=BOB)
    [cancel] = [m for m, to, _ in sent if to == CAROL]
    assert (isinstance(cancel, Request), cancel.method) == (True, "CANCEL")
    assert home.hear(response_to(cancel, 200, to_tag="c"), source=CAROL) == []


def test_a_cancel_of_what_was_never_here_is_refused():
    """Covers RFC 3261 §16.10: all that go on have a transaction, see `Servers.cancel`."""
    home = Home()
    home.hear(register(), source=BOB)
    sent = home.hear(request("CANCEL"))
    assert finals(sent) == [481] and methods(sent) == []


def test_a_branch_that_timer_c_ends_in_silence_has_another_flow():
    """Covers RFC 3261 §16.8 [silent-is-408]: as any 408 has, RFC 5626 §7."""
    home = Home(t1=5.0)  # timer B comes after timer C
    for number, source in enumerate((BOB, CAROL), 1):
        flow = f'<sip:bob@192.168.0.7>;+sip.instance="<urn:x:1>";reg-id={number}'
        message = register("bob", flow, ("Supported", "path, outbound"), call=source)
        home.hear(message, source=source, transport="TCP")
    assert methods(home.hear(request())) == [("INVITE", CAROL)]
    assert ("INVITE", BOB) in methods(home.wait(TIMER_C + 1))


@pytest.mark.parametrize("transport", ["UDP", "TCP"])
def test_an_answer_that_gets_lost_cancels_nothing(transport):
    """Covers RFC 3261 §16.9 [lost-answers-cancel-nothing]."""
    home = Home()
    home.hear(register(), source=BOB)
    sent = home.hear(request(), transport=transport)
    [out] = [m for m, to, _ in sent if to == BOB]
    home.hear(response_to(out, 180, to_tag="t"), source=BOB)
    flow = Flow(transport, (ALICE, PORT), (HOME, PORT))
    for lost in (flow, Flow(transport, (ALICE, PORT))):  # the connection, and one in its place
        home.stack.flow_failed(lost, 1.0)
        assert methods(home.said()) == [] and len(home.proxy) == 1
