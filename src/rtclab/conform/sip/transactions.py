"""Transactions of the server, by UDP.

Implements RFC 3261 §17.2 and §9.2, from the client's side.
"""

import time
from collections.abc import Iterator
from functools import partial
from typing import Final

from p2psip.sip.build import cancel_for
from p2psip.sip.message import Response
from rtclab.conform.case import Cases, NotApplicable, Unmet
from rtclab.conform.checks import at_most, expect_equal
from rtclab.conform.sip.peer import SipPeer, changed, expect, said

cases: Cases[SipPeer] = Cases()
must = partial(cases.case, role="uas")
should = partial(cases.case, role="uas", level="SHOULD")
PATIENCE: Final = 3.0  # s: a refusal, and two repeats with the T1 of the RFC
STATELESS: Final = "the target refuses without state, which RFC 3261 §8.2.7 allows"


@must("RFC 3261 §17.2.2", "repeat-gets-final")
def repeated_request_has_the_same_response(peer: SipPeer) -> None:
    """A request that is sent again has the response of before, its To tag too (§17.2.2)."""
    request = peer.request("OPTIONS")
    first, second = peer.ask(request), peer.ask(request)
    expect_equal("To tag", first.to.tag, second.to.tag)


@must("RFC 3261 §17.2.3", "match-branch")
def another_branch_is_another_request(peer: SipPeer) -> None:
    """The branch tells requests apart: each has its own response (§17.2.3)."""
    for _ in range(2):
        request = peer.request("OPTIONS")
        expect_equal("branch", request.via.branch, peer.ask(request).via.branch)


@must("RFC 3261 §17.2.1", "timer-g-resends")
def refusal_is_repeated_until_the_ack(peer: SipPeer) -> None:
    """A refusal of INVITE is sent again after T1 as long as no ACK comes (§17.2.1)."""
    peer.introduce()
    invite = peer.unfit()
    peer.send(invite)
    finals = _repeated(peer, 2)
    expect_equal("status", finals[0][0], finals[1][0])


@must("RFC 3261 §17.2.1", "timer-g-doubles-to-t2")
def repeats_come_after_t1_and_twice_t1(peer: SipPeer) -> None:
    """The gaps between repeated refusals double, from T1 (§17.2.1)."""
    peer.introduce()
    peer.send(peer.unfit())
    times = [when for _, when in _repeated(peer, 3)]
    first, second = times[1] - times[0], times[2] - times[1]
    if not 1.5 <= second / first <= 2.7:
        raise Unmet("a gap twice as long as the one before", f"{first:.2f} s, {second:.2f} s")


@must("RFC 3261 §17.2.1", "ack-confirms")
def ack_ends_the_repeats(peer: SipPeer) -> None:
    """After the ACK the refusal is not sent again (§17.2.1)."""
    peer.ask(peer.unfit())
    started = time.monotonic()
    while time.monotonic() - started < 0.8:
        peer.expect_quiet("no refusal behind its ACK")


@should("RFC 3261 §17.2.1", "repeat-in-completed")
def repeated_invite_has_the_refusal_again(peer: SipPeer) -> None:
    """An INVITE that is sent again before the ACK has the same final response (§17.2.1)."""
    peer.introduce()
    invite = peer.unfit()
    peer.send(invite)
    first = next(_finals(peer))
    peer.send(invite)
    expect_equal("To tag", first.to.tag, next(_finals(peer)).to.tag)


@must("RFC 3261 §9.2", "200-for-the-cancel")
def cancel_of_an_answered_request_has_200(peer: SipPeer) -> None:
    """CANCEL finds its INVITE by the branch, has 200, and changes nothing that is final (§9.2)."""
    peer.introduce()
    invite = peer.unfit()
    peer.send(invite)
    final = next(_finals(peer))
    peer.send(cancel_for(invite))
    for response in peer.responses():
        if response.cseq.method == "CANCEL" and response.status == 481:
            raise NotApplicable(STATELESS)
        if response.cseq.method == "CANCEL":
            expect(response, 200)
            break
        expect_equal("status", final.status, response.status)


@should("RFC 3261 §9.2", "same-to-tag")
def cancel_has_the_tag_of_its_invite(peer: SipPeer) -> None:
    """The response to CANCEL has the To tag of the one to its INVITE (§9.2)."""
    peer.introduce()
    invite = peer.unfit()
    peer.send(invite)
    final = next(_finals(peer))
    peer.send(cancel_for(invite))
    cancelled = next(each for each in peer.responses() if each.cseq.method == "CANCEL")
    expect_equal("To tag", final.to.tag, cancelled.to.tag)


@should("RFC 3261 §9.2", "487-for-the-invite", alone=True)
def cancelled_invite_has_487(peer: SipPeer) -> None:
    """CANCEL of an INVITE that is not answered ends it with 487 (§9.2)."""
    invite = peer.invite()
    peer.send(invite)
    if (first := next(peer.responses())).status >= 200:
        peer.settle(invite, first)
        raise NotApplicable(f"the target answers at once: {said(first)}")
    peer.send(cancel_for(invite))
    final = next(each for each in _finals(peer) if each.cseq.method == "INVITE")
    peer.settle(invite, final)
    if final.status < 300:
        raise NotApplicable("the target answered before the CANCEL")
    expect(final, 487)


@should("RFC 3261 §8.2.2.2", "482-for-a-copy", alone=True)
def merged_request_has_482(peer: SipPeer) -> None:
    """An INVITE that arrives again by another path has 482 (§8.2.2.2)."""
    invite = peer.invite()
    other = changed(invite, "Via", str(invite.via).replace("z9hG4bK", "z9hG4bK-2-"))
    peer.send(invite)
    peer.send(other)
    found = {}
    for response in _finals(peer):
        sent = other if response.via.branch == other.via.branch else invite
        peer.settle(sent, response)
        found[sent.via.branch] = response
        if len(found) == 2:
            break
    expect(found[other.via.branch], 482)


def _repeated(peer: SipPeer, count: int) -> list[tuple[int, float]]:
    """Status and time of a refusal and its repeats; NotApplicable where it is sent once."""
    found: list[tuple[int, float]] = []
    with at_most(PATIENCE):
        for response in _finals(peer):
            found.append((response.status, time.monotonic()))
            if len(found) == count:
                return found
    if len(found) == 1:
        raise NotApplicable(STATELESS)
    raise Unmet(f"{count} times the same refusal", f"{len(found)} in {PATIENCE} s")


def _finals(peer: SipPeer) -> Iterator[Response]:
    return (response for response in peer.responses() if response.status >= 200)
