"""Messages find their transaction, and no other."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from p2psip.sip.build import ack_for, cancel_for, response_to
from p2psip.sip.headers import Headers
from p2psip.sip.message import Request
from p2psip.sip.uri import Uri
from p2psip.transaction.key import ack_key, client_key, is_modern, server_key

FIELDS = {
    "uri": "sip:bob@biloxi.com",
    "method": "INVITE",
    "host": "pc33.atlanta.com",
    "port": ":5060",
    "branch": "z9hG4bKnashds8",
    "from_tag": "1928301774",
    "to_tag": "",
    "call_id": "a84b4c76e66710",
    "cseq": 314159,
}


def request(**changes):
    of = FIELDS | changes
    branch = f";branch={of['branch']}" if of["branch"] else ""
    to_tag = f";tag={of['to_tag']}" if of["to_tag"] else ""
    headers = Headers(
        [
            ("Via", f"SIP/2.0/UDP {of['host']}{of['port']}{branch}"),
            ("From", f"<sip:alice@atlanta.com>;tag={of['from_tag']}"),
            ("To", f"<sip:bob@biloxi.com>{to_tag}"),
            ("Call-ID", of["call_id"]),
            ("CSeq", f"{of['cseq']} {of['method']}"),
        ]
    )
    return Request(of["method"], Uri.parse(of["uri"]), headers)


branches = st.sampled_from(["z9hG4bKa", "z9hG4bKb"])
methods = st.sampled_from(["INVITE", "BYE", "CANCEL", "OPTIONS"])


@given(branches, branches, methods, methods)
def test_a_response_finds_its_request_by_branch_and_method(branch, other, method, another):
    """Covers RFC 3261 §17.1.3 [match-branch] [match-method]."""
    sent, rival = request(branch=branch, method=method), request(branch=other, method=another)
    response = response_to(sent, 200, to_tag="x")
    assert client_key(response) == client_key(sent)
    assert (client_key(response) == client_key(rival)) == ((branch, method) == (other, another))


@given(branches, branches, st.sampled_from(["a.com", "b.com"]), methods)
def test_the_cookie_lets_branch_sent_by_and_method_decide(branch, other, host, method):
    """Covers RFC 3261 §17.2.3 [magic-cookie] [match-branch] [match-sent-by] [match-method]."""
    first = request(branch=branch, host="a.com", method=method)
    again = request(branch=other, host=host, method=method, call_id="whatever", uri="sip:x@y")
    assert (server_key(first) == server_key(again)) == ((branch, "a.com") == (other, host))
    elsewhere = request(branch=branch, host="a.com", port=":6060", method=method)
    assert server_key(elsewhere) != server_key(first)
    assert server_key(request(branch=branch, host="a.com", port="", method=method)) == server_key(
        first
    )


def test_an_ack_and_a_cancel_find_their_invite():
    """Covers RFC 3261 §17.2.3 [match-method]."""
    invite = request()
    refusal = response_to(invite, 486, to_tag="x")
    assert server_key(ack_for(invite, refusal)) == server_key(invite)
    cancel = cancel_for(invite)
    assert server_key(cancel) != server_key(invite)
    assert server_key(cancel, "INVITE") == server_key(invite)


OLD = {"branch": ""}


@pytest.mark.parametrize("branch", ["", "1", "z9hG4b"])
def test_an_old_client_is_known_by_the_missing_cookie(branch):
    """Covers RFC 3261 §17.2.3 [magic-cookie]."""
    assert not is_modern(request(branch=branch)) and is_modern(request())


@given(st.sampled_from(sorted(FIELDS)), methods)
def test_an_old_client_is_compared_by_everything(field, method):
    """Covers RFC 3261 §17.2.3 [2543-invite] [2543-other]."""
    assume(field != "method")
    first = request(**OLD | {"method": method})
    assert server_key(request(**OLD | {"method": method})) == server_key(first)
    other = {"uri": "sip:carol@chicago.com", "port": ":6060", "cseq": 314160}
    changed = OLD | {"method": method} | {field: other.get(field, "other")}
    assert server_key(request(**changed)) != server_key(first)
    assert server_key(request(**OLD | {"method": "INFO"})) != server_key(first)


@given(st.sampled_from(["x", "y"]))
def test_an_old_ack_needs_the_tag_of_our_response(tag):
    """Covers RFC 3261 §17.2.3 [2543-ack]."""
    invite = request(**OLD)
    name = ack_key(invite, response_to(invite, 486, to_tag="x"))
    ack = request(**OLD | {"method": "ACK", "to_tag": tag})
    assert (server_key(ack) == name) == (tag == "x")
