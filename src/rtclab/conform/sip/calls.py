"""Calls that the target takes: offer and answer, dialogs, and their end.

Implements RFC 3261 §12 to §15 and RFC 3264 §6, from the caller's side.
"""

from functools import partial

from p2psip.sip.message import Response
from rtclab.conform.case import Cases, NotApplicable, Unmet
from rtclab.conform.checks import expect_equal
from rtclab.conform.sip.peer import SipPeer, changed, expect, expect_header, said

cases: Cases[SipPeer] = Cases()
must = partial(cases.case, role="uas", alone=True)
should = partial(cases.case, role="uas", level="SHOULD", alone=True)
ROUTES = "<sip:p2.example.com;lr>", "<sip:p1.example.com;lr;x=y>"


@must("RFC 3261 §12.1.1", "adds-a-contact")
def answer_has_a_contact(peer: SipPeer) -> None:
    """A 2xx to INVITE says where later requests go: one Contact (§12.1.1)."""
    _, response = peer.call()
    expect_equal("number of Contacts", 1, len(response.contacts))


@must("RFC 3261 §12.1.1", "record-routes-in-order")
def answer_has_the_record_routes(peer: SipPeer) -> None:
    """A 2xx has all Record-Routes of the INVITE, with their parameters, in order (§12.1.1)."""
    invite = changed(peer.invite(), "Record-Route", *ROUTES)
    peer.send(invite)
    response = next(each for each in peer.responses() if each.status >= 200)
    peer.settle(invite, response)
    if response.status >= 300:
        raise NotApplicable("the target takes no such call")
    expect_equal("Record-Route", ROUTES, tuple(map(str, response.record_routes)))


@should("RFC 3261 §13.3.1.4", "2xx-says-what-we-can")
def answer_says_allow(peer: SipPeer) -> None:
    """A 2xx to INVITE names the methods for the call (§13.3.1.4)."""
    expect_header(peer.call()[1], "Allow")


@should("RFC 3261 §13.3.1.4", "2xx-says-what-we-can")
def answer_says_supported(peer: SipPeer) -> None:
    """A 2xx to INVITE names the extensions (§13.3.1.4)."""
    expect_header(peer.call()[1], "Supported")


@must("RFC 6026 §8.1", "2xx-repeats")
def answer_is_repeated_until_the_ack(peer: SipPeer) -> None:
    """A 2xx is sent again as long as no ACK comes (§13.3.1.4)."""
    peer.introduce()
    invite = peer.invite()
    peer.send(invite)
    finals = (each for each in peer.responses() if each.status >= 200)
    if (first := next(finals)).status < 300:
        try:
            expect_equal("To tag", first.to.tag, next(finals).to.tag)
        finally:
            peer.settle(invite, first)
        return
    peer.settle(invite, first)
    raise NotApplicable(f"the target takes no call: {said(first)}")


@must("RFC 3261 §13.3.1.4", "answer-in-the-2xx")
def offer_is_answered(peer: SipPeer) -> None:
    """The 2xx to an offer has the answer, a session description (§13.2.1)."""
    _, response = peer.call()
    expect_equal("Content-Type", "application/sdp", response.content_type.lower())


@must("RFC 3261 §13.3.1.4", "offer-in-the-2xx")
def offer_comes_where_there_is_none(peer: SipPeer) -> None:
    """The 2xx to an INVITE without a session description has an offer (§13.3.1.4)."""
    invite = peer.request("INVITE")
    peer.send(invite)
    response = next(each for each in peer.responses() if each.status >= 200)
    peer.settle(invite, response)
    if response.status >= 300:
        raise NotApplicable("the target takes no call without an offer")
    if b"m=audio" not in response.body:
        raise Unmet("an offer with m=audio", repr(response.body[:40]))


@must("RFC 3264 §6", "a-line-for-each")
def answer_has_as_many_lines(peer: SipPeer) -> None:
    """The answer has a media line for each of the offer, in their order (RFC 3264 §6).

    How it names a kind of media that it does not know, and refuses, is left to it.
    """
    response = _answer_to(peer, b"m=video 0 RTP/AVP 99\r\nm=x-none 9 RTP/AVP 0\r\n")
    kinds = [line.split()[0] for line in _media(response)]
    expect_equal("number of lines", 3, len(kinds))
    expect_equal("the first two", ["audio", "video"], kinds[:2])


