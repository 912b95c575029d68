"""The user name and password of one side of ICE, and the checks that are signed with them.

Implements RFC 8445 §7.3 and §7.2.4 for agents of both kinds.
"""

import struct
from base64 import b64encode
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, Self

from p2psip.nat.stun import BINDING, StunClass, StunMessage, StunType, write_address, write_error

UFRAG_OCTETS: Final = 6  # drawn, which give 48 bits; 24 are asked for. Source: §5.3
PASSWORD_OCTETS: Final = 18  # 144 bits; 128 are asked for. Source: §5.3
ROLE_CONFLICT: Final = 487  # Source: §7.3.1.1
UNAUTHENTICATED: Final = 401  # Source: RFC 8489 §14.8
UNKNOWN_ATTRIBUTE: Final = 420  # Source: RFC 8489 §14.8
MAX_UNKNOWN: Final = 8  # types named in a 420, so that it is no longer than what asked for it

HostPort = tuple[str, int]


class IceType(IntEnum):
    """The attributes that ICE adds to STUN: §7.1."""

    PRIORITY = 0x0024
    USE_CANDIDATE = 0x0025
    ICE_CONTROLLED = 0x8029
    ICE_CONTROLLING = 0x802A


_KNOWN: Final = (*StunType, *IceType)


@dataclass(frozen=True, slots=True)
class IceCredentials:
    """What one side is known by: §5.3."""

    ufrag: str
    password: str

    @classmethod
    def draw(cls, random: Callable[[int], bytes]) -> Self:
        """Draw new ones: §5.3."""
        # §5.3 [credentials-are-random]
        # RFC 8839 §5.4 [ufrag-of-32-at-most] [drawn-at-the-beginning]
        ufrag = b64encode(random(UFRAG_OCTETS)).decode()
        return cls(ufrag, b64encode(random(PASSWORD_OCTETS)).decode())

    @property
    def key(self) -> bytes:
        """What messages are signed with: §7.2.2."""
        return self.password.encode()

    def names(self, request: StunMessage) -> bool:
        """Whether a message is a check for us, whoever sent it: §7.3.

        Own design: a stranger gets no answer, where an error would tell it that a server is here,
        and could be aimed at a third party.
        """
        name = request.get(StunType.USERNAME) or b""
        is_ours = name.partition(b":")[0] == self.ufrag.encode()
        is_request = request.kind is StunClass.REQUEST and request.method == BINDING
        # §7.3 [username-of-two-values] [fingerprint-is-used]
        return is_ours and is_request and b":" in name and request.fingerprint_holds()

    def refusal(self, request: StunMessage) -> bytes | None:
        """The error that a check for us deserves, None for one that is right: §7.3."""
        if not request.integrity_holds(self.key):  # §7.3 [requests-are-authenticated]
            return self.refuse(request, UNAUTHENTICATED, signed=False)
        unknown = request.unknown(_KNOWN)[:MAX_UNKNOWN]
        if unknown:
            listed = struct.pack(f"!{len(unknown)}H", *unknown)
            more = ((StunType.UNKNOWN_ATTRIBUTES, listed),)
            return self.refuse(request, UNKNOWN_ATTRIBUTE, more)
        return None

    def answer(self, request: StunMessage, source: HostPort) -> bytes:
        """Answer a check with the address that it came from: §7.3."""
        mapped = (StunType.XOR_MAPPED_ADDRESS, write_address(source, request.transaction_id))
        # §7.3 [responses-are-authenticated] [answers-at-once]
        return StunMessage.write(
            StunClass.SUCCESS, BINDING, request.transaction_id, (mapped,),
            key=self.key, fingerprint=True,
        ).data  # fmt: skip

    def refuse(
        self,
        request: StunMessage,
        code: int,
        more: tuple[tuple[StunType, bytes], ...] = (),
        *,
        signed: bool = True,
    ) -> bytes:
        """Answer a check with an error: §7.3."""
        attributes = ((StunType.ERROR_CODE, write_error(code, "")), *more)
        return StunMessage.write(
            StunClass.ERROR, BINDING, request.transaction_id, attributes,
            key=self.key if signed else None, fingerprint=True,
        ).data  # fmt: skip

    def check(
        self, ours: str, transaction_id: bytes, attributes: Iterable[tuple[int, bytes]]
    ) -> StunMessage:
        """Make a check for the side that these are of, from the one named `ours`: §7.2.4."""
        name = (StunType.USERNAME, f"{self.ufrag}:{ours}".encode())
        # §7.2.2 [short-term-credentials], §7.2.4 [checks-have-a-fingerprint]
        return StunMessage.write(
            StunClass.REQUEST, BINDING, transaction_id, (name, *attributes),
            key=self.key, fingerprint=True,
        )  # fmt: skip
