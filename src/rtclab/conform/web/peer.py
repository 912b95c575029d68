"""The page that talks to an endpoint of WHIP or WHEP by HTTP.

Own design: a case has a page of its own, which ends its sessions with the case.  A stream has one
publisher, so cases run one after another.  A bearer token stands before the host of the target,
`http://TOKEN@HOST:PORT/PATH`.
"""

from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from email.message import Message
from functools import partial
from http.client import HTTPConnection, HTTPException
from typing import Final
from urllib.parse import SplitResult, unquote, urljoin, urlsplit

from gevent import socket

from p2psip.errors import RemoteError
from p2psip.sdp.session import MediaDescription, SessionDescription
from rtclab.conform.case import NotApplicable, Unmet, Unreachable
from rtclab.conform.checks import at_most, expect_status
from rtclab.conform.web.offers import fragment, offer

SDP: Final = "application/sdp"
FRAGMENT: Final = "application/trickle-ice-sdpfrag"
REACH: Final = 5  # s for an answer to a first request
_MOST: Final = 1 << 20  # octets read of an answer
Connect = Callable[[str], closing["WebPeer"]]


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """An answer by HTTP (RFC 9112 §4)."""

    status: int
    headers: Message
    body: bytes

    def __str__(self) -> str:
        text = self.body[:80].decode(errors="replace").strip()
        return f"{self.status} {text!r}" if text else str(self.status)

    def header(self, name: str) -> str:
        """A field of the header, "" if it is missing."""
        return str(self.headers.get(name, ""))

    @property
    def type(self) -> str:
        """The media type, without its parameters."""
        return self.header("Content-Type").partition(";")[0].strip().lower()

    def expect(self, *statuses: int) -> "HttpAnswer":
        """Unmet unless the status is one of these, or one of the class that a digit stands for."""
        expect_status(self.status, str(self), statuses)
        return self


@dataclass(frozen=True, slots=True)
class WebSession:
    """A session that was begun: its address, its tag and its answer (RFC 9725 §4.2)."""

    url: str
    tag: str
    answer: HttpAnswer
    description: SessionDescription

    @property
    def lines(self) -> list[MediaDescription]:
        """The lines that are not refused."""
        return [
            each
            for each in self.description.media
            if each.port or each.attribute("bundle-only") is not None
        ]

    def attributes(self, name: str) -> list[str | None]:
        """An attribute of each line, or of the session where the line has none."""
        common = self.description.attribute(name)
        found = [each.attribute(name) for each in self.lines]
        return [common if each is None else each for each in found]