@must("RFC 3264 §6", "refused-has-port-zero")
def unknown_media_are_refused(peer: SipPeer) -> None:
    """A line of an unknown kind of media gets port 0 in the answer (RFC 3264 §6)."""
    media = _media(_answer_to(peer, b"m=x-none 9 RTP/AVP 0\r\n"))
    if [line.split()[1:2] for line in media[1:]] != [["0"]]:
        raise Unmet("a second line with port 0", str(media))


@must("RFC 3264 §6.1", "one-in-common")
def answer_takes_formats_of_the_offer(peer: SipPeer) -> None:
    """At least one format of an accepted line was offered (RFC 3264 §6.1)."""
    formats = _media(peer.call()[1])[0].split()[3:]
    if not {"0", "8"} & set(formats):
        raise Unmet("format 0 or 8", " ".join(formats))


@must("RFC 3264 §6.1", "answers-sendonly")
def sendonly_is_not_answered_by_sending(peer: SipPeer) -> None:
    """An offer `sendonly` is answered `recvonly` or `inactive` (RFC 3264 §6.1)."""
    response = _answer_to(peer, b"a=sendonly\r\n")
    if not any(f"a={way}".encode() in response.body for way in ("recvonly", "inactive")):
        raise Unmet("a=recvonly or a=inactive", "another direction")


@must("RFC 3264 §6.1", "answers-inactive")
def inactive_stays_inactive(peer: SipPeer) -> None:
    """An offer `inactive` is answered so (RFC 3264 §6.1)."""
    if b"a=inactive" not in _answer_to(peer, b"a=inactive\r\n").body:
        raise Unmet("a=inactive", "another direction")


@must("RFC 3264 §6", "same-time")
def time_of_the_answer_is_the_offers(peer: SipPeer) -> None:
    """The t= line of the answer equals that of the offer (RFC 3264 §6)."""
    if b"t=0 0" not in peer.call()[1].body:
        raise Unmet("t=0 0", "another time")


@must("RFC 3261 §15.1.2", "2xx-for-the-bye")
def bye_has_200(peer: SipPeer) -> None:
    """BYE of a call is answered with 200 (§15.1.2)."""
    invite, response = peer.call()
    peer.forget()
    expect(peer.ask(peer.within(invite, response, "BYE", 2)), 200)


@should("RFC 3261 §15.1.2", "481-without-a-dialog")
def second_bye_has_481(peer: SipPeer) -> None:
    """A BYE after the call has ended has 481 (§15.1.2)."""
    invite, response = peer.call()
    peer.hang_up()
    expect(peer.ask(peer.within(invite, response, "BYE", 9001)), 481)


@must("RFC 3261 §12.2.2", "500-for-older")
def lower_cseq_has_500(peer: SipPeer) -> None:
    """A request whose CSeq is lower than that of the one before has 500 (§12.2.2)."""
    invite, response = peer.call(("CSeq", "50 INVITE"))
    expect(peer.ask(peer.within(invite, response, "OPTIONS", 40)), 500)


@should("RFC 3261 §12.2.2", "gaps-are-fine")
def gaps_in_cseq_do_not_matter(peer: SipPeer) -> None:
    """A CSeq may skip numbers (§12.2.2)."""
    invite, response = peer.call()
    expect(peer.ask(peer.within(invite, response, "OPTIONS", 900)), 200)


@must("RFC 3261 §12.2.2", "481-for-unknown")
def other_to_tag_is_no_dialog(peer: SipPeer) -> None:
    """A BYE with another tag in To does not end the call (§12.2.2)."""
    invite, response = peer.call()
    bye = peer.within(invite, response, "BYE", 2)
    expect(peer.ask(changed(bye, "To", f"<{peer.target}>;tag=another")), 481)


@must("RFC 3261 §12.2.2", "481-for-unknown")
def other_from_tag_is_no_dialog(peer: SipPeer) -> None:
    """A BYE with another tag in From does not end the call (§12.2.2)."""
    invite, response = peer.call()
    bye = peer.within(invite, response, "BYE", 2)
    expect(peer.ask(changed(bye, "From", "<sip:conform@example.com>;tag=another")), 481)


