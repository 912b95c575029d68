"""What a proxy does with responses, forks and CANCEL, and its transactions at both sides.

Implements RFC 3261 §16.7, §16.10 and §17, with RFC 6026, from both ends of a call.
"""

import time
from functools import partial
from typing import Final

from p2psip.sip.build import cancel_for, response_to
from p2psip.sip.message import Request, Response
from rtclab.conform.case import Cases, Unmet
from rtclab.conform.checks import at_most, expect_equal
from rtclab.conform.sip.callee import registered
from rtclab.conform.sip.peer import QUIET, SipPeer, changed, expect, said, token

cases: Cases[SipPeer] = Cases()
must = partial(cases.case, role="proxy")
should = partial(cases.case, role="proxy", level="SHOULD")
T1: Final = 0.5  # s (§17.1.1.1)


@must("RFC 3261 §17.2.1", "sends-100")
def trying_comes_before_the_client_asks_again(peer: SipPeer) -> None:
    """An INVITE has a 100 while the phone is silent; 200 ms are allowed (§17.2.1)."""
    with registered(peer) as line:
        line.introduce()
        peer.send(line.invite())
        began = time.monotonic()
        expect(next(peer.responses()), 100)
        if (took := time.monotonic() - began) > T1:
            raise Unmet("100 within 0.2 s", f"after {took:.1f} s")


@must("RFC 3261 §16.7", "100-stays")
def trying_of_the_phone_stays_here(peer: SipPeer) -> None:
    """A 100 of the phone is for the proxy, and goes no further (§16.7 step 5)."""
    with registered(peer) as line:
        arrived = line.send(line.invite())
        line.phone.answer(arrived, 100, ("X-Mood", "good"))
        line.phone.answer(arrived, 180)
        for response in peer.responses():
            if response.status == 100 and "X-Mood" in response.headers:
                raise Unmet("180 only", "100 of the phone")
            if response.status == 180:
                return


@must("RFC 3261 §16.7", "progress-at-once")
def ringing_is_forwarded(peer: SipPeer) -> None:
    """A 180 is forwarded at once, without the proxy's Via (§16.7 steps 3 and 5)."""
    with registered(peer) as line:
        invite, _ = line.ring()
        response = next(each for each in peer.responses() if each.status > 100)
        expect(response, 180)
        expect_equal("branches", [invite.via.branch], [via.branch for via in response.vias])


@must("RFC 3261 §16.7", "fields-stay")
def response_is_forwarded_whole(peer: SipPeer) -> None:
    """Tag, unknown fields, reason and body of a response arrive as they were (§16.7 step 9)."""
    with registered(peer) as line:
        request = line.request("OPTIONS")
        more = ("X-Mood", "good;a=b"), ("Content-Type", "application/x-nothing")
        sent = line.phone.answer(line.send(request), 299, *more, body=bytes(range(256)))
        response = line.final(request)
        expect_equal("To", sent.headers["To"], response.headers["To"])
        expect_equal("X-Mood", "good;a=b", response.headers.get("X-Mood", "none"))
        expect_equal("body", sent.body, response.body)
        expect_equal("status", 299, response.status)


@must("RFC 3261 §16.7", "best-of-all")
def failure_of_the_phone_is_forwarded(peer: SipPeer) -> None:
    """The failure of the only phone is the caller's (§16.7 step 6)."""
    with registered(peer) as line:
        invite, (arrived,) = line.ring()
        line.phone.answer(arrived, 486)
        expect(line.final(invite), 486)


@should("RFC 3261 §16.7", "503-stays")
def service_unavailable_stays_here(peer: SipPeer) -> None:
    """A 503 speaks of the phone's host alone: the caller has another failure (§16.7 step 6)."""
    with registered(peer) as line:
        invite, (arrived,) = line.ring()
        line.phone.answer(arrived, 503)
        response = line.final(invite)
        if response.status < 300 or response.status == 503:
            raise Unmet("500, or any failure but 503", said(response))


@must("RFC 3261 §16.11", "ack-is-routed")
def ack_of_an_answer_arrives(peer: SipPeer) -> None:
    """The ACK of a 2xx goes through to the phone (§16.11, §13.2.2.4)."""
    with registered(peer) as line:
        invite, (arrived,) = line.ring()
        answer = line.phone.accept(arrived)
        line.final(invite)
        ack = line.phone.awaits("ACK")
        expect_equal("To tag", answer.to.tag, ack.to.tag)
        expect_equal("CSeq", invite.cseq.number, ack.cseq.number)


@must("RFC 6026 §8.4", "ack-failure")
def ack_of_a_failure_is_the_proxys(peer: SipPeer) -> None:
    """The phone has an ACK for its failure from the proxy, whatever the caller does (§17.1.1.3)."""
    with registered(peer) as line:
        _, (arrived,) = line.ring()
        line.phone.answer(arrived, 486)
        ack = line.phone.awaits("ACK")
        expect_equal("branch", arrived.via.branch, ack.via.branch)
        expect_equal("number of Vias", 1, len(ack.vias))


