"""The calls of the gateway as resources: `/call` places one, `/call/ID` is one.

Own design: a resource is the row that the operator's list has.  A call tells what happens to it in
words, `CallEvent`, and each of them is also an event of its resource: what the phone presses and
writes comes in the form in which a client sends keys and messages to it.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from typing import Final, Protocol

from p2psip.errors import LocalError, RemoteError
from p2psip.sip.uri import Uri
from siprtmp.calls.access.admission import Holder
from siprtmp.calls.call import Call
from siprtmp.calls.observer import CallEvent
from siprtmp.web.branches.call_stories import CallStories
from siprtmp.web.branches.roles import Roles, payer_of
from siprtmp.web.resources.asker import Asker
from siprtmp.web.resources.branch import Change, Path, Teller
from siprtmp.web.resources.entity import JSON, Entity, JsonValue
from siprtmp.web.resources.mode import Right

_NAME: Final = re.compile(r"[\w@+:-][\w@+:.-]{0,99}", re.ASCII)
_WORDS: Final = {CallEvent.DIGIT: "digits", CallEvent.MESSAGE: "message"}
# What SIP refuses a call for, in statuses of HTTP: RFC 3261 §21
_STATUSES: Final = {480: 503, 481: 409, 486: 503, 488: 422, 491: 409, 513: 413, 603: 409}
Row = dict[str, object]


class CallPlacer(Protocol):
    """Places the calls that clients of the tree ask for."""

    def owners(self, *addresses: str) -> Holder:
        """The users of ours that these addresses name, as user@realm."""

    def place(self, caller: str, callee: str, order: "CallOrder", now: float) -> Call:
        """Call `callee` for a name, or two phones.  Raises RemoteError, with a status of SIP."""


class PassingCalls(Protocol):
    """The calls between phones, which the proxy passes on."""

    def rows(self, now: float) -> Iterable[Row]:
        """A row for each."""

    def end(self, row: Row, now: float) -> object:
        """End one: see `ThroughCall.end`."""


class CallOrder:
    """A client of the tree, and what it may call as."""

    def __init__(self, asker: Asker, roles: Roles) -> None:
        self._asker, self._roles = asker, roles
        self.payer, self.source = payer_of(asker), f"HTTP:{asker.host}"

    def may_be(self, owners: Holder) -> bool:
        """Whether it may call as one of these users; as somebody else, if there are none."""
        return self._roles.is_operator(self._asker) or self._roles.is_one_of(self._asker, owners)


class CallBranch:
    """The calls of this gateway, by the names of their resources.

    Those between phones, of `passing`, can be read and ended alone, and tell of no event.

    `stories`, if set before it is mounted, has what stands below each call.
    `describe(call, now)` is the row of a call; `wake` is called after what a client has done, so
    that it is sent.  `followers` are told of each event, as a value of JSON.
    """

    def __init__(
        self,
        roles: Roles,
        placer: CallPlacer,
        describe: Callable[[Call, float], Row],
        clock: Callable[[], float],
        wake: Callable[[], object],
        passing: PassingCalls | None = None,
    ) -> None:
        self._roles, self._placer, self._describe = roles, placer, describe
        self._clock, self._wake, self._passing = clock, wake, passing
        self._calls: dict[str, Call] = {}
        self._names: dict[Call, str] = {}
        self._placed: set[Call] = set()
        self._last_end: tuple[Call | None, str] = (None, "")
        self._teller: Teller | None = None
        self.stories: CallStories | None = None
        self.followers: list[Callable[[Row], object]] = []

    def on_event(self, call: Call, event: CallEvent, text: str, now: float) -> bool:
        """Tell the subscribers what has happened to a call; whether they read its messages."""
        if event is CallEvent.BEGUN:
            self._enter(call)
        name, told = self._names[call], said_of(event, text)
        row = self._row(call, now)
        if self.stories is not None:
            if event is CallEvent.BEGUN:
                self.stories.begin(name, call, now)
            elif event is CallEvent.ENDED:
                self.stories.end(name, {**row, "reason": text}, now)
        for follow in self.followers:
            follow({**told, "call": row})
        teller = self._teller
        if teller is None:
            self._leave(call, event, text)
            return False
        if event not in (CallEvent.BEGUN, CallEvent.ENDED):
            teller.notify((name,), Entity(JSON, told))
        change = {CallEvent.BEGUN: Change.CREATE, CallEvent.ENDED: Change.DELETE}
        left = {"reason": text} if event is CallEvent.ENDED else {}
        if event not in _WORDS:
            entity = Entity(JSON, {**row, **left})
            teller.changed((name,), change.get(event, Change.UPDATE), entity)
        self._leave(call, event, text)
        return call in self._placed

    def find(self, name: str) -> Call | None:
        """The call of a resource."""
        return self._calls.get(name)

    def name(self, call: Call) -> str:
        """The name of a call's resource, "" once it has ended."""
        return self._names.get(call, "")

    def _enter(self, call: Call) -> None:
        """Give a call a name: two calls have the same Call-ID if they are both ends of one."""
        assert call.call is not None
        first = name = name_of(call.call.id)
        number = 1
        while name in self._calls:
            number += 1
            name = f"{first}:{number}"
        self._calls[name], self._names[call] = call, name

    def _leave(self, call: Call, event: CallEvent, text: str) -> None:
        if event is CallEvent.ENDED:
            del self._calls[self._names.pop(call)]
            self._placed.discard(call)
            self._last_end = call, text

    def _row(self, call: Call, now: float) -> Row:
        held = {"held": call.holds, "muted": call.is_muted}
        return {**self._describe(call, now), **held, "id": self._names[call]}

    # -- Branch -------------------------------------------------------------------------

    def attach(self, teller: Teller) -> None:
        self._teller = teller
        if self.stories is not None:
            self.stories.teller = teller

    def may(self, path: Path, right: Right, asker: Asker) -> bool:
        """Operators may all, viewers read all, users what is about calls of their own.

        Every user may place calls, and hear of the branch: of each call it is asked again.
        """
        if self._roles.is_operator(asker):
            return True
        if right in (Right.READ, Right.SUBSCRIBE) and self._roles.is_viewer(asker):
            return True
        if asker.user is None:
            return False
        if not path:
            return right in (Right.CREATE, Right.READ, Right.SUBSCRIBE)
        if len(path) > 1:
            return False
        if row := self._passing_row(path):
            ends = self._placer.owners(str(row["caller"]), str(row["callee"]))
            return self._roles.is_one_of(asker, ends)
        call = self._calls.get(path[0])
        if call is None:
            return False
        if call.user.payer == payer_of(asker):
            return True
        origin = call.origin
        return self._roles.is_one_of(asker, self._placer.owners(origin.caller, origin.callee))

    def read(self, path: Path, asker: Asker | None = None) -> Entity | None:
        if not path:
            return Entity(JSON, {"calls": len(self._calls)})
        if len(path) > 1:
            return None if self.stories is None else self.stories.read(path, self._clock())
        if row := self._passing_row(path):
            return Entity(JSON, {**row, "id": path[0]})
        call = self._calls.get(path[0])
        return None if call is None else Entity(JSON, self._row(call, self._clock()))

    def children(self, path: Path) -> list[str]:
        if len(path) == 1 and self.stories is not None:
            return self.stories.parts(path[0])
        return [] if path else [*self._calls, *(name for name, _ in self._passing_rows())]

    def create(self, path: Path, entity: Entity, asker: Asker) -> str:
        """Place a call of `from` to `to`, both addresses, or a name of `call` and an address."""
        if path:
            raise RemoteError("A call has nothing below it", 405)
        wanted = _object(entity.data)
        caller, callee = wanted.get("from"), wanted.get("to")
        if not (isinstance(caller, str) and isinstance(callee, str) and caller and callee):
            raise RemoteError(
                "from and to, please: an address each, or a name of call as from", 422
            )
        order = CallOrder(asker, self._roles)
        with _as_http():
            call = self._placer.place(caller, callee, order, self._clock())
        self._placed.add(call)
        self._wake()
        if call not in self._names:
            ended, why = self._last_end
            raise RemoteError(why if ended is call and why else "The call has failed", 503)
        return self._names[call]

    def put(self, path: Path, entity: Entity, asker: Asker) -> None:
        """Hold or mute as the new state says; its other values are the gateway's to say."""
        self._set(self._call(path), _object(entity.data), ())

    def patch(self, path: Path, change: JsonValue, asker: Asker) -> None:
        """Hold or mute; nothing else can be changed."""
        wanted = _object(change)
        self._set(self._call(path), wanted, wanted.keys())

    def _set(self, call: Call, wanted: Row, keys: Collection[str]) -> None:
        values = {key: wanted[key] for key in ("held", "muted") if key in wanted}
        known = all(isinstance(each, bool) for each in values.values())
        if not values or not known or any(key not in values for key in keys):
            raise RemoteError("held and muted can be changed, to true or false", 422)
        now = self._clock()
        if "held" in values and call.up_at is None:
            raise RemoteError("The call is not up", 409)
        if "muted" in values:
            call.mute(bool(values["muted"]))
        if "held" in values:
            call.hold(bool(values["held"]), now)
        self._wake()
        if self._teller is not None:
            entity = Entity(JSON, self._row(call, now))
            self._teller.changed((self._names[call],), Change.UPDATE, entity)

    def remove(self, path: Path, asker: Asker) -> None:
        """Hang up: RFC 3261 §15."""
        row = self._passing_row(path)
        if row is not None and self._passing is not None:
            self._passing.end(row, self._clock())
            self._wake()
            return
        reason = "operator" if self._roles.is_operator(asker) else "user"
        self._call(path).drop(self._clock(), reason)
        self._wake()

    def event(self, path: Path, entity: Entity, asker: Asker) -> None:
        """Press keys, write to the phone, or have it call somebody else."""
        call, wanted, now = self._call(path), _object(entity.data), self._clock()
        said = {key: wanted[key] for key in ("digits", "message", "transfer") if key in wanted}
        if len(said) != 1 or not all(isinstance(each, str) for each in said.values()):
            raise RemoteError("One of digits, message and transfer, please, as a string", 422)
        [(what, text)] = said.items()
        if call.up_at is None:
            raise RemoteError("The call is not up", 409)
        with _as_http():
            if what == "digits":
                call.press(str(text), now)
            elif what == "message":
                call.message(str(text), now)
            else:
                call.transfer(Uri.parse(str(text)), now)
        self._wake()

    def gone(self, connection: str) -> None:
        """Nothing: a call outlives the client that has placed it."""

    def _passing_rows(self) -> Iterator[tuple[str, Row]]:
        """The rows of calls between phones, by the names of their resources."""
        if self._passing is not None:
            for row in self._passing.rows(self._clock()):
                if (name := name_of(str(row["id"]))) not in self._calls:
                    yield name, row

    def _passing_row(self, path: Path) -> Row | None:
        if len(path) != 1 or path[0] in self._calls:
            return None
        return next((row for name, row in self._passing_rows() if name == path[0]), None)

    def _call(self, path: Path) -> Call:
        call = self._calls.get(path[0]) if len(path) == 1 else None
        if call is None and self._passing_row(path):
            raise RemoteError("That call passes through the proxy, and can be ended alone", 409)
        if call is None:
            raise RemoteError("There is no such call" if path else "That is no call", 404)
        return call


@contextmanager
def _as_http() -> Iterator[None]:
    """Turn what SIP refuses, and a text that is too long, into what HTTP does."""
    try:
        yield
    except RemoteError as error:
        raise RemoteError(error.reason, _STATUSES.get(error.status, error.status)) from None
    except LocalError as error:
        raise RemoteError(str(error), 413) from None


def name_of(call_id: str) -> str:
    """The name of the resource of a call: its Call-ID if that can be a part of a path.

    >>> name_of("a84b4c76e66710@pc33"), name_of("../etc"), name_of("a/b")
    ('a84b4c76e66710@pc33', 'f7f9121fdb53d8de', 'c14cddc033f64b9d')
    """
    if _NAME.fullmatch(call_id):
        return call_id
    return sha256(call_id.encode(errors="replace")).hexdigest()[:16]


def said_of(event: CallEvent, text: str) -> Row:
    """An event in words, such as {"event": "digit", "digits": "5"}."""
    said: Row = {"event": event.value}
    return said | {_WORDS.get(event, "reason"): text} if text else said


def _object(value: JsonValue) -> Row:
    if not isinstance(value, dict):
        raise RemoteError("An object of JSON, please", 422)
    return value
