"""The RTMP application `call`: phone calls for tools that can only publish and play.

Own design: one name has two directions.  A stream published under it goes to the phone; a stream
played under it comes from the phone, and never has the publisher's own audio.  A name with `@` is
dialled when it is published, and so is tel:NUMBER, by a trunk; any other name waits to be called as
sip:NAME@domain.

RFC 3261 §13 happens behind `Call`; the stream side is RTMP 1.0 §7.2.2.
"""

from collections.abc import Callable, Iterator
from typing import Final

from p2psip.sip.message import Request
from p2psip.sip.uri import Uri
from p2psip.stack.stack import ServerHandle
from rtmplite.live.streams import Registry, Viewer
from rtmplite.rtmp.application import OpenApplication
from rtmplite.rtmp.netconnection import NetConnection
from rtmplite.rtmp.netstream import ServerStream
from siprtmp.calls.access.admission import Holder
from siprtmp.calls.access.name_rights import HELD, say_refused
from siprtmp.calls.home import BAD_NAME, NOT_FOUND, PLAY_FAILED, CallHome, may_play, may_publish
from siprtmp.calls.named_call import APP, MIXED, NamedCall, is_dialled

USED: Final = "it is used by another client"


class CallApplication(OpenApplication):
    """All names in use; a name without publisher, players and call is forgotten.

    `has_page(uri)` tells whether a page is there in which a user decides about calls.
    """

    def __init__(self, home: CallHome, registry: Registry) -> None:
        self.home, self._registry = home, registry
        self.has_page: Callable[[Uri], bool] = lambda uri: False
        self.context = home.context
        self._names: dict[str, NamedCall] = {}

    def __len__(self) -> int:
        return len(self._names)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

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
        """The waiting name a request is for, if any, or the page of its user: RFC 3261 §16.5.

        A message is for the phones of that user, since a stock tool cannot show it.
        """
        if request.method == "MESSAGE" or not self.home.is_local_domain(request.uri):
            return None
        name = request.uri.user or ""
        named = self._names.get(name)
        if (named is None or not named.is_busy) and self.has_page(request.uri):
            return lambda server, now: self.open(name, self._registry).ring(server, now)
        if named is None or named.dials or not self.home.rights.is_for(request.uri, named.holder):
            return None
        return named.incoming

    def vouches(self, request: Request) -> bool:
        """Whether a request is of a call whose caller has been proved: see `NamedCall.place`."""
        if request.headers.get("From") is None:
            return False
        named = self._names.get(request.from_.uri.user or "")
        return named is not None and named.vouches(request.call_id)

    def holder_of(self, name: str) -> Holder | None:
        named = self._names.get(name)
        return named.holder if named is not None else None

    def waiting(self, name: str) -> NamedCall | None:
        """What waits under a name here, busy or not; None if nobody does."""
        named = self._names.get(name)
        return None if named is None or named.dials else named

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
            named.release(stream.newcomer, now)
        self._turn_others_out(name, connection.registry, holder, now)
        named = self.open(name, connection.registry)
        named.holder = holder
        named.note()
        return ""

    def give_up(
        self, name: str, registry: Registry, claimant: tuple[Holder, tuple[str, bool]], now: float
    ) -> str:
        """Let a client of another worker publish under a name, or tell the reason why not.

        The claimant is a holder and its newcomer, see `ServerStream.newcomer`.
        """
        holder, newcomer = claimant
        named = self._names.get(name)
        if named is not None and named.is_busy:
            if named.holder is not None and named.holder.isdisjoint(holder):
                return HELD
            named.release(newcomer, now)
            if named.is_busy:
                return USED
        self._turn_others_out(name, registry, holder, now)
        return ""

    def _turn_others_out(self, name: str, registry: Registry, holder: Holder, now: float) -> None:
        """End the players of other holders."""
        for app in (APP, MIXED):
            live = registry.get(app, name)
            for viewer in live.viewers if live is not None else ():
                self._turn_out(viewer, holder, now)

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
            self.home.neighbours.has_name_no_more(named.name)

    def open(self, name: str, registry: Registry) -> NamedCall:
        """Return the call of a name; make one if the name is not in use."""
        named = self._names.get(name)
        if named is None:
            remote = registry.open(APP, name)
            named = self._names[name] = NamedCall(name, self.home, remote, self.forget)
        return named