@must("RFC 3261 §17.2.1", "ack-confirms")
def ack_of_a_failure_goes_no_further(peer: SipPeer) -> None:
    """The caller's ACK of a failure ends at the proxy (§17.2.1)."""
    with registered(peer) as line:
        invite, (arrived,) = line.ring()
        line.phone.answer(arrived, 486)
        line.phone.awaits("ACK")
        line.final(invite)
        line.phone.hears_no("ACK", "one ACK")


@must("RFC 3261 §17.2.1", "timer-g-resends")
def failure_is_repeated_until_the_ack(peer: SipPeer) -> None:
    """The proxy sends a failure again as long as the caller has no ACK for it (§17.2.1)."""
    with registered(peer) as line:
        line.introduce()
        invite, (arrived,) = line.ring()
        line.phone.answer(arrived, 486)
        finals = (each for each in peer.responses() if each.status >= 200)
        first, second = next(finals), next(finals)
        peer.acknowledge(invite, second)
        expect_equal("To tag", first.to.tag, second.to.tag)


@must("RFC 3261 §17.2.1", "repeat-gets-latest-1xx")
def repeated_invite_goes_no_further(peer: SipPeer) -> None:
    """An INVITE that comes again has the last response again, and no phone hears it (§17.2.1)."""
    with registered(peer) as line:
        invite, _ = line.ring()
        _until(peer, 180)
        peer.send(invite)
        _until(peer, 180)
        line.phone.hears_no("INVITE", "one INVITE")


@must("RFC 3261 §17.2.2", "repeat-gets-final")
def repeated_request_goes_no_further(peer: SipPeer) -> None:
    """Another request that comes again has its response from the proxy (§17.2.2)."""
    with registered(peer) as line:
        request = line.request("OPTIONS")
        line.phone.answer(line.send(request), 200)
        first = line.final(request)
        peer.send(request)
        expect_equal("To tag", first.to.tag, line.final(request).to.tag)
        line.phone.hears_no("OPTIONS", "one OPTIONS")


@must("RFC 6026 §8.7", "absorbs-invites")
def repeated_invite_of_a_call_goes_no_further(peer: SipPeer) -> None:
    """An INVITE that comes again behind its 200 is not a new one (RFC 6026 §7.1)."""
    with registered(peer) as line:
        invite, _, _ = line.talk()
        peer.send(invite)
        line.phone.hears_no("INVITE", "one INVITE")


@must("RFC 3261 §17.1.1.2", "timer-a-resends")
def silent_phone_is_asked_again(peer: SipPeer) -> None:
    """An INVITE that a phone does not answer is sent again by the proxy (§17.1.1.2)."""
    with registered(peer) as line:
        arrived = line.send(line.invite())
        again = line.phone.awaits("INVITE")
        expect_equal("branch", arrived.via.branch, again.via.branch)


@must("RFC 3261 §16.10", "cancel-is-200")
def cancel_has_200(peer: SipPeer) -> None:
    """CANCEL of a call that rings has 200 from the proxy (§16.10)."""
    with registered(peer) as line:
        invite, _ = line.ring()
        _until(peer, 180)
        expect(_cancelled(peer, invite), 200)


@must("RFC 3261 §16.10", "cancels-all")
def cancel_goes_to_the_phone(peer: SipPeer) -> None:
    """The phone has a CANCEL in the name of its INVITE, and the caller its 487 (§16.10, §9.1)."""
    with registered(peer) as line:
        invite, (arrived,) = line.ring()
        _until(peer, 180)
        expect(_cancelled(peer, invite), 200)
        cancel = line.phone.awaits("CANCEL")
        expect_equal("branch", arrived.via.branch, cancel.via.branch)
        expect_equal("Request-URI", str(arrived.uri), str(cancel.uri))
        line.phone.answer(cancel, 200)
        line.phone.answer(arrived, 487)
        expect(line.final(invite), 487)


@must("RFC 3261 §9.1", "waits-for-a-provisional")
def cancel_waits_for_a_sign_of_the_phone(peer: SipPeer) -> None:
    """The phone has no CANCEL before it has sent a provisional response (§9.1)."""
    with registered(peer) as line:
        invite = line.invite()
        arrived = line.send(invite)
        expect(_cancelled(peer, invite), 200)
        line.phone.hears_no("CANCEL", "no CANCEL before a response")
        line.phone.answer(arrived, 180)
        line.phone.answer(line.phone.awaits("CANCEL"), 200)
        line.phone.answer(arrived, 487)
        expect(line.final(invite), 487)


