"""The command `serve`: a registrar and proxy for the phones of a domain.

Own design: what is kept of bindings and dialogs ends with the process.
"""

import argparse
import os
from pathlib import Path

from gevent.event import Event

from p2psip.errors import LocalError
from p2psip.net import addresses
from p2psip.net.clock import monotonic
from p2psip.net.driver import SipDriver, SipPorts
from p2psip.net.locator import Locations
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
from p2psip.ua.ua import UserAgent


def add_options(command: argparse.ArgumentParser) -> None:
    """Describe the options of the command."""
    command.add_argument(
        "--sip",
        "--listen",
        dest="sip",
        action="extend",
        nargs="+",
        default=[],
        metavar="HOST:PORT",
        help="Receive at this address by UDP and TCP; port 0 takes a free one.  May be given "
        "several times, so for IPv4 and IPv6 (default: 127.0.0.1:5060).",
    )
    command.add_argument(
        "--domain",
        action="append",
        default=[],
        metavar="NAME",
        help="Serve the users of this domain.  May be given several times.  Without it, the users "
        "at the addresses of --sip are served.",
    )
    command.add_argument(
        "--users",
        type=Path,
        metavar="FILE",
        help="Users and the hashes of their passwords, user:realm:HA1 a line, as htdigest writes "
        "them.  Without it anybody may register as anybody, so that --sip must be on loopback.",
    )
    command.add_argument(
        "--nat",
        action="store_true",
        help="Reach a phone at the address it registers from, whatever its Contact says.",
    )


def serve(options: argparse.Namespace, stop: Event) -> int:
    """Serve until interrupted: RFC 3261 §10.3 and §16.  Raises LocalError, OSError."""
    texts = options.sip or ["127.0.0.1:5060"]
    listed = [addresses.parse(text) for text in texts]
    for text, (host, _) in zip(texts, listed, strict=True):
        if host in WILDCARDS:
            raise LocalError(f"{text}: name one address, which phones are told")
        if options.users is None and not is_loopback(host):
            raise LocalError(f"{text} can be reached from other machines: give --users")
    verifier = _verifier(options.users)
    try:
        ports = SipPorts(*listed[0], also=listed[1:])
    except OSError as error:
        raise LocalError(f"{' '.join(texts)}: {error.strerror or error}") from None
    stack = Stack(
        random=os.urandom,
        listeners=ports.listeners,
        hosts=options.domain,
        user_agent="p2psip",
    )
    names = options.domain or [host for host, _ in listed]
    domains = Domains(names, stack.is_own_address, distinct=bool(options.domain))
    registrar = Registrar(domains, verifier, stack, os.urandom, nat=options.nat)
    agents, proxy = UserAgent(stack, random=os.urandom), Proxy(stack)
    SipElement(stack, agents, registrar, proxy, domains, verifier=verifier, nat=options.nat)
    driver = SipDriver(stack, ports, locate=Locations().flows)
    driver.machines += [agents, proxy]
    driver.keep(
        lambda flow: registrar.keeps(flow, monotonic()) or proxy.dialogs.keeps(flow),
        lambda flow, silence: registrar.is_dead(flow, silence, monotonic()),
    )
    places = [f"{bracketed(each.host)}:{each.port}" for each in ports.listeners[::2]]
    say(f"serving {', '.join(names)} at {' '.join(places)}")
    stop.wait()
    driver.close()
    return 0


def _verifier(path: Path | None) -> DigestServer | None:
    if path is None:
        return None
    try:
        return DigestServer(UserStore.parse(path.read_text()), os.urandom)
    except (LocalError, UnicodeError) as error:
        raise LocalError(f"{path}: {error}") from None