@must("RFC 3261 §12.2.2", "481-for-unknown")
def other_call_id_is_no_dialog(peer: SipPeer) -> None:
    """A BYE with another Call-ID does not end the call (§12.2.2)."""
    invite, response = peer.call()
    bye = peer.within(invite, response, "BYE", 2)
    expect(peer.ask(changed(bye, "Call-ID", "another")), 481)


@must("RFC 3261 §12.1", "named-by-three-parts")
def uris_of_to_and_from_do_not_matter(peer: SipPeer) -> None:
    """A dialog goes by its tags: other URIs in To and From are no reason to refuse (§12.2.2)."""
    invite, response = peer.call()
    bye = peer.within(invite, response, "BYE", 2)
    peer.forget()
    bye = changed(bye, "From", f"<sip:other@example.com>;tag={invite.from_.tag}")
    expect(peer.ask(bye), 200)


@must("RFC 3261 §14.2", "follows-the-change")
def second_invite_is_answered(peer: SipPeer) -> None:
    """An INVITE within the call changes the session, or has 488 (§14.2)."""
    invite, response = peer.call()
    again = peer.within(invite, response, "INVITE", 2)
    again = changed(again, "Content-Type", "application/sdp").replace(
        body=peer.offer.replace(b"o=- 1 1 ", b"o=- 1 2 ") + b"a=sendonly\r\n"
    )
    second = peer.ask(again)
    expect(second, 200, 488)
    expect_equal("To tag", response.to.tag, second.to.tag)


@must("RFC 3261 §14.1", "refusal-changes-nothing")
def refused_change_leaves_the_call(peer: SipPeer) -> None:
    """After an INVITE within the call was refused the call goes on (§14.2)."""
    invite, response = peer.call()
    again = peer.within(invite, response, "INVITE", 2)
    again = changed(again, "Require", "nothing-like-it")
    peer.send(again)
    finals = (each for each in peer.responses() if each.status >= 200)
    refusal = next(each for each in finals if each.cseq.number == 2)
    expect(refusal, 420)
    peer.acknowledge(again, refusal)
    expect(peer.ask(peer.within(invite, response, "OPTIONS", 3)), 200)


@must("RFC 3261 §8.2.6.2", "to-comes-back")
def tag_stays_within_the_call(peer: SipPeer) -> None:
    """Each response within a dialog has its tags (§12.2.2, §8.2.6.2)."""
    invite, response = peer.call()
    later = peer.ask(peer.within(invite, response, "OPTIONS", 2))
    expect_equal("To tag", response.to.tag, later.to.tag)


@must("RFC 3264 §8", "version-plus-one")
def version_of_the_session_counts_up(peer: SipPeer) -> None:
    """The o= line's version grows by one if the description changed, or stays (RFC 3264 §8)."""
    invite, response = peer.call()
    again = changed(peer.within(invite, response, "INVITE", 2), "Content-Type", "application/sdp")
    second = peer.ask(again.replace(body=peer.offer.replace(b"o=- 1 1 ", b"o=- 1 2 ")))
    if second.status >= 300:
        raise NotApplicable("the target refuses the change")
    (first_id, before), (second_id, after) = _origin(response.body), _origin(second.body)
    expect_equal("session id", first_id, second_id)
    if after - before not in (0, 1):
        raise Unmet(f"version {before} or {before + 1}", str(after))


def _answer_to(peer: SipPeer, more: bytes) -> Response:
    """Call with lines added to the offer; NotApplicable if the target refuses."""
    invite = peer.invite()
    response = peer.ask(invite.replace(body=invite.body + more))
    if response.status >= 300:
        raise NotApplicable(f"the target refuses with {response.status}")
    return response


def _media(response: Response) -> list[str]:
    lines = response.body.decode("utf-8", "replace").splitlines()
    return [line.removeprefix("m=") for line in lines if line.startswith("m=")] or [""]


def _origin(body: bytes) -> tuple[str, int]:
    fields = body.decode("utf-8", "replace").partition("\no=")[2].split()
    if len(fields) < 3 or not fields[2].isdigit():
        raise Unmet("an o= line", " ".join(fields[:3]))
    return fields[1], int(fields[2])
