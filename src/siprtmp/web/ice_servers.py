"""The STUN and TURN servers that answers of WHIP and WHEP name to a browser.

Implements RFC 9725 §4.6 and WHEP §4.7.

Own design: everybody may know the STUN servers.  A TURN server carries the traffic of all who have
its password, so only clients are told of it that have proved something, and each of them gets a
password of its own, which ends: it is made by the secret of the server.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from p2psip.nat.long_term import login_until

LIFETIME: Final = 3600  # s of a password: a page that begins anew gets another one

Proves = Callable[[str, str, str, str], bool]
"""Whether a client has proved who it is: "whip" or "whep", application, query, host."""


@dataclass(frozen=True, slots=True)
class TurnAccess:
    """A TURN server as a URI, the user at it, and the secret that makes passwords."""

    uri: str
    user: str
    secret: str = field(repr=False)


class IceServers:
    """Writes the Link fields of answers; `wall_clock` is in seconds since 1970."""

    def __init__(
        self,
        stun: Sequence[str],
        turn: TurnAccess | None,
        proves: Proves,
        wall_clock: Callable[[], float],
    ) -> None:
        """Name `stun`, each HOST:PORT, to all, and `turn` to those of whom `proves` holds."""
        # RFC 9725 §4.6 [links-name-servers]
        self.open = tuple(_link(f"stun:{each}") for each in stun)
        self._turn, self._proves, self._wall_clock = turn, proves, wall_clock

    def of(self, kind: str, app: str, query: str, host: str) -> list[tuple[str, str]]:
        """The fields for a client whose offer has been answered."""
        turn = self._turn
        if turn is None or not self._proves(kind, app, query, host):
            return [*self.open]
        end = int(self._wall_clock()) + LIFETIME
        # RFC 9725 §4.6 [links-have-credentials]
        user, password = map(_quoted, login_until(end, turn.user, turn.secret))
        return [*self.open, _link(turn.uri, f"username={user}", f"credential={password}")]


NO_SERVERS: Final = IceServers((), None, lambda *_: False, float)


def _link(uri: str, *attributes: str) -> tuple[str, str]:
    return "Link", "; ".join((f"<{uri}>", 'rel="ice-server"', *attributes))


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
