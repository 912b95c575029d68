"""A STUN request until its response: repeated over UDP with growing gaps.

Implements RFC 8489 §6.2, and the long-term credentials of §9.2 as a client uses them.

    >>> from p2psip.nat.stun import BINDING
    >>> request = Message.write(Class.REQUEST, BINDING, bytes(12))
    >>> asked, times = ClientTransaction(request, now=0.0), []
    >>> while asked.tick(asked.deadline):
    ...     times.append(asked.deadline)
    >>> times, asked.failed
    ([1.5, 3.5, 7.5, 15.5, 31.5, 39.5], True)
"""

import binascii
from dataclasses import dataclass, field
from typing import Final

from p2psip.errors import RemoteError
from p2psip.nat.stun import Class, Message, StunAttribute, Type, long_term_key

RTO: Final = 0.5  # s, the first gap: §6.2.1 [rto-500-ms]
REQUESTS: Final = 7  # Rc, how many are sent in all: §6.2.1 [rc-7]
LAST_GAP: Final = 16  # Rm, of RTOs after the last one: §6.2.1 [rm-16]
RELIABLE: Final = 39.5  # s, Ti, the wait for a response over TCP: §6.2.2 [ti]
NONCE_COOKIE: Final = "obMatJos2"  # Source: §9.2, before four characters of features
PASSWORD_ALGORITHMS_BIT: Final = 0x80  # Source: §18.1, bit 0 of the first octet


class ClientTransaction:
    """One request and its repetitions: §6.2.1, or §6.2.2 where `reliable`.

    The owner sends `request.data` when it makes this, and again whenever `tick` is true.
    Times are in seconds.
    """

    def __init__(
        self, request: Message, now: float, *, reliable: bool = False, rto: float = RTO
    ) -> None:
        self.request, self.failed = request, False
        self._rto = rto
        self._left = 0 if reliable else REQUESTS - 1
        self._gap = RELIABLE if reliable else rto
        self.deadline = now + self._gap

    def tick(self, now: float) -> bool:
        """Take the time; tell whether to send the request again: §6.2.1."""
        if self.failed or now < self.deadline:
            return False
        if not self._left:  # §6.2.1 [gives-up]
            self.failed = True
            return False
        self._left -= 1
        self._gap *= 2  # §6.2.1 [gap-doubles]
        self.deadline = now + (self._gap if self._left else LAST_GAP * self._rto)
        return True

    def answers(self, response: Message) -> bool:
        """Tell whether a message is a response to this request: §6.3."""
        return (
            response.kind in (Class.SUCCESS, Class.ERROR)
            and response.method == self.request.method
            and response.transaction_id == self.request.transaction_id
        )


@dataclass(slots=True)
class LongTerm:
    """A user's name and password, and what the server asked to have them wrapped in: §9.2.

    `attributes` and `key` are for the next request; before a challenge both are empty.
    """

    username: str
    password: str = field(repr=False)
    realm: str = ""
    nonce: bytes = b""

    @property
    def attributes(self) -> tuple[StunAttribute, ...]:
        """List what every request carries after the first one: §9.2.3.2."""
        if not self.realm:  # §9.2.3.1 [first-request-bare]
            return ()
        return (
            StunAttribute(Type.USERNAME, self.username.encode()),
            StunAttribute(Type.REALM, self.realm.encode()),
            StunAttribute(Type.NONCE, self.nonce),
        )

    @property
    def key(self) -> bytes | None:
        """Hash the key that signs the request, if there was a challenge: §9.2.2."""
        return long_term_key(self.username, self.realm, self.password) if self.realm else None

    def challenged(self, response: Message) -> bool:
        """Learn realm and nonce of an error response; tell whether to ask again: §9.2.5.

        Raises RemoteError for a challenge without realm or nonce.
        """
        code, _ = response.error() or (0, "")
        if code not in (401, 438):
            return False
        realm, nonce = response.text(Type.REALM) or self.realm, response.get(Type.NONCE)
        if not realm or not nonce:
            raise RemoteError("a STUN challenge without REALM or NONCE")
        if _wants_algorithms(nonce) and response.get(Type.PASSWORD_ALGORITHMS) is None:
            return False  # somebody on the way took them out: §9.2.5 [bid-down]
        refused = code == 401 and self.realm == realm  # §9.2.5 [same-credentials-once]
        self.realm, self.nonce = realm, nonce
        return not refused


def _wants_algorithms(nonce: bytes) -> bool:
    """Tell whether the nonce cookie has the bit of password algorithms: §9.2."""
    cookie = nonce[:13].decode("latin-1")
    if not cookie.startswith(NONCE_COOKIE):
        return False
    try:
        features = binascii.a2b_base64(cookie[9:].encode(), strict_mode=True)
    except (binascii.Error, UnicodeEncodeError):
        return False
    return len(features) == 3 and bool(features[0] & PASSWORD_ALGORITHMS_BIT)
