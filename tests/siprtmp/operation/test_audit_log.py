"""What the log says of phones: who comes and goes, who calls whom, and who may not."""

import pytest
from support.gateway.gateway_world import Log
from support.sip.homes import (
    ALICE,
    BOB,
    CAROL,
    OUTSIDER,
    PASSWORD,
    Home,
    answer_to,
    register,
    request,
    signed,
    store,
)

from p2psip.sip.build import response_to
from p2psip.sip.message import Request
from siprtmp.operation.audit_log import AuditLog

HEARD = {"user": "sip:bob@home", "source": f"UDP:{BOB}"}
CALL = {"call": "call", "caller": "sip:alice@home", "callee": "sip:bob@home"}


def watched(**options):
    """A home and the log of who watches it."""
    home, log = Home(**options), Log()
    home.endpoint.observer = AuditLog(home.endpoint.registrar, log)
    return home, log


def called(home, message=None):
    """The request that bob's phone got."""
    home.hear(register(contact=f"<sip:bob@{BOB}>"), source=BOB)
    sent = home.hear(message or request())
    return next(out for out, to, _ in sent if isinstance(out, Request) and to == BOB)


def test_a_phone_comes_and_goes():
    """Covers RFC 3261 §10.3: a refresh is no news, another phone is; both may leave at once."""
    home, log = watched()
    home.hear(register(contact=f"<sip:bob:pass@{BOB}:5062>"), source=BOB)
    home.hear(register(contact=f"<sip:bob:pass@{BOB}:5062>", cseq=2), source=BOB)
    home.hear(register(contact=f"<sip:bob@{CAROL}>", cseq=3), source=CAROL)
    home.hear(register(contact=None, cseq=4), source=BOB)
    home.hear(register(contact="*", cseq=5, expires=0), source=BOB)
    first, second = f"sip:bob@{BOB}:5062", f"sip:bob@{CAROL}"
    assert log.lines == [
        ("registered", HEARD | {"contact": first}),
        ("registered", HEARD | {"contact": second, "source": f"UDP:{CAROL}"}),
        ("unregistered", HEARD | {"contact": first}),
        ("unregistered", HEARD | {"contact": second}),
    ]


def test_a_registration_that_is_refused():
    """Covers RFC 3261 §10.3: for other reasons than a password."""
    home, log = watched()
    home.hear(register(expires=1), source=BOB)
    assert log.lines == [
        ("registration-refused", HEARD | {"reason": "423 Interval Too Brief"}),
    ]


def test_a_password_is_asked_for_and_may_be_wrong():
    """Covers RFC 7616 §3.3: to be asked is no news, nor to be asked again; no proof is told.

    Covers RFC 7616 §3.4 [failures-are-logged] [no-password-in-log].
    """
    home, log = watched(users=store("bob"))
    asked = answer_to(home.hear(register(), source=BOB))
    assert log.lines == []
    home.hear(signed(register(), asked, password="guess"), source=BOB)
    assert log.lines == [("login-refused", HEARD | {"reason": "401 Unauthorized"})]
    home.hear(signed(register(), asked, nc=2), source=BOB)
    assert [what for what, _ in log.lines] == ["login-refused", "registered"]
    home.hear(signed(register(), asked, nc=2, cseq=9), source=BOB)  # stale: asked again
    assert len(log.lines) == 2
    assert not any(word in str(log.lines) for word in (PASSWORD, "guess", "nonce", "response"))


def test_a_caller_with_a_wrong_password():
    """Covers RFC 3261 §22.3."""
    home, log = watched(users=store("alice", "bob"))
    asked = answer_to(home.hear(request()))
    assert asked.status == 407 and log.lines == []
    home.hear(signed(request(), asked, password="guess"))
    assert log.lines == [
        (
            "login-refused",
            {
                "user": "sip:alice@home",
                "source": f"UDP:{ALICE}",
                "reason": "407 Proxy Authentication Required",
            },
        )
    ]


def test_a_call_between_two_phones():
    """Covers RFC 3261 §16.3: its beginning, its answer and its end."""
    home, log = watched()
    invite = called(home)
    log.lines.clear()
    ringing, answered = response_to(invite, 180, to_tag="t"), response_to(invite, 200, to_tag="t")
    home.hear(ringing, source=BOB)
    sent = home.hear(answered.replace(headers=answered.headers), source=BOB)
    assert log.lines == [("proxy-answer", {"call": "call"})]
    route = ("Route", answer_to(sent).record_routes[0])
    bye = request("BYE", f"sip:bob@{BOB}", route, cseq=2, to=";tag=t")
    home.hear(bye)
    assert log.lines[1:] == [("proxy-end", {"call": "call", "reason": "BYE"})]


def test_an_ipv6_address_stands_in_brackets():
    """Covers RFC 3986 §3.2.2: else its end and the port look alike."""
    home, log = watched()
    home.hear(register(contact="<sip:bob:pass@[2001:db8::2]:34644;x=y>"), source=BOB)
    assert log.lines[0][1]["contact"] == "sip:bob@[2001:db8::2]:34644"


def test_a_cause_that_the_caller_must_not_know_is_in_the_log():
    """Covers RFC 3261 §21.4.18: without a password nobody learns who has no phone."""
    home, log = watched(users=store("bob"))
    heard = answer_to(home.hear(request("INVITE", "sip:bob@home", OUTSIDER)))
    assert (heard.status, heard.reason) == (480, "Temporarily Unavailable")
    assert log.lines[-1][1]["reason"] == "480 Not Registered"


def test_the_beginning_names_both():
    """Covers RFC 3261 §16.3: without what else is in their addresses."""
    home, log = watched()
    called(home, request("INVITE", "sip:bob:secret@home;x=y"))
    assert log.lines[1] == ("proxy-start", CALL | {"source": f"UDP:{ALICE}"})


@pytest.mark.parametrize("status", [486, 603])
def test_a_call_that_is_declined(status):
    """Covers RFC 3261 §16.7: by whom it was for."""
    home, log = watched()
    invite = called(home)
    home.hear(response_to(invite, status, to_tag="t"), source=BOB)
    what, values = log.lines[-1]
    assert what == "proxy-end" and values["reason"].startswith(str(status))


def test_a_call_that_goes_nowhere():
    """Covers RFC 3261 §16.5: nobody is there, or it may not pass."""
    home, log = watched()
    home.hear(request())
    home.hear(request("INVITE", "sip:x@far", OUTSIDER, call="other"))
    assert log.lines == [
        (
            "call-refused",
            CALL | {"source": f"UDP:{ALICE}", "reason": "480 Not Registered"},
        ),
        (
            "call-refused",
            {
                "call": "other",
                "caller": "sip:eve@away",
                "callee": "sip:x@far",
                "source": f"UDP:{ALICE}",
                "reason": "403 Forbidden",
            },
        ),
    ]


def test_other_requests_are_no_calls():
    """Own design: a message or a question is not told."""
    home, log = watched()
    called(home, request("MESSAGE"))
    home.hear(request("OPTIONS", "sip:home", OUTSIDER, call="o"))
    assert [what for what, _ in log.lines] == ["registered"]
