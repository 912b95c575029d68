"""The RTMP application `sip`: logins of rich clients, and the line that an INVITE is for.

Own design: the API of the original siprtmp; its `connect` is here, its other commands in `line`.
"""

from collections.abc import Callable
from typing import Final, Protocol

from p2psip.errors import RemoteError
from p2psip.sip.address import Address
from p2psip.sip.message import Request
from p2psip.sip.uri import Uri
from p2psip.stack.stack import ServerHandle
from p2psip.ua.registering.registration import Registration
from p2psip.ua.requests.digest_client import Login
from rtmplite.amf.values import Value
from rtmplite.errors import RemoteError as RtmpError
from rtmplite.live.streams import LiveStream
from rtmplite.rtmp.netconnection import NetConnection
from rtmplite.rtmp.netstream import ServerStream
from rtmplite.rtmp.wire.command import Command
from siprtmp.calls.access.admission import Holder
from siprtmp.calls.access.name_rights import HELD, NEEDS_PASSWORD, NameRights, say_refused
from siprtmp.calls.call import Call, CallContext
from siprtmp.calls.metadata import announce
from siprtmp.calls.rich.line import Account, Line
from siprtmp.calls.trunks import LINE_PARAM

APP: Final = "sip"

Identity = tuple[str, str, int | None]
"""User, domain, and for a foreign domain its port."""


class SipHome(Protocol):
    """The gateway's SIP side, as the application sees it."""

    context: CallContext
    rights: NameRights

    def contact(self, user: str, line: str) -> Uri:
        """A Contact that leads back here: RFC 3261 §8.1.1.8."""

    def register(
        self, aor: Address, contact: Uri, credentials: Login, owner: Line, now: float
    ) -> Registration:
        """Start registering `aor`: RFC 3261 §10.2."""

    def unregister(self, registration: Registration, now: float) -> None:
        """Take a registration back: RFC 3261 §10.2.2."""

    def may_use(self, connection: NetConnection, query: str) -> bool:
        """Whether this client may place and take calls, so that strangers may not."""

    def holder_of(self, name: str) -> Holder | None:
        """The holder of the stream or the line with this name, None if nobody has it."""

    def canonical(self, uri: Uri) -> Identity:
        """The one form of an identity that all names of its domain share: RFC 3261 §10.3."""

    def is_local_domain(self, uri: Uri) -> bool:
        """Whether the host is one we serve or listen on: RFC 3261 §16.5."""

    def payer(self, connection: NetConnection, identity: Uri | None, query: str) -> str:
        """The key that a client's calls are counted under."""


