"""The command `serve`: a registrar and proxy for the phones of a domain.

Own design: bindings end with the process unless `--location` names a place for them; what is kept
of dialogs always does.
"""

import argparse
import os
import signal
import stat
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import gevent
from gevent.event import Event

from p2psip.call_audio import say
from p2psip.errors import LocalError
from p2psip.net import addresses, websocket
from p2psip.net.alarm import Alarm
from p2psip.net.clock import monotonic
from p2psip.net.garbage_collection import GarbageCollector, settle
from p2psip.net.location_sqlite import SqliteLocation
from p2psip.net.tls import TlsContexts, client_context, names_in, server_context
from p2psip.server.users import UserStore
from p2psip.sip.grammar import bracketed
from p2psip.sip_server import SipServer
from p2psip.stack.routing import WILDCARDS, Listener, is_loopback

if TYPE_CHECKING:
    from p2psip.net.location_redis import RedisLocation

YOUNG: Final = 5000  # objects, of which a call makes hundreds: no audio waits for their search
NAMES: Final = {"UDP": "", "TLS": "by TLS ", "WS": "by WebSocket "}  # UDP is TCP as well


def add_options(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--domain",
        action="append",
        default=[],
        metavar="NAME",
        help="Serve the users of this domain.  May be given several times.  Without it, the users "
        "at the address of --listen are served.",
    )
    command.add_argument(
        "--users",
        type=Path,
        metavar="FILE",
        help="Users and the hashes of their passwords, user:realm:HA1 a line, as htdigest writes "
        "them; read again at SIGHUP.  Without it anybody may register as anybody, so that all "
        "listeners must be on loopback.",
    )
    command.add_argument(
        "--location",
        metavar="WHERE",
        help="Keep registrations here: in a Redis, redis://HOST:PORT/0, where several servers "
        "share them, or in a file of this name, which outlives the process.",
    )
    _add_listeners(command.add_argument_group("network"))


def _add_listeners(group: "argparse._ArgumentGroup") -> None:
    for names, what in (
        (("--sip", "--listen"), "Receive at this address by UDP and TCP (127.0.0.1:5060)"),
        (("--sips",), "Receive at this address by TLS, with the certificate of --tls-cert"),
        (
            ("--ws",),
            "Receive browser phones at this address by WebSocket; also by wss:// if there is a "
            "--tls-cert",
        ),
    ):
        group.add_argument(
            *names,
            action="extend",
            nargs="+",
            default=[],
            metavar="HOST:PORT",
            help=f"{what}; port 0 takes a free one.  May be given several times, so for IPv4 and "
            "IPv6.",
        )
    group.add_argument(
        "--tls-cert",
        type=Path,
        metavar="FILE",
        help="The certificate, a PEM file with its chain; read again at SIGHUP.",
    )
    group.add_argument(
        "--tls-key",
        type=Path,
        metavar="FILE",
        help="Its key, if that is not in the file of the certificate.",
    )
    group.add_argument(
        "--ca",
        type=Path,
        metavar="FILE",
        help="Trust the certificates in this PEM file for TLS to other servers, instead of the "
        "system's.",
    )
    group.add_argument(
        "--nat",
        action="store_true",
        help="Reach a phone at the address it registers from, whatever its Contact says.",
    )


def serve(options: argparse.Namespace, stop: Event) -> int:
    """Serve until interrupted: RFC 3261 §10.3 and §16.  Raises LocalError, OSError."""
    _check(options)
    users = None if options.users is None else _users(options.users)
    tls = _contexts(options)
    _warn_of_readers(options)
    location = None if options.location is None else _location(options.location)
    with _open(options, users, tls, location) as server:
        _renew_at_hangup(options, server, tls)
        settle(YOUNG)
        Alarm(GarbageCollector(lambda: server.is_quiet, lambda: 0, monotonic())).set()
        say(f"serving {', '.join(server.names)} at {', '.join(_told(server.listeners))}")
        stop.wait()
    return 0


