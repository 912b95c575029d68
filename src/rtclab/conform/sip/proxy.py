"""What a proxy does with a request: checks, the copy that it forwards, and its route.

Implements RFC 3261 §16.3 to §16.6, with RFC 3581 and RFC 5393 §5, from both ends of a call.
"""

from functools import partial
from typing import Final

from p2psip.sip.address import Address
from p2psip.sip.message import Request, Response
from p2psip.sip.values import Term
from rtclab.conform.case import Cases, NotApplicable, Unmet
from rtclab.conform.checks import expect_equal
from rtclab.conform.sip.callee import CalledLine, CalledPhone, registered
from rtclab.conform.sip.peer import SipPeer, changed, expect, expect_header, said, token

cases: Cases[SipPeer] = Cases()
must = partial(cases.case, role="proxy")
should = partial(cases.case, role="proxy", level="SHOULD")
COOKIE: Final = "z9hG4bK"


@must("RFC 3261 §16.6", "target-is-the-uri")
def request_goes_to_the_contact(peer: SipPeer) -> None:
    """The Request-URI of the copy is the Contact that was registered (§16.6 step 2)."""
    with registered(peer) as line:
        seen = line.send(line.request("MESSAGE", ("Content-Type", "text/plain"), body=b"hello"))
        found = (seen.uri.user, seen.uri.host, seen.uri.port)
        expect_equal("Request-URI", ("conform", line.phone.host, line.phone.port), found)


@must("RFC 5393 §4.2.1", "via-on-top")
def via_is_put_on_top(peer: SipPeer) -> None:
    """The copy has one Via more, on top, whose branch has the magic cookie (§16.6 step 8)."""
    with registered(peer) as line:
        request, seen = _forwarded(line)
        expect_equal("number of Vias", 2, len(seen.vias))
        expect_equal("second branch", request.via.branch, seen.vias[1].branch)
        if not (seen.via.branch or "").startswith(COOKIE):
            raise Unmet(f"a branch with {COOKIE}", str(seen.via.branch))


@must("RFC 3261 §16.6", "keeps-order-of-values")
def vias_below_stay_as_they_were(peer: SipPeer) -> None:
    """The Vias of elements before us are forwarded in their order (§16.6 step 1)."""
    lower = ("SIP/2.0/TCP b.example.com;branch=z9hG4bKb", "SIP/2.0/UDP c.example.com:5070;shade=1")
    with registered(peer) as line:
        request = line.request("OPTIONS")
        request = changed(request, "Via", request.headers["Via"], *lower)
        seen = line.send(request)
        wanted = [(via.host, via.branch, via.param("shade")) for via in request.vias[1:]]
        got = [(via.host, via.branch, via.param("shade")) for via in seen.vias[2:]]
        expect_equal("Vias", wanted, got)


@must("RFC 3261 §16.6", "one-hop-less")
def max_forwards_is_lowered_by_one(peer: SipPeer) -> None:
    """Max-Forwards of the copy is one less (§16.6 step 3)."""
    with registered(peer) as line:
        _, seen = _forwarded(line, ("Max-Forwards", "9"))
        expect_equal("Max-Forwards", 8, seen.max_forwards)


@must("RFC 3261 §16.6", "adds-max-forwards")
def max_forwards_is_added(peer: SipPeer) -> None:
    """A copy of a request without Max-Forwards has one (§16.6 step 3)."""
    with registered(peer) as line:
        seen = line.send(changed(line.request("OPTIONS"), "Max-Forwards"))
        if seen.max_forwards is None:
            raise Unmet("Max-Forwards", "none")


@must("RFC 3261 §16.3", "483-for-zero-hops")
def zero_hops_have_483(peer: SipPeer) -> None:
    """A request with Max-Forwards 0 goes no further, and has 483 (§16.3 step 3)."""
    with registered(peer) as line:
        expect(peer.ask(line.request("MESSAGE", ("Max-Forwards", "0"))), 483)
        line.phone.hears_no("MESSAGE", "nothing at the phone")


