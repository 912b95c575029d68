"""The gateway's SIP side, as the applications of RTMP see it, and what they refuse a client for.

Own design: names, lines and rooms know their home by this protocol, and not each other.
"""

from typing import Final, Protocol

from p2psip.sip.address import Address
from p2psip.sip.uri import Uri
from p2psip.stack.stack import ServerHandle
from p2psip.ua.requests.extensions import Extensions
from p2psip.ua.requests.request_validation import CALL_METHODS
from rtmplite.auth.credentials import fields
from rtmplite.rtmp.message_transport import ConnectionEnd
from rtmplite.rtmp.netconnection import NetConnection
from rtmplite.rtmp.netstream import ServedClient, ServerStream
from siprtmp.calls import failures
from siprtmp.calls.access.admission import Holder
from siprtmp.calls.access.name_rights import NameRights
from siprtmp.calls.call import CallContext
from siprtmp.calls.neighbours import Neighbours

BAD_NAME: Final = "NetStream.Publish.BadName"
NOT_FOUND: Final = "NetStream.Play.StreamNotFound"
NO_ROOM: Final = "There is no such room."
PLAY_FAILED: Final = "NetStream.Play.Failed"
KEY_FRAME_WANTED: Final = "NetStream.Publish.KeyFrameWanted"  # Own design: RTMP has no such code
UNSUITABLE: Final = "NetStream.Publish.Unsuitable"  # Own design: what cannot be carried

# What the user agents of RTMP clients take beyond calls.
EXTENSIONS: Final = Extensions(methods=(*CALL_METHODS, "MESSAGE", "REFER", "NOTIFY"))


class CallHome(Protocol):
    """The gateway's SIP side, as an application sees it."""

    context: CallContext
    rights: NameRights
    neighbours: Neighbours

    @property
    def caller(self) -> Address:
        """From of the calls placed for stock tools: RFC 3261 §8.1.1.3."""

    def contact(self, user: str, line: str) -> Uri:
        """A Contact that leads back here: RFC 3261 §8.1.1.8."""

    def is_local_domain(self, uri: Uri) -> bool:
        """Whether the host is one we serve or listen on: RFC 3261 §16.5."""

    def may_use(self, connection: NetConnection, query: str) -> bool:
        """Whether this client may place calls, so that strangers may not."""

    def payer(self, client: ServedClient, identity: Uri | None, query: str) -> str:
        """The key that a client's calls are counted under."""

    def is_proven(self, server: ServerHandle, now: float) -> bool:
        """Whether the sender of an INVITE cannot have forged its address."""

    def holder_of(self, name: str) -> Holder | None:
        """The holder of the stream or the line with this name, None if nobody has it."""


def may_publish(
    home: CallHome, connection: NetConnection, stream: ServerStream, now: float
) -> bool:
    """Whether a client may use telephones; one that may not is told so, and disconnected."""
    if home.may_use(connection, stream.query):
        return True
    stream.reject_publish(failures.REJECTED, _forbidden(connection, stream), now)
    connection.close(now, "not allowed to call")
    return False


def may_play(home: CallHome, connection: NetConnection, stream: ServerStream, now: float) -> bool:
    """Whether a client may hear telephones; one that may not is told so."""
    if home.may_use(connection, stream.query):
        return True
    stream.reject_play(PLAY_FAILED, _forbidden(connection, stream), now)
    return False


def hold_back(connection: ConnectionEnd, hold: bool) -> None:
    """Stop reading from a client, or read again."""
    if hold:
        connection.pause_reading()
    else:
        connection.resume_reading()


def _forbidden(connection: NetConnection, stream: ServerStream) -> str:
    """What a client is told that may not use telephones, by whether it named a user."""
    queries = connection.tc_url.partition("?")[2], stream.query
    is_wrong = any("user" in fields(each) for each in queries)
    why = "wrong user or password" if is_wrong else "user and password are needed"
    return f"{failures.told(*failures.FORBIDDEN)}: {why}"
