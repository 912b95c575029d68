"""How fast passwords may be guessed, by one host and for one account.

Own design: a wrong password makes its sender wait, not the owner of the account.  A host may guess
`BURST` times at once, then once in `EVERY` seconds; so may, for one account, all hosts together
that have not lately proved its password.  A host that has proved it is judged by its own wrong
passwords for that account alone, so that strangers cannot lock the owner out.

    >>> guesses = GuessLimit()
    >>> for _ in range(BURST): guesses.failed("192.0.2.7", "bob", now=0.0)
    >>> guesses.wait("192.0.2.7", "ann", now=0.0), guesses.wait("192.0.2.8", "bob", now=0.0)
    (10.0, 0.0)

During the wait no proof is examined, right or wrong, so that the answers tell nothing of it.
"""

from collections import OrderedDict
from typing import Final

BURST: Final = 10  # guesses of a host at once, and then
EVERY: Final = 10.0  # s for another
BURST_OF_ALL: Final = 50  # of strangers, for one account
EVERY_OF_ALL: Final = 2.0  # s
OWNER_SECONDS: Final = 86400.0  # how long a host counts as its user's that has proved it
MAX_KEYS: Final = 20_000  # hosts, and accounts, to remember


class GuessLimit:
    """Counts recent wrong passwords.  `host` is as `rate_limit_key` gives it."""

    def __init__(self) -> None:
        self._hosts = _GuessRate(BURST, EVERY)
        self._accounts = _GuessRate(BURST_OF_ALL, EVERY_OF_ALL)
        self._owners: OrderedDict[tuple[str, str], float] = OrderedDict()

    def wait(self, host: str, account: str, now: float) -> float:
        """How many seconds the next guess has to wait; 0 if it may be judged now."""
        if self._is_owner(host, account, now):
            return self._hosts.wait((host, account), now)
        return max(self._hosts.wait((host,), now), self._accounts.wait((account,), now))

    def failed(self, host: str, account: str, now: float) -> None:
        """Count a wrong password."""
        if self._is_owner(host, account, now):
            self._hosts.add((host, account), now)
        else:
            self._hosts.add((host,), now)
            self._accounts.add((account,), now)

    def succeeded(self, host: str, account: str, now: float) -> None:
        """Note that the right password came from this host: it is the owner's from now on."""
        self._owners[host, account] = now
        self._owners.move_to_end((host, account))
        if len(self._owners) > MAX_KEYS:
            self._owners.popitem(last=False)

    def _is_owner(self, host: str, account: str, now: float) -> bool:
        at = self._owners.get((host, account))
        return at is not None and now - at < OWNER_SECONDS


class _GuessRate:
    """For each key, the time at which its guesses so far are paid off."""

    def __init__(self, burst: int, every: float) -> None:
        self._grace, self._every = (burst - 1) * every, every
        self._until: OrderedDict[tuple[str, ...], float] = OrderedDict()

    def wait(self, key: tuple[str, ...], now: float) -> float:
        return max(0.0, self._until.get(key, now) - now - self._grace)

    def add(self, key: tuple[str, ...], now: float) -> None:
        self._until[key] = max(self._until.get(key, now), now) + self._every
        self._until.move_to_end(key)
        if len(self._until) > MAX_KEYS:
            self._until.popitem(last=False)