class SipApplication:
    """All lines of all rich clients.

    A line is entered once it has proved its identity; it then replaces an earlier line of that
    identity, or is refused with `keep_first`.
    """

    def __init__(self, home: SipHome, *, keep_first: bool = False) -> None:
        self._home, self._keep_first = home, keep_first
        self.context = home.context
        self._lines: dict[Identity, Line] = {}
        self._by_token: dict[str, Line] = {}  # the same, by what their Contacts carry

    def __len__(self) -> int:
        """The number of lines."""
        return len(self._lines)

    # -- Application --------------------------------------------------------------------

    def on_connect(self, connection: NetConnection, now: float) -> None:
        """Read the identity and the account; register when there is a password.

        RTMP 1.0 §7.2.1.1.  A stock tool may split the URL before the identity; it is accepted, and
        names the identity by publishing or playing.
        """
        if not connection.instance:
            connection.accept(now)
            return
        try:
            account = read_account(connection.instance, connection.connect_args)
        except RemoteError as error:
            connection.reject(f"{error.status} {error.reason}", now)
            return
        self._log_in(connection, account, now)

    def on_command(self, connection: NetConnection, command: Command, now: float) -> None:
        """Give a command to the line: RTMP 1.0 §7.2.1.2."""
        line = connection.data
        if isinstance(line, Line):
            line.command(command, now)
        else:
            connection.error(command.transaction_id, RtmpError("No identity in the URL"))

    def on_publish(
        self, connection: NetConnection, stream: ServerStream, name: str, now: float
    ) -> None:
        """Any published stream is `local`: RTMP 1.0 §7.2.2.6."""
        line = self._line_of(connection, stream, now)
        if line is None:
            stream.reject_publish("NetStream.Publish.BadName", "No identity in the URL.", now)
            return
        line.publish(stream, now)

    def on_play(
        self, connection: NetConnection, stream: ServerStream, name: str, now: float
    ) -> None:
        """Any played stream is `remote`: RTMP 1.0 §7.2.2.1."""
        line = self._line_of(connection, stream, now)
        if line is None:
            stream.reject_play("NetStream.Play.StreamNotFound", "No identity in the URL.", now)
            return
        stream.accept_play(line.remote, now)

    def on_disconnect(self, connection: NetConnection, now: float) -> None:
        """End the line with its connection: RFC 3261 §15, §10.2.2."""
        line = connection.data
        if isinstance(line, Line):
            if self.has(line):
                del self._lines[self._home.canonical(line.account.identity)]
            if self._by_token.get(connection.id) is line:
                del self._by_token[connection.id]
            line.close(now)

    # -- for lines ----------------------------------------------------------------------

    def contact_for(self, identity: Uri, line: str) -> Uri:
        """The Contact of one line: RFC 3261 §8.1.1.8."""
        return self._home.contact(identity.user or "", line)

    def register(self, line: Line, now: float) -> Registration:
        """Register the line's identity: RFC 3261 §10.2."""
        credentials = self.credentials(line.account)
        assert credentials is not None
        return self._home.register(line.account.address, line.contact, credentials, line, now)

    def credentials(self, account: Account) -> Login | None:
        """The login that answers a challenge: RFC 7616 §3.4; None without a password."""
        return Login(account.user, account.password) if account.password else None

    def unregister(self, registration: Registration, now: float) -> None:
        """Take a line's registration back: RFC 3261 §10.2.2."""
        self._home.unregister(registration, now)

    def refusal(self, line: Line, query: str, now: float) -> str:
        """Why a line that proves no password may not have its identity; empty if it may."""
        rights, identity, connection = self._home.rights, line.account.identity, line.connection
        reason = rights.of_identity(identity, rights.holder(connection, query, now))
        is_user = bool(rights.users([identity]))
        if not (reason or is_user) and self._home.is_local_domain(identity):
            held = self._home.holder_of(identity.user or "")
            reason = HELD if held is not None else ""  # a line would come before its stream
        if reason and is_user:
            source = connection.peer_address[0]
            values = {"source": source, "rtmp": connection.id, "reason": "a password is needed"}
            self.context.log.event("login-refused", **values)
        elif reason:
            say_refused(self.context.log, connection, "connect", str(identity), reason)
        elif not self._home.may_use(connection, query):
            reason = NEEDS_PASSWORD
        return reason

    def proves(self, identity: Uri) -> bool:
        """Whether the registrar of `identity` asks for its password: RFC 3261 §10.3 step 3."""
        return self._home.rights.proves(identity)

    def is_local_domain(self, uri: Uri) -> bool:
        """Whether the host is one we serve or listen on: RFC 3261 §16.5."""
        return self._home.is_local_domain(uri)

    def payer(self, connection: NetConnection, identity: Uri) -> str:
        """The key that a line's calls are counted under."""
        return self._home.payer(connection, identity, "")

    def announce(self, remote: LiveStream, call: Call | None, now: float) -> None:
        """Begin `remote` with its metadata: FLV 10.1 §E.5."""
        announce(remote, call, now)

    # -- incoming -----------------------------------------------------------------------

    def find(self, request: Request) -> Callable[[ServerHandle, float], None] | None:
        """The line an INVITE is for, by our Contact or its identity: RFC 3261 §16.5.

        The Request-URI alone tells: anybody may write anything into To.
        """
        line = self._by_token.get(request.uri.param(LINE_PARAM) or "")
        line = line or self._lines.get(self._home.canonical(request.uri))
        return line.incoming if line is not None else None

    def holder_of(self, connection_id: str) -> Holder | None:
        """The holder of the line of a connection, None if there is no such line."""
        line = self._by_token.get(connection_id)
        return line.holder if line is not None else None

    def host(self, identity: Uri) -> str | None:
        """The host of a line's client, None if there is no such line."""
        line = self._lines.get(self._home.canonical(identity))
        return None if line is None else line.connection.peer_address[0]

    # -- inside -------------------------------------------------------------------------

    def has(self, line: Line) -> bool:
        """Whether the line was admitted, and no other has replaced it."""
        return self._lines.get(self._home.canonical(line.account.identity)) is line

    def admit(self, line: Line, now: float) -> bool:
        """Admit a line that has proved its identity; False if an earlier line keeps it.

        `keep_first` decides which of the two stays.  One that has proved nothing replaces only what
        the same holder has, and has not proved either: a program that connects again.
        """
        key = self._home.canonical(line.account.identity)
        first = self._lines.get(key)
        if first is not None and first is not line:
            is_same = not (first.is_proving or first.holder.isdisjoint(line.holder))
            if self._keep_first or not (line.is_proving or is_same):
                return False
        self._lines[key] = self._by_token[line.connection.id] = line
        if first is not None and first is not line:
            first.connection.close(now, "Logged in elsewhere.", "NetConnection.Connect.Closed")
        return True

    def _log_in(
        self, connection: NetConnection, account: Account, now: float, query: str = ""
    ) -> Line:
        remote = connection.registry.open(APP, connection.id)
        rights = self._home.rights
        users = rights.users([account.identity])
        holder = users or rights.holder(connection, query, now)
        line = connection.data = Line(connection, account, self, remote, holder)
        line.connect(now, query)
        return line

    def _line_of(self, connection: NetConnection, stream: ServerStream, now: float) -> Line | None:
        """The connection's line, or a new one for `alice@host/local` as ffmpeg splits it."""
        if isinstance(connection.data, Line):
            return connection.data
        identity, _, _ = stream.path.partition("/")
        try:
            account = read_account(identity, connection.connect_args)
        except RemoteError:
            return None
        return self._log_in(connection, account, now, stream.query)


def read_account(instance: str, args: tuple[Value, ...]) -> Account:
    """Read `USER@DOMAIN` and the optional arguments: account, password, display name, rate.

    In the original's order; "sip:" may stand before the identity.  Raises
    RemoteError(400) for what is not an identity.
    """
    uri = Uri.parse(f"sip:{instance.removeprefix('sip:')}")
    if not (uri.host and uri.user) or uri.password is not None:  # which all callees would read
        raise RemoteError("Not an identity")
    texts = [arg if isinstance(arg, str) else "" for arg in args[:4]] + [""] * 4
    auth_user, password, display, rate = texts[:4]
    if not auth_user.isprintable():  # it goes into a header: RFC 3261 §7.3.1
        raise RemoteError("Not a login name")
    return Account(uri, auth_user or uri.user, password, display, rate == "narrowband")