class WebPeer:
    """A page at one endpoint; `flow` is the direction that its offers have."""

    def __init__(self, flow: str, target: str) -> None:
        url = urlsplit(target)
        if url.scheme != "http" or not url.hostname or len(url.path) < 2:
            raise ValueError("a target is http://HOST:PORT/PATH, with TOKEN@ before the host")
        self.flow = flow
        self.token = unquote(url.username or "")
        self.host, self.port = url.hostname, url.port or 80
        self.url = SplitResult(
            url.scheme, url.netloc.rpartition("@")[2], url.path, url.query, ""
        ).geturl()
        self._sessions: list[str] = []

    def close(self) -> None:
        """End the sessions that a case has begun."""
        for url in self._sessions:
            with suppress(Unmet, Unreachable):
                self.ask("DELETE", url)

    def offer(self, *lines: str) -> bytes:
        """An offer that flows the right way."""
        return offer(self.flow, *lines)

    def ask(
        self, method: str, url: str = "", body: bytes = b"", kind: str = "", **headers: str
    ) -> HttpAnswer:
        """Send a request with a body of this type, and read its answer.

        `headers` have underscores for hyphens; an empty one is left out.  Raises Unreachable, and
        Unmet for what is no HTTP.
        """
        wanted = {"Content-Type": kind, "Authorization": f"Bearer {self.token}" * bool(self.token)}
        wanted |= {name.replace("_", "-"): value for name, value in headers.items()}
        at = urlsplit(url or self.url)
        connection = HTTPConnection(at.hostname or "", at.port or 80)
        try:
            connection.sock = socket.create_connection((connection.host, connection.port))
            connection.request(
                method,
                SplitResult("", "", at.path, at.query, "").geturl(),
                body or None,
                {name: value for name, value in wanted.items() if value},
            )
            answer = connection.getresponse()
            return HttpAnswer(answer.status, answer.headers, answer.read(_MOST))
        except OSError as error:
            raise Unreachable(error.strerror or str(error)) from None
        except HTTPException as error:
            raise Unmet("an answer by HTTP", f"{type(error).__name__}: {error}") from None
        finally:
            connection.close()

    def reach(self) -> None:
        """Raise Unreachable unless there is an answer to OPTIONS."""
        answered = False
        with at_most(REACH), suppress(Unmet):
            self.ask("OPTIONS")
            answered = True
        if not answered:
            raise Unreachable("no answer to OPTIONS")

    def post(self, body: bytes, kind: str = SDP, **headers: str) -> HttpAnswer:
        """Post an offer; a session that begins is ended with the case (RFC 9725 §4.2)."""
        answer = self.ask("POST", "", body, kind, **headers)
        if answer.status == 201 and (where := answer.header("Location")):
            self._sessions.append(urljoin(self.url, where))
        return answer

    def begin(self, body: bytes = b"") -> WebSession:
        """Begin a session; NotApplicable if the target refuses, Unmet if its answer is none."""
        answer = self.post(body or self.offer())
        if answer.status != 201:
            raise NotApplicable(f"the target refuses an offer: {answer}")
        if not answer.header("Location"):
            raise Unmet("a Location", "none")
        try:
            description = SessionDescription.parse(answer.body)
        except RemoteError as error:
            raise Unmet("an answer by SDP", f"{error}: {answer}") from None
        return WebSession(self._sessions[-1], answer.header("ETag"), answer, description)

    def patch(self, session: WebSession, body: bytes, tag: str, kind: str = FRAGMENT) -> HttpAnswer:
        """Send a fragment for a session of this tag (RFC 9725 §4.3.1)."""
        return self.ask("PATCH", session.url, body, kind, If_Match=tag)

    def trickle(self, session: WebSession, *candidates: str) -> HttpAnswer:
        """Send candidates; NotApplicable if the target takes none, by 405 or 501."""
        answer = self.patch(session, fragment("conf", "", *candidates), session.tag)
        if answer.status in (405, 422, 501):
            raise NotApplicable(f"no candidates come later: {answer}")
        return answer

    def restart(self, session: WebSession) -> HttpAnswer:
        """Restart ICE; NotApplicable if the target does not."""
        answer = self.patch(session, fragment("anew", "anewanewanewanewanewanew"), "*")
        if answer.status in (405, 422, 501):
            raise NotApplicable(f"ICE is not restarted: {answer}")
        return answer


def connecting(flow: str) -> Connect:
    """How a page whose media flows this way is made of a target; that raises ValueError."""
    return lambda target: closing(WebPeer(flow, target))


def reach(flow: str, target: str) -> None:
    """Raise Unreachable unless there is an answer to OPTIONS, and ValueError unless an offer is.

    Own design: most cases need a session, so that a target which refuses is not judged at all.
    """
    alive(flow, target)
    with closing(WebPeer(flow, target)) as peer, at_most(REACH), suppress(Unmet):
        answer = peer.post(peer.offer())
        if answer.status != 201:
            raise ValueError(f"an offer is refused: {answer}")


def alive(flow: str, target: str) -> None:
    """Raise Unreachable unless there is an answer to OPTIONS."""
    with closing(WebPeer(flow, target)) as peer:
        peer.reach()


def reaching(flow: str) -> tuple[Callable[[str], None], Callable[[str], None]]:
    """`reach` and `alive` for one direction."""
    return partial(reach, flow), partial(alive, flow)
