"""How odd and broken messages are read.

Implements RFC 3261 §7, from the sender's side, with the reactions that RFC 4475 asks for.
"""

from functools import partial

from rtclab.conform.case import Cases
from rtclab.conform.checks import expect_equal
from rtclab.conform.sip.peer import SipPeer, changed, expect

cases: Cases[SipPeer] = Cases()
must = partial(cases.case, role="uas")
should = partial(cases.case, role="uas", level="SHOULD")
GOOD = (200, 480, 486)  # of OPTIONS that is understood


def _ask_with(peer: SipPeer, old: bytes, new: bytes, *statuses: int) -> None:
    """Send OPTIONS with some octets replaced, and expect one of the statuses."""
    octets = bytes(peer.request("OPTIONS"))
    assert old in octets
    expect(peer.ask(octets.replace(old, new, 1)), *statuses)


@must("RFC 3261 §7.3.1", "names-have-no-case")
def header_names_have_no_case(peer: SipPeer) -> None:
    """`cALL-iD` is Call-ID (§7.3.1)."""
    _ask_with(peer, b"Call-ID:", b"cALL-iD:", *GOOD)


@must("RFC 3261 §7.3.3", "both-forms")
def compact_names_are_known(peer: SipPeer) -> None:
    """v, f, t, i, m and l are Via, From, To, Call-ID, Contact and Content-Length (§7.3.3)."""
    octets = bytes(peer.request("OPTIONS"))
    for name in (b"Via v", b"From f", b"To t", b"Call-ID i", b"Contact m", b"Content-Length l"):
        long, _, short = name.partition(b" ")
        octets = octets.replace(b"\r\n" + long + b":", b"\r\n" + short + b":")
    expect(peer.ask(octets), *GOOD)


@must("RFC 3261 §7.3.1", "space-around-the-colon")
def space_before_the_colon(peer: SipPeer) -> None:
    """White space may stand on either side of the colon (§7.3.1)."""
    _ask_with(peer, b"Call-ID: ", b"Call-ID \t :  ", *GOOD)


@must("RFC 3261 §7.3.1", "space-around-the-colon")
def no_space_behind_the_colon(peer: SipPeer) -> None:
    """The space behind the colon may be missing (§7.3.1)."""
    _ask_with(peer, b"CSeq: ", b"CSeq:", *GOOD)


@must("RFC 3261 §7.3.1", "lines-are-folded")
def folded_lines_are_joined(peer: SipPeer) -> None:
    """A line that begins with white space continues the one before (§7.3.1)."""
    _ask_with(peer, b"CSeq: 1 OPTIONS", b"CSeq: 1\r\n \t OPTIONS", *GOOD)


@must("RFC 3261 §7.3.1", "rows-combine")
def values_may_share_a_line(peer: SipPeer) -> None:
    """Two Vias on one line, with a comma, are two Vias (§7.3.1)."""
    request = peer.request("OPTIONS")
    both = f"{request.headers['Via']}, SIP/2.0/UDP b.example.com;branch=z9hG4bKb"
    response = peer.ask(changed(request, "Via", both))
    expect_equal("the number of Vias", 2, len(response.vias))


@must("RFC 3261 §8.2.2", "odd-fields-pass")
def unknown_headers_are_passed_over(peer: SipPeer) -> None:
    """A header that nobody knows is no reason to refuse (§7.3.2, §8.2.2)."""
    expect(peer.ask(peer.request("OPTIONS", ("X-Nothing-Like-It", "?\u00e9;=,"))), *GOOD)


@must("RFC 3261 §7.3.1", "parameters-have-no-case")
def parameter_names_have_no_case(peer: SipPeer) -> None:
    """`BRANCH` and `TAG` are branch and tag (§7.3.1)."""
    _ask_with(peer, b";branch=", b";BRANCH=", *GOOD)


