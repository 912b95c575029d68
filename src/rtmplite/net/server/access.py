"""The access rules of a server as one guard, and the limits of its connections."""

import argparse
import getpass
import ipaddress
import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

import gevent
from gevent.event import AsyncResult

from rtmplite.auth.credentials import (
    NEEDS_USER,
    KeysGuard,
    SignedGuard,
    Users,
    UsersGuard,
    fields,
    in_words,
    is_challenge,
    needs_user,
    sign,
    user_lines,
)
from rtmplite.auth.guard import (
    AuditedGuard,
    Event,
    Guard,
    GuardedApplication,
    Guards,
    Question,
    Verdict,
)
from rtmplite.errors import LocalError
from rtmplite.net.clock import now
from rtmplite.net.connection_limit import ConnectionLimit
from rtmplite.net.descriptors import raise_limit, within
from rtmplite.net.secret_files import keep_private
from rtmplite.net.server.hooks import HttpGuard
from rtmplite.net.server.settings import AccessSettings, ClientLimits
from rtmplite.net.usage import sentence
from rtmplite.rtmp.message_transport import ConnectionLimits
from rtmplite.rtmp.netconnection import Application, NetConnection
from rtmplite.rtmp.netstream import ServerStream, State

CHALLENGE_TIMEOUT: Final = 3.0  # s until an encoder that was asked for a user has gone without
MOST_WAITING: Final = 1000  # of them


def limits(settings: ClientLimits) -> ConnectionLimits:
    return ConnectionLimits(idle=settings.idle, message=settings.max_message)


def connection_limit(
    settings: ClientLimits, make: Callable[[int, int], ConnectionLimit] = ConnectionLimit
) -> ConnectionLimit:
    """The limits of all connections: as asked for, if the system has the descriptors."""
    raise_limit()
    most = within(settings.max_connections)
    return make(most, within(settings.max_per_address, 2))