@must("RFC 3261 §16.3", "zero-hops-stay")
def options_with_zero_hops_go_no_further(peer: SipPeer) -> None:
    """An OPTIONS with Max-Forwards 0 is answered by the proxy, however it likes (§16.3 step 3)."""
    with registered(peer) as line:
        expect(peer.ask(line.request("OPTIONS", ("Max-Forwards", "0"))), 2, 4)
        line.phone.hears_no("OPTIONS", "nothing at the phone")


@must("RFC 3261 §16.3", "unknown-pass")
def unknown_method_is_forwarded(peer: SipPeer) -> None:
    """A method that nobody knows is no reason to refuse (§16.3 step 1)."""
    with registered(peer) as line:
        request = line.request("NEWMETHOD")
        line.phone.answer(line.send(request), 200)
        expect(line.final(request), 200)


@must("RFC 3261 §16.6", "copies-all-fields")
def unknown_fields_are_forwarded(peer: SipPeer) -> None:
    """Header fields that nobody knows are in the copy, values in order (§16.6 step 1)."""
    with registered(peer) as line:
        values = ("first;a=b", '"second", third')
        _, seen = _forwarded(line, request=changed(line.request("OPTIONS"), "X-Mood", *values))
        expect_equal("X-Mood", values, seen.headers.values("X-Mood"))


@must("RFC 3261 §16.6", "removes-none")
def what_is_not_the_proxys_stays(peer: SipPeer) -> None:
    """To, From, Call-ID, CSeq and Contact are forwarded as they came (§16.6 step 1)."""
    with registered(peer) as line:
        request, seen = _forwarded(line, ("Call-ID", f"{token()}%<>[]@a.b"))
        for name in ("To", "From", "Call-ID", "CSeq", "Contact"):
            expect_equal(name, request.headers[name], seen.headers[name])


@must("RFC 3261 §16.6", "copies-the-body")
def body_is_forwarded(peer: SipPeer) -> None:
    """A body is forwarded octet for octet, whatever it is (§16.6 step 1)."""
    body = bytes(range(256)) + b"\r\n\r\n"
    kind = ("Content-Type", "application/x-nothing-like-it")
    with registered(peer) as line:
        seen = line.send(line.request("MESSAGE", kind, body=body))
        expect_equal("body", body, seen.body)


@must("RFC 3261 §16.3", "420-for-proxy-require")
def unknown_proxy_require_has_420(peer: SipPeer) -> None:
    """Proxy-Require with an option tag that the proxy does not know has 420 (§16.3 step 5)."""
    with registered(peer) as line:
        expect(peer.ask(line.request("OPTIONS", ("Proxy-Require", "nothing-like-it"))), 420)
        line.phone.hears_no("OPTIONS", "nothing at the phone")


@must("RFC 3261 §16.3", "420-names-them")
def refused_proxy_require_is_named(peer: SipPeer) -> None:
    """The 420 names what is not supported (§16.3 step 5)."""
    with registered(peer) as line:
        asked = ("Proxy-Require", "nothing-like-it, and-neither")
        response = peer.ask(line.request("OPTIONS", asked))
        if response.status != 420:
            raise Unmet("420", said(response))
        found = {each.word for each in Term.parse_list(expect_header(response, "Unsupported"))}
        expect_equal("Unsupported", {"nothing-like-it", "and-neither"}, found)


@must("RFC 3261 §16.6", "copies-all-fields")
def require_is_not_for_a_proxy(peer: SipPeer) -> None:
    """Require is for the other user agent: the proxy forwards it unread (§20.32)."""
    with registered(peer) as line:
        _, seen = _forwarded(line, ("Require", "nothing-like-it"))
        expect_equal("Require", "nothing-like-it", seen.headers.get("Require", "none"))


@should("RFC 3261 §16.3", "416-for-schemes")
def strange_scheme_has_416(peer: SipPeer) -> None:
    """A Request-URI of a scheme that the proxy does not know has 416 (§16.3 step 2)."""
    _, _, rest = bytes(peer.request("OPTIONS")).partition(b"\r\n")
    expect(peer.ask(b"OPTIONS nobodyKnowsThisScheme:totally SIP/2.0\r\n" + rest), 416)


