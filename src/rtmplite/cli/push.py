"""`python -m rtmplite push`: plays a stream and publishes it on other servers."""

import argparse
import os
import sys
from typing import Any, Final

from gevent.event import Event

from rtmplite.cli.publish import URL
from rtmplite.errors import LocalError, RemoteError
from rtmplite.live.streams import LiveStream, Registry
from rtmplite.net.client.dialer import Dialer
from rtmplite.net.clock import now
from rtmplite.net.server.settings import TrustSettings
from rtmplite.net.server.transports import place, tell, trust
from rtmplite.net.settings import add_options, chosen, rows
from rtmplite.net.usage import sentence
from rtmplite.relay.link import Link, ReconnectBackoff, State
from rtmplite.relay.pull import Pull
from rtmplite.relay.push import Push
from rtmplite.rtmfp.netconnection.connection import FlowEnd
from rtmplite.rtmp.client import Target
from rtmplite.rtmp.wire.message import MessageType

ATTEMPTS: Final = 5
PROGRESS: Final = 0.5  # s


def add_to(commands: Any) -> None:
    """Add the command to a parser's."""
    said = "play a stream and publish it on other servers"
    push = commands.add_parser("push", help=said, description=sentence(said))
    push.add_argument("source", metavar="URL_FROM", help=URL)
    push.add_argument(
        "targets", metavar="URL_TO", nargs="+", help="Where to publish it: as many as wanted."
    )
    push.add_argument(
        "--attempts",
        type=int,
        default=ATTEMPTS,
        metavar="N",
        help="Give a server up after N failures in a row (5).",
    )
    push.add_argument(
        "--forever",
        action="store_true",
        help="Wait for the next publisher when the source is unpublished.",
    )
    add_options(push.add_argument, rows(TrustSettings))
    push.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Relay until the source ends.  Raises RemoteError if there is none, or no target is left."""
    urls = [options.source, *options.targets]
    source, *targets = [_named(url) for url in urls]
    job = _Job(options, source, targets)
    job.start()
    try:
        while not job.over.wait(PROGRESS):
            print(job.progress(), end="\r", file=sys.stderr)
    except BaseException:
        job.stop()
        raise
    job.stop(is_patient=True)
    print(job.progress(), file=sys.stderr)
    if job.failure is not None:
        raise RemoteError(job.failure, "NetConnection.Connect.Failed")
    return 0


class _Job:
    """One pull, its stream, and the pushes of the stream; `over` is set at the end."""

    def __init__(self, options: argparse.Namespace, source: Target, targets: list[Target]) -> None:
        self.over = Event()
        self.failure: str | None = None
        self._forever, self._messages, self._bytes, self._time = options.forever, 0, 0, 0
        backoff = ReconnectBackoff(attempts=options.attempts)
        tls = trust(chosen(TrustSettings, vars(options)))
        self._dialer = Dialer(tls=tls, tick=self._tick)
        registry = Registry()
        live = registry.open("push", source.stream)
        self._dialer.on_cut_short = self._cut_short
        dial = self._dialer.dial
        self._pull = Pull(live, source, dial, os.urandom, backoff)
        self._pushes = [Push(live, each, dial, os.urandom, backoff) for each in targets]
        registry.on_begin.append(self._begun)
        registry.on_end.append(self._ended)
        self._pull.on_over = self._source_over
        for link in [self._pull, *self._pushes]:
            link.on_change = self._changed

    def start(self) -> None:
        """Connect to the source; the targets come when it plays."""
        self._dialer.start()
        self._pull.start(now())

    def stop(self, *, is_patient: bool = False) -> None:
        """Close all connections; with `is_patient` by RTMFP after everything has arrived."""
        for link in [*self._pushes, self._pull]:
            link.on_change = lambda link, now: None
            link.stop(now())
        try:
            self._dialer.farewell(is_patient=is_patient)
        finally:
            self._dialer.stop()

    def progress(self) -> str:
        """The line about the progress."""
        running = sum(push.state is State.RUNNING for push in self._pushes)
        size = self._bytes / 1000
        return (
            f"{self._time / 1000:8.1f} s  {self._messages} messages  {size:.0f} kB"
            f"  {running} of {len(self._pushes)} targets"
        )

    def write(self, type_id: int, timestamp: int, payload: bytes, now: float) -> None:
        """Count a message, as a `Sink` of the stream."""
        self._messages, self._bytes = self._messages + 1, self._bytes + len(payload)
        if type_id != MessageType.DATA:
            self._time = timestamp

    def end(self, now: float) -> None:
        """Do nothing: `_ended` is called as well."""

    def _tick(self, moment: float) -> None:
        for link in [self._pull, *self._pushes]:
            link.tick(moment)

    def _begun(self, live: LiveStream, moment: float) -> None:
        live.tap(self)
        for push in self._pushes:
            push.start(moment)

    def _ended(self, live: LiveStream, moment: float) -> None:
        for push in self._pushes:
            if push.state is not State.GIVEN_UP:
                push.stop(moment)

    def _source_over(self, moment: float) -> None:
        if not self._forever:
            self.over.set()

    def _changed(self, link: Link, moment: float) -> None:
        tell(link, moment)
        if link is self._pull and link.state is State.GIVEN_UP:
            self._fail(f"{place(link.target)}: {link.reason}")
        elif all(push.state is State.GIVEN_UP for push in self._pushes):
            self._fail(f"no target is left: {link.reason}")

    def _cut_short(self, machine: FlowEnd) -> None:
        if self.over.is_set():  # until then there is another attempt
            host, port = machine.transport.peer_address
            self.failure = f"{host}:{port}: not all has arrived: {machine.transport.cut_short}"

    def _fail(self, reason: str) -> None:
        self.failure = reason
        self.over.set()


def _named(url: str) -> Target:
    target = Target.parse(url)
    if not target.stream:
        raise LocalError(f"{url} names no stream")
    return target
