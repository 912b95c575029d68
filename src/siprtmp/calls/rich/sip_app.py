"""The RTMP application `sip`: logins of rich clients, and the line that an INVITE is for.

Own design: the API of the original siprtmp; its `connect` is here, its other commands in `line`.
Who has which identity is decided here, and the lines know nothing of each other.
"""

from collections.abc import Callable
from typing import Final, Protocol

from p2psip.errors import RemoteError
from p2psip.sip.address import Address
from p2psip.sip.message import Request
from p2psip.sip.uri import Uri
from p2psip.stack.stack import ServerHandle
from p2psip.ua.registering.registration import Registration, RegistrationHandler
from p2psip.ua.requests.digest_client import Login
from rtmplite.amf.values import Value
from rtmplite.errors import RemoteError as RtmpError
from rtmplite.rtmp.netconnection import NetConnection
from rtmplite.rtmp.netstream import ServerStream
from rtmplite.rtmp.wire.command import Command
from siprtmp.calls.access.admission import Holder
from siprtmp.calls.access.name_rights import HELD, NEEDS_PASSWORD, say_refused
from siprtmp.calls.home import CallHome
from siprtmp.calls.rich.line import Account, Line
from siprtmp.calls.trunks import LINE_PARAM

APP: Final = "sip"
ELSEWHERE: Final = "Logged in elsewhere."

Identity = tuple[str, str, int | None]
"""User, domain, and for a foreign domain its port."""


class SipHome(CallHome, Protocol):
    """What lines need beyond calls: registrations, and names of identities."""

    def register(
        self,
        aor: Address,
        contact: Uri,
        login: Login,
        owner: RegistrationHandler,
        host: str,
    ) -> Registration:
        """A registration of `aor`, not started, for a client at this host: RFC 3261 §10.2."""

    def unregister(self, registration: Registration, now: float) -> None:
        """Take a registration back: RFC 3261 §10.2.2."""

    def canonical(self, uri: Uri) -> Identity:
        """The one form of an identity that all names of its domain share: RFC 3261 §10.3."""