@must("RFC 3261 §16.5", "no-empty-set")
def user_without_a_phone_has_an_error(peer: SipPeer) -> None:
    """A request for a user without a Contact has 404 or 480 at once (§16.5)."""
    uri = peer.target.replace(user=f"conform-{token()}").without_params("transport")
    request = peer.request("MESSAGE", ("To", f"<{uri}>")).replace(uri=uri)
    expect(peer.ask(request), 404, 480)


@must("RFC 3261 §18.2.1", "source-is-noted")
def received_names_the_caller(peer: SipPeer) -> None:
    """In the copy, a Via with another host than the source has `received` (§18.2.1)."""
    with registered(peer) as line:
        via = f"SIP/2.0/UDP phone.example.com:{peer.port};branch={COOKIE}{token()}"
        seen = line.send(line.request("OPTIONS", ("Via", via)))
        expect_equal("received", peer.host, seen.vias[1].received)


@must("RFC 3581 §4", "rport-is-filled")
def rport_names_the_callers_port(peer: SipPeer) -> None:
    """In the copy, an empty `rport` of the caller has the source's port (RFC 3581 §4)."""
    with registered(peer) as line:
        via = f"SIP/2.0/UDP {peer.host}:9;rport;branch={COOKIE}{token()}"
        request = line.request("OPTIONS", ("Via", via))
        seen = line.send(request)
        expect_equal("rport", peer.port, seen.vias[1].rport)
        line.phone.answer(seen, 200)
        expect(line.final(request), 200)


@must("RFC 3261 §16.4", "own-route-is-removed")
def own_route_is_taken_off(peer: SipPeer) -> None:
    """A Route at the top that names the proxy is not in the copy (§16.4)."""
    with registered(peer) as line:
        route = str(line.uri.replace(user=None).with_params(lr=None))
        _, seen = _forwarded(line, ("Route", f"<{route}>"))
        expect_equal("Route", (), tuple(map(str, seen.routes)))


@must("RFC 3261 §16.6", "mark-has-lr")
def record_route_has_lr(peer: SipPeer) -> None:
    """A Record-Route of the proxy is a URI with `lr` (§16.6 step 4)."""
    with registered(peer) as line:
        _, (seen,) = line.ring()
        for mark in _marks(seen):
            if mark.uri.param("lr") is None:
                raise Unmet("lr", str(mark))


@must("RFC 3261 §16.6", "mark-on-top")
def record_route_goes_above_others(peer: SipPeer) -> None:
    """The proxy's Record-Route stands before those that were there (§16.6 step 4)."""
    before = "<sip:p1.example.com;lr>"
    with registered(peer) as line:
        _, (seen,) = line.ring(("Record-Route", before))
        routes = tuple(map(str, seen.record_routes))
        expect_equal("the last Record-Route", before, routes[-1] if routes else "none")


@must("RFC 3261 §16.4", "own-route-is-removed")
def request_of_the_caller_takes_the_route(peer: SipPeer) -> None:
    """A BYE by the route of the dialog arrives, without the proxy's Route (§16.4, §16.12)."""
    with registered(peer) as line:
        invite, seen, response = line.talk()
        _marks(seen)
        bye = peer.within(invite, response, "BYE", 2)
        arrived = line.send(bye)
        expect_equal("Route", (), tuple(map(str, arrived.routes)))
        line.phone.answer(arrived, 200)
        expect(line.final(bye), 200)


@must("RFC 3261 §16.4", "own-route-is-removed")
def request_of_the_callee_takes_the_route(peer: SipPeer) -> None:
    """A BYE of the callee by the route of the dialog arrives at the caller (§16.4, §16.12)."""
    with registered(peer) as line:
        invite, seen, response = line.talk()
        routes = ", ".join(map(str, _marks(seen)))
        bye = line.phone.request(
            "BYE",
            *(("From", response.headers["To"]), ("To", invite.headers["From"])),
            *(("Call-ID", invite.call_id), ("Route", routes)),
        )
        line.phone.send(bye.replace(uri=seen.contacts[0].uri))
        while not isinstance(arrived := peer.receive(), Request):
            pass
        expect_equal("method", "BYE", arrived.method)
        expect_equal("Route", (), tuple(map(str, arrived.routes)))


