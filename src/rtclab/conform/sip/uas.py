"""What any user agent server does with a request outside of a dialog.

Implements RFC 3261 §8.2 and §11, from the client's side.
"""

from functools import partial

from p2psip.sip.message import Request, Response
from p2psip.sip.values import Term
from rtclab.conform.case import Cases, NotApplicable, Unmet
from rtclab.conform.checks import expect_equal
from rtclab.conform.sip.peer import SipPeer, changed, expect, expect_header, said, token

cases: Cases[SipPeer] = Cases()
must = partial(cases.case, role="uas")
should = partial(cases.case, role="uas", level="SHOULD")


@must("RFC 3261 §11.2", "as-for-an-invite")
def options_has_a_final_response(peer: SipPeer) -> None:
    """OPTIONS is answered as an INVITE would be: 200, or that the user is busy (§11.2)."""
    expect(peer.ask(peer.request("OPTIONS")), 200, 486, 480)


@should("RFC 3261 §11.2", "lists-abilities")
def options_says_allow(peer: SipPeer) -> None:
    """The 200 names the methods (§11.2)."""
    allow = expect_header(_options(peer), "Allow")
    if "INVITE" not in allow or "BYE" not in allow:
        raise Unmet("INVITE and BYE in Allow", allow)


@should("RFC 3261 §11.2", "lists-abilities")
def options_says_accept(peer: SipPeer) -> None:
    """The 200 names the types of bodies, session descriptions among them (§11.2)."""
    accept = expect_header(_options(peer), "Accept")
    if not any(each.covers("application/sdp") for each in Term.parse_list(accept)):
        raise Unmet("application/sdp in Accept", accept)


@should("RFC 3261 §11.2", "lists-abilities")
def options_says_accept_encoding(peer: SipPeer) -> None:
    """The 200 names the encodings of bodies (§11.2)."""
    expect_header(_options(peer), "Accept-Encoding")


@should("RFC 3261 §11.2", "lists-abilities")
def options_says_accept_language(peer: SipPeer) -> None:
    """The 200 names the languages (§11.2)."""
    expect_header(_options(peer), "Accept-Language")


@should("RFC 3261 §11.2", "lists-abilities")
def options_says_supported(peer: SipPeer) -> None:
    """The 200 names the extensions, and be it none (§11.2)."""
    expect_header(_options(peer), "Supported")


@must("RFC 3261 §8.2.6.2", "to-gets-a-tag")
def to_gets_a_tag(peer: SipPeer) -> None:
    """A response adds a tag to a To without one (§8.2.6.2)."""
    if peer.ask(peer.request("OPTIONS")).to.tag is None:
        raise Unmet("a tag in To", "none")


@must("RFC 3261 §8.2.6.2", "to-uri-comes-back")
def to_keeps_its_uri(peer: SipPeer) -> None:
    """The URI of To comes back as it was (§8.2.6.2)."""
    request = peer.request("OPTIONS", ("To", "<sip:someone.else@example.com>"))
    expect_equal("To", request.to.uri, peer.ask(request).to.uri)


@must("RFC 3261 §8.2.6.2", "from-comes-back")
def from_comes_back(peer: SipPeer) -> None:
    """From of the response equals that of the request (§8.2.6.2)."""
    request = peer.request("OPTIONS")
    expect_equal("From", request.from_, peer.ask(request).from_)


@must("RFC 3261 §8.2.6.2", "call-id-comes-back")
def call_id_comes_back(peer: SipPeer) -> None:
    """Call-ID may have any characters of a word, and comes back whole (§8.2.6.2)."""
    request = peer.request("OPTIONS", ("Call-ID", f'{token()}%<>[]?"{{}}@a.b'))
    expect_equal("Call-ID", request.call_id, peer.ask(request).call_id)


@must("RFC 3261 §8.2.6.2", "cseq-comes-back")
def cseq_comes_back(peer: SipPeer) -> None:
    """The largest CSeq comes back (§8.2.6.2, §8.1.1.5)."""
    request = peer.request("OPTIONS", ("CSeq", "2147483647 OPTIONS"))
    expect_equal("CSeq", request.cseq, peer.ask(request).cseq)


