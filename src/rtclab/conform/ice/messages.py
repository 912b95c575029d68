"""Cases about the octets of STUN messages, and datagrams that are none.

Implements RFC 8489 §5 and §14, from the side of a page.
"""

import os
from functools import partial

from p2psip.nat.ice_credentials import IceType
from p2psip.nat.stun import StunType
from rtclab.conform.case import Cases
from rtclab.conform.ice.peer import IcePeer
from rtclab.conform.ice.signing import bare, fingerprinted, sealed

cases: Cases[IcePeer] = Cases()
_must = partial(cases.case, level="MUST", role="agent")
_should = partial(cases.case, level="SHOULD", role="agent")
_may = partial(cases.case, level="MAY", role="agent")


@_must("RFC 8489 §5", "magic-cookie")
def other_cookie_has_no_answer(peer: IcePeer) -> None:
    """A message with another second word is no STUN of ICE, and has no answer (§5)."""
    check = bare(peer.check())
    peer.silent(sealed(check[:4] + b"\x21\x12\xa4\x43" + check[8:], peer.password))


@_must("RFC 8489 §5", "length-without-header")
def longer_length_has_no_answer(peer: IcePeer) -> None:
    """A message that says it is longer than its datagram has no answer (§5)."""
    check = peer.check()
    peer.silent(check[:2] + (len(check) - 16).to_bytes(2, "big") + check[4:])


@_must("RFC 8489 §5", "length-without-header")
def cut_message_has_no_answer(peer: IcePeer) -> None:
    """A message that was cut has no answer (§5)."""
    peer.silent(peer.check()[:-5])


@_must("RFC 8489 §5", "top-bits-zero")
def set_top_bit_has_no_answer(peer: IcePeer) -> None:
    """A message whose first bit is set is no STUN (§5)."""
    check = peer.check()
    peer.silent(bytes((check[0] | 0x80,)) + check[1:])


@_must("RFC 7983 §7", "others-are-dropped")
def datagram_of_no_range_has_no_answer(peer: IcePeer) -> None:
    """Datagrams whose first octet is in no range are dropped (RFC 7983 §7)."""
    for first in (4, 15, 240, 255):
        peer.silent(bytes((first,)) + os.urandom(40))


@_must("RFC 7983 §7", "others-are-dropped")
def empty_datagram_has_no_answer(peer: IcePeer) -> None:
    """An empty datagram is dropped, and no harm (RFC 7983 §7)."""
    peer.silent(b"")


@_must("RFC 8489 §14", "length-before-padding")
def attribute_beyond_the_end_has_no_answer(peer: IcePeer) -> None:
    """A message with an attribute that is longer than the rest has no answer (§14)."""
    check = bare(peer.check())
    peer.silent(sealed(check + b"\x80\x22\x10\x00conf", peer.password))


@_must("RFC 8489 §14", "length-before-padding")
def attribute_may_have_any_length(peer: IcePeer) -> None:
    """Attributes of one to four octets, padded to four, are read (§14)."""
    more = [(int(StunType.SOFTWARE), b"c" * length) for length in (1, 2, 3, 4)]
    peer.succeed(peer.check(*more))


@_must("RFC 8489 §14", "padding-zero")
def padding_may_have_any_value(peer: IcePeer) -> None:
    """Padding that is not zero is not looked at (§14)."""
    check = bare(peer.check((int(StunType.SOFTWARE), b"conform")))
    peer.succeed(sealed(check[:-1] + b"\x55", peer.password))


@_must("RFC 8489 §9", "ends-at-sha1")
def attributes_behind_the_signature_are_ignored(peer: IcePeer) -> None:
    """An unknown attribute behind MESSAGE-INTEGRITY, which anybody may add, is ignored (§9)."""
    peer.succeed(fingerprinted(peer.check()[:-8] + b"\x7c\x01\x00\x00"))


@_must("RFC 8489 §9", "ends-at-sha1")
def role_behind_the_signature_is_ignored(peer: IcePeer) -> None:
    """A role behind MESSAGE-INTEGRITY is ignored: ICE-CONTROLLED there is no conflict (§9)."""
    forged = IceType.ICE_CONTROLLED.to_bytes(2, "big") + b"\x00\x08" + b"\xff" * 8
    peer.succeed(fingerprinted(peer.check()[:-8] + forged))


@_may("RFC 8489 §14", "first-counts")
def first_of_two_names_counts(peer: IcePeer) -> None:
    """Of two attributes USERNAME the first counts (§14)."""
    peer.succeed(peer.check((int(StunType.USERNAME), b"conform:conform")))


@_must("RFC 8489 §6.3", "optional-ignored")
def unknown_optional_attribute_does_no_harm(peer: IcePeer) -> None:
    """An attribute that need not be understood is ignored (§6.3)."""
    peer.succeed(peer.check((0xC0DE, os.urandom(6))))


@_should("RFC 8489 §6.3", "unexpected-ignored")
def attribute_without_a_use_does_no_harm(peer: IcePeer) -> None:
    """An attribute that is known, and has no use in a check, is ignored (§6.3)."""
    peer.succeed(peer.check((int(StunType.REALM), b"conform")))