@must("RFC 3261 §7.1", "version-in-capitals")
def version_has_no_case(peer: SipPeer) -> None:
    """`sip/2.0` in a request line is SIP/2.0 (§7.1)."""
    _ask_with(peer, b" SIP/2.0\r\n", b" sip/2.0\r\n", *GOOD)


@should("RFC 4475 §3.1.2.16", "505-for-another-version")
def other_version_has_505(peer: SipPeer) -> None:
    """A request of SIP/7.0 has 505 (§21.5.6, RFC 4475 §3.1.2.16)."""
    _ask_with(peer, b" SIP/2.0\r\n", b" SIP/7.0\r\n", 505)


@must("RFC 3261 §18.3", "rest-is-dropped")
def octets_behind_the_body_are_dropped(peer: SipPeer) -> None:
    """What follows the announced body in a datagram is thrown away (§18.3)."""
    expect(peer.ask(bytes(peer.request("OPTIONS")) + b"INVITE garbage"), *GOOD)


@must("RFC 3261 §18.3", "body-to-the-end")
def body_needs_no_length_in_a_datagram(peer: SipPeer) -> None:
    """Without Content-Length the body goes to the datagram's end (§18.3)."""
    _ask_with(peer, b"Content-Length: 0\r\n", b"", *GOOD)


@should("RFC 3261 §18.3", "short-request-400")
def short_body_has_400(peer: SipPeer) -> None:
    """A datagram that ends before its body does has 400 (§18.3, RFC 4475 §3.1.2.2)."""
    _ask_with(peer, b"Content-Length: 0", b"Content-Length: 9999", 400)


@should("RFC 4475 §3.1.2.3", "negative-length-refused")
def negative_length_has_400(peer: SipPeer) -> None:
    """Content-Length is no negative number (RFC 4475 §3.1.2.3)."""
    _ask_with(peer, b"Content-Length: 0", b"Content-Length: -999", 400)


@should("RFC 4475 §3.1.2.4", "huge-number-refused")
def cseq_too_large_has_400(peer: SipPeer) -> None:
    """A CSeq beyond 32 bits has 400 (RFC 4475 §3.1.2.4)."""
    _ask_with(peer, b"CSeq: 1 ", b"CSeq: 36893488147419103232 ", 400)


@should("RFC 3261 §8.1.1.5", "method-in-cseq")
def cseq_of_another_method_has_400(peer: SipPeer) -> None:
    """A CSeq whose method is not the request's has 400 (RFC 4475 §3.1.2.17)."""
    _ask_with(peer, b"CSeq: 1 OPTIONS", b"CSeq: 1 INVITE", 400)


@should("RFC 4475 §3.1.2.6", "open-quote-refused")
def open_quotes_have_400(peer: SipPeer) -> None:
    """A display name whose quotation mark is not closed has 400 (RFC 4475 §3.1.2.6)."""
    _ask_with(peer, b"To: <", b'To: "Mr. J. User <', 400)


@should("RFC 3261 §7.1", "no-brackets-around-the-uri")
def uri_in_brackets_has_400(peer: SipPeer) -> None:
    """A Request-URI within <> has 400, or is read without them (RFC 4475 §3.1.2.7)."""
    octets = bytes(peer.request("OPTIONS"))
    method, uri, rest = octets.split(b" ", 2)
    expect(peer.ask(b"%b <%b> %b" % (method, uri, rest)), 400, *GOOD)


@should("RFC 4475 §3.1.2.8", "space-in-the-uri")
def space_in_the_uri_has_400(peer: SipPeer) -> None:
    """A Request-URI with white space in it has 400 (RFC 4475 §3.1.2.8)."""
    _ask_with(peer, b" SIP/2.0\r\n", b"; lr SIP/2.0\r\n", 400)


@should("RFC 4475 §3.3.1", "missing-is-refused")
def missing_call_id_has_400(peer: SipPeer) -> None:
    """A request without Call-ID has 400 (RFC 4475 §3.3.1)."""
    _ask_with(peer, b"Call-ID: ", b"X-Call-ID: ", 400)


