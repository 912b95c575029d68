"""Cases about checks that are right, and the answers to them.

Implements RFC 8445 §7.3, from the side of a page.
"""

from functools import partial

from p2psip.nat.ice_credentials import ROLE_CONFLICT, IceType
from p2psip.nat.stun import StunMessage, StunType
from rtclab.conform.case import Cases, Unmet
from rtclab.conform.checks import expect_equal
from rtclab.conform.ice.peer import IcePeer, code, types

cases: Cases[IcePeer] = Cases()
_must = partial(cases.case, level="MUST", role="agent")
_PORTS = 4  # that a page may check from at the same time


@_must("RFC 8445 §7.3", "answers-at-once")
def check_is_answered(peer: IcePeer) -> None:
    """A check is answered by a success, before anything else is known of the page (§7.3)."""
    peer.succeed(peer.check())


@_must("RFC 8445 §7.3", "answers-at-once")
def answer_has_the_address_of_the_check(peer: IcePeer) -> None:
    """The answer has, in XOR-MAPPED-ADDRESS, where the check came from (§7.3)."""
    answer = peer.succeed(peer.check())
    if answer.get(StunType.XOR_MAPPED_ADDRESS) is None:
        raise Unmet("XOR-MAPPED-ADDRESS", str(types(answer.attributes)))
    expect_equal("the address", peer.socket.getsockname()[:2], answer.mapped_address())


@_must("RFC 8445 §7.3", "answers-at-once")
def all_ports_of_a_page_are_answered(peer: IcePeer) -> None:
    """Checks from several ports are each answered, with the address of each (§7.3)."""
    for port in [peer.port() for _ in range(_PORTS)]:
        answer = peer.succeed(peer.check(), port)
        expect_equal("the address", port.getsockname()[:2], answer.mapped_address())


@_must("RFC 8445 §7.3", "responses-are-authenticated")
def answer_is_signed(peer: IcePeer) -> None:
    """The answer is signed with the password of the target (§7.3)."""
    _expect_signature(peer, peer.succeed(peer.check()))


def _expect_signature(peer: IcePeer, answer: StunMessage) -> None:
    if not answer.integrity_holds(peer.password.encode()):
        raise Unmet("the right MESSAGE-INTEGRITY", str(types(answer.attributes)))


@_must("RFC 8445 §7.3", "fingerprint-is-used")
def answer_has_a_fingerprint_of_stun(peer: IcePeer) -> None:
    """The answer has the right FINGERPRINT (§7.3)."""
    answer = peer.succeed(peer.check())
    if not answer.fingerprint_holds():
        raise Unmet("the right FINGERPRINT", str(types(answer.attributes)))


@_must("RFC 8489 §14.7", "fingerprint-last")
def fingerprint_is_the_last(peer: IcePeer) -> None:
    """FINGERPRINT is the last attribute of the answer (RFC 8489 §14.7)."""
    found = types(peer.succeed(peer.check()).attributes)
    expect_equal("the last attribute", int(StunType.FINGERPRINT), found[-1] if found else 0)


@_must("RFC 8489 §5", "same-transaction-id")
def answer_has_the_transaction_of_the_check(peer: IcePeer) -> None:
    """The answer has the transaction ID of its check (RFC 8489 §5)."""
    check = peer.check()
    expect_equal("the transaction", check[8:20].hex(), peer.ask(check).transaction_id.hex())


@_must("RFC 8489 §6.3.1", "repeats-are-equal")
def repeated_check_has_the_same_answer(peer: IcePeer) -> None:
    """A check that comes again has the same answer again (RFC 8489 §6.3.1)."""
    check = peer.check()
    first, again = peer.succeed(check), peer.succeed(check)
    expect_equal("the address", first.mapped_address(), again.mapped_address())
    expect_equal("the transaction", first.transaction_id, again.transaction_id)


@_must("RFC 8445 §8.2", "nomination-is-accepted")
def nomination_is_answered(peer: IcePeer) -> None:
    """A check with USE-CANDIDATE is answered by a success (§8.2)."""
    peer.succeed(peer.check((IceType.USE_CANDIDATE, b"")))


@_must("RFC 8445 §8.2", "nomination-is-accepted")
def nomination_may_follow_a_check(peer: IcePeer) -> None:
    """A nomination is answered where a check without one has been before (§8.2)."""
    peer.succeed(peer.check())
    peer.succeed(peer.check((IceType.USE_CANDIDATE, b"")))


@_must("RFC 8445 §8.2", "nomination-is-accepted")
def first_check_may_nominate_another_port(peer: IcePeer) -> None:
    """A page may nominate another port than that which it has checked first (§8.2)."""
    peer.succeed(peer.check())
    peer.succeed(peer.check((IceType.USE_CANDIDATE, b"")), peer.port())


@_must("RFC 7675 §5.1", "answers-give-consent")
def consent_is_given_again_and_again(peer: IcePeer) -> None:
    """Checks behind a nomination are each answered and signed (RFC 7675 §5.1)."""
    peer.succeed(peer.check((IceType.USE_CANDIDATE, b"")))
    for _ in range(3):
        _expect_signature(peer, peer.succeed(peer.check()))


@_must("RFC 8445 §7.3.1.1", "larger-tie-breaker-controls")
def controlled_page_with_a_large_tie_breaker_has_487(peer: IcePeer) -> None:
    """A page that is controlled, with the larger tie-breaker, is told to control (§7.3.1.1)."""
    _expect_conflict(peer)


@_must("RFC 8445 §7.3", "responses-are-authenticated")
def conflict_is_signed(peer: IcePeer) -> None:
    """The answer to a page in the same role is signed (§7.3)."""
    _expect_signature(peer, _expect_conflict(peer))


@_must("RFC 8445 §7.3.1.1", "larger-tie-breaker-controls")
def right_role_is_answered_after_a_conflict(peer: IcePeer) -> None:
    """A page that controls after a 487 is answered (§7.3.1.1)."""
    _expect_conflict(peer)
    peer.succeed(peer.check())


def _expect_conflict(peer: IcePeer) -> StunMessage:
    attributes = [e for e in peer.attributes() if e[0] != IceType.ICE_CONTROLLING]
    attributes.append((IceType.ICE_CONTROLLED, b"\xff" * 8))
    answer = peer.ask(peer.check(attributes=attributes))
    expect_equal("the error", ROLE_CONFLICT, code(answer))
    return answer
