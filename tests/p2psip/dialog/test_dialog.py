"""Both ends of a dialog build requests that the other end takes for its own."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2psip.dialog.dialog import Dialog, DialogId
from p2psip.errors import RemoteError
from p2psip.sip.address import Address
from p2psip.sip.build import response_to
from p2psip.sip.headers import Headers
from p2psip.sip.message import Request, Response, check_request, parse_message
from p2psip.sip.uri import Uri
from p2psip.strategies import sip

ALICE, BOB = "sip:alice@atlanta.com", "sip:bob@biloxi.com"


def invite(*routes, contact="<sip:alice@10.0.0.1>", tag=";tag=a"):
    fields = [("Record-Route", route) for route in routes]
    fields += [
        ("Via", "SIP/2.0/UDP 10.0.0.1;branch=z9hG4bK1"),
        ("From", f"<{ALICE}>{tag}"),
        ("To", f"<{BOB}>"),
        ("Call-ID", "call"),
        ("CSeq", "7 INVITE"),
    ]
    fields += [("Contact", contact)] if contact else []
    return Request("INVITE", Uri.parse(BOB), Headers(fields))


def accepted(request, contact="<sip:bob@10.0.0.2>", tag="b"):
    headers = [("Contact", contact)] if contact else []
    return response_to(request, 200, to_tag=tag, headers=headers)


def both_ends(*routes):
    request = invite(*routes)
    return Dialog.of_client(request, accepted(request)), Dialog.of_server(request, "b")


@given(st.lists(sip.sip_uris().map(Address), max_size=4), sip.sip_uris(), sip.sip_uris())
def test_two_ends_know_each_other(routes, here, there):
    """Covers RFC 3261 §12.1 [named-by-three-parts]: mirrored names.

    And §12.1.1, §12.1.2: opposite route sets, crossed targets.
    """
    request = invite(*routes, contact=Address(here))
    response = accepted(request, Address(there))
    caller, callee = Dialog.of_client(request, response), Dialog.of_server(request, "b")
    assert caller.route_set == callee.route_set[::-1] == tuple(routes[::-1])
    assert (caller.target, callee.target) == (there, here)
    bye, info = caller.request("BYE"), callee.request("INFO", b"x", "text/plain")
    assert DialogId.at_server(bye) == callee.id and DialogId.at_server(info) == caller.id
    assert DialogId.at_client(response) == caller.id
    assert (bye.uri, info.uri) == (there, here) and (bye.cseq.number, info.cseq.number) == (8, 1)
    for message in (bye, info):
        message = message.replace(headers=message.headers.prepend("Via", request.via))
        check_request(message)
        assert parse_message(bytes(message)) == message


def test_a_name_without_tags():
    """Covers RFC 3261 §12.1 [named-by-three-parts]: those of RFC 2543 have none."""
    bare = invite(tag="")
    assert DialogId.at_server(bare, "b") == DialogId(bare.call_id, "b", "")
    assert DialogId.at_server(bare) == DialogId(bare.call_id, "", "")
    response = response_to(bare, 180)
    assert DialogId.at_client(response) == DialogId(bare.call_id, "", "")
    ours = Dialog.of_client(bare, accepted(bare, tag=""))
    assert ours.id == DialogId(bare.call_id, "", "")


@given(st.lists(st.integers(0, 50), max_size=20))
def test_requests_are_taken_in_order_only(numbers):
    """Covers RFC 3261 §12.2.2 [gaps-are-fine] [500-for-older] [first-number-is-taken]
    [number-is-kept].

    Covers Field §"Numbers that go back".
    """
    caller, _ = both_ends()
    highest = None
    for number in numbers:
        bye = Request("BYE", Uri.parse(ALICE), Headers([("CSeq", f"{number} BYE")]))
        if highest is None or number > highest:
            caller.check_order(bye)
            highest = number
        else:
            with pytest.raises(RemoteError) as refusal:
                caller.check_order(bye)
            assert refusal.value.status == 500
        assert caller.remote_cseq == highest


def test_the_state_at_both_ends():
    """Covers RFC 3261 §12.1 [named-by-three-parts], §12.1.1 [target-is-the-contact] [tag-of-our-to]
    [local-is-the-to] [call-id-of-the-request] [remote-is-the-from] [tag-of-their-from]
    [route-set-in-order] [number-of-the-request] [no-number-of-our-own].

    And §12.1.2 [call-id-of-the-request] [local-is-the-from] [tag-of-our-from] [remote-is-the-to]
    [tag-of-their-to] [route-set-reversed] [number-of-the-request] [no-number-of-theirs]
    [target-is-the-contact].
    """
    routes = ("<sip:p1;lr;x=1>;y=2", "<sip:p2;lr>")
    for recorded in (routes, ()):
        caller, callee = both_ends(*recorded)
        assert caller.id == ("call", "a", "b") and callee.id == ("call", "b", "a")
        assert (str(caller.local), str(caller.remote)) == (f"<{ALICE}>;tag=a", f"<{BOB}>;tag=b")
        assert (callee.local, callee.remote) == (caller.remote, caller.local)
        assert caller.call_id == callee.call_id == "call"
        assert [str(each) for each in callee.route_set] == list(recorded)
        assert [str(each) for each in caller.route_set] == list(recorded[::-1])
        assert (caller.local_cseq, caller.remote_cseq) == (7, None)
        assert (callee.local_cseq, callee.remote_cseq) == (0, 7)
        assert str(caller.target) == "sip:bob@10.0.0.2" and str(callee.target).endswith("@10.0.0.1")


def test_the_numbers_of_one_side_have_no_gaps():
    """Covers RFC 3261 §12.2.1.1 [one-more-each] [numbers-without-gaps] [begins-low]."""
    caller, callee = both_ends()
    assert [caller.request("INFO").cseq.number for _ in range(3)] == [8, 9, 10]
    assert [callee.request("INFO").cseq.number for _ in range(3)] == [1, 2, 3]
    assert str(caller.ack(7).cseq) == "7 ACK" and caller.next_cseq() == 11


def test_the_2xx_has_the_last_word_on_the_route():
    """Covers RFC 3261 §13.2.2.4 [confirms-the-dialog] [route-set-again].

    An old server says it in the 2xx only.
    """
    request = invite()
    ringing = response_to(request, 180, to_tag="b")
    dialog = Dialog.of_client(request, ringing)
    assert not dialog.confirmed and dialog.route_set == () and dialog.target == request.uri
    dialog.request("UPDATE")
    ok = accepted(request)
    ok = ok.replace(headers=ok.headers.append("Record-Route", "<sip:p1;lr>, <sip:p2;lr>"))
    dialog.confirm(ok)
    assert dialog.confirmed and dialog.local_cseq == 8
    assert [str(route) for route in dialog.route_set] == ["<sip:p2;lr>", "<sip:p1;lr>"]
    assert str(dialog.target) == "sip:bob@10.0.0.2"


def test_only_a_contact_moves_the_target():
    caller, _ = both_ends()
    before = caller.target
    for contact in ((), ("Contact", "*")):
        headers = Headers([contact] if contact else [])
        caller.refresh(Response(200, "OK", headers))
        assert caller.target == before
    caller.refresh(Response(200, "OK", Headers([("Contact", "<sip:bob@10.0.0.9>")])))
    assert caller.target.host == "10.0.0.9"


def test_tags_that_old_clients_do_not_send_are_empty():
    """Covers RFC 3261 §12.1.1 [no-tag-is-empty], §12.1.2 [no-tag-is-empty], §12.2.1.1
    [no-empty-tag].
    """
    request = invite(tag="")
    callee = Dialog.of_server(request, "b")
    assert callee.id == ("call", "b", "") and callee.request("BYE").to.tag is None
    caller = Dialog.of_client(invite(), accepted(invite(), tag=None))
    assert caller.id == ("call", "a", "") and caller.request("BYE").to.tag is None


def test_a_caller_without_contact_cannot_be_answered():
    with pytest.raises(RemoteError):
        Dialog.of_server(invite(contact=""), "b")


def test_a_request_of_a_dialog_has_the_fields_of_any_other():
    """Covers RFC 3261 §12.2.1.1 [routes-in-order] [from-is-the-local] [from-has-our-tag]
    [to-is-the-remote] [to-has-their-tag] [same-call-id] [number-is-sent] [cseq-names-the-method]
    [target-behind-a-loose-router].

    And §8.1.1 [six-fields], §8.1.1.4 [one-name-per-dialog], §8.1.1.5 [method-in-cseq],
    §8.1.1.6 [says-how-far], §8.2.2.3 [ack-asks-no-more], §20.15 [type-with-a-body]: what every
    request needs.
    """
    caller, _ = both_ends("<sip:p1;lr>", "<sip:p2;lr>")
    common = [
        ("Route", "<sip:p2;lr>"),
        ("Route", "<sip:p1;lr>"),
        ("Max-Forwards", "70"),
        ("From", f"<{ALICE}>;tag=a"),
        ("To", f"<{BOB}>;tag=b"),
        ("Call-ID", "call"),
    ]
    bye = [*common, ("CSeq", "8 BYE")]
    info = [*common, ("CSeq", "9 INFO"), ("Content-Type", "text/plain")]
    for request, fields in (
        (caller.request("BYE"), bye),
        (caller.request("INFO", b"x", "text/plain"), info),
    ):
        built = [(name, str(value)) for name, value in request.headers]
        assert [field for field in built if field[0] != "Content-Length"] == fields
        assert str(request.uri) == "sip:bob@10.0.0.2"
    ack = [(name, str(value)) for name, value in caller.ack(7).headers]
    assert ack == [*common, ("CSeq", "7 ACK")]


def test_without_a_route_set_there_is_no_route():
    """Covers RFC 3261 §12.2.1.1 [no-route-of-nothing] [target-is-the-request-uri]."""
    caller, callee = both_ends()
    for dialog, target in ((caller, "sip:bob@10.0.0.2"), (callee, "sip:alice@10.0.0.1")):
        bye = dialog.request("BYE")
        assert "Route" not in bye.headers and str(bye.uri) == target


def test_the_ack_of_a_2xx_has_the_number_of_its_invite():
    """Covers RFC 3261 §13.2.2.4 [number-of-the-invite] [method-is-ack]."""
    caller, _ = both_ends()
    caller.request("UPDATE")
    ack = caller.ack(7)
    assert (ack.method, str(ack.cseq)) == ("ACK", "7 ACK") and caller.local_cseq == 8


def test_a_missing_tag_is_empty():
    """RFC 3261 §12.1.1 and §12.1.2: of peers older than tags."""
    request = invite(tag="")
    nameless = response_to(request, 200)
    nameless = nameless.replace(headers=nameless.headers.with_("To", f"<{BOB}>"))
    assert DialogId.at_server(request) == DialogId("call", "", "")
    assert DialogId.at_client(nameless) == DialogId("call", "", "")
    assert Dialog.of_client(request, nameless).id == DialogId("call", "", "")
