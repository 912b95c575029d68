"""What a server application must be able to do, and what it can be given.

Own design: the commands of RTMP 1.0 §7.2 leave every decision to "the server"; this is the line
between the part of it that knows the protocol and the part that decides.  Nothing here may block:
an application that needs time answers later, by the same methods.
"""

from typing import TYPE_CHECKING, Protocol

from rtmplite.rtmp.command import Command

if TYPE_CHECKING:
    from rtmplite.rtmp.netstream import ServerStream
    from rtmplite.rtmp.server import ServerConnection


class Sink(Protocol):
    """Own design: where a published stream goes, be it a `LiveStream`, a recorder or a phone."""

    def write(self, type_id: int, timestamp: int, payload: bytes, now: float) -> None:
        """Take one message of type 8, 9 or 18; `timestamp` in ms: RTMP 1.0 §7.1.2 to §7.1.5."""

    def end(self, now: float) -> None:
        """Own design: no more will come, whether unpublished or cut off."""


class Application(Protocol):
    """Own design: the deciding half of a server; one may serve any number of connections."""

    def on_connect(self, connection: "ServerConnection", now: float) -> None:
        """Lead to `accept` or `reject`, now or later: RTMP 1.0 §7.2.1.1.

        Until then nothing else of that client is looked at.
        """

    def on_command(self, connection: "ServerConnection", command: Command, now: float) -> None:
        """Take a call that RTMP 1.0 §7.2.1 does not define (RTMP 1.0 §7.2.1.2).

        Answer with `connection.result` or `connection.error`.
        """

    def on_publish(
        self, connection: "ServerConnection", stream: "ServerStream", name: str, now: float
    ) -> None:
        """Lead to `stream.accept_publish` or `stream.reject_publish`: RTMP 1.0 §7.2.2.6."""

    def on_play(
        self, connection: "ServerConnection", stream: "ServerStream", name: str, now: float
    ) -> None:
        """Lead to `stream.accept_play` or `stream.reject_play`: RTMP 1.0 §7.2.2.1."""

    def on_disconnect(self, connection: "ServerConnection", now: float) -> None:
        """The connection is gone, whoever ended it; its streams have ended before.

        Own design: it follows every `on_connect`, once.
        """