@must("RFC 3261 §8.2.6.2", "vias-in-order")
def vias_come_back_in_order(peer: SipPeer) -> None:
    """All Vias come back, those of proxies before us too, in their order (§8.2.6.2)."""
    request = peer.request("OPTIONS")
    lower = "SIP/2.0/TCP b.example.com;branch=z9hG4bKb", "SIP/2.0/UDP [2001:db8::9]:5070"
    request = changed(request, "Via", request.headers["Via"], *lower)
    got = [via.host for via in peer.ask(request).vias]
    expect_equal("Vias", [via.host for via in request.vias], got)


@must("RFC 3261 §18.2.1", "source-is-noted")
def received_names_the_source(peer: SipPeer) -> None:
    """A sent-by with another host gets `received`, and the reply goes to the source (§18.2.1)."""
    via = f"SIP/2.0/UDP phone.example.com:{peer.port};branch=z9hG4bK{token()}"
    response = peer.ask(peer.request("OPTIONS", ("Via", via)))
    expect_equal("received", peer.host, response.via.received)


@must("RFC 3581 §4", "rport-is-filled")
def rport_is_filled_in(peer: SipPeer) -> None:
    """An empty `rport` gets the source's port, and the reply goes there (RFC 3581 §4)."""
    via = f"SIP/2.0/UDP {peer.host}:9;rport;branch=z9hG4bK{token()}"
    expect_equal("rport", peer.port, peer.ask(peer.request("OPTIONS", ("Via", via))).via.rport)


@must("RFC 3581 §4", "received-even-if-same")
def rport_brings_received(peer: SipPeer) -> None:
    """With `rport` there is `received` too, even where it equals sent-by (RFC 3581 §4)."""
    expect_equal("received", peer.host, peer.ask(peer.request("OPTIONS")).via.received)


@must("RFC 3261 §8.2.6.2", "vias-come-back")
def unknown_via_parameters_come_back(peer: SipPeer) -> None:
    """A parameter of Via that nobody knows comes back with the rest (§8.2.6.2)."""
    request = peer.request("OPTIONS")
    request = changed(request, "Via", f"{request.headers['Via']};shade=blue")
    expect_equal("shade", "blue", peer.ask(request).via.param("shade"))


@must("RFC 3261 §8.2.1", "405-for-others")
def unknown_method_is_refused(peer: SipPeer) -> None:
    """A method that the target does not support has 405; 501 is for those nobody knows (§8.2.1)."""
    expect(peer.ask(peer.request("NEWMETHOD")), 405, 501)


@must("RFC 3261 §8.2.1", "405-says-allow")
def refused_method_comes_with_allow(peer: SipPeer) -> None:
    """A 405 names the methods that there are (§8.2.1)."""
    response = peer.ask(peer.request("NEWMETHOD"))
    if response.status != 405:
        raise NotApplicable(f"the target says {said(response)}")
    expect_header(response, "Allow")


@must("RFC 3261 §8.2.1", "looks-at-the-method")
def methods_have_a_case(peer: SipPeer) -> None:
    """`options` is not OPTIONS (§7.1, §8.2.1)."""
    expect(peer.ask(peer.request("options")), 405, 501, 400)


@should("RFC 3261 §8.2.2.1", "416-for-the-scheme")
def unknown_scheme_has_416(peer: SipPeer) -> None:
    """A Request-URI of a scheme that the target does not know has 416 (§8.2.2.1)."""
    request = bytes(peer.request("OPTIONS"))
    _, _, rest = request.partition(b"\r\n")
    expect(peer.ask(b"OPTIONS nobodyKnowsThisScheme:totally SIP/2.0\r\n" + rest), 416)


@must("RFC 3261 §8.2.2.3", "420-for-unknown")
def unknown_extension_has_420(peer: SipPeer) -> None:
    """Require with an option tag that the target does not know has 420 (§8.2.2.3)."""
    expect(peer.ask(peer.request("OPTIONS", ("Require", "nothing-like-it"))), 420)


@must("RFC 3261 §8.2.2.3", "unknown-are-named")
def unsupported_names_the_extension(peer: SipPeer) -> None:
    """The 420 has Unsupported with exactly what is not supported (§8.2.2.3)."""
    response = peer.ask(peer.request("OPTIONS", ("Require", "nothing-like-it, and-neither")))
    if response.status != 420:
        raise Unmet("420", said(response))
    found = {each.word for each in Term.parse_list(expect_header(response, "Unsupported"))}
    expect_equal("Unsupported", {"nothing-like-it", "and-neither"}, found)