@must("RFC 3261 §16.6", "route-or-target-is-the-hop")
def next_route_is_followed(peer: SipPeer) -> None:
    """Behind its own Route the proxy goes to the next, and leaves that in (§16.6 step 6)."""
    with registered(peer) as line:
        other = CalledPhone(str(peer.target))
        try:
            invite, (seen,) = line.ring()
            route = f"<sip:{other.host}:{other.port};lr>"
            _marks(seen)
            extra = changed(seen, "Record-Route", route, *map(str, seen.record_routes))
            line.phone.accept(extra)
            response = line.final(invite)
            peer.send(bye := peer.within(invite, response, "BYE", 2))
            arrived = other.awaits("BYE")
            expect_equal("Route", (route,), tuple(map(str, arrived.routes)))
            expect_equal("Request-URI", bye.uri, arrived.uri)
            other.answer(arrived, 200)
        finally:
            other.close()


@must("RFC 5393 §4.2.2", "loop-is-482")
def loop_of_a_forked_request_has_482(peer: SipPeer) -> None:
    """A forked request that another proxy sends back unchanged has 482 (RFC 5393 §4.2.2)."""
    with registered(peer, 2) as line:
        request = line.request("OPTIONS")
        arrived = line.send(request)
        line.phone.send_on(arrived, line.uri)
        message = line.phone.receive()
        while isinstance(message, Response) and message.status < 200:
            message = line.phone.receive()
        if isinstance(message, Request):
            raise Unmet("482", "the request at the phone again")
        expect(message, 482)


@must("RFC 5393 §4.2.1", "covers-target-and-route")
def spiral_is_no_loop(peer: SipPeer) -> None:
    """A request that comes back with another Request-URI goes on (§16.3 step 4)."""
    with registered(peer) as line, registered(peer) as other:
        request = line.request("MESSAGE")
        line.phone.send_on(line.send(request), other.uri)
        arrived = other.phone.awaits("MESSAGE")
        expect_equal("number of Vias", 4, len(arrived.vias))
        other.phone.answer(arrived, 200)


@must("RFC 5393 §5.3.3", "adds-max-breadth")
def max_breadth_is_added(peer: SipPeer) -> None:
    """A forwarded request has one Max-Breadth; the proxy adds a missing one (RFC 5393 §5.3.3)."""
    with registered(peer) as line:
        _, seen = _forwarded(line)
        expect_equal("number of Max-Breadths", 1, len(seen.headers.values("Max-Breadth")))


@must("RFC 5393 §5.3.3", "440-when-too-narrow")
def breadth_0_has_440(peer: SipPeer) -> None:
    """A request with Max-Breadth 0 cannot be forwarded, and has 440 (RFC 5393 §5.3.3)."""
    with registered(peer) as line:
        expect(peer.ask(line.request("OPTIONS", ("Max-Breadth", "0"))), 440)


@must("RFC 5393 §5.3.3", "stays-within")
def breadth_1_rings_one_phone_at_a_time(peer: SipPeer) -> None:
    """An INVITE with Max-Breadth 1 is forwarded to one phone, not to two (RFC 5393 §5.3.3)."""
    with registered(peer, 2) as line:
        peer.send(line.invite(("Max-Breadth", "1")))
        expect_equal("phones that ring", 1, sum([each.hears("INVITE") for each in line.phones]))


def _forwarded(
    line: CalledLine, *more: tuple[str, str], request: Request | None = None
) -> tuple[Request, Request]:
    """An OPTIONS of the caller, and the copy at the phone."""
    request = line.request("OPTIONS", *more) if request is None else request
    return request, line.send(request)


def _marks(seen: Request) -> tuple[Address, ...]:
    """The Record-Routes of the copy; NotApplicable where there are none."""
    if not seen.record_routes:
        raise NotApplicable("the proxy does not stay in the dialog")
    return seen.record_routes
