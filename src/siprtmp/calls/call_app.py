"""The RTMP application `call`: phone calls for tools that can only publish and play.

Own design: one name has two directions.  A stream published under it goes to the phone; a stream
played under it comes from the phone, and never has the publisher's own audio.  A name with `@` is
dialled when it is published, and so is tel:NUMBER, by a trunk; any other name waits to be called as
sip:NAME@domain.

RFC 3261 §13 happens behind `Call`; the stream side is RTMP 1.0 §7.2.2.
"""

from collections.abc import Callable

from p2psip.sip.message import Request
from p2psip.stack.stack import ServerHandle
from rtmplite.live.streams import Registry, Viewer
from rtmplite.rtmp.application import OpenApplication
from rtmplite.rtmp.netconnection import NetConnection
from rtmplite.rtmp.netstream import ServerStream
from siprtmp.calls.access.admission import Holder
from siprtmp.calls.access.name_rights import HELD, say_refused
from siprtmp.calls.home import BAD_NAME, NOT_FOUND, PLAY_FAILED, CallHome, may_play, may_publish
from siprtmp.calls.named_call import APP, MIXED, NamedCall, is_dialled


class CallApplication(OpenApplication):
    """All names in use; a name without publisher, players and call is forgotten."""

    def __init__(self, home: CallHome) -> None:
        self.home = home
        self.context = home.context
        self._names: dict[str, NamedCall] = {}

    def __len__(self) -> int:
        return len(self._names)

    def on_publish(
        self, connection: NetConnection, stream: ServerStream, name: str, now: float
    ) -> None:
        """Dial a name with `@`, or wait under one without: RTMP 1.0 §7.2.2.6."""
        path = stream.path
        if not path:
            stream.reject_publish(BAD_NAME, "A call needs a name.", now)
        elif may_publish(self.home, connection, stream, now):
            if reason := self._claim(connection, stream, now, is_publisher=True):
                stream.reject_publish(BAD_NAME, f"{path}: {reason}.", now)
                connection.close(now, reason)
            else:
                self.open(path, connection.registry).publish(stream, now)

    def on_play(
        self, connection: NetConnection, stream: ServerStream, name: str, now: float
    ) -> None:
        """Hear the phone, now or when it comes; playing never dials.  RTMP 1.0 §7.2.2.1."""
        if not stream.path:
            stream.reject_play(NOT_FOUND, "A call needs a name.", now)
        elif may_play(self.home, connection, stream, now):
            if reason := self._claim(connection, stream, now):
                stream.reject_play(PLAY_FAILED, f"{stream.path}: {reason}.", now)
            else:
                stream.accept_play(self.open(stream.path, connection.registry).remote, now)

    def find(self, request: Request) -> Callable[[ServerHandle, float], None] | None:
        """The waiting name a request is for, if any: RFC 3261 §16.5.

        A message is for the phones of that user, since a stock tool cannot show it.
        """
        if request.method == "MESSAGE" or not self.home.is_local_domain(request.uri):
            return None
        named = self._names.get(request.uri.user or "")
        if named is None or named.dials or not self.home.rights.is_for(request.uri, named.holder):
            return None
        return named.incoming

    def holder_of(self, name: str) -> Holder | None:
        named = self._names.get(name)
        return named.holder if named is not None else None

    def _claim(
        self,
        connection: NetConnection,
        stream: ServerStream,
        now: float,
        *,
        is_publisher: bool = False,
    ) -> str:
        """Give a client the name of its stream, or the reason why not.

        A publisher takes a name from others that only wait to play it, or anybody could keep an
        address from being called.
        """
        rights, name = self.home.rights, stream.path
        holder, named = rights.holder(stream.client, stream.query, now), self._names.get(name)
        reason = "" if is_dialled(name) else rights.of_stream(name, holder)
        if named is not None and named.holder is not None and named.holder.isdisjoint(holder):
            reason = reason or (HELD if named.is_busy or not is_publisher else "")
        if reason:
            wants = "publish" if is_publisher else "play"
            say_refused(self.context.log, stream.client, wants, name, reason)
            return reason
        if named is not None and is_publisher:
            named.release(stream, now)
        for app in (APP, MIXED):
            for viewer in connection.registry.open(app, name).viewers:
                self._turn_out(viewer, holder, now)
        self.open(name, connection.registry).holder = holder
        return ""

    def _turn_out(self, viewer: Viewer, holder: Holder, now: float) -> None:
        if isinstance(viewer, ServerStream):
            its = self.home.rights.holder(viewer.client, viewer.query, now)
            if its.isdisjoint(holder):
                say_refused(self.context.log, viewer.client, "play", viewer.path, HELD)
                viewer.status(PLAY_FAILED, f"{viewer.path}: {HELD}.", "error")
                viewer.stop(now)

    def forget(self, named: NamedCall) -> None:
        if self._names.get(named.name) is named:
            del self._names[named.name]

    def open(self, name: str, registry: Registry) -> NamedCall:
        """Return the call of a name; make one if the name is not in use."""
        named = self._names.get(name)
        if named is None:
            remote = registry.open(APP, name)
            named = self._names[name] = NamedCall(name, self.home, remote, self.forget)
        return named
