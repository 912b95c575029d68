"""The rooms and their members as rows of the tree: `/room/ROOM` and `/room/ROOM/MEMBER`.

Own design: a member has a number that comes once, since neither its address nor the id of its
connection names it alone.
"""

from collections.abc import Callable, Iterator, Mapping

from p2psip.errors import LocalError, RemoteError
from p2psip.net.clock import monotonic
from siprtmp.calls.conference.room import Member, Room
from siprtmp.web.branches.listed_branch import ListedBranch, Row
from siprtmp.web.resources.branch import Change, Path
from siprtmp.web.resources.entity import JsonValue


class RoomRows:
    """The rooms and their members, which an operator mutes, and has leave."""

    def __init__(self, rooms: Mapping[str, Room], wake: Callable[[], object]) -> None:
        self._rooms, self._wake = rooms, wake

    def rows(self) -> Iterator[tuple[Path, Row]]:
        """A row for each room, and one below it for each member."""
        for name, room in self._rooms.items():
            yield (name,), {"name": name, "members": len(room.members)}
            for each in room.members:
                yield _path(each), _shown_member(each)

    def end(self, row: Row) -> None:
        """Have a member leave.  Raises LocalError for a room."""
        self._member(row).screen.expel(monotonic())
        self._wake()

    def change(self, row: Row, change: JsonValue) -> None:
        """Mute a member, or have it heard again.  Raises RemoteError for all else."""
        try:
            member = self._member(row)
        except LocalError as error:
            raise RemoteError(str(error), 405) from None
        if not isinstance(change, dict) or [*change] != ["muted"]:
            raise RemoteError("muted can be changed", 422)
        if not isinstance(change["muted"], bool):
            raise RemoteError("muted is true or false", 422)
        member.is_muted = change["muted"]

    def _member(self, row: Row) -> Member:
        members = self._rooms[str(row.get("room", row.get("name")))].members
        for each in members:
            if each.number == row.get("member"):
                return each
        raise LocalError("A room stays: its members can leave, or be muted")


def told(rooms: ListedBranch, member: Member, has_come: bool) -> None:
    """Tell that a member has come or gone, and how many there are now."""
    rooms.tell(_path(member), Change.CREATE if has_come else Change.DELETE)
    rooms.tell((member.room.name,))


def _path(member: Member) -> Path:
    return member.room.name, str(member.number)


def _shown_member(member: Member) -> Row:
    where = {"room": member.room.name, "member": member.number}
    return {**where, **member.screen.about(), "muted": member.is_muted}