class Access:
    """All access rules as one guard; `on_refused` hears who and why.  LocalError for wrong ones."""

    def __init__(
        self,
        settings: AccessSettings,
        on_refused: Callable[[Question, str], None] = lambda question, reason: None,
    ) -> None:
        self._unnamed = _Unnamed(lambda question: on_refused(question, NEEDS_USER))

        def refused(question: Question, verdict: Verdict) -> None:
            if is_challenge(verdict):
                self._unnamed.goes_on(question)
            elif needs_user(verdict):
                self._unnamed.hold(question)
            else:
                on_refused(question, in_words(verdict))

        guards: list[Guard] = []
        is_for_users = settings.users is not None and not settings.allow_anonymous
        self._users: UsersGuard | None = None
        self._file = settings.users
        if settings.users is not None and not settings.allow_anonymous:
            users = _users_of(settings.users)
            self._users = UsersGuard(users, os.urandom, for_all=settings.users_only)
            guards.append(self._users)
        elif settings.users_only:
            raise LocalError("--users-only needs --users, and no --allow-anonymous")
        publish = _keys("publish", settings.publish_key)
        play = _keys("play", settings.play_key)
        if publish or play:
            guards.append(KeysGuard(publish, play))
        if settings.sign_key is not None:
            events = {Event.PUBLISH, Event.PLAY} if settings.sign_play else {Event.PUBLISH}
            secret = _secret(settings.sign_key)
            guards.append(SignedGuard(secret, time.time, frozenset(events)))
        urls = {
            Event.CONNECT: settings.on_connect,
            Event.PUBLISH: settings.on_publish,
            Event.PLAY: settings.on_play,
            Event.DONE: settings.on_done,
        }
        asked = {event: url for event, url in urls.items() if url is not None}
        self._http = HttpGuard(
            asked, timeout=settings.hook_timeout, requests=settings.hook_requests
        )
        if asked:
            guards.append(self._http)
        self._guard = AuditedGuard(Guards(guards), refused) if guards else None
        self._service = AuditedGuard(self._http, refused) if asked else None
        self.guards_publishing = bool(
            publish
            or is_for_users
            or settings.sign_key is not None
            or not {Event.PUBLISH, Event.CONNECT}.isdisjoint(asked)
        )
        self._proving = {
            Event.PUBLISH: bool(publish or is_for_users or settings.sign_key is not None),
            Event.PLAY: bool(play or (is_for_users and settings.users_only))
            or (settings.sign_key is not None and settings.sign_play),
        }
        self._is_safe = self.guards_publishing or settings.allow_anonymous

    def demands_proof(self, event: Event) -> bool:
        """Whether the rules let nobody publish, or play, without a password, key or signature.

        A web service may let in anybody, so it does not count.
        """
        return self._proving[event]

    def guard(self, application: Application) -> Application:
        """Put an application behind the rules."""
        return application if self._guard is None else GuardedApplication(application, self._guard)

    def ask_service(self, application: Application) -> Application:
        """Put an application with users and names of its own behind the web service alone."""
        service = self._service
        return application if service is None else GuardedApplication(application, service)

    def check(self, addresses: Iterable[tuple[str, int] | None]) -> None:
        """Raise LocalError if all could publish from other machines and no option allows that."""
        for address in addresses:
            if address and not (self._is_safe or is_loopback(address[0])):
                raise LocalError(
                    f"{address[0]} is open to all: say who may publish (--users, --publish-key,"
                    " --sign-key, --on-publish), or --allow-anonymous"
                )

    def admits(
        self, app: str, name: str, query: str, host: str, wanted: Event = Event.PLAY
    ) -> Callable[[], None] | None:
        """Wait for the verdict on a client by HTTP; give a callback for its leaving, or None."""
        if (guard := self._guard) is None:
            return lambda: None
        asked = Question(
            Event.CONNECT, host, 0, "", app, "", "", "", "", query, (), name, name, query
        )
        for event in (Event.CONNECT, wanted):
            verdict = _wait(guard, replace(asked, event=event))
            if not verdict.is_allowed or verdict.url or verdict.name:
                return None
        done = replace(asked, event=Event.DONE, was=wanted)
        return lambda: guard.tell(done, now())

    def has_challenged(self, question: Question) -> bool:
        """Whether a client has answered a challenge as a user: Field §"authmod=adobe".

        `guard` lets no client pass with a wrong answer.
        """
        return self._users is not None and "authmod" in fields(question.connect_query)

    def user_of(self, connection: NetConnection, stream: ServerStream) -> str:
        """The user a client has proved to be, or empty; names are proofs for publishers."""
        if self._users is None:
            return ""
        asked = Question.of(connection, Event.PUBLISH).about(stream)
        said = fields(asked.connect_query)
        if "user" not in said and stream.state is State.PUBLISHING:
            said = fields(asked.query)
        return unquote(said.get("user", ""))

    def reload(self) -> None:
        """Read the users again.  If that fails, the former stay; raises LocalError then."""
        if self._users is not None and self._file is not None:
            self._users.renew(_users_of(self._file))

    def stop(self) -> None:
        """End all requests to the web service."""
        self._http.stop()
        self._unnamed.stop()


class _Unnamed:
    """Tells of the encoders that were asked for a user, unless they name one on a connection anew.

    Own design: a login by Field §"authmod=adobe" begins with a refusal, which is no news then.
    """

    def __init__(self, tell: Callable[[Question], None]) -> None:
        self._tell = tell
        self._waiting: dict[Question, Any] = {}  # with their timers, the oldest first

    def hold(self, question: Question) -> None:
        """Tell of this client in `CHALLENGE_TIMEOUT` seconds; at once where many have come."""
        if question in self._waiting or len(self._waiting) >= MOST_WAITING:
            self._tell(question)
            return
        timer = self._waiting[question] = gevent.get_hub().loop.timer(CHALLENGE_TIMEOUT)
        timer.start(self._give_up, question)

    def goes_on(self, question: Question) -> None:
        """A client of that host and application has named a user."""
        place = _place(question)
        before = next((each for each in self._waiting if _place(each) == place), None)
        if before is not None:
            self._forget(before)

    def stop(self) -> None:
        for question in list(self._waiting):
            self._give_up(question)

    def _give_up(self, question: Question) -> None:
        self._forget(question)
        self._tell(question)

    def _forget(self, question: Question) -> None:
        timer = self._waiting.pop(question)
        timer.stop()
        timer.close()


