"""Cases about checks that are forged, wrong or not understood.

Implements RFC 8445 §7.3 and RFC 8489 §6.3, from the side of a page.
"""

import struct
from collections.abc import Callable
from functools import partial

from p2psip.nat.ice_credentials import UNKNOWN_ATTRIBUTE
from p2psip.nat.stun import StunType
from rtclab.conform.case import Cases, Unmet
from rtclab.conform.checks import expect_equal
from rtclab.conform.ice.peer import IcePeer, code, credentials
from rtclab.conform.ice.signing import bare, fingerprinted
from rtclab.conform.web.offers import UFRAG

cases: Cases[IcePeer] = Cases()
_must = partial(cases.case, level="MUST", role="agent")
_should = partial(cases.case, level="SHOULD", role="agent")
_UNKNOWN, _OTHER = 0x7C01, 0x7C02  # types that nobody has assigned, which demand to be understood


@_must("RFC 8445 §7.3", "requests-are-authenticated")
def wrong_password_has_no_success(peer: IcePeer) -> None:
    """A check with another password does not succeed (§7.3)."""
    peer.fail(peer.check(password="conformconformconform24"))


@_must("RFC 8445 §7.3", "requests-are-authenticated")
def unsigned_check_has_no_success(peer: IcePeer) -> None:
    """A check without MESSAGE-INTEGRITY does not succeed (§7.3)."""
    peer.fail(fingerprinted(bare(peer.check())))


@_must("RFC 8445 §7.3", "requests-are-authenticated")
def changed_check_has_no_success(peer: IcePeer) -> None:
    """A check that was changed on the way, with the right FINGERPRINT, does not succeed (§7.3)."""
    signed = peer.check()
    at = signed.index(struct.pack("!HH", StunType.MESSAGE_INTEGRITY, 20)) + 4
    raw = bytearray(signed[:-8])
    raw[at] ^= 1
    peer.fail(fingerprinted(bytes(raw)))


@_must("RFC 8445 §7.3", "requests-are-authenticated")
def password_of_another_session_has_no_success(peer: IcePeer) -> None:
    """The password of one session is none for the user name of another (§7.3)."""
    old = peer.password
    peer.web.ask("DELETE", peer.session.url)
    peer.ufrag, peer.password = credentials(peer.web.begin())
    peer.fail(peer.check(password=old))


@_must("RFC 8445 §7.3", "username-of-two-values")
def unknown_user_has_no_success(peer: IcePeer) -> None:
    """A check for a user name that nobody was given does not succeed (§7.3)."""
    peer.fail(_named(peer, f"conformconform:{UFRAG}"))


@_must("RFC 8445 §7.3", "username-of-two-values")
def user_without_a_colon_has_no_success(peer: IcePeer) -> None:
    """A check with one user name, and no colon, does not succeed (§7.3)."""
    peer.fail(_named(peer, peer.ufrag))


@_must("RFC 8445 §7.3", "username-of-two-values")
def names_in_the_other_order_have_no_success(peer: IcePeer) -> None:
    """A check with the user names of an answer's direction does not succeed (§7.3)."""
    peer.fail(_named(peer, f"{UFRAG}:{peer.ufrag}"))


@_must("RFC 8445 §7.3", "username-of-two-values")
def user_name_has_its_case(peer: IcePeer) -> None:
    """A user name in the other case is another user name (§7.3)."""
    swapped = peer.ufrag.swapcase()
    if swapped != peer.ufrag:
        peer.fail(_named(peer, f"{swapped}:{UFRAG}"))


@_must("RFC 8445 §7.3", "username-of-two-values")
def beginning_of_a_user_name_has_no_success(peer: IcePeer) -> None:
    """A user name that lacks its last character is another user name (§7.3)."""
    peer.fail(_named(peer, f"{peer.ufrag[:-1]}:{UFRAG}"))


@_must("RFC 8445 §7.3", "username-of-two-values")
def check_without_a_user_has_no_success(peer: IcePeer) -> None:
    """A check without USERNAME does not succeed (§7.3)."""
    peer.fail(peer.check(attributes=peer.attributes()[1:]))