@should("RFC 4475 §3.3.1", "missing-is-refused")
def missing_from_has_400(peer: SipPeer) -> None:
    """A request without From has 400 (RFC 4475 §3.3.1)."""
    _ask_with(peer, b"From: ", b"X-From: ", 400)


@should("RFC 4475 §3.3.1", "missing-is-refused")
def missing_to_has_400(peer: SipPeer) -> None:
    """A request without To has 400 (RFC 4475 §3.3.1)."""
    _ask_with(peer, b"To: ", b"X-To: ", 400)


@should("RFC 4475 §3.3.8", "repeated-is-refused")
def two_call_ids_have_400(peer: SipPeer) -> None:
    """A header that there is once, twice, has 400 (RFC 4475 §3.3.8)."""
    _ask_with(peer, b"Call-ID: ", b"Call-ID: another\r\nCall-ID: ", 400)


@should("RFC 4475 §3.3.9", "two-lengths-refused")
def two_lengths_have_400(peer: SipPeer) -> None:
    """Two Content-Lengths that differ have 400 (RFC 4475 §3.3.9)."""
    _ask_with(peer, b"Content-Length: 0", b"Content-Length: 8\r\nContent-Length: 0", 400)


@must("RFC 3261 §25.1", "escapes-in-quotes")
def quoted_pairs_are_read(peer: SipPeer) -> None:
    """A display name may have escaped quotation marks and backslashes (RFC 4475 §3.1.1.1)."""
    _ask_with(peer, b"To: <", rb'To: "a \"quoted\" \\ name, and <more>" <', *GOOD)


@should("RFC 4475 §3.1.1.6", "name-beside-the-bracket")
def no_space_before_the_bracket(peer: SipPeer) -> None:
    """A display name may stand right before < (RFC 4475 §3.1.1.6)."""
    _ask_with(peer, b"To: <", b"To: caller<", *GOOD)


@must("RFC 3261 §20", "bare-uri-without-parameters")
def addresses_need_no_brackets(peer: SipPeer) -> None:
    """Parameters behind an address without <> are the header's (§20.10)."""
    request = peer.request("OPTIONS", ("From", "sip:a@example.com;tag=88"))
    expect_equal("From tag", "88", peer.ask(request).from_.tag)


@must("RFC 3261 §7", "utf-8")
def utf8_in_a_display_name(peer: SipPeer) -> None:
    """Quoted display names may have UTF-8 in them (§25.1)."""
    _ask_with(peer, b"To: <", 'To: "\u0416\u00e9" <'.encode(), *GOOD)


@must("RFC 4475 §3.1.1.10", "any-transport-is-read")
def lower_vias_may_be_anything(peer: SipPeer) -> None:
    """Only the topmost Via matters: others may have unknown transports (RFC 4475 §3.1.1.10)."""
    request = peer.request("OPTIONS")
    odd = "SIP / 2.0 / UNKNOWN t5.example.com;branch=z9hG4bKkdjuw"
    expect(peer.ask(changed(request, "Via", request.headers["Via"], odd)), *GOOD)


@must("RFC 6026 §8.9", "strays-dropped")
def stray_responses_are_dropped(peer: SipPeer) -> None:
    """A response that belongs to nothing is not answered (§18.1.2)."""
    octets = bytes(peer.request("OPTIONS"))
    peer.send(b"SIP/2.0 200 \r\n" + octets.partition(b"\r\n")[2])
    peer.expect_quiet("nothing, to a response")


@must("RFC 4475 §4", "hostile-input-is-met")
def garbage_does_no_harm(peer: SipPeer) -> None:
    """After octets that are no SIP the next request is answered (§18)."""
    peer.send(bytes(range(256)))
    peer.send(b"\x00\x00\x00\x00")
    _ask_with(peer, b"OPTIONS", b"OPTIONS", *GOOD)
