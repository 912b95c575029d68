"""The command `serve`: a registrar and proxy for the phones of a domain.

Own design: bindings end with the process unless `--location` names a place for them; what is kept
of dialogs always does.
"""

import argparse
import os
import signal
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import gevent
from gevent.event import Event

from p2psip.errors import LocalError
from p2psip.net import addresses, websocket
from p2psip.net.clock import monotonic
from p2psip.net.driver import SipDriver, SipPorts
from p2psip.net.location_sqlite import SqliteLocation
from p2psip.net.locator import Locations
from p2psip.net.tls import TlsContexts, client_context, names_in, server_context
from p2psip.server.digest_server import DigestServer
from p2psip.server.domains import Domains
from p2psip.server.element import SipElement
from p2psip.server.proxy import Proxy
from p2psip.server.registrar import Registrar
from p2psip.server.users import UserStore
from p2psip.sip.grammar import bracketed
from p2psip.stack.routing import WILDCARDS, is_loopback
from p2psip.stack.stack import Stack
from p2psip.talk import say
from p2psip.transaction.flow import HostPort
from p2psip.ua.ua import UserAgent

if TYPE_CHECKING:
    from p2psip.net.location_redis import RedisLocation

NAMES: Final = {"UDP": "", "TLS": "by TLS ", "WS": "by WebSocket "}  # UDP is TCP as well


def add_options(command: argparse.ArgumentParser) -> None:
    """Describe the options of the command."""
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
    verifier = None if options.users is None else DigestServer(_users(options.users), os.urandom)
    hosts, ports, tls = *_open(options), _contexts(options)
    _warn_of_readers(options)
    stack = Stack(
        random=os.urandom, listeners=ports.listeners, hosts=options.domain, user_agent="p2psip"
    )
    names = options.domain or hosts
    domains = Domains(names, stack.is_own_address, distinct=bool(options.domain))
    location = None if options.location is None else _location(options.location)
    registrar = Registrar(domains, verifier, stack, os.urandom, store=location, nat=options.nat)
    agents, proxy = UserAgent(stack, random=os.urandom), Proxy(stack)
    SipElement(stack, agents, registrar, proxy, domains, verifier=verifier, nat=options.nat)
    driver = SipDriver(stack, ports, locate=Locations(transports=ports.transports).flows, tls=tls)
    driver.machines += [agents, proxy]
    driver.run(registrar.restore, monotonic())
    if location is not None:
        location.follow(registrar.adopt)
    driver.keep(
        lambda flow: registrar.keeps(flow, monotonic()) or proxy.dialogs.keeps(flow),
        lambda flow, silence: registrar.is_dead(flow, silence, monotonic()),
    )
    _renew_at_hangup(options, verifier, tls)
    say(f"serving {', '.join(names)} at {', '.join(_told(ports))}")
    stop.wait()
    driver.close()
    if location is not None:
        location.close()
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


def _open(options: argparse.Namespace) -> tuple[list[str], SipPorts]:
    """The hosts of all listeners, and their sockets.  Raises LocalError."""
    plain = options.sip or ["127.0.0.1:5060"]
    texts = [*plain, *options.sips, *options.ws]
    places: dict[str, HostPort] = {text: addresses.parse(text) for text in texts}
    for text, (host, _) in places.items():
        if host in WILDCARDS:
            raise LocalError(f"{text}: name one address, which phones are told")
        if options.users is None and not is_loopback(host):
            raise LocalError(f"{text} can be reached from other machines: give --users")
    if options.sips and options.tls_cert is None:
        raise LocalError("--sips needs --tls-cert")
    if options.ws and not websocket.AVAILABLE:
        raise LocalError("--ws needs the extra web: pip install 'siprtmp[web]'")
    (first, *also), sips, ws = (
        [places[text] for text in named] for named in (plain, options.sips, options.ws)
    )
    try:
        hosts = dict.fromkeys(host for host, _ in places.values())
        return list(hosts), SipPorts(*first, also=also, sips=sips, ws=ws)
    except OSError as error:
        reason = addresses.not_had(error)  # which names the address of TLS or WebSocket
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
    options: argparse.Namespace, verifier: DigestServer | None, tls: TlsContexts | None
) -> None:
    """Read the files again at SIGHUP; one that is wrong changes nothing."""

    def renew() -> None:
        try:
            users = _users(options.users) if verifier is not None else None
            contexts = _contexts(options)
        except (LocalError, OSError) as error:
            say(f"not read again: {error}")
            return
        if verifier is not None and users is not None:
            verifier.users = users
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


def _told(ports: SipPorts) -> Iterator[str]:
    """The addresses of all listeners, for the line that says that they are up."""
    for transport, name in NAMES.items():
        places = (each for each in ports.listeners if each.transport == transport)
        if told := " ".join(f"{bracketed(each.host)}:{each.port}" for each in places):
            yield f"{name}{told}"