@must("RFC 3261 §16.7", "final-cancels-the-rest")
def answer_cancels_the_other_forks(peer: SipPeer) -> None:
    """When one phone answers, the others have a CANCEL (§16.7 step 10)."""
    with registered(peer, 2) as line:
        invite, (one, two) = line.ring()
        line.phones[0].accept(one)
        expect(line.final(invite), 200)
        cancel = line.phones[1].awaits("CANCEL")
        expect_equal("branch", two.via.branch, cancel.via.branch)


@must("RFC 5393 §4.2.1", "branch-is-unique")
def forks_have_branches_of_their_own(peer: SipPeer) -> None:
    """Each copy of a forked request has another branch (§16.6 step 8)."""
    with registered(peer, 2) as line:
        _, seen = line.ring()
        expect_equal("number of branches", 2, len({each.via.branch for each in seen}))


@must("RFC 3261 §16.7", "later-2xx-at-once")
def every_answer_is_forwarded(peer: SipPeer) -> None:
    """The 2xx of each fork is forwarded, behind another as well (§16.7 step 5)."""
    with registered(peer, 2) as line:
        line.introduce()
        invite, seen = line.ring()
        tags = set()
        for phone, arrived in zip(line.phones, seen, strict=True):
            tags.add(phone.accept(arrived).to.tag)
        got = {line.final(invite).to.tag, line.final(invite).to.tag}
        expect_equal("To tags", tags, got)


@must("RFC 6026 §8.4", "every-2xx-up")
def repeated_answer_is_forwarded(peer: SipPeer) -> None:
    """A 2xx that the phone sends again is forwarded again (RFC 6026 §8.4)."""
    with registered(peer) as line:
        line.introduce()
        _, (arrived,) = line.ring()
        for _ in range(2):
            line.phone.accept(arrived)
            _until(peer, 200)


@must("RFC 3261 §16.7", "others-wait")
def failure_waits_for_the_other_forks(peer: SipPeer) -> None:
    """A failure of one phone is kept while another rings (§16.7 step 5)."""
    with registered(peer, 2) as line:
        invite, (one, two) = line.ring()
        line.phones[0].answer(one, 486)
        line.phones[0].awaits("ACK")
        with at_most(QUIET):
            raise Unmet("no final response yet", said(line.final(invite)))
        line.phones[1].accept(two)
        expect(line.final(invite), 200)


@must("RFC 3261 §16.7", "6xx-first")
def global_failure_is_preferred(peer: SipPeer) -> None:
    """Of the failures of all phones the caller has a 6xx, if there is one (§16.7 step 6)."""
    _expect_best(peer, (404, 603), 603)


@should("RFC 3261 §16.7", "lowest-class")
def lowest_class_is_preferred(peer: SipPeer) -> None:
    """Of the other failures the caller has one of the lowest class (§16.7 step 6)."""
    _expect_best(peer, (500, 486), 486)


@must("RFC 3261 §16.7", "challenges-together")
def challenges_are_collected(peer: SipPeer) -> None:
    """A 401 or 407 has the challenges of all forks (§16.7 step 7)."""
    with registered(peer, 2) as line:
        invite, (one, two) = line.ring()
        line.phones[0].answer(one, 401, ("WWW-Authenticate", 'Digest realm="a", nonce="1"'))
        line.phones[1].answer(two, 407, ("Proxy-Authenticate", 'Digest realm="b", nonce="2"'))
        response = line.final(invite)
        expect(response, 401, 407)
        for name in ("WWW-Authenticate", "Proxy-Authenticate"):
            if name not in response.headers:
                raise Unmet("the challenges of both phones", f"{said(response)} without {name}")


@must("RFC 6026 §7.3", "strays-not-forwarded")
def stray_answer_is_dropped(peer: SipPeer) -> None:
    """A 2xx to an INVITE that the proxy does not know goes no further (RFC 6026 §7.3)."""
    with registered(peer) as line:
        invite, (arrived,) = line.ring()
        line.phone.answer(arrived, 486)
        line.final(invite)
        stray = changed(arrived, "Call-ID", token())
        via = str(arrived.via.with_param("branch", f"z9hG4bK{token()}"))
        stray = changed(stray, "Via", via, *map(str, arrived.vias[1:]))
        line.phone.send(response_to(stray, 200, to_tag=token()))
        with at_most(QUIET):
            for response in peer.responses():
                if response.call_id == stray.call_id:
                    raise Unmet("nothing", said(response))


def _until(peer: SipPeer, status: int) -> Response:
    return next(each for each in peer.responses() if each.status == status)


def _cancelled(peer: SipPeer, invite: Request) -> Response:
    """Send a CANCEL, and wait for its response."""
    peer.send(cancel_for(invite))
    return next(each for each in peer.responses() if each.cseq.method == "CANCEL")


def _expect_best(peer: SipPeer, failures: tuple[int, int], best: int) -> None:
    with registered(peer, 2) as line:
        invite, seen = line.ring()
        for phone, arrived, status in zip(line.phones, seen, failures, strict=True):
            phone.answer(arrived, status)
            phone.awaits("ACK")
        expect(line.final(invite), best)