def _place(question: Question) -> tuple[str, str]:
    return question.host, question.app.partition("?")[0]


def add_commands(commands: Any) -> None:
    """Add the commands `users` and `sign`, which make the users and links that `serve` checks."""
    said = "make the lines of a user for --users; asks for the password"
    user = commands.add_parser("users", help=said, description=sentence(said))
    user.add_argument("user", help="The name, as in rtmp://USER:PASSWORD@host/app.")
    user.add_argument("realm", help="The SIP domain of the user; for RTMP alone any word will do.")
    user.set_defaults(run=_users)
    said = "make a signed link to a stream, for serve --sign-key"
    link = commands.add_parser("sign", help=said, description=sentence(said))
    link.add_argument("event", choices=[Event.PUBLISH, Event.PLAY], type=Event,
        help="What the link allows.")  # fmt: skip
    link.add_argument("name", help="The name of the stream.")
    link.add_argument(
        "--key",
        type=Path,
        required=True,
        metavar="FILE",
        help="The file with the secret that serve --sign-key has.",
    )
    link.add_argument(
        "--seconds",
        type=int,
        default=3600,
        metavar="S",
        help="How long the link is valid, in seconds (3600).",
    )
    link.set_defaults(run=_sign)


def is_loopback(host: str) -> bool:
    """Whether only this machine can connect to an address."""
    try:
        ip = ipaddress.ip_address(host)
    except ValueError:
        return host.lower() == "localhost"
    return (getattr(ip, "ipv4_mapped", None) or ip).is_loopback


def _users(options: argparse.Namespace) -> int:
    stdin = sys.stdin
    password = getpass.getpass() if stdin.isatty() else stdin.readline().rstrip("\n")
    lines = user_lines(options.user, options.realm, password)
    keep_private(sys.stdout)
    print("\n".join(lines))
    return 0


def _sign(options: argparse.Namespace) -> int:
    if "://" in options.name or "?" in options.name:
        raise LocalError(
            f"{options.name}: sign takes the name of a stream, such as demo for"
            " rtmp://HOST/live/demo, and prints what to write in its place"
        )
    expires = str(int(time.time()) + options.seconds)
    token = sign(_secret(options.key), options.event, options.name, expires)
    print(f"{options.name}?expires={expires}&token={token}")
    return 0


def _wait(guard: Guard, question: Question) -> Verdict:
    verdicts: AsyncResult[Verdict] = AsyncResult()
    guard.ask(question, lambda verdict, now: verdicts.set(verdict), now())
    verdict = verdicts.get()
    assert verdict is not None  # the stubs think of get(block=False)
    return verdict


def _keys(what: str, given: Iterable[str]) -> Mapping[str, str]:
    keys = {}
    for pair in given:
        name, _, key = pair.partition("=")
        if not name or not key:
            raise LocalError(f"--{what}-key is not NAME=KEY")
        keys[name] = key
    return keys


def _secret(path: Path) -> bytes:
    secret = _read(path).strip()
    if len(secret) < 16:
        raise LocalError(f"{path} has {len(secret)} bytes; a secret needs 16")
    return secret


def _users_of(path: Path) -> Users:
    content = _read(path).decode(errors="replace")
    try:
        return Users.parse(content)
    except LocalError as error:
        raise LocalError(f"{path}: {error}") from None


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise LocalError(f"{path}: {error.strerror}") from error
