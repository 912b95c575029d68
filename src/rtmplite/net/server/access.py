"""The access rules of a server: their options, and the guard that applies them."""

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
from rtmplite.net.connection_limit import CONNECTIONS, CONNECTIONS_OF_ONE, ConnectionLimit
from rtmplite.net.descriptors import raise_limit, within
from rtmplite.net.secret_files import keep_private
from rtmplite.net.server.hooks import REQUESTS, TIMEOUT, HttpGuard
from rtmplite.net.usage import sentence
from rtmplite.rtmfp.endpoint.endpoint import DEFAULT_LIMITS
from rtmplite.rtmp.application import Application
from rtmplite.rtmp.message_transport import ConnectionLimits
from rtmplite.rtmp.netconnection import NetConnection
from rtmplite.rtmp.netstream import ServerStream
from rtmplite.rtmp.netstream_state import State

PATIENCE: Final = 3.0  # s until an encoder that was asked for a user has gone without
MOST_WAITING: Final = 1000  # of them

_HOOKS: Final = {
    Event.CONNECT: "Ask this web service by HTTP whether a client may connect.",
    Event.PUBLISH: "Ask this web service whether a client may publish.",
    Event.PLAY: "Ask this web service whether a client may play.",
    Event.DONE: "Tell this web service when a client has stopped publishing or playing.",
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


# Of each option that is a number: the function that reads it, and its default.
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
    """Declare the options that `Access`, `limits` and `crowd` read; `add` is as `add_argument`.

    `--users` and `--allow-anonymous` are left to the caller, as the gateway's phones obey them too.
    """
    add(
        "--users-only",
        action="store_true",
        help="Let only the users of --users connect, to play as well.",
    )
    for verb in ("publish", "play"):
        add(
            f"--{verb}-key",
            action="append",
            default=[],
            metavar="NAME=KEY",
            help=f"Let clients {verb} the stream NAME as NAME?key=KEY only; * stands for every"
            " other name. May be repeated.",
        )
    add(
        "--sign-key",
        type=Path,
        metavar="FILE",
        help="Let clients publish by a signed link only; FILE has the secret, and `rtmplite sign`"
        " makes links.",
    )
    add("--sign-play", action="store_true", help="Let them play by a signed link only as well.")
    for event, said in _HOOKS.items():
        add(f"--on-{event}", metavar="URL", help=said)
    for option, unit, said in (
        ("hook-timeout", "S", "Refuse a client when the web service is silent for S seconds"),
        ("hook-requests", "N", "Ask the web service about at most N clients at once"),
        ("idle", "S", "Close a connection that does nothing for S seconds; 0 is never"),
        ("max-connections", "N", "Serve at most N connections"),
        ("max-per-address", "N", "Serve at most N connections from one address"),
        ("max-message", "BYTES", "Cut off a client that sends a longer message"),
        ("max-rtmfp-memory", "BYTES", "Keep at most so much for all sessions by RTMFP together"),
    ):
        read, usual = NUMBERS[option.replace("-", "_")]
        shown = f"{usual:g}" if usual < 1e6 else f"{usual}"
        add(f"--{option}", type=read, default=usual, metavar=unit, help=f"{said} ({shown}).")


def limits(options: argparse.Namespace) -> ConnectionLimits:
    """The limits of each connection."""
    return ConnectionLimits(idle=options.idle, message=options.max_message)


def crowd(options: argparse.Namespace) -> ConnectionLimit:
    """The limits of all connections: as asked for, if the system has the descriptors."""
    raise_limit()
    most = within(options.max_connections)
    return ConnectionLimit(most, within(options.max_per_address, 2))


class Access:
    """All access rules of the options as one guard.  Raises LocalError for wrong options.

    `on_refused` is called with the question of each client that is refused, and the reason.
    """

    def __init__(
        self,
        options: argparse.Namespace,
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

    def admits(self, app: str, name: str, query: str, host: str) -> Callable[[], None] | None:
        """Ask whether a viewer by HTTP may play, and wait for the verdict.

        Gives the function to call when the viewer has left, None if it may not play.
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
        """Whether a client has answered a challenge as a user: Field §"authmod=adobe".

        `guard` lets no client pass with a wrong answer.
        """
        return self._users is not None and "authmod" in fields(question.connect_query)

    def user_of(self, connection: NetConnection, stream: ServerStream) -> str:
        """The user that a client has proved to be, empty if it has proved nothing.

        `UsersGuard` refuses a connection that names a user without proof.  What stands in the name
        of a stream it looks at for publishers only.
        """
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
        """Tell of this client in `PATIENCE` seconds; at once where many have come."""
        if question in self._waiting or len(self._waiting) >= MOST_WAITING:
            self._tell(question)
            return
        timer = self._waiting[question] = gevent.get_hub().loop.timer(PATIENCE)
        timer.start(self._give_up, question)

    def goes_on(self, question: Question) -> None:
        """A client of that host and application has named a user."""
        place = _place(question)
        before = next((each for each in self._waiting if _place(each) == place), None)
        if before is not None:
            self._forget(before)

    def stop(self) -> None:
        """Tell of all that wait."""
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