def _location(where: str) -> "SqliteLocation | RedisLocation":
    """The store of bindings: RFC 3261 §10.3.  Raises LocalError."""
    if "://" not in where:
        return SqliteLocation(Path(where), _tell)
    try:
        from p2psip.net.location_redis import RedisLocation
    except ImportError:
        raise LocalError("--location needs the extra redis: pip install 'siprtmp[redis]'") from None
    try:
        return RedisLocation(where, _tell)
    except LocalError as error:
        raise LocalError(f"--location {error}") from None


def _tell(what: str, reason: str) -> None:
    """Say whether registrations outlive the process, when that changes."""
    say(f"{what}: {reason}" if reason else what)


def _check(options: argparse.Namespace) -> None:
    """Refuse what cannot be served, in the words of the options.  Raises LocalError."""
    for text in (*_plain(options), *options.sips, *options.ws):
        host, _ = addresses.parse(text)
        if host in WILDCARDS:
            raise LocalError(f"{text}: name one address, which phones are told")
        if options.users is None and not is_loopback(host):
            raise LocalError(f"{text} can be reached from other machines: give --users")
    if options.sips and options.tls_cert is None:
        raise LocalError("--sips needs --tls-cert")
    if options.ws and not websocket.AVAILABLE:
        raise LocalError("--ws needs the extra web: pip install 'siprtmp[web]'")


def _plain(options: argparse.Namespace) -> list[str]:
    return options.sip or ["127.0.0.1:5060"]


def _open(
    options: argparse.Namespace,
    users: UserStore | None,
    tls: TlsContexts | None,
    location: "SqliteLocation | RedisLocation | None",
) -> SipServer:
    plain = _plain(options)
    sip, sips, ws = (
        [addresses.parse(text) for text in texts] for texts in (plain, options.sips, options.ws)
    )
    at = {"sips": sips, "ws": ws, "domains": options.domain, "nat": options.nat}
    try:
        return SipServer(sip, **at, users=users, location=location, tls=tls)
    except OSError as error:
        reason = addresses.bind_failure(error)  # which names the address of TLS or WebSocket
        named = reason if " at " in reason else f"{' '.join(plain)}: {reason}"
        raise LocalError(named) from None


def _contexts(options: argparse.Namespace) -> TlsContexts | None:
    """The settings of TLS, None without a certificate.  Raises LocalError."""
    if options.tls_cert is None:
        return None
    return TlsContexts(
        client_context(options.ca),
        server_context(options.tls_cert, options.tls_key),
        names_in(options.tls_cert),
    )


def _warn_of_readers(options: argparse.Namespace) -> None:
    """Name each file with a secret that everybody on this machine can read."""
    for path in filter(None, (options.users, options.tls_key or options.tls_cert)):
        if path.stat().st_mode & stat.S_IROTH:
            print(f"{path} can be read by every user of this machine: chmod o-r", file=sys.stderr)


def _users(path: Path) -> UserStore:
    try:
        return UserStore.parse(path.read_text())
    except (LocalError, UnicodeError) as error:
        raise LocalError(f"{path}: {error}") from None


def _renew_at_hangup(
    options: argparse.Namespace, server: SipServer, tls: TlsContexts | None
) -> None:
    """Read the files again at SIGHUP; one that is wrong changes nothing."""

    def renew() -> None:
        try:
            users = None if options.users is None else _users(options.users)
            contexts = _contexts(options)
        except (LocalError, OSError) as error:
            say(f"not read again: {error}")
            return
        if users is not None:
            server.users = users
        if tls is not None and contexts is not None:
            tls.client, tls.server, tls.names = contexts.client, contexts.server, contexts.names
        say("users and certificate are read again")

    if not _has_terminal():  # which ends its programs by that signal
        gevent.signal_handler(signal.SIGHUP, renew)


def _has_terminal() -> bool:
    try:
        os.close(os.open(os.ctermid(), os.O_RDONLY | os.O_NOCTTY))
    except OSError:
        return False
    return True


def _told(listeners: Iterable[Listener]) -> Iterator[str]:
    """The addresses of all listeners, for the line that says that they are up."""
    for transport, name in NAMES.items():
        places = (each for each in listeners if each.transport == transport)
        if told := " ".join(f"{bracketed(each.host)}:{each.port}" for each in places):
            yield f"{name}{told}"