class SipApplication:
    """All lines of all rich clients.

    A line is entered once it has proved its identity; it then replaces an earlier line of that
    identity, or is refused with `keep_first`.  It owns the registrations of lines.
    """

    def __init__(self, home: SipHome, *, keep_first: bool = False) -> None:
        self._home, self._keep_first = home, keep_first
        self.context = home.context
        self._lines: dict[Identity, Line] = {}
        self._by_token: dict[str, Line] = {}  # the same, by what their Contacts carry
        self._registered: dict[Registration, Line] = {}  # those with a password, also too early

    def __len__(self) -> int:
        return len(self._lines)

    @property
    def identities(self) -> list[str]:
        """The identities of all lines, as user@domain."""
        return [f"{user}@{domain}" for user, domain, _ in self._lines]

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
        line = connection.data
        if isinstance(line, Line):
            if self._has(line):
                del self._lines[self._home.canonical(line.account.identity)]
            if self._by_token.get(connection.id) is line:
                del self._by_token[connection.id]
                key = self._home.canonical(line.account.identity)
                self._home.neighbours.has_line_no_more(key, connection.id)
            line.close(now)
            if line.registration is not None:
                self._registered.pop(line.registration, None)
                self._home.unregister(line.registration, now)
                line.registration = None

    # -- logging in ---------------------------------------------------------------------

    def _log_in(
        self, connection: NetConnection, account: Account, now: float, query: str = ""
    ) -> Line:
        """Register, or admit the client at once if it has no password.

        RFC 3261 §10.2: `connect` is answered after the registrar has answered.  `query` is the
        text after a question mark in a stream's name.
        """
        remote = connection.registry.open(APP, connection.id)
        rights = self._home.rights
        users = rights.users([account.identity])
        holder = users or rights.holder(connection.client, query, now)
        line = connection.data = Line(connection, account, self._home, remote, holder)
        reason = "" if self._is_proving(line) else self._refusal(line, query, now)
        if reason:
            _turn_away(line, f"403 Forbidden: {reason}", now)
        elif account.password:
            self._register(line, now)
        else:
            self._enter(line, now)
        return line

    def _register(self, line: Line, now: float) -> None:
        account = line.account
        login = Login(account.user, account.password)
        registration = self._home.register(account.address, line.contact, login, self, line.host)
        line.registration, self._registered[registration] = registration, line
        registration.start(now)

    def on_registered(self, registration: Registration, expires: int, now: float) -> None:
        if (line := self._registered.get(registration)) is not None:
            self._enter(line, now)

    def on_failed(self, registration: Registration, status: int, reason: str, now: float) -> None:
        """The registrar refused: RFC 3261 §10.2.7.  A line that was admitted stays."""
        line = self._registered.get(registration)
        if line is not None and not self._has(line):
            _turn_away(line, f"{status} {reason}", now)

    def _enter(self, line: Line, now: float) -> None:
        if self._admit(line, now):
            line.connection.accept(now)
        else:
            _turn_away(line, "Already logged in.", now)

    # -- incoming -----------------------------------------------------------------------

    def find(self, request: Request) -> Callable[[ServerHandle, float], None] | None:
        """The line an INVITE is for, by our Contact or its identity: RFC 3261 §16.5.

        The Request-URI alone tells: anybody may write anything into To.
        """
        line = self._by_token.get(request.uri.param(LINE_PARAM) or "")
        line = line or self._lines.get(self._home.canonical(request.uri))
        return line.incoming if line is not None else None

    def holder_of(self, connection_id: str) -> Holder | None:
        line = self._by_token.get(connection_id)
        return line.holder if line is not None else None

    def host(self, identity: Uri) -> str | None:
        line = self._lines.get(self._home.canonical(identity))
        return None if line is None else line.connection.peer_address[0]

    # -- inside -------------------------------------------------------------------------

    def _refusal(self, line: Line, query: str, now: float) -> str:
        """Why a line that proves no password may not have its identity; empty if it may."""
        rights, identity, connection = self._home.rights, line.account.identity, line.connection
        reason = rights.of_identity(identity, rights.holder(connection.client, query, now))
        is_user = bool(rights.users([identity]))
        if not (reason or is_user) and self._home.is_local_domain(identity):
            held = self._home.holder_of(identity.user or "")
            reason = HELD if held is not None else ""  # a line would come before its stream
        if reason and is_user:
            source = connection.peer_address[0]
            values = {"source": source, "rtmp": connection.id, "reason": "a password is needed"}
            self.context.log.event("login-refused", **values)
        elif reason:
            say_refused(self.context.log, connection.client, "connect", str(identity), reason)
        elif not self._home.may_use(connection, query):
            reason = NEEDS_PASSWORD
        return reason

    def _is_proving(self, line: Line) -> bool:
        """Whether a client has, or will have, proved its identity to a registrar.

        RFC 3261 §10.3 step 3.
        """
        account = line.account
        return bool(account.password) and self._home.rights.proves(account.identity)

    def _has(self, line: Line) -> bool:
        """Whether the line was admitted, and no other has replaced it."""
        return self._lines.get(self._home.canonical(line.account.identity)) is line

    def _admit(self, line: Line, now: float) -> bool:
        """Admit a line that has proved its identity; False if an earlier line keeps it.

        `keep_first` decides which of the two stays.  One that has proved nothing replaces only what
        the same holder has, and has not proved either: a program that connects again.
        """
        key, others = self._home.canonical(line.account.identity), self._home.neighbours
        first, elsewhere = self._lines.get(key), others.line(key)
        is_proving, before = self._is_proving(line), list[tuple[Holder, bool]]()
        if first is not None and first is not line:
            before.append((first.holder, self._is_proving(first)))
        if elsewhere is not None:
            before.append((elsewhere.holder, elsewhere.is_proving))
        for holder, was_proving in before:
            is_same = not (was_proving or holder.isdisjoint(line.holder))
            if self._keep_first or not (is_proving or is_same):
                return False
        self._lines[key] = self._by_token[line.connection.id] = line
        others.has_line(key, line.connection.id, line.host, line.holder, is_proving=is_proving)
        if first is not None and first is not line:
            first.connection.close(now, ELSEWHERE, "NetConnection.Connect.Closed")
        return True

    def log_out(self, key: Identity, now: float) -> None:
        """Close the line of an identity that has logged in at another worker."""
        if (line := self._lines.pop(key, None)) is not None:
            line.connection.close(now, ELSEWHERE, "NetConnection.Connect.Closed")

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


def _turn_away(line: Line, reason: str, now: float) -> None:
    """Reject the connect, or close a connection whose identity came with a stream's name."""
    line.connection.reject(reason, now)
    line.connection.close(now, reason, "NetConnection.Connect.Rejected")


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
