"""What pages send and receive as resources: `/media` takes an offer, `/media/ID` has the answer.

Own design: this is WHIP and WHEP within the tree (see `whip`), with the same applications, proofs
and limits, so that a page needs nothing else.  The name of a session is drawn, and stands for the
right to it: nobody can list them.  A session that was begun by WebSocket ends with the connection.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from p2psip.errors import RemoteError
from siprtmp.web.browser_sessions import Asked, BrowserSession, BrowserSessions
from siprtmp.web.resources.asker import Asker
from siprtmp.web.resources.branch import Change, Path, Teller
from siprtmp.web.resources.entity import JSON, Entity, JsonValue
from siprtmp.web.resources.mode import Right
from siprtmp.web.whip import MAX_OFFER, Admits

NONE: Final = "There is no such session"
_WAYS: Final = {"publish": "whip", "play": "whep"}
_WORDS: Final = ("way", "stream", "sdp", "proof")
_NOT_ACCEPTABLE: Final = 488  # of SIP, for an offer that nothing can answer: RFC 3261 §21.4.26


class _Begun(NamedTuple):
    """A session, its resource, and the connection that it ends with."""

    session: BrowserSession
    entity: Entity
    connection: str


class MediaBranch:
    """The sessions of browsers that the tree has begun, for streams of `apps`."""

    def __init__(self, sessions: BrowserSessions, apps: Sequence[str], admits: Admits) -> None:
        self._sessions, self._apps, self._admits = sessions, apps, admits
        self._begun: dict[str, _Begun] = {}
        self._teller: Teller | None = None
        sessions.on_end = self._ended

    # -- Branch -------------------------------------------------------------------------

    def attach(self, teller: Teller) -> None:
        self._teller = teller

    def may(self, path: Path, right: Right, asker: Asker) -> bool:
        """Everybody may offer, as by WHIP, and what that allows is found out then."""
        if not path:
            return right is Right.CREATE
        return path[0] in self._begun and right in (Right.READ, Right.UPDATE, Right.SUBSCRIBE)

    def read(self, path: Path, asker: Asker | None = None) -> Entity | None:
        if not path:
            return Entity(JSON, {})
        begun = self._begun.get(path[0]) if len(path) == 1 else None
        return None if begun is None else begun.entity

    def children(self, path: Path) -> list[str]:
        return []

    def create(self, path: Path, entity: Entity, asker: Asker) -> str:
        """Answer an offer: RFC 9725 §4.2."""
        if path:
            raise RemoteError("A session has nothing below it", 405)
        way, app, name, sdp, proof = self._wanted(entity.data)
        left = self._admits(_WAYS[way], app, name, proof, asker.host)
        if left is None:
            raise RemoteError("Who may do that has to prove it", 403)
        asked = Asked(app, name, sdp, (asker.host, 0), left, proof)
        try:
            begin = self._sessions.publish if way == "publish" else self._sessions.play
            session, answer = begin(asked)
        except RemoteError as error:
            left()
            status = 422 if error.status == _NOT_ACCEPTABLE else error.status
            raise RemoteError(error.reason, status) from None
        shown = Entity(JSON, {"way": way, "stream": f"{app}/{name}", "sdp": answer.decode()})
        self._begun[session.id] = _Begun(session, shown, asker.connection)
        return session.id

    def put(self, path: Path, entity: Entity, asker: Asker) -> None:
        raise RemoteError("A session cannot be changed: begin another one", 405)

    def patch(self, path: Path, change: JsonValue, asker: Asker) -> None:
        raise RemoteError("A session cannot be changed: begin another one", 405)

    def remove(self, path: Path, asker: Asker) -> None:
        begun = self._begun.get(path[0]) if len(path) == 1 else None
        if begun is None:
            raise RemoteError(NONE, 404)
        self._sessions.end(begun.session)

    def event(self, path: Path, entity: Entity, asker: Asker) -> None:
        raise RemoteError("A session takes no events", 405)

    def gone(self, connection: str) -> None:
        for begun in list(self._begun.values()):
            if begun.connection == connection:
                self._sessions.end(begun.session, "the page has gone")

    # -- within -------------------------------------------------------------------------

    def _wanted(self, said: JsonValue) -> tuple[str, str, str, bytes, str]:
        """Read way, application, name, offer and proof.  Raises RemoteError."""
        if not isinstance(said, dict) or not all(
            isinstance(each, str) and key in _WORDS for key, each in said.items()
        ):
            raise RemoteError(f"An object of strings, please: {', '.join(_WORDS)}", 422)
        way, stream, sdp = (said.get(each, "") for each in _WORDS[:3])
        if way not in _WAYS:
            raise RemoteError("way is publish or play", 422)
        app, _, name = stream.partition("/")
        if app not in self._apps or not name:
            raise RemoteError(f"stream is APP/NAME, APP one of {', '.join(self._apps)}", 404)
        if not 0 < len(sdp) <= MAX_OFFER:
            raise RemoteError("sdp is an offer", 413 if sdp else 422)
        return way, app, name, sdp.encode(errors="replace"), said.get("proof", "")

    def _ended(self, session: BrowserSession, reason: str) -> None:
        begun = self._begun.pop(session.id, None)
        if begun is not None and self._teller is not None:
            self._teller.changed((session.id,), Change.DELETE, Entity(JSON, {"reason": reason}))
