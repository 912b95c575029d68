"""The options of `serve` that say who may use it, and what becomes of them."""

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

from gevent.event import AsyncResult

from rtmplite.auth.credentials import (
    KeysGuard,
    SignedGuard,
    Users,
    UsersGuard,
    fields,
    in_words,
    is_challenge,
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
from rtmplite.net.connection_limit import CONNECTIONS, CONNECTIONS_OF_ONE, ConnectionLimit
from rtmplite.net.descriptors import raise_limit, within
from rtmplite.net.server.hooks import REQUESTS, TIMEOUT, HttpGuard
from rtmplite.rtmfp.endpoint.endpoint import DEFAULT_LIMITS
from rtmplite.rtmp.application import Application
from rtmplite.rtmp.message_transport import ConnectionLimits
from rtmplite.rtmp.netconnection import NetConnection
from rtmplite.rtmp.netstream import ServerStream, State

_HOOKS = {
    Event.CONNECT: "who connects",
    Event.PUBLISH: "who publishes",
    Event.PLAY: "who plays",
    Event.DONE: "of what is over",
}


def _at_least(low: float) -> Callable[[str], float]:
    def seconds(text: str) -> float:
        value = float(text)
        if not low <= value < 1e7:
            raise argparse.ArgumentTypeError(f"{text} is not between {low:g} and 10000000")
        return value

    return seconds


def _count(low: int) -> Callable[[str], int]:
    def number(text: str) -> int:
        value = int(text)
        if not low <= value < 1 << 31:
            raise argparse.ArgumentTypeError(f"{text} is not at least {low}")
        return value

    return number


# How the options that are numbers are read, and what they are without being given.
NUMBERS: Final[Mapping[str, tuple[Callable[[str], float], float]]] = {
    "hook_timeout": (_at_least(0.01), TIMEOUT),
    "hook_requests": (_count(1), REQUESTS),
    "idle": (_at_least(0), ConnectionLimits().idle),
    "max_connections": (_count(1), CONNECTIONS),
    "max_per_address": (_count(1), CONNECTIONS_OF_ONE),
    "max_message": (_count(4096), ConnectionLimits().message),
    "max_rtmfp_memory": (_count(1 << 20), DEFAULT_LIMITS.buffered_bytes),
    "drain": (_at_least(0), 0.0),
}


def add_options(add: Callable[..., Any]) -> None:
    """Add what `Access`, `limits` and `crowd` read; `add` is the `add_argument` of a parser.

    But for `users` and `allow_anonymous`, which mean more to some than to others.
    """
    add("--users-only", action="store_true", help="let only --users connect, to play as well")
    for what in ("publish", "play"):
        add(
            f"--{what}-key",
            action="append",
            default=[],
            metavar="NAME=KEY",
            help=f"{what} NAME as NAME?key=KEY only; * is any other name",
        )
    add("--sign-key", type=Path, metavar="FILE", help="let nobody publish without a signed link")
    add("--sign-play", action="store_true", help="nor play; `rtmplite sign` makes links")
    for event, what in _HOOKS.items():
        add(f"--on-{event}", metavar="URL", help=f"ask, or tell, this web service {what}")
    for option, unit, what in (
        ("hook-timeout", "S", "and wait so long"),
        ("hook-requests", "N", "and ask so many at once"),
        ("idle", "S", "hang up on who does nothing"),
        ("max-connections", "N", "in all"),
        ("max-per-address", "N", "from one address"),
        ("max-message", "BYTES", "of one message"),
        ("max-rtmfp-memory", "BYTES", "for all sessions by RTMFP"),
    ):
        read, usual = NUMBERS[option.replace("-", "_")]
        shown = f"{what} ({usual:g})" if usual < 1e6 else f"{what} ({usual})"
        add(f"--{option}", type=read, default=usual, metavar=unit, help=shown)


def limits(options: argparse.Namespace) -> ConnectionLimits:
    """What one client may make us do."""
    return ConnectionLimits(idle=options.idle, message=options.max_message)


def crowd(options: argparse.Namespace) -> ConnectionLimit:
    """How many clients there may be: as many as asked for, if the system gives descriptors."""
    raise_limit()
    most = within(options.max_connections)
    return ConnectionLimit(most, within(options.max_per_address, 2))


class Access:
    """Everything that the options ask for, as one guard; LocalError if they are wrong.

    `on_refused` is told of who may not do what he wanted, and why.
    """

    def __init__(
        self,
        options: argparse.Namespace,
        on_refused: Callable[[Question, str], None] = lambda question, reason: None,
    ) -> None:
        def refused(question: Question, verdict: Verdict) -> None:
            if not is_challenge(verdict):
                on_refused(question, in_words(verdict))

        guards: list[Guard] = []
        is_for_users = options.users is not None and not options.allow_anonymous
        self._users: UsersGuard | None = None
        self._file: Path | None = options.users
        if is_for_users:
            users = _users_of(options.users)
            self._users = UsersGuard(users, os.urandom, for_all=options.users_only)
            guards.append(self._users)
        elif options.users_only:
            raise LocalError("--users-only needs --users, and no --allow-anonymous")
        publish = _keys("publish", options.publish_key)
        play = _keys("play", options.play_key)
        if publish or play:
            guards.append(KeysGuard(publish, play))
        if options.sign_key is not None:
            events = {Event.PUBLISH, Event.PLAY} if options.sign_play else {Event.PUBLISH}
            secret = _secret(options.sign_key)
            guards.append(SignedGuard(secret, time.time, frozenset(events)))
        urls = {event: getattr(options, f"on_{event}") for event in _HOOKS}
        asked = {event: url for event, url in urls.items() if url is not None}
        self._http = HttpGuard(asked, timeout=options.hook_timeout, requests=options.hook_requests)
        if asked:
            guards.append(self._http)
        self._guard = AuditedGuard(Guards(guards), refused) if guards else None
        self._service = AuditedGuard(self._http, refused) if asked else None
        self.guards_publishing = bool(
            publish
            or is_for_users
            or options.sign_key is not None
            or not {Event.PUBLISH, Event.CONNECT}.isdisjoint(asked)
        )
        self._is_safe = self.guards_publishing or options.allow_anonymous

    def guard(self, application: Application) -> Application:
        """Put an application behind it."""
        return application if self._guard is None else GuardedApplication(application, self._guard)

    def ask_service(self, application: Application) -> Application:
        """Put an application behind the web service alone: it has users and names of its own."""
        service = self._service
        return application if service is None else GuardedApplication(application, service)

    def check(self, addresses: Iterable[tuple[str, int] | None]) -> None:
        """LocalError if anybody could publish from anywhere, and nobody said that he may."""
        for address in addresses:
            if address and not (self._is_safe or is_loopback(address[0])):
                raise LocalError(
                    f"{address[0]} is open to all: say who may publish (--users, --publish-key,"
                    " --sign-key, --on-publish), or --allow-anonymous"
                )

    def admits(self, app: str, name: str, query: str, host: str) -> Callable[[], None] | None:
        """What to call when somebody without RTMP has left, None if he may not play.

        Waits for the verdict.
        """
        if (guard := self._guard) is None:
            return lambda: None
        asked = Question(
            Event.CONNECT, host, 0, "", app, "", "", "", "", query, (), name, name, query
        )
        for event in (Event.CONNECT, Event.PLAY):
            verdict = _wait(guard, replace(asked, event=event))
            if not verdict.is_allowed or verdict.url or verdict.name:
                return None
        done = replace(asked, event=Event.DONE, was=Event.PLAY)
        return lambda: guard.tell(done, now())

    def has_challenged(self, question: Question) -> bool:
        """Whether whoever asks has answered a challenge as a user: Field §"authmod=adobe".

        Nobody gets past `guard` with a wrong answer.
        """
        return self._users is not None and "authmod" in fields(question.connect_query)

    def user_of(self, connection: NetConnection, stream: ServerStream) -> str:
        """The user that a client has proved to be, empty where that is not known.

        `UsersGuard` lets nobody connect who says that he is a user and does not prove it; in the
        name of a stream it wants the proof of those who publish.
        """
        if self._users is None:
            return ""
        asked = Question.of(connection, Event.PUBLISH).about(stream)
        said = fields(asked.connect_query)
        if "user" not in said and stream.state is State.PUBLISHING:
            said = fields(asked.query)
        return unquote(said.get("user", ""))

    def reload(self) -> None:
        """Read the users again; LocalError if that cannot be, and those from before stay."""
        if self._users is not None and self._file is not None:
            self._users.renew(_users_of(self._file))

    def stop(self) -> None:
        """Ask nobody any more."""
        self._http.stop()


def add_commands(commands: Any) -> None:
    """Add the commands `users` and `sign`, which make what `serve` checks."""
    user = commands.add_parser("users", help="make lines for --users; asks for the password")
    user.add_argument("user", help="as in rtmp://USER:PASSWORD@host/app")
    user.add_argument("realm", help="a domain; for RTMP alone, any word")
    user.set_defaults(run=_users)
    link = commands.add_parser("sign", help="make what a signed link ends with")
    link.add_argument("event", choices=[Event.PUBLISH, Event.PLAY], type=Event)
    link.add_argument("name", help="the stream")
    link.add_argument("--key", type=Path, required=True, metavar="FILE", help="of serve --sign-key")
    link.add_argument("--seconds", type=int, default=3600, help="how long it is good")
    link.set_defaults(run=_sign)


def is_loopback(host: str) -> bool:
    """Whether nobody but this machine can connect to that address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _users(options: argparse.Namespace) -> int:
    stdin = sys.stdin
    password = getpass.getpass() if stdin.isatty() else stdin.readline().rstrip("\n")
    print("\n".join(user_lines(options.user, options.realm, password)))
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
