"""What the other workers of this gateway have: names of streams, lines of clients, and phones.

Own design: each worker tells the others what it has, in messages that the bus carries.  So each can
judge alone whose a name is, and the first worker where a call goes.  The first one has the SIP
listeners and the phones' registrations; a Contact of another one has its number, and so have the
branches of its requests.  For a moment two workers may have one name; then the call goes to the one
with the publisher.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from p2psip.server.call_allowance import GOES_ON
from p2psip.sip.uri import Uri
from siprtmp.calls.access.admission import Holder

WORKER_PARAM: Final = "worker"  # in the Contacts of workers that do not have the listeners
MAX_HOSTS: Final = 10_000  # that have called of late
MAX_CALL_IDS: Final = 20_000  # of registrations

Message = dict[str, Any]
LineKey = tuple[str, str, int | None]
User = tuple[str, str]


@dataclass(frozen=True, slots=True)
class NameElsewhere:
    """A name that worker `worker` has; `is_busy` with a publisher or a call."""

    worker: int
    holder: Holder | None
    is_busy: bool


@dataclass(frozen=True, slots=True)
class LineElsewhere:
    """The line `id` of a client at `host`; `is_proving` a password to a registrar."""

    worker: int
    id: str
    host: str
    holder: Holder
    is_proving: bool


@dataclass(frozen=True, slots=True)
class KnownHost:
    """What the first worker knows of a host that calls."""

    has_phone: bool
    is_trunk: bool


class Phone(NamedTuple):
    """Where a phone has registered from; `is_own` if its contact leads to a client of ours."""

    transport: str
    host: str
    is_own: bool


class Neighbours:
    """The other workers, as worker `index` of `count` knows them; `tell(message)` tells them all.

    `on_line(key)` is called when a client has logged in at another worker, `on_use(worker, what,
    user)` when another one counts a call or a message, `on_trunk(name, facts)` when the first one
    has news of a trunk; `open_calls()` are the users of ours.
    """

    def __init__(
        self, index: int = 0, count: int = 1, tell: Callable[[Message], object] = lambda told: None
    ) -> None:
        self.index, self.count, self._tell = index, count, tell
        self.on_line: Callable[[LineKey], None] = lambda key: None
        self.on_use: Callable[[int, str, str], None] = lambda worker, what, user: None
        self.open_calls: Callable[[], Iterable[str]] = tuple
        self.on_trunk: Callable[[str, Message], None] = lambda name, facts: None
        self._names: dict[str, dict[int, NameElsewhere]] = {}
        self._lines: dict[LineKey, LineElsewhere] = {}
        self._phones: dict[User, Sequence[Phone]] = {}
        self._origins: OrderedDict[str, str] = OrderedDict()  # by Call-ID
        self._hosts: OrderedDict[str, KnownHost] = OrderedDict()
        self._own: dict[tuple[object, ...], Message] = {}  # all that has been told and still holds

    @property
    def is_first(self) -> bool:
        """Whether this process has the listeners, as the only one has."""
        return self.index == 0

    @property
    def mark(self) -> str:
        """How the branches of requests begin: RFC 3261 §8.1.1.7."""
        return "" if self.is_first else f"w{self.index}."

    @property
    def contact_params(self) -> Mapping[str, str]:
        """What is added to our Contacts: RFC 3261 §8.1.1.8."""
        return {} if self.is_first else {WORKER_PARAM: str(self.index)}

    def worker_in(self, uri: Uri) -> int | None:
        """The other worker that a Contact names, None if it names none."""
        return self.worker_called(uri.param(WORKER_PARAM) or "")

    def worker_called(self, said: str) -> int | None:
        """The other worker with this number, None if there is none."""
        number = int(said) if said.isascii() and said.isdigit() and len(said) < 3 else 0
        return number if 0 < number < self.count and number != self.index else None

    # -- what this worker has -----------------------------------------------------------

    def has_name(self, name: str, holder: Holder | None, *, is_busy: bool) -> None:
        """Tell of a name that is used here."""
        held = None if holder is None else sorted(holder)
        self._note(("name", name), {"do": "name", "name": name, "holder": held, "busy": is_busy})

    def has_name_no_more(self, name: str) -> None:
        """Tell that a name is used here no more."""
        self._forget(("name", name), {"do": "name-gone", "name": name})

    def has_line(
        self, key: LineKey, line: str, host: str, holder: Holder, *, is_proving: bool
    ) -> None:
        """Tell of a client that has logged in."""
        about = {"id": line, "host": host, "holder": sorted(holder), "proving": is_proving}
        self._note(("line", line), {"do": "line", "key": key, **about})

    def has_line_no_more(self, key: LineKey, line: str) -> None:
        """Tell that a client has gone."""
        self._forget(("line", line), {"do": "line-gone", "key": key, "id": line})

    def has_phones(self, user: User, phones: Sequence[Phone]) -> None:
        """Tell where the phones of a user are; none if empty."""
        about = {"do": "phones", "user": user, "phones": phones}
        (self._note if phones else self._forget)(("phones", user), about)

    def registers(self, call_id: str, host: str) -> None:
        """Tell for which client a registration is."""
        if not self.is_first:
            self._tell({"do": "origin", "call": call_id, "host": host})

    def has_trunk(self, name: str, facts: Message) -> None:
        self._note(("trunk", name), {"do": "trunk", "name": name, "facts": facts})

    def uses(self, what: str, user: str) -> None:
        """Tell of a call or a message that counts for a user: see `Allowance`."""
        if self.count > 1:
            self._tell({"do": "use", "what": what, "user": user})

    def greeting(self) -> Iterator[Message]:
        """All that a worker must know which begins."""
        yield from list(self._own.values())
        for user in list(self.open_calls()):
            yield {"do": "use", "what": GOES_ON, "user": user}

    def _note(self, about: tuple[object, ...], message: Message) -> None:
        if self.count > 1 and self._own.get(about) != message:
            self._own[about] = message
            self._tell(message)

    def _forget(self, about: tuple[object, ...], message: Message) -> None:
        if self._own.pop(about, None) is not None:
            self._tell(message)

    # -- what others have ---------------------------------------------------------------

    def names(self, name: str) -> list[NameElsewhere]:
        """The other workers with a name: those where it is busy first, then the lowest."""
        found = self._names.get(name, {}).values()
        return sorted(found, key=lambda each: (not each.is_busy, each.worker))

    def line(self, key: LineKey) -> LineElsewhere | None:
        """The line of an identity, if another worker has it."""
        return self._lines.get(key)

    def holder_of(self, name: str) -> Holder | None:
        """The holder of a name elsewhere, or of the line with this id."""
        held = [each.holder for each in self.names(name) if each.holder is not None]
        lines = (each.holder for each in self._lines.values() if each.id == name)
        return held[0] if held else next(lines, None)

    def phones(self, user: User) -> Sequence[Phone]:
        """The phones of a user, as the first worker has told."""
        return self._phones.get(user, ())

    def origin(self, call_id: str) -> str | None:
        """The host of the client for which another worker registers."""
        return self._origins.get(call_id)

    def meet(self, host: str, known: KnownHost) -> None:
        """Remember what is known of a host that calls."""
        self._hosts[host] = known
        self._hosts.move_to_end(host)
        if len(self._hosts) > MAX_HOSTS:
            self._hosts.popitem(last=False)

    def known(self, host: str) -> KnownHost | None:
        return self._hosts.get(host)

    @property
    def handlers(self) -> dict[str, Callable[[int, Message], object]]:
        """What takes the messages of others, by their member `do`."""
        return {
            "name": self._has_name,
            "name-gone": self._name_gone,
            "line": self._has_line,
            "line-gone": self._line_gone,
            "phones": self._has_phones,
            "origin": self._has_origin,
            "use": self._has_use,
            "trunk": lambda worker, message: self.on_trunk(message["name"], message["facts"]),
        }

    def lost(self, worker: int) -> None:
        """Forget a worker that has ended.  Phones stay until the first one tells of them anew."""
        for name in [name for name, having in self._names.items() if worker in having]:
            self._name_gone(worker, {"name": name})
        self._lines = {key: each for key, each in self._lines.items() if each.worker != worker}

    def _has_name(self, worker: int, message: Message) -> None:
        having = self._names.setdefault(message["name"], {})
        having[worker] = NameElsewhere(worker, _holder(message["holder"]), message["busy"])

    def _name_gone(self, worker: int, message: Message) -> None:
        having = self._names.get(message["name"], {})
        having.pop(worker, None)
        if not having:
            self._names.pop(message["name"], None)

    def _has_line(self, worker: int, message: Message) -> None:
        key, holder = _key(message["key"]), frozenset(message["holder"])
        about = message["id"], message["host"], holder, message["proving"]
        self._lines[key] = LineElsewhere(worker, *about)
        self.on_line(key)

    def _line_gone(self, worker: int, message: Message) -> None:
        key = _key(message["key"])
        if (known := self._lines.get(key)) is not None and known.id == message["id"]:
            del self._lines[key]

    def _has_phones(self, worker: int, message: Message) -> None:
        user, domain = message["user"]
        if phones := [Phone(*each) for each in message["phones"]]:
            self._phones[user, domain] = phones
        else:
            self._phones.pop((user, domain), None)

    def _has_use(self, worker: int, message: Message) -> None:
        self.on_use(worker, message["what"], message["user"])

    def _has_origin(self, worker: int, message: Message) -> None:
        self._origins[message["call"]] = message["host"]
        if len(self._origins) > MAX_CALL_IDS:
            self._origins.popitem(last=False)


def _holder(said: Iterable[str] | None) -> Holder | None:
    return None if said is None else frozenset(said)


def _key(said: Sequence[Any]) -> LineKey:
    user, domain, port = said
    return user, domain, port
