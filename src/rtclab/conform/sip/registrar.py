"""What a registrar does.  The target's URI has a user who may register without a password.

Implements RFC 3261 §10.3, from the client's side.
"""

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Final

from p2psip.errors import RemoteError
from p2psip.sip.address import Address
from p2psip.sip.message import Request, Response
from rtclab.conform.case import Cases, ConformCase, NotApplicable, Unmet, Unreachable
from rtclab.conform.checks import at_most, expect_equal
from rtclab.conform.sip.peer import REACH, SipPeer, changed, connect, expect, said, token

REMOVE_ALL: Final = (("Contact", "*"), ("Expires", "0"))
cases: Cases[SipPeer] = Cases()
must = partial(cases.case, role="registrar")
should = partial(cases.case, role="registrar", level="SHOULD")


def leave(target: str, run: Sequence[ConformCase]) -> None:
    """Remove the bindings of the target's user that cases of a registrar made (RFC 3261 §10.2.2).

    Calls for the user would go to the sockets of cases that are over.
    """
    if any(case in cases.all for case in run):
        with suppress(Unmet, Unreachable), connect(target) as peer, at_most(REACH):
            peer.ask(peer.register(*REMOVE_ALL))


@must("RFC 3261 §10.3", "all-bindings-told")
def register_has_200(peer: SipPeer) -> None:
    """A REGISTER with a Contact has 200 (§10.3)."""
    expect(_bind(peer), 200)


@must("RFC 3261 §10.3", "all-bindings-told")
def answer_lists_the_contact(peer: SipPeer) -> None:
    """The 200 has the Contact that was registered (§10.3, step 8)."""
    request = peer.register()
    bindings = _bindings(_ask(peer, request))
    if not any(_same(each, request.contacts[0]) for each in bindings):
        raise Unmet(f"Contact {request.contacts[0]}", str(list(map(str, bindings))))


@must("RFC 3261 §10.3", "expires-told")
def each_contact_says_expires(peer: SipPeer) -> None:
    """Every Contact of the 200 says when it expires (§10.3, step 8)."""
    for contact in _bindings(_bind(peer)):
        if not (contact.param("expires") or "").isdigit():
            raise Unmet("expires at each Contact", str(contact))


@must("RFC 3261 §10.3", "header-expires")
def expires_is_not_made_longer(peer: SipPeer) -> None:
    """A binding does not last longer than was asked for (§10.3, step 7)."""
    request = peer.register(("Expires", "7000"))
    response = _ask(peer, request)
    if response.status == 423:
        raise NotApplicable("7000 s are too brief for this registrar")
    for contact in _bindings(response):
        if _same(contact, request.contacts[0]) and int(contact.param("expires") or "0") > 7000:
            raise Unmet("at most 7000 s", str(contact))


@must("RFC 3261 §10.3", "contact-expires")
def contacts_expires_goes_before_the_headers(peer: SipPeer) -> None:
    """`expires` of a Contact counts more than the header Expires (§10.3, step 6)."""
    contact = f"{peer.contact};expires=600"
    response = _ask(peer, peer.register(("Contact", contact), ("Expires", "7000")))
    for found in _bindings(response):
        if _same(found, Address.parse(contact)) and int(found.param("expires") or "0") > 600:
            raise Unmet("at most 600 s", str(found))


@must("RFC 3261 §10.3", "all-bindings-told")
def query_without_contact_lists(peer: SipPeer) -> None:
    """A REGISTER without Contact changes nothing and lists the bindings (§10.3, step 6)."""
    _bind(peer)
    query = peer.register()
    response = _ask(peer, query.replace(headers=query.headers.without("Contact")))
    if not any(_same(each, Address.parse(peer.contact)) for each in _bindings(response)):
        raise Unmet(f"Contact {peer.contact}", said(response))


@must("RFC 3261 §10.3", "contact-expires")
def expires_0_removes(peer: SipPeer) -> None:
    """`expires=0` removes the Contact (§10.3, step 7)."""
    first = peer.register()
    _ask(peer, first)
    response = _again(peer, first, 2, ("Expires", "0"))
    if any(_same(each, first.contacts[0]) for each in _bindings(response)):
        raise Unmet("no such Contact", str(first.contacts[0]))


@must("RFC 3261 §10.3", "star-removes")
def star_removes_all(peer: SipPeer) -> None:
    """`Contact: *` with `Expires: 0` removes all bindings (§10.3, step 6)."""
    own = _own_user(peer, "star")
    _ask(peer, own)
    response = _remove_all(peer, own)
    expect_equal("number of Contacts", 0, len(_bindings(response)))


@must("RFC 3261 §10.3", "star-alone")
def star_needs_expires_0(peer: SipPeer) -> None:
    """`Contact: *` with another Expires has 400 (§10.3, step 6)."""
    expect(_ask(peer, peer.register(("Contact", "*"), ("Expires", "60"))), 400)


@must("RFC 3261 §10.3", "star-alone")
def star_stands_alone(peer: SipPeer) -> None:
    """`Contact: *` beside another Contact has 400 (§10.3, step 6)."""
    request = changed(peer.register(("Expires", "0")), "Contact", "*", peer.contact)
    expect(_ask(peer, request), 400)


@must("RFC 3261 §10.3", "lower-refused")
def lower_cseq_changes_nothing(peer: SipPeer) -> None:
    """A REGISTER of the same Call-ID with a lower CSeq removes nothing (§10.3, step 7)."""
    first = peer.register(("CSeq", "10 REGISTER"))
    _ask(peer, first)
    _again(peer, first, 5, ("Expires", "0"))
    query = peer.register()
    response = _ask(peer, query.replace(headers=query.headers.without("Contact")))
    if not any(_same(each, first.contacts[0]) for each in _bindings(response)):
        raise Unmet("the Contact, still", "it is gone")


