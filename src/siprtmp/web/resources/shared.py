"""Changes of persistent resources that several gateways agree on.

Implements Resources §15.

Own design: a change is an edit, in a log that all gateways read.  A gateway changes nothing by
itself: it judges a request, puts the edit into the log, and applies the log, as all others do.  The
log takes an edit only from a gateway that has applied all edits before it.
"""

from collections.abc import Iterable, Sequence
from enum import Enum
from typing import Final, NamedTuple, Protocol

from p2psip.errors import RemoteError
from p2psip.sip import strict_json
from siprtmp.web.resources.entity import Entity, JsonValue, read_json
from siprtmp.web.resources.mode import Mode
from siprtmp.web.resources.nodes import Held
from siprtmp.web.resources.path import Path, read_path, write_path

TRIES: Final = 50  # of a request that others are faster than
AWAY: Final = "The store of persistent resources does not answer: try again"
BUSY: Final = "Others change persistent resources all the time: try again"


class Act(Enum):
    """The kinds of edits."""

    PUT = "put"
    ACCESS = "access"  # mode and group alone, which nobody is told
    DELETE = "delete"  # with all below it
    EVENT = "event"


class Edit(NamedTuple):
    """One change; `held` is the resource after it, or the content of an event.

    `origin` is the connection that caused it, whose name no other gateway has.
    """

    act: Act
    path: Path
    held: Held | None = None
    origin: str = ""


class StaleError(Exception):
    """Others were faster: the request has to be judged again."""


class SharedLog(Protocol):
    """The log; `commit` waits, so no loop may call it."""

    @property
    def is_loaded(self) -> bool:
        """Whether the tree has been loaded once."""

    def commit(self, edit: Edit, rows: Iterable[tuple[Path, Held | None]]) -> None:
        """Put an edit into the log, keep the rows that it changes, and have it applied.

        Raises StaleError, and RemoteError with 503.
        """

    def leave(self) -> None:
        """End the turn of the request that has committed, or tried to."""


def written_row(held: Held) -> str:
    """A resource as text, which `read_row` reads.

    >>> written_row(Held(Entity("text/plain", b"hi"), "ann", None, None))
    '["text/plain", "aGk=", "ann", null, null]'
    """
    mode = None if held.mode is None else str(held.mode)
    entity = held.entity
    return strict_json.dumps([entity.type, entity.for_message, held.owner, held.group, mode])


def read_row(text: str) -> Held:
    """Read a resource.  Raises RemoteError."""
    return _held(read_json(text.encode()))


def written_edits(edits: Sequence[Edit]) -> str:
    """An entry of the log."""
    return strict_json.dumps(
        [
            [
                each.act.value,
                write_path(each.path),
                each.origin,
                None if each.held is None else written_row(each.held),
            ]
            for each in edits
        ]
    )


def read_edits(text: str) -> list[Edit]:
    """Read an entry of the log.  Raises RemoteError."""
    try:
        return [
            Edit(Act(act), read_path(path), None if row is None else read_row(row), str(origin))
            for act, path, origin, row in read_json(text.encode())
        ]
    except (ValueError, TypeError, AttributeError):
        raise RemoteError("That is no entry of the log") from None


def _held(said: JsonValue) -> Held:
    try:
        media_type, value, owner, group, mode = said
        for name in (owner, group):
            if name is not None and not isinstance(name, str):
                raise ValueError(name)
        entity = Entity.of_message(media_type, value)
        return Held(entity, owner, group, None if mode is None else Mode.parse(mode))
    except (ValueError, TypeError, AttributeError):
        raise RemoteError("That is no resource") from None
