"""Responses, ACKs and CANCELs carry what the RFC copies into them."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2psip.errors import LocalError
from p2psip.sip.build import REASONS, ack_for, cancel_for, response_to
from p2psip.sip.headers import Headers
from p2psip.sip.message import Request, check_request, check_response, parse_message
from p2psip.sip.uri import Uri
from p2psip.strategies.sip import requests, responses, tokens

COPIED = ("Via", "From", "Call-ID", "CSeq")


@given(requests(), st.sampled_from(sorted(REASONS)), tokens())
def test_a_response_echoes_its_request(request, status, tag):
    """Covers RFC 3261 §8.2.6.2 [from-comes-back] [call-id-comes-back] [cseq-comes-back]
    [vias-come-back] [vias-in-order] [to-comes-back] [to-uri-comes-back] [to-gets-a-tag].

    And RFC 3261 §20 [response-has-the-mandatory].
    """
    response = response_to(request, status, to_tag=tag)
    check_response(response)
    assert parse_message(bytes(response)) == response
    assert response.reason == REASONS[status]
    for name in COPIED:
        assert response.headers.values(name) == request.headers.values(name)
    assert response.to.uri == request.to.uri and response.to.tag == (request.to.tag or tag)
    assert response_to(request, status).to == request.to


LATER = {  # Source: IANA's registry of response codes, those that RFC 3261 has not
    199: "Early Dialog Terminated", 202: "Accepted", 204: "No Notification",
    412: "Conditional Request Failed", 417: "Unknown Resource-Priority",
    422: "Session Interval Too Small", 428: "Use Identity Header", 429: "Provide Referrer Identity",
    430: "Flow Failed", 433: "Anonymity Disallowed", 436: "Bad Identity-Info",
    437: "Unsupported Certificate", 438: "Invalid Identity Header",
    439: "First Hop Lacks Outbound Support", 440: "Max-Breadth Exceeded", 469: "Bad Info Package",
    470: "Consent Needed", 489: "Bad Event", 494: "Security Agreement Required",
    555: "Push Notification Service Not Supported", 580: "Precondition Failure", 607: "Unwanted",
}  # fmt: skip


def test_every_status_is_a_registered_one_and_none_is_borrowed_from_http(specs):
    """Covers RFC 3261 §21 [no-other-http-codes]: the headings of §21 name codes and reasons."""
    # HTTP has these, and no SIP RFC has registered them.
    of_http = {101, 201, 203, 205, 206, 303, 304, 307, 308, 409, 411, 426, 451, 506, 507, 508, 511}
    request = Request("OPTIONS", Uri(host="a"))
    assert not any(response_to(request, status).reason for status in of_http)
    heading = re.compile(r"^21\.[1-6]\.\d+\.? +([1-6]\d\d) ([^\n.]+)$", re.M)
    found = heading.findall((specs / "rfc3261.txt").read_text())
    registered = {int(code): reason.strip() for code, reason in found} | LATER
    assert registered == {status: response_to(request, status).reason for status in REASONS}


def test_extras_follow_and_reasons_can_be_said():
    """Covers RFC 3261 §8.2.6.1 [timestamp-comes-back] and §7.4.1 [type-of-the-body].

    And RFC 3261 §7.2 [other-reason-phrases], §20.15 [type-with-a-body], §7.4.2 [never-chunked].
    """
    request = Request("INVITE", Uri(host="a"), Headers([("To", "sip:a@b"), ("Timestamp", "54")]))
    response = response_to(
        request,
        299,
        "Fine",
        to_tag="9",
        headers=[("Allow", "ACK")],
        body=b"v=0",
        content_type="application/sdp",
    )
    assert bytes(response) == (
        b"SIP/2.0 299 Fine\r\nTo: sip:a@b;tag=9\r\nContent-Type: application/sdp\r\n"
        b"Allow: ACK\r\nContent-Length: 3\r\n\r\nv=0"
    )
    assert response_to(request, 299).reason == ""
    assert response_to(request, 100).headers["Timestamp"] == "54"


@pytest.mark.parametrize(
    ("method", "status", "copied"),
    [
        ("INVITE", 180, True),
        ("INVITE", 200, True),
        ("SUBSCRIBE", 202, True),
        ("INVITE", 100, False),
        ("INVITE", 486, False),
        ("BYE", 200, False),
    ],
)
def test_the_route_is_recorded_where_a_dialog_begins(method, status, copied):
    """Covers RFC 3261 §12.1.1 [copies-record-routes] [record-routes-in-order]."""
    routes = ("<sip:p;lr;X=1>;odd=a", '"B" <sip:a;lr> , <sip:q>')
    headers = Headers([("Record-Route", route) for route in routes])
    values = response_to(Request(method, Uri(host="a"), headers), status).headers
    assert values.values("Record-Route") == (routes if copied else ())


@given(requests(), responses())
def test_the_ack_of_a_failure_stays_on_its_hop(request, response):
    """Covers RFC 3261 §17.1.1.3 and §8.2.2.3 [none-in-what-follows]."""
    response = response.replace(status=486)
    ack = ack_for(request.replace(headers=request.headers.append("Require", "100rel")), response)
    assert "Require" not in ack.headers
    check_request(ack)
    assert (ack.method, ack.uri, ack.body) == ("ACK", request.uri, b"")
    assert ack.vias == (request.via,) and ack.cseq == (request.cseq.number, "ACK")
    assert ack.from_ == request.from_ and ack.to == response.to
    assert ack.call_id == request.call_id and ack.routes == request.routes


@given(requests())
def test_a_2xx_is_for_the_dialog_to_acknowledge(request):
    """Covers RFC 3261 §17.1.1.3."""
    for status in (180, 200):
        with pytest.raises(LocalError):
            ack_for(request, response_to(request, status))


@given(requests())
def test_a_cancel_is_the_request_again_without_its_burden(request):
    """Covers RFC 3261 §9.1 [cancel-copies] [one-via] [cseq-says-cancel] [same-route]
    [requires-nothing], §8.1.1.6 [seventy-hops], §8.2.2.3 [none-in-what-follows].
    """
    headers = request.headers.append("Require", "100rel").append("Proxy-Require", "x")
    cancel = cancel_for(request.replace(headers=headers.append("Route", "<sip:p;lr>")))
    check_request(cancel)
    assert (cancel.method, cancel.uri, cancel.body) == ("CANCEL", request.uri, b"")
    assert cancel.vias == (request.via,) and cancel.cseq == (request.cseq.number, "CANCEL")
    assert (cancel.from_, cancel.to, cancel.call_id) == (request.from_, request.to, request.call_id)
    assert str(cancel.routes[-1]) == "<sip:p;lr>" and cancel.routes[:-1] == request.routes
    assert "Require" not in cancel.headers and "Proxy-Require" not in cancel.headers
    assert cancel.max_forwards == 70
