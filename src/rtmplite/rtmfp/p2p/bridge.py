"""Bridges two sessions: passes the messages of each on to the other, flow by flow.

Implements RFC 7016 §3.6 as the user of both sessions.  Each far end takes us for the other one,
under an identity of our own (`peer_relay`); so we can read everything, as a man in the middle can.

Own design: each flow is copied to a flow with the same metadata, associated to the copy of the flow
that it was associated to, and its messages are passed on one by one.  If one side does not take
them, its source is suspended; sound that is late is given up.
"""

from typing import TYPE_CHECKING, Final

from rtmplite.errors import LocalError
from rtmplite.rtmfp.netconnection.media_flows import LIVE, Medium, medium_of
from rtmplite.rtmfp.netconnection.messages import SIGNATURE
from rtmplite.rtmfp.session.recv_flow import FlowReceiver
from rtmplite.rtmfp.session.send_flow import FlowSender
from rtmplite.rtmfp.session.session import SessionListener

if TYPE_CHECKING:
    from rtmplite.rtmfp.session.recv_flow import RecvFlow
    from rtmplite.rtmfp.session.send_flow import SendFlow
    from rtmplite.rtmfp.session.session import Session

HIGH: Final = 256 * 1024  # bytes under way in a flow, beyond which its source is suspended
LOW: Final = 64 * 1024
FLOWS: Final = 256  # of both sides; more are rejected
GONE: Final = "the other side has gone"


class SessionBridge(SessionListener):
    """The user of both sessions, of which the second may come later: RFC 7016 §3.6.

    `moved` counts the bytes of messages that have passed.
    """

    def __init__(self, first: "Session") -> None:
        self.sessions = [first]
        self.moved = 0
        self.is_over = False
        self._pipes: dict[RecvFlow, _Pipe] = {}

    def join(self, second: "Session", now: float) -> None:
        """Begin to pass messages on; until now they have waited in their flows."""
        self.sessions.append(second)
        for flow in list(self._pipes):
            flow.resume(now)

    def end(self, now: float, reason: str = GONE) -> None:
        """Close both sessions: RFC 7016 §3.5.5; a second time does nothing."""
        if not self.is_over:
            self.is_over = True
            for session in self.sessions:
                session.close(now, reason)

    def other(self, session: "Session") -> "Session":
        """Return the session to which the messages of `session` are passed on."""
        first, second = self.sessions
        return second if session is first else first

    def on_flow(self, session: "Session", flow: "RecvFlow", now: float) -> FlowReceiver | None:
        """Accept a flow, to be copied to the other session: RFC 7016 §3.6.3.1."""
        if self.is_over or len(self._pipes) >= FLOWS:
            return None
        if len(self.sessions) < 2:
            flow.suspend()
        pipe = self._pipes[flow] = _Pipe(self, session, flow)
        return pipe

    def on_closed(self, session: "Session", now: float) -> None:
        """Close the other session, too: RFC 7016 §3.5.5."""
        self.end(now)

    def returning(self, flow: "RecvFlow") -> "RecvFlow | None":
        """Find the flow that the copy of `flow` is associated to: RFC 7016 §2.3.11.1.2."""
        if flow.associated is None:
            return None
        for source, pipe in self._pipes.items():
            if pipe.onward is flow.associated:
                return source
        return None

    def forget(self, flow: "RecvFlow") -> None:
        """Forget a flow that has ended."""
        self._pipes.pop(flow, None)


class _Pipe(FlowReceiver):
    """A flow from one side, and its copy on the other."""

    def __init__(self, bridge: SessionBridge, session: "Session", source: "RecvFlow") -> None:
        self._bridge, self._session, self._source = bridge, session, source
        self.onward: SendFlow | None = None

    def on_message(self, flow: "RecvFlow", message: bytes, now: float) -> None:
        """Pass a message on: RFC 7016 §3.6.3.3."""
        is_flash = flow.metadata.startswith(SIGNATURE)
        medium = medium_of(message[0]) if is_flash and message else Medium.COMMANDS
        try:
            onward = self.onward = self.onward or self._open(medium, now)
        except LocalError:  # the flow to associate it to has ended meanwhile
            flow.reject(0, now)
            self._bridge.forget(flow)
            return
        lifetime = LIVE.audio if medium is Medium.AUDIO else None
        onward.send(message, now, lifetime=lifetime)
        self._bridge.moved += len(message)
        if onward.queued > HIGH:
            flow.suspend()

    def on_exception(self, flow: "RecvFlow", now: float) -> None:
        """End the copy, as the source has broken a rule: RFC 7016 §3.6.3.7."""
        self.on_complete(flow, now)

    def on_complete(self, flow: "RecvFlow", now: float) -> None:
        """End the copy with its source: RFC 7016 §3.6.3.8."""
        if self.onward is None:
            self._bridge.forget(flow)
        else:
            self.onward.close(now)

    def _open(self, medium: Medium, now: float) -> "SendFlow":
        return self._bridge.other(self._session).open_flow(
            self._source.metadata,
            now,
            associated=self._bridge.returning(self._source),
            sender=_Onward(self._bridge, self._source),
            priority=medium.value,
            time_critical=medium is Medium.AUDIO,
        )


class _Onward(FlowSender):
    """Ties a source to its copy: its rejection, its backlog and its end."""

    def __init__(self, bridge: SessionBridge, source: "RecvFlow") -> None:
        self._bridge, self._source = bridge, source

    def on_exception(self, flow: "SendFlow", code: int, now: float) -> None:
        """Reject the source, as the far end rejects its copy: RFC 7016 §3.6.3.7."""
        self._source.reject(code, now)
        self._bridge.forget(self._source)

    def on_writable(self, flow: "SendFlow", now: float) -> None:
        """Let the source go on below `LOW`, where it does not stop again at once."""
        if flow.queued < LOW and self._source.is_suspended:
            self._source.resume(now)

    def on_complete(self, flow: "SendFlow", now: float) -> None:
        """Forget the source, as all of it has arrived: RFC 7016 §3.6.2.11."""
        self._bridge.forget(self._source)