@_must("RFC 8445 §7.3", "fingerprint-is-used")
def wrong_fingerprint_has_no_answer(peer: IcePeer) -> None:
    """A check with a wrong FINGERPRINT is none (§7.3)."""
    check = peer.check()
    peer.silent(check[:-1] + bytes((check[-1] ^ 1,)))


@_should("RFC 8445 §7.3", "requests-are-authenticated")
def stranger_gets_no_more_than_it_sends(peer: IcePeer) -> None:
    """What answers a check that is not signed is no longer than that (§7.3)."""
    check = fingerprinted(bare(peer.check()))
    answer = peer.fail(check)
    if answer is not None and len(answer.data) > len(check):
        raise Unmet(f"{len(check)} octets at most", f"{len(answer.data)}")


@_must("RFC 8489 §6.3.1.1", "error-code")
def unknown_attribute_has_420(peer: IcePeer) -> None:
    """An attribute that demands to be understood, and is not, has 420 (RFC 8489 §6.3.1.1)."""
    expect_equal("the error", UNKNOWN_ATTRIBUTE, code(peer.ask(peer.check((_UNKNOWN, b"")))))


@_must("RFC 8489 §6.3.1.1", "420-names-them")
def error_names_the_unknown_attribute(peer: IcePeer) -> None:
    """A 420 has the type in UNKNOWN-ATTRIBUTES (RFC 8489 §6.3.1.1)."""
    _expect_unknown(peer, _UNKNOWN)


@_must("RFC 8489 §14.8", "420-names-them")
def error_names_all_unknown_attributes(peer: IcePeer) -> None:
    """A 420 has the types of two unknown attributes (RFC 8489 §14.8)."""
    _expect_unknown(peer, _UNKNOWN, _OTHER)


def _expect_unknown(peer: IcePeer, *kinds: int) -> None:
    answer = peer.ask(peer.check(*((kind, b"") for kind in kinds)))
    value = answer.get(StunType.UNKNOWN_ATTRIBUTES) or b""
    found = {each for (each,) in struct.iter_unpack("!H", value[: len(value) & ~1])}
    if not found >= set(kinds):
        raise Unmet(", ".join(hex(each) for each in kinds), value.hex() or "none")


@_must("RFC 8445 §7.3", "responses-are-authenticated")
def error_to_a_signed_check_is_signed(peer: IcePeer) -> None:
    """A 420 to a check that is signed is signed as well (§7.3)."""
    answer = peer.ask(peer.check((_UNKNOWN, b"")))
    if not answer.integrity_holds(peer.password.encode()):
        raise Unmet("the right MESSAGE-INTEGRITY", "another, or none")


@_must("RFC 8489 §14.8", "class-3-to-6")
def error_has_a_class_of_3_to_6(peer: IcePeer) -> None:
    """The hundreds of an error are 3 to 6 (RFC 8489 §14.8)."""
    _expect_error(peer, lambda value: 3 <= value[2] & 7 <= 6)


@_must("RFC 8489 §14.8", "number-0-to-99")
def error_has_a_number_below_100(peer: IcePeer) -> None:
    """The rest of an error is 0 to 99 (RFC 8489 §14.8)."""
    _expect_error(peer, lambda value: value[3] < 100)


@_should("RFC 8489 §14.8", "reserved-zero")
def reserved_bits_of_an_error_are_zero(peer: IcePeer) -> None:
    """The reserved bits of an error are zero (RFC 8489 §14.8)."""
    _expect_error(peer, lambda value: not (value[0] or value[1] or value[2] & 0xF8))


def _expect_error(peer: IcePeer, right: Callable[[bytes], bool]) -> None:
    value = peer.ask(peer.check((_UNKNOWN, b""))).get(StunType.ERROR_CODE) or b""
    if len(value) < 4 or not right(value):
        raise Unmet("an ERROR-CODE of the right form", value.hex() or "none")


def _named(peer: IcePeer, name: str) -> bytes:
    return peer.check(attributes=[(StunType.USERNAME, name.encode()), *peer.attributes()[1:]])
