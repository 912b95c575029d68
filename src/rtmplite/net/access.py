"""The options of `serve` that say who may use it, and what becomes of them."""

import argparse
import getpass
import ipaddress
import os
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from gevent.event import AsyncResult

from rtmplite.access import Event, Guard, GuardedApplication, Guards, Question, Verdict
from rtmplite.credentials import KeysGuard, SignedGuard, Users, UsersGuard, sign, user_line
from rtmplite.errors import LocalError
from rtmplite.net.clock import now
from rtmplite.net.hooks import REQUESTS, TIMEOUT, HttpGuard
from rtmplite.net.rtmp_server import CONNECTIONS, CONNECTIONS_OF_ONE
from rtmplite.rtmp.application import Application
from rtmplite.rtmp.connection import Limits

_HOOKS = {
    Event.CONNECT: "who connects",
    Event.PUBLISH: "who publishes",
    Event.PLAY: "who plays",
    Event.DONE: "of what is over",
}


def add_options(serve: argparse.ArgumentParser) -> None:
    """Add what `Access` and `limits` read to the parser of `serve`."""
    add = serve.add_argument
    add("--users", type=Path, metavar="FILE", help="who may publish; `user` makes its lines")
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
    add("--sign-play", action="store_true", help="nor play; `sign` makes links")
    for event, what in _HOOKS.items():
        add(f"--on-{event}", metavar="URL", help=f"ask, or tell, this web service {what}")
    add("--hook-timeout", type=float, default=TIMEOUT, metavar="S", help="and wait so long")
    add("--hook-requests", type=int, default=REQUESTS, metavar="N", help="and ask so many at once")
    add("--allow-anonymous", action="store_true", help="let all publish, also on open addresses")
    limits = Limits()
    add("--idle", type=float, default=limits.idle, metavar="S", help="hang up on who does nothing")
    add("--max-connections", type=int, default=CONNECTIONS, metavar="N", help="in all")
    per_address = CONNECTIONS_OF_ONE
    add("--max-per-address", type=int, default=per_address, metavar="N", help="from one address")
    add("--max-message", type=int, default=limits.message, metavar="BYTES", help="of one message")


def limits(options: argparse.Namespace) -> Limits:
    """What one client may make us do."""
    return Limits(idle=options.idle, message=options.max_message)


class Access:
    """Everything that the options ask for, as one guard; LocalError if they are wrong."""

    def __init__(self, options: argparse.Namespace) -> None:
        guards: list[Guard] = []
        if options.users is not None:
            users = Users.parse(_read(options.users).decode(errors="replace"))
            guards.append(UsersGuard(users, os.urandom, for_all=options.users_only))
        elif options.users_only:
            raise LocalError("--users-only needs --users")
        publish, play = _keys(options.publish_key), _keys(options.play_key)
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
        self._guard = Guards(guards) if guards else None
        self._is_safe = bool(
            publish
            or options.users is not None
            or options.sign_key is not None
            or not {Event.PUBLISH, Event.CONNECT}.isdisjoint(asked)
            or options.allow_anonymous
        )

    def guard(self, application: Application) -> Application:
        """Put an application behind it."""
        return application if self._guard is None else GuardedApplication(application, self._guard)

    def check(self, addresses: Iterable[tuple[str, int] | None]) -> None:
        """LocalError if anybody could publish from anywhere, and nobody said that he may."""
        for address in addresses:
            if address and not (self._is_safe or is_loopback(address[0])):
                raise LocalError(
                    f"{address[0]} is open to all: say who may publish (--users, --publish-key,"
                    " --sign-key, --on-publish), or --allow-anonymous"
                )

    def admits(self, app: str, name: str, query: str, host: str) -> bool:
        """Whether somebody without RTMP may play; waits for the verdict."""
        if self._guard is None:
            return True
        asked = Question(
            Event.CONNECT, host, 0, "", app, "", "", "", "", query, (), name, name, query
        )
        return all(
            verdict.is_allowed and not verdict.url and not verdict.name
            for verdict in (
                _wait(self._guard, asked),
                _wait(self._guard, replace(asked, event=Event.PLAY)),
            )
        )

    def stop(self) -> None:
        """Ask nobody any more."""
        self._http.stop()


def add_commands(commands: Any) -> None:
    """Add the commands `user` and `sign`, which make what `serve` checks."""
    user = commands.add_parser("user", help="make a line for serve --users; asks for the password")
    user.add_argument("name", help="as in rtmp://NAME:PASSWORD@host/app")
    user.set_defaults(run=_user)
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


def _user(options: argparse.Namespace) -> int:
    stdin = sys.stdin
    password = getpass.getpass() if stdin.isatty() else stdin.readline().rstrip("\n")
    print(user_line(options.name, password, os.urandom(8).hex()))
    return 0


def _sign(options: argparse.Namespace) -> int:
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


def _keys(given: Iterable[str]) -> Mapping[str, str]:
    keys = {}
    for pair in given:
        name, _, key = pair.partition("=")
        if not name or not key:
            raise LocalError(f"{pair} is not NAME=KEY")
        keys[name] = key
    return keys


def _secret(path: Path) -> bytes:
    secret = _read(path).strip()
    if len(secret) < 16:
        raise LocalError(f"{path} has {len(secret)} bytes; a secret needs 16")
    return secret


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise LocalError(f"{path}: {error.strerror}") from error
