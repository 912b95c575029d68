"""Who may speak through the endpoint, and to whom."""

import pytest
from support.sip.homes import (
    BOB,
    FAR,
    HOME,
    OUTSIDER,
    Home,
    answer_to,
    finals,
    forwarded,
    register,
    request,
    signed,
    store,
)

from p2psip.sip.message import Request


def test_who_claims_to_be_of_ours_must_prove_it():
    """Covers RFC 3261 §16.3 [checks-passwords], §22 [authorizes], §22.1 [proxy-asks-by-407].

    A From of ours has to be proved, since it may be forged.
    """
    home = Home(users=store("alice", "bob"))
    home.hear(register(contact=f"<sip:bob@{BOB}>"))
    first = register(cseq=5, call="r2")
    home.hear(signed(first, answer_to(home.hear(first)), cseq=6))
    asked = home.hear(request())
    assert finals(asked) == [407] and forwarded(asked) == []
    wrong = signed(request(), answer_to(asked), password="guess", cseq=2)
    assert finals(home.hear(wrong)) == [407]
    as_other = signed(request(), answer_to(asked), user="bob", nc=2, cseq=3)
    assert finals(home.hear(as_other)) == [403]
    right = signed(request(), answer_to(asked), nc=3, cseq=4)
    sent = home.hear(right)
    assert forwarded(sent) == [(f"sip:bob@{BOB}", BOB, "UDP")]
    [invite] = [m for m, _, _ in sent if isinstance(m, Request)]
    assert "Proxy-Authorization" not in invite.headers
    assert finals(home.hear(request(user="zoe", call="z"))) == [407]  # even who does not exist


def test_the_whole_world_may_call_us():
    """Covers RFC 3261 §16.5: a call from elsewhere to a user of ours needs no password."""
    home = Home(users=store("bob"))
    first = register()
    home.hear(signed(first, answer_to(home.hear(first))))
    assert forwarded(home.hear(request("INVITE", "sip:bob@home", OUTSIDER)))


@pytest.mark.parametrize("users", [None, store("alice")])
@pytest.mark.parametrize(
    ("method", "uri", "more"),
    [
        ("INVITE", "sip:x@far", []),
        ("MESSAGE", f"sip:x@{FAR}", []),
        ("REGISTER", "sip:far", []),
        ("INVITE", "sip:bob@home", [("Route", f"<sip:{FAR};lr>")]),
        ("INVITE", "sip:bob@home", [("Route", f"<sip:{HOME};lr>, <sip:{FAR};lr>")]),
        ("INVITE", "sip:x@far", [("Route", f"<sip:{HOME};lr>")]),
    ],
)
def test_nobody_gets_elsewhere_by_us(users, method, uri, more):
    """Covers RFC 3261 §16.5: no open relay, not by a Route either."""
    home = Home(users=users)
    sent = home.hear(request(method, uri, OUTSIDER, *more))
    assert finals(sent) == [403] and forwarded(sent) == []


def test_a_request_in_no_dialog_of_ours_is_not_relayed():
    """Covers RFC 3261 §12.2.2: a To tag alone opens no way out, not to users of ours either."""
    home = Home(users=store("alice"))
    sent = home.hear(request("BYE", f"sip:x@{FAR}", OUTSIDER, to=";tag=x"))
    assert finals(sent) == [481]
    assert finals(home.hear(request("BYE", f"sip:x@{FAR}", to=";tag=x", call="2"))) == [481]


def test_a_user_of_ours_gets_elsewhere_with_the_password():
    """Covers RFC 3261 §16.5 [foreign-alone], §22.3."""
    home = Home(users=store("alice"))
    message = request("INVITE", "sip:x@far")
    right = signed(message, answer_to(home.hear(message)))
    assert forwarded(home.hear(right)) == [("sip:x@far", FAR, "UDP")]


def test_without_users_only_this_machine_gets_elsewhere():
    home = Home()
    assert finals(home.hear(request("INVITE", "sip:x@far"))) == [403]
    sent = home.hear(request("INVITE", "sip:x@far", call="here"), source="127.0.0.1")
    assert ("sip:x@far", FAR, "UDP") in forwarded(sent)