@must("RFC 3261 §10.3", "extensions-are-checked")
def extension_of_a_register_has_420(peer: SipPeer) -> None:
    """Require with an unknown option tag has 420 (§10.3, step 2)."""
    expect(peer.ask(peer.register(("Require", "nothing-like-it"))), 420)


@should("RFC 3261 §10.3", "404-for-strangers")
def unknown_user_has_404(peer: SipPeer) -> None:
    """A registrar that lists its users answers 404 for others, or takes anybody (§10.3, step 5)."""
    own = _own_user(peer, "nobody")
    response = peer.ask(own)
    _remove_all(peer, own)
    expect(response, 404, 401, 403, 200)


@should("RFC 3261 §10.3", "has-date")
def answer_has_a_date(peer: SipPeer) -> None:
    """The 200 has a Date, for phones without a clock (§10.3, step 8)."""
    if "Date" not in _bind(peer).headers:
        raise Unmet("a Date", "none")


@must("RFC 3261 §10.3", "no-record-route")
def no_record_route_in_the_answer(peer: SipPeer) -> None:
    """REGISTER makes no dialog: the registrar passes over its Record-Route (§10.3)."""
    response = _ask(peer, peer.register(("Record-Route", "<sip:p1.example.com;lr>")))
    if "Record-Route" in response.headers:
        raise Unmet("no Record-Route", response.headers["Record-Route"])


@must("RFC 3261 §10.2.1.2", "q-is-a-preference")
def q_comes_back(peer: SipPeer) -> None:
    """The preference of a Contact is kept (§10.2.1.2)."""
    request = peer.register(("Contact", f"{peer.contact};q=0.3"))
    for contact in _bindings(_ask(peer, request)):
        if _same(contact, request.contacts[0]):
            expect_equal("q", 0.3, float(contact.param("q") or "1"))
            return
    raise Unmet("the Contact", "others only")


@must("RFC 3261 §10.3", "higher-cseq")
def refresh_makes_no_second_binding(peer: SipPeer) -> None:
    """A Contact that is registered again is there once (§10.2.4)."""
    first = peer.register()
    _ask(peer, first)
    found = [_same(each, first.contacts[0]) for each in _bindings(_again(peer, first, 2))]
    expect_equal("number of such Contacts", 1, sum(found))


@must("RFC 3261 §8.2", "all")
def two_contacts_at_once(peer: SipPeer) -> None:
    """A REGISTER may have two Contacts (§10.3, step 7)."""
    own = changed(_own_user(peer, "two"), "Contact", peer.contact, "<sip:two@127.0.0.1:9>")
    bindings = _bindings(_ask(peer, own))
    _remove_all(peer, own)
    expect_equal("number of Contacts", 2, len(bindings))


@must("RFC 3261 §10.3", "min-expires")
def too_brief_says_how_long(peer: SipPeer) -> None:
    """A 423 has Min-Expires, a number (§10.3, step 7)."""
    response = _ask(peer, peer.register(("Expires", "1")))
    if response.status != 423:
        raise NotApplicable("the target takes one second")
    if not response.headers.get("Min-Expires", "").isdigit():
        raise Unmet("Min-Expires", response.headers.get("Min-Expires", "none"))


@must("RFC 3327 §5.3", "path-in-200")
def path_comes_back(peer: SipPeer) -> None:
    """Where Path is supported it is kept and comes back in the 200 (RFC 3327 §5.3)."""
    path = "<sip:p1.example.com;lr>"
    response = peer.ask(peer.register(("Supported", "path"), ("Path", path)))
    if response.status != 200 or "Path" not in response.headers:
        raise NotApplicable(f"no Path here: {said(response)}")
    expect_equal("Path", path, response.headers["Path"])


def _own_user(peer: SipPeer, name: str) -> Request:
    """A REGISTER of a user whom no other case registers."""
    own = f"<sip:{name}-{token()}@{peer.target.host}>"
    return peer.register(("To", own), ("From", f"{own};tag={token()}"))


def _again(peer: SipPeer, first: Request, cseq: int, *more: tuple[str, str]) -> Response:
    """Register with the Call-ID and the address of before."""
    names = ("Call-ID", "To", "From", "Contact", "Expires")
    same = [(name, first.headers[name]) for name in names]
    return peer.ask(peer.request_of(first, cseq, *same, *more))


def _remove_all(peer: SipPeer, first: Request) -> Response:
    """Remove all bindings of the user of a REGISTER (RFC 3261 §10.2.2)."""
    return _again(peer, first, 2, *REMOVE_ALL)


def _ask(peer: SipPeer, request: Request) -> Response:
    response = peer.ask(request)
    if response.status in (401, 403, 404, 405, 407, 501):
        raise NotApplicable(f"no registration for us: {said(response)}")
    return response


def _bind(peer: SipPeer) -> Response:
    return _ask(peer, peer.register())


def _bindings(response: Response) -> list[Address]:
    try:
        return list(response.contacts)
    except RemoteError as error:
        raise Unmet("Contacts", str(error)) from None


def _same(found: Address, asked: Address) -> bool:
    return (found.uri.user, found.uri.host, found.uri.port) == (
        asked.uri.user,
        asked.uri.host,
        asked.uri.port,
    )
