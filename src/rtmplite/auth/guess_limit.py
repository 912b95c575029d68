"""Limits how fast one host may guess passwords.

Own design: a host has some guesses at once and then one every few seconds; before that no proof
from it is checked, right or wrong.  From a host where a user has given the right password lately,
only wrong passwords for that user count, so that one client cannot lock out others behind the same
address.

    >>> guesses = Guesses()
    >>> for _ in range(BURST): guesses.failed("192.0.2.7", "bob", now=0.0)
    >>> guesses.wait("192.0.2.7", "ann", now=0.0), guesses.wait("192.0.2.8", "bob", now=0.0)
    (10.0, 0.0)
"""

from collections import OrderedDict
from typing import Final

from rtmplite.limits.rate_limit_key import rate_limit_key

BURST: Final = 10  # guesses at once, and then
EVERY: Final = 10.0  # s for another
USER_SECONDS: Final = 86400.0  # for so long a host counts as that of a user with a right password
MAX_HOSTS: Final = 10_000  # to remember


class Guesses:
    """The recent wrong passwords of each host."""

    def __init__(self) -> None:
        self._until: OrderedDict[tuple[str, ...], float] = OrderedDict()
        self._users: OrderedDict[tuple[str, ...], float] = OrderedDict()

    def wait(self, address: str, user: str, now: float) -> float:
        """Return the seconds until the next guess may be checked, 0 for at once."""
        until = self._until.get(self._key(address, user, now), now)
        return max(0.0, until - now - (BURST - 1) * EVERY)

    def failed(self, address: str, user: str, now: float) -> None:
        """Count a wrong password."""
        key = self._key(address, user, now)
        _put(self._until, key, max(self._until.get(key, now), now) + EVERY)

    def succeeded(self, address: str, user: str, now: float) -> None:
        """Note a right password."""
        _put(self._users, (rate_limit_key(address), user), now)

    def _key(self, address: str, user: str, now: float) -> tuple[str, ...]:
        host = rate_limit_key(address)
        proved = self._users.get((host, user))
        return (host, user) if proved is not None and now - proved < USER_SECONDS else (host,)


def _put(table: OrderedDict[tuple[str, ...], float], key: tuple[str, ...], value: float) -> None:
    table[key] = value
    table.move_to_end(key)
    if len(table) > MAX_HOSTS:
        table.popitem(last=False)
