"""The offers and answers of a trace, in which message they may be, and who may make them when.

Own design: a message counts once, where it is seen first, so that neither its repetitions nor its
copies behind a proxy do.  A body that we cannot read may be anything, and is not judged.
"""

from collections.abc import Iterator
from typing import Final

from p2psip.sip.message import Request, Response
from rtclab.oracle.referee.asked import Asked
from rtclab.oracle.referee.ruling import Ruling
from rtclab.oracle.referee.session import Session

_CARRIERS: Final = ("INVITE", "UPDATE", "PRACK")  # with responses: RFC 3261 §13.2.1
_Key = tuple[str, str, int, str, str]  # Call-ID, tag of From, number, method, tag of To


class Offers:
    """The sessions of all dialogs (RFC 3261 §13.2.1, RFC 3262 §5, RFC 3311 §5, RFC 3264)."""

    def __init__(self) -> None:
        self._asked: dict[_Key, Asked] = {}
        self._sessions: dict[tuple[str, frozenset[str]], Session] = {}
        self._all: list[Session] = []
        self._legs: dict[Asked, list[Session]] = {}  # of an INVITE that makes dialogs

    @property
    def findings(self) -> Iterator[Ruling]:
        """What was found so far."""
        return (each for session in self._all for each in session.findings)

    def request(self, request: Request, now: float) -> None:
        """Take a request, which may be a copy; of ACKs those of a 2xx."""
        method, name = request.method, _key(request)
        if method not in (*_CARRIERS, "ACK", "BYE") or name in self._asked:
            return
        asked = self._asked[name] = Asked.of(request, now)
        session = self._session_of(asked)
        if session is None or session.ended:
            return
        if method == "BYE":
            session.ended = True
        elif method == "ACK":
            invite = self._find(_key(request, "INVITE"))
            if invite is not None and request.to.tag in invite.answered_by:
                session.ack(asked, invite, now)
        elif method == "PRACK":
            session.prack(asked, now)
        elif not asked.is_opaque:
            session.request(asked, now)

    def response(self, response: Response, now: float) -> None:
        """Take a response, which may be a copy."""
        asked = self._find(_key(response))
        if asked is None or response.cseq.method not in _CARRIERS or asked.is_opaque:
            return
        tag, is_final = response.to.tag, response.status >= 200
        if response.status == 100 or tag in asked.answered_by:
            asked.is_heard = True
            return
        session = self._session_with(asked, response)
        if session is not None and not session.ended:
            session.response(asked, response, now)
        asked.is_heard = True
        if is_final:
            asked.answered_by.add(tag)
        if response.status >= 300:
            for leg in self._legs.get(asked, ()):
                leg.ended = True

    def _find(self, name: _Key) -> Asked | None:
        """Find the request: one within a dialog, or the one that made the dialog."""
        return self._asked.get(name) or self._asked.get((*name[:4], ""))

    def _session_of(self, asked: Asked) -> Session | None:
        """The session of a request within a dialog; a trace may begin with a new offer of it."""
        name = _name(asked.request)
        is_new = asked.request.method in ("INVITE", "UPDATE") and not asked.is_opaque
        if name not in self._sessions and is_new and len(name[1]) == 2:
            self._new(name, None)
        return self._sessions.get(name)

    def _session_with(self, asked: Asked, response: Response) -> Session | None:
        """The session of a response, which may make it (RFC 3261 §12.1)."""
        name, known = _name(response), self._sessions.get(_name(response))
        is_new = not asked.request.to.tag and asked.request.method == "INVITE"
        is_new = is_new and response.status < 300 and len(name[1]) == 2
        if is_new and (known is None or known not in self._legs.get(asked, ())):
            known = self._new(name, asked.sender)
            self._legs.setdefault(asked, []).append(known)
            known.begin(asked)
        return known

    def _new(self, name: tuple[str, frozenset[str]], caller: str | None) -> Session:
        one, other = name[1]
        session = self._sessions[name] = Session(one, other, caller)
        self._all.append(session)
        return session


def _key(message: Request | Response, method: str | None = None) -> _Key:
    tag, number = message.from_.tag or "", message.cseq.number
    return message.call_id, tag, number, method or message.cseq.method, message.to.tag or ""


def _name(message: Request | Response) -> tuple[str, frozenset[str]]:
    """The dialog of a message; less than two tags make none."""
    return message.call_id, frozenset({message.from_.tag or "", message.to.tag or ""} - {""})
