"""Rate limiter in constant memory, so that no flood can fill it.

Own design: RFC 7016 §3.4 limits the rate to one endpoint, and §5 asks that an endpoint be no
attacker's amplifier.  A counter for each address would be state for each hello, so addresses share
a fixed number of counters.  Which addresses share one is secret and changes often; without a flood
hardly any do, and a client that shares a counter with a flood has another one when it asks again
a little later.
"""

from array import array
from hashlib import blake2b
from typing import Final

SLOTS: Final = 8192
KEY_BYTES: Final = 16
TURN: Final = 8  # intervals until every name has another counter


class Limiter:
    """Allows each name `amount` in `seconds`; `secret` has `KEY_BYTES`, known to nobody."""

    def __init__(self, secret: bytes, amount: float, seconds: float, slots: int = SLOTS) -> None:
        self._secret, self._amount, self._seconds = secret, amount, seconds
        self._slots = slots
        self._since = array("d", bytes(8 * slots))  # when a counter's interval began
        self._spent = array("d", bytes(8 * slots))

    def allows(self, name: str | bytes, now: float, cost: float = 1.0) -> bool:
        """Count `cost` if `name` may spend it; a large one is paid off in later intervals."""
        data = name.encode() if isinstance(name, str) else name
        turn = int(now / (TURN * self._seconds)).to_bytes(8, signed=True)
        digest = blake2b(turn + data, key=self._secret, digest_size=4).digest()
        slot = int.from_bytes(digest) % self._slots
        intervals = (now - self._since[slot]) // self._seconds
        if intervals >= 1:
            owed = self._spent[slot] - intervals * self._amount
            self._spent[slot] = max(0.0, owed)
            self._since[slot] = self._since[slot] + intervals * self._seconds if owed > 0 else now
        spent = self._spent[slot]
        if spent and spent + cost > self._amount:
            return False
        self._spent[slot] = spent + cost
        return True
