"""What `serve` has beside plain RTMP: RTMPS, RTMPT, and relays to and from other servers."""

import argparse
import os
import ssl
import sys
from collections.abc import Callable
from pathlib import Path

from rtmplite.errors import LocalError
from rtmplite.net import addresses
from rtmplite.net.clock import now
from rtmplite.net.dialer import Dialer
from rtmplite.net.rtmp_server import RtmpServer
from rtmplite.net.rtmpt import TunnelServer
from rtmplite.net.tls import client_context, server_context
from rtmplite.relay import Link, State
from rtmplite.relays import Relays, Rule
from rtmplite.rtmp.server import ServerConnection
from rtmplite.streams import Registry


def add_options(serve: argparse.ArgumentParser) -> None:
    """Add what `Transports` reads to the parser of `serve`."""
    add = serve.add_argument
    add("--rtmps", metavar="HOST:PORT", help="listen here for RTMP over TLS")
    add("--tls-cert", type=Path, metavar="FILE", help="certificate for --rtmps, PEM")
    add("--tls-key", type=Path, metavar="FILE", help="its key, if not in the same file")
    add("--rtmpt", metavar="HOST:PORT", help="listen here for RTMP through HTTP")
    rule = "APP/NAME=URL"
    add("--push", action="append", default=[], metavar=rule, help="publish there, too; * matches")
    add("--pull", action="append", default=[], metavar=rule, help="play from there on demand")
    add_trust(serve)


def add_trust(parser: argparse.ArgumentParser) -> None:
    """Add what `trust` reads, for everything that connects to servers."""
    parser.add_argument("--ca", type=Path, metavar="FILE", help="trust these for rtmps, PEM")
    parser.add_argument("--insecure", action="store_true", help="check no certificates")


def trust(options: argparse.Namespace) -> ssl.SSLContext | None:
    """Whom to trust, None being the default, whose many files take a while to read.

    Raises LocalError.
    """
    if options.ca is None and not options.insecure:
        return None
    return client_context(options.ca, insecure=options.insecure)


class Transports:
    """All of it, as `options` say; LocalError if they are wrong, before anything listens."""

    def __init__(
        self,
        options: argparse.Namespace,
        make_connection: Callable[[tuple[str, int]], ServerConnection],
        registry: Registry,
    ) -> None:
        self._rtmps: RtmpServer | None = None
        self._rtmpt: TunnelServer | None = None
        if options.rtmps is not None:
            if options.tls_cert is None:
                raise LocalError("--rtmps needs --tls-cert")
            context = server_context(options.tls_cert, options.tls_key)
            address = addresses.parse(options.rtmps)
            merge = options.merge_ms
            self._rtmps = RtmpServer(*address, make_connection, merge_ms=merge, tls=context)
        if options.rtmpt is not None:
            self._rtmpt = TunnelServer(*addresses.parse(options.rtmpt), make_connection)
        push, pull = (list(map(Rule.parse, rules)) for rules in (options.push, options.pull))
        self._dialer = Dialer(merge_ms=options.merge_ms, tls=trust(options))
        self._relays = Relays(
            registry, self._dialer.dial, os.urandom, push=push, pull=pull, on_change=tell
        )
        self._dialer.tick = self._relays.tick

    def start(self) -> str:
        """Listen; what the ready line says of it.  Raises OSError for an address."""
        ready = ""
        if self._rtmps is not None:
            self._rtmps.start()
            ready += " rtmps={}:{}".format(*self._rtmps.address)
        if self._rtmpt is not None:
            self._rtmpt.start()
            ready += " rtmpt={}:{}".format(*self._rtmpt.address)
        self._dialer.start()
        return ready

    def stop(self) -> None:
        """End all connections, ours to others as well."""
        self._relays.stop(now())
        for server in (self._rtmps, self._rtmpt):
            if server is not None:
                server.stop()
        self._dialer.stop()


def tell(link: Link, moment: float) -> None:
    """A line for every change of a relay."""
    words = f"{link.target.tc_url}/{link.target.stream}: {link.state}"
    if link.state is State.WAITING and link.deadline is not None:
        words += f" {link.deadline - moment:.1f} s: {link.reason}"
    elif link.state is State.GIVEN_UP:
        words += f": {link.reason}"
    print(words, file=sys.stderr, flush=True)
