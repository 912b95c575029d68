"""The RTMP application `mixed`: both sides of calls, to play.

Own design: it is for those who may play a call; only the gateway publishes there.
"""

from rtmplite.rtmp.application import OpenApplication
from rtmplite.rtmp.netconnection import NetConnection
from rtmplite.rtmp.netstream import ServerStream
from siprtmp.calls import failures
from siprtmp.calls.access.name_rights import HELD, say_refused
from siprtmp.calls.home import CallHome
from siprtmp.calls.mixed.mixed_call import APP


class MixedApplication(OpenApplication):
    """Plays the mixes of calls, now or when they come."""

    def __init__(self, home: CallHome) -> None:
        self._home = home

    def on_play(
        self, connection: NetConnection, stream: ServerStream, name: str, now: float
    ) -> None:
        """Hear both sides of a call; playing never dials.  RTMP 1.0 §7.2.2.1."""
        if not stream.path:
            stream.reject_play("NetStream.Play.StreamNotFound", "A call needs a name.", now)
        elif not self._home.may_use(connection, stream.query):
            why = failures.forbidden(connection.tc_url, stream.query)
            stream.reject_play("NetStream.Play.Failed", why, now)
        elif reason := self._refusal(connection, stream, now):
            say_refused(self._home.context.log, connection, "play", stream.path, reason)
            stream.reject_play("NetStream.Play.Failed", f"{stream.path}: {reason}.", now)
        else:
            stream.accept_play(connection.registry.open(APP, stream.path), now)

    def _refusal(self, connection: NetConnection, stream: ServerStream, now: float) -> str:
        """Why a client may not hear a call, which belongs to the holder of its name."""
        rights, name = self._home.rights, stream.path
        holder, held = rights.holder(connection, stream.query, now), self._home.holder_of(name)
        if held is not None and held.isdisjoint(holder):
            return HELD
        return rights.of_stream(name, holder)
