"""The mode of a resource: five rights for each of four classes of clients.

Own design: the article that proposes this names the five rights and the four classes; the letters
are ours.
"""

from dataclasses import dataclass
from enum import Flag, IntEnum
from typing import Final

from p2psip.errors import RemoteError

LETTERS: Final = "cruws"
DEFAULT_MODE: Final = "cruwscr-wscr-wscr-ws"  # of the top


class Right(Flag):
    """A right, in the order of the letters of a mode."""

    NONE = 0
    CREATE = 1
    READ = 2
    UPDATE = 4
    WRITE = 8
    SUBSCRIBE = 16


class Standing(IntEnum):
    """The class of a client with respect to a resource; the first one that fits counts."""

    SELF = 0
    GROUP = 1
    AUTHENTICATED = 2
    ANONYMOUS = 3


_RIGHTS: Final = (Right.CREATE, Right.READ, Right.UPDATE, Right.WRITE, Right.SUBSCRIBE)


@dataclass(frozen=True, slots=True)
class Mode:
    """The rights of each class.

    >>> mode = Mode.parse("cruws" "-r--s" "-r---" "-----")
    >>> mode.allows(Standing.GROUP, Right.SUBSCRIBE), mode.allows(Standing.ANONYMOUS, Right.READ)
    (True, False)
    """

    rights: tuple[Right, Right, Right, Right]

    @classmethod
    def parse(cls, text: object) -> "Mode":
        """Read 20 letters.  Raises RemoteError."""
        if not isinstance(text, str) or len(text) != len(LETTERS) * len(Standing):
            raise RemoteError("A mode has 20 letters: cruws for self, group, users, anonymous")
        found = []
        for start in range(0, len(text), len(LETTERS)):
            rights = Right.NONE
            for letter, own, right in zip(text[start:], LETTERS, _RIGHTS, strict=False):
                if letter not in (own, "-"):
                    raise RemoteError(f"A mode has {own} or - where this one has {letter!r}")
                rights |= right if letter == own else Right.NONE
            found.append(rights)
        return cls((found[0], found[1], found[2], found[3]))

    def __str__(self) -> str:
        return "".join(
            letter if right in rights else "-"
            for rights in self.rights
            for letter, right in zip(LETTERS, _RIGHTS, strict=True)
        )

    def allows(self, standing: Standing, right: Right) -> bool:
        """Whether this class has the right."""
        return right in self.rights[standing]
