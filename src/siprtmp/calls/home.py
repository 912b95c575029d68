"""The gateway's SIP side, as the applications of RTMP see it.

Own design: names, lines and rooms know their home by this protocol, and not each other.
"""

from typing import Protocol

from p2psip.sip.address import Address
from p2psip.sip.uri import Uri
from p2psip.stack.stack import ServerHandle
from rtmplite.rtmp.netconnection import NetConnection
from rtmplite.rtmp.netstream import ServedClient
from siprtmp.calls.access.admission import Holder
from siprtmp.calls.access.name_rights import NameRights
from siprtmp.calls.call import CallContext


class CallHome(Protocol):
    """The gateway's SIP side, as an application sees it."""

    context: CallContext
    rights: NameRights

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
