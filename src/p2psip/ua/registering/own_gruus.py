"""The GRUUs of a user agent, as its registrar gives them.

Implements RFC 5627 §4.2 and §4.4.
"""

from typing import Final

from p2psip.errors import RemoteError
from p2psip.sip.address import Address
from p2psip.sip.message import Response
from p2psip.sip.uri import Uri

TIMED_OUT: Final = 32  # s, 64*T1: a REGISTER has its answer then, or none: §4.2


class OwnGruus:
    """The GRUUs of one registration: §4.2.  `instance` is the URN of the device.

    Its Call-ID never changes, so that a temporary GRUU is valid until the registration lapses.
    """

    def __init__(self, instance: str) -> None:
        self._instance = instance.lower()
        self._public: Uri | None = None
        self._temporary: Uri | None = None
        self._lapses_at = 0.0

    def learn(self, response: Response, lapses_at: float) -> None:
        """Take those beside our own contact of a 200, if there are any: §4.2."""
        self._public = self._temporary = None  # §4.2 [either-both-or-none] [public-may-change]
        for contact in response.contacts:
            if contact.instance == self._instance:
                self._public = _gruu(contact, "pub-gruu") or self._public
                self._temporary = _gruu(contact, "temp-gruu") or self._temporary
        self._lapses_at = lapses_at

    def lapse(self) -> None:
        """Forget them, since the registration ends: §4.4."""
        self._public = self._temporary = None

    def usable(self, now: float, *, private: bool) -> Uri | None:
        """The one for a Contact, None if there is none; a `private` one hides the user: §4.4."""
        # §4.4 [active-registration] [none-of-a-lapsed-one]
        if now >= self._lapses_at:
            return None
        # §4.4 [anonymous-is-temporary]
        return self._temporary if private else self._public or self._temporary

    def refresh_after(self, granted: int, usual: float) -> float:
        """How many seconds until the next REGISTER, which must come before it lapses: §4.2."""
        if self._temporary is None:
            return usual
        # §4.2 [refreshed-in-time] [halfway-if-short]
        return min(usual, granted - TIMED_OUT if granted > 2 * TIMED_OUT else granted / 2)


def _gruu(contact: Address, name: str) -> Uri | None:
    """A GRUU that a contact has, exactly as it is: §4.2."""
    try:
        uri = Uri.parse(contact.param(name) or "")
    except RemoteError:
        return None
    return uri if uri.is_gruu else None