@must("RFC 3261 §7.3.1", "rows-combine")
def every_require_line_counts(peer: SipPeer) -> None:
    """A second Require line counts as the first does (§7.3.1, §8.2.2.3)."""
    request = changed(peer.request("OPTIONS"), "Require", "nothing-like-it", "and-neither")
    expect(peer.ask(request), 420)


@must("RFC 3261 §20.29", "asks-the-proxy")
def proxy_require_is_not_for_a_uas(peer: SipPeer) -> None:
    """Proxy-Require is for proxies: a user agent server does not look at it (§20.29)."""
    expect(peer.ask(peer.request("OPTIONS", ("Proxy-Require", "nothing-like-it"))), 200, 486, 480)


@must("RFC 3261 §8.2.3", "415-for-the-body", alone=True)
def unknown_body_has_415(peer: SipPeer) -> None:
    """An INVITE with a body that the target cannot read has 415 (§8.2.3)."""
    expect(_unless_busy(peer.ask(_strange(peer))), 415)


@must("RFC 3261 §8.2.3", "415-says-accept", alone=True)
def refused_body_comes_with_accept(peer: SipPeer) -> None:
    """The 415 names the types that the target reads (§8.2.3)."""
    response = _unless_busy(peer.ask(_strange(peer)))
    if response.status != 415:
        raise Unmet("415", said(response))
    expect_header(response, "Accept")


@must("RFC 3261 §8.2.3", "415-for-the-body", alone=True)
def unknown_encoding_has_415(peer: SipPeer) -> None:
    """A body of an encoding that the target does not know has 415 (§8.2.3)."""
    request = peer.invite(("Content-Encoding", "nothing-like-it"))
    response = _unless_busy(peer.ask(request))
    expect(response, 415)
    expect_header(response, "Accept-Encoding")


@must("RFC 3261 §8.2.3", "415-for-the-body")
def optional_body_is_passed_over(peer: SipPeer) -> None:
    """A body with `handling=optional` is no reason to refuse (§20.11)."""
    request = peer.request(
        "OPTIONS",
        ("Content-Type", "application/x-nothing-like-it"),
        ("Content-Disposition", "session;handling=optional"),
        body=b"what is this?",
    )
    expect(peer.ask(request), 200, 486, 480)


@should("RFC 4475 §3.3.11", "zero-hops-at-the-end")
def max_forwards_is_no_matter_to_a_uas(peer: SipPeer) -> None:
    """A request that has arrived is answered, with Max-Forwards 0 as well (§11.1, §16.3)."""
    expect(peer.ask(peer.request("OPTIONS", ("Max-Forwards", "0"))), 200, 486, 480, 483)


@should("RFC 3261 §9.2", "481-without-a-match")
def cancel_of_nothing_has_481(peer: SipPeer) -> None:
    """CANCEL of a request that the target does not have has 481 (§9.2)."""
    expect(peer.ask(peer.request("CANCEL")), 481)


@should("RFC 3261 §15.1.2", "481-without-a-dialog")
def bye_of_nothing_has_481(peer: SipPeer) -> None:
    """BYE of a dialog that the target does not have has 481 (§15.1.2)."""
    request = peer.request("BYE")
    expect(peer.ask(changed(request, "To", f"{request.headers['To']};tag=none")), 481)


@must("RFC 3261 §12.2.2", "481-for-unknown")
def invite_of_an_unknown_dialog_has_481(peer: SipPeer) -> None:
    """An INVITE with a tag in To that the target did not give has 481 (§12.2.2)."""
    request = peer.invite()
    expect(peer.ask(changed(request, "To", f"{request.headers['To']};tag=none")), 481)


@must("RFC 3261 §8.2.7", "ack-without-memory")
def stray_ack_has_no_response(peer: SipPeer) -> None:
    """ACK is never answered, and one that belongs to nothing neither (§17.1.1.3)."""
    request = peer.request("ACK")
    peer.send(changed(request, "To", f"{request.headers['To']};tag=none"))
    peer.expect_quiet("no response to ACK")


def _options(peer: SipPeer) -> Response:
    response = peer.ask(peer.request("OPTIONS"))
    if response.status != 200:
        raise NotApplicable(f"the target says {said(response)}")
    return response


def _strange(peer: SipPeer) -> Request:
    return peer.request("INVITE", ("Content-Type", "application/x-nothing"), body=b"what is this?")


def _unless_busy(response: Response) -> Response:
    if response.status in (480, 486):
        raise NotApplicable(f"the target takes no call: {said(response)}")
    return response
