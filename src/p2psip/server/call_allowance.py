"""Limits of each user: calls at a time, calls and messages an hour, and permitted targets.

Own design: no specification has such limits.  They bound what one stolen password can cost, since
many calls and calls to far targets make the bill.  A refusal is 403, which tells the phone not to
try again (RFC 3261 §21.4.4); after a 503 it would avoid this server altogether, for all its calls
and its registration (RFC 3261 §21.5.4).

    >>> allowance = Allowance(at_once=1, an_hour=2, targets=["+49*@trunk.example"])
    >>> first = allowance.begin("alice@home", now=0.0)
    >>> allowance.begin("alice@home", now=1.0)
    Traceback (most recent call last):
    p2psip.errors.RemoteError: 403 Too Many Calls at Once
    >>> allowance.end(first)
    >>> allowance.may_reach("+491234", ["trunk.example"]), allowance.may_reach("+1900", ["else"])
    (True, False)
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Final

from p2psip.errors import RemoteError

HOUR: Final = 3600.0  # s
SLICES: Final = 12  # of an hour, each counted as a whole
LONGEST: Final = 4 * HOUR  # s after which a call whose end was missed is counted no longer
MAX_USERS: Final = 10_000
BEGINS, ENDS, WRITES, GOES_ON = "begins", "ends", "writes", "goes on"  # what processes tell
LOOKS: Final = 100  # users to examine for one to forget, before a new one is refused


class Ticket:
    """One counted call, until `Allowance.end`."""

    __slots__ = ("at", "user")

    def __init__(self, user: str, at: float) -> None:
        self.user, self.at = user, at


class Window:
    """Counts the calls of the last hour in constant memory, the oldest of `SLICES` as a whole."""

    __slots__ = ("_counts", "_newest")

    def __init__(self) -> None:
        self._counts = [0] * (SLICES + 1)
        self._newest = 0

    def count(self, now: float) -> int:
        """The number of calls in the last hour."""
        slice_ = int(now // (HOUR / SLICES))
        for passed in range(max(self._newest + 1, slice_ - SLICES), slice_ + 1):
            self._counts[passed % len(self._counts)] = 0
        self._newest = max(self._newest, slice_)
        return sum(self._counts)

    def add(self, now: float) -> None:
        """Count one more call; `count` must have been called with the same time."""
        self._counts[int(now // (HOUR / SLICES)) % len(self._counts)] += 1


class _Use:
    """The open calls and the last hour of one user."""

    __slots__ = ("messages", "tickets", "window")

    def __init__(self) -> None:
        self.tickets: dict[Ticket, None] = {}
        self.window, self.messages = Window(), Window()

    def open_calls(self, now: float) -> int:
        """The number of open calls; those that are older than `LONGEST` are dropped."""
        while (first := next(iter(self.tickets), None)) and first.at + LONGEST <= now:
            del self.tickets[first]
        return len(self.tickets)


class Allowance:
    """Counts the calls of all users, and decides whether they may call a target elsewhere.

    `at_once`, `an_hour` and `messages`, an hour as well, are for each user, 0 for no limit;
    `targets` are patterns of user@host, as in file names, None if there is no limit.  A user is any
    string that the caller chooses.

    Several processes may count together: `tell(what, user)` is called for what is counted here, and
    `count_elsewhere` counts what another process has told.
    """

    def __init__(
        self,
        *,
        at_once: int = 0,
        an_hour: int = 0,
        messages: int = 0,
        targets: Sequence[str] | None = None,
    ) -> None:
        self._at_once, self._an_hour, self._messages = at_once, an_hour, messages
        self._targets = None if targets is None else tuple(each.lower() for each in targets)
        self._uses: OrderedDict[str, _Use] = OrderedDict()
        self._elsewhere: dict[int, dict[str, list[Ticket]]] = {}
        self.tell: Callable[[str, str], object] = lambda what, user: None

    def __len__(self) -> int:
        return len(self._uses)

    @property
    def counts(self) -> bool:
        """Whether the number of calls is limited."""
        return bool(self._at_once or self._an_hour)

    def begin(self, user: str, now: float) -> Ticket:
        """Count a call that begins, also one that fails later.  Raises RemoteError, 403."""
        ticket = Ticket(user, now)
        if not self.counts:
            return ticket
        use = self._use(user, now)
        if self._at_once and use.open_calls(now) >= self._at_once:
            raise RemoteError("Too Many Calls at Once", 403)
        if self._an_hour and use.window.count(now) >= self._an_hour:
            raise RemoteError("Too Many Calls an Hour", 403)
        use.window.count(now)
        use.window.add(now)
        use.tickets[ticket] = None
        self.tell(BEGINS, user)
        return ticket

    def end(self, ticket: Ticket | None) -> None:
        """Note that a call is over.  Idempotent."""
        use = self._uses.get(ticket.user) if ticket is not None else None
        if ticket is not None and use is not None and ticket in use.tickets:
            del use.tickets[ticket]
            self.tell(ENDS, ticket.user)

    def message(self, user: str, now: float) -> None:
        """Count a message outside of calls.  Raises RemoteError, 403."""
        if not self._messages:
            return
        window = self._use(user, now).messages
        if window.count(now) >= self._messages:
            raise RemoteError("Too Many Messages an Hour", 403)
        window.add(now)
        self.tell(WRITES, user)

    def open_calls(self) -> Iterator[str]:
        """The user of each open call that is counted here, once for each."""
        elsewhere = {
            ticket
            for users in self._elsewhere.values()
            for tickets in users.values()
            for ticket in tickets
        }
        for user, use in self._uses.items():
            yield from (user for ticket in use.tickets if ticket not in elsewhere)

    def count_elsewhere(self, process: int, what: str, user: str, now: float) -> None:
        """Count what another process has told, beyond any limit; `GOES_ON` is a call from before.

        Own design: two that admit a call at the same moment may exceed a limit by one.
        """
        if not (self.counts if what != WRITES else self._messages):
            return
        if what == ENDS:
            users = self._elsewhere.get(process, {})
            if tickets := users.get(user):
                self._drop(user, tickets.pop())
            if not tickets:
                users.pop(user, None)
            return
        try:
            use = self._use(user, now)
        except RemoteError:  # too many users: not counted
            return
        window = use.messages if what == WRITES else use.window
        if what != GOES_ON:
            window.count(now)
            window.add(now)
        if what in (BEGINS, GOES_ON):
            ticket = Ticket(user, now)
            use.tickets[ticket] = None
            self._elsewhere.setdefault(process, {}).setdefault(user, []).append(ticket)

    def lost(self, process: int) -> None:
        """Count the open calls of a process that has ended no longer."""
        for user, tickets in self._elsewhere.pop(process, {}).items():
            for ticket in tickets:
                self._drop(user, ticket)

    def _drop(self, user: str, ticket: Ticket) -> None:
        if (use := self._uses.get(user)) is not None:
            use.tickets.pop(ticket, None)

    def may_reach(self, user: str, hosts: Iterable[str]) -> bool:
        """Whether a pattern allows `user` at every one of the `hosts` on the way."""
        if self._targets is None:
            return True
        return all(self._is_allowed(f"{user}@{host}".lower()) for host in hosts)

    def _is_allowed(self, target: str) -> bool:
        return any(fnmatchcase(target, pattern) for pattern in self._targets or ())

    def _use(self, user: str, now: float) -> _Use:
        use = self._uses.get(user)
        if use is None:
            if len(self._uses) >= MAX_USERS:
                self._forget_one(now)
            use = self._uses[user] = _Use()
        self._uses.move_to_end(user)
        return use

    def _forget_one(self, now: float) -> None:
        """Make room: forget the user who called longest ago and is in no call."""
        for _ in range(LOOKS):
            user, use = next(iter(self._uses.items()))
            if not use.open_calls(now):
                del self._uses[user]
                return
            self._uses.move_to_end(user)
        raise RemoteError("Too Many Callers", 403)
