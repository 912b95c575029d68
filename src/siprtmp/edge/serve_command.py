"""`siprtmp serve`: the gateway as a program, from its command line to its last BYE.

Own design: with `--workers`, all of this is done by several processes, see `workers.supervisor`.
SIGTERM, SIGINT and the end of the terminal stop it; SIGHUP of a program without a
terminal makes it read its files again; SIGUSR1 logs its status.  Lines that any stranger can cause
are counted in a flood instead of written: to be refused costs a client nothing, and the log is for
a person to read.
"""

import logging
import os
import signal
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

import gevent
from gevent.event import AsyncResult

from p2psip.net.alarm import Alarm
from p2psip.net.clock import monotonic
from p2psip.net.garbage_collection import GarbageCollector, settle
from rtmplite.net.clock import now
from rtmplite.net.last_resort import SECONDS, ended_within
from rtmplite.net.server.log_rate_limit import ALL_BURST, ALL_RATE, Bucket, LogRateLimit
from rtmplite.net.server.rtmfp_listener import peer_connectivity
from rtmplite.net.server.settings import RtmfpSettings
from rtmplite.net.sighup import on_hangup
from siprtmp.edge.gateway import Gateway
from siprtmp.edge.workers.place import WorkerPlace, remove_folder
from siprtmp.edge.workers.supervisor import Supervisor
from siprtmp.operation import logs
from siprtmp.settings.load import load
from siprtmp.settings.table import ListenerSettings

READABLE: Final = 1  # what a watcher waits for
FAREWELL_SECONDS: Final = 0.5  # for answers to our BYEs to come in

EVENTS: Final = frozenset(("call-refused", "message-refused", "registration-refused", "refused"))

# Of each of these groups many more are written, but not thousands a second.  Refused logins have a
# group of their own, so that other refusals never hide them from fail2ban.
LOGINS: Final = frozenset(("login-refused",))
CALLS: Final = frozenset(("call-start", "call-end", "proxy-start", "proxy-end"))
STREAMS: Final = frozenset(
    (
        *("publish-start", "publish-end", "play-start", "play-end"),
        *("call-wait", "room-enter", "room-leave"),
    )
)
PHONES: Final = frozenset(("registered", "unregistered", "contact-lost", "contact-silent"))


def run(arguments: Sequence[str]) -> int:
    """Run the gateway until SIGTERM or SIGINT, or until its terminal closes; returns 0.

    Raises ConfigError, one line for the operator.
    """
    settings = load(arguments)
    logs.configure(settings.logs.log_level, settings.logs.log_format, FloodFilter())
    if settings.process.workers > 1:
        count, drain = settings.process.workers, settings.end.drain
        listeners = _divided(settings.listeners, settings.rtmfp)
        run_one = partial(_serve_place, partial(Gateway, settings))
        return Supervisor(listeners, count, drain, run_one).run()
    return _serve(Gateway(settings), lambda words: print("ready", *words, flush=True))


def _divided(at: ListenerSettings, rtmfp: RtmfpSettings) -> ListenerSettings:
    """The listeners that all workers serve.

    Relays between clients of RTMFP want them all in one process.
    """
    return replace(at, rtmfp=None) if peer_connectivity(rtmfp).relays else at


def _serve_place(
    make: Callable[[WorkerPlace], Gateway],
    place: WorkerPlace,
    say: Callable[[Sequence[str]], None],
    life: int,
) -> int:
    """Run one of several workers, which ends when `life`, the supervisor's pipe, does."""

    def ended() -> None:
        watcher.stop()
        remove_folder(place)  # the supervisor was killed, and cannot
        os.kill(os.getpid(), signal.SIGTERM)

    logs.tag(worker=place.index)
    watcher: Any = gevent.get_hub().loop.io(life, READABLE)
    watcher.start(ended)
    return _serve(make(place), say)


def _serve(gateway: Gateway, say: Callable[[Sequence[str]], None]) -> int:
    """Serve until a signal ends it, and `say` the words of the ready line when all listen."""
    done: AsyncResult[str] = AsyncResult()
    for number in (signal.SIGTERM, signal.SIGINT):
        gevent.signal_handler(number, done.set, number.name)
    on_hangup(partial(done.set, signal.SIGHUP.name), gateway.reload)
    gevent.signal_handler(signal.SIGUSR1, lambda: gateway.log.report("status", **gateway.of_all()))
    gateway.start()
    settle()
    Alarm(GarbageCollector(gateway.is_quiet, gateway.totals.ended.total, monotonic())).set()
    say([f"{name}={address}" for name, address in gateway.addresses().items()])
    reason = done.get()
    with ended_within(SECONDS + gateway.settings.end.drain):
        gateway.stop_calls(reason)
        gevent.sleep(FAREWELL_SECONDS)
        gateway.stop()
    return 0


class FloodFilter(LogRateLimit):
    """Drops such events and warnings in a flood; other lines and errors pass."""

    def __init__(self, clock: Callable[[], float] = now) -> None:
        super().__init__(clock)
        self._many = [
            (events, Bucket(clock(), ALL_BURST, ALL_RATE))
            for events in (LOGINS, CALLS, STREAMS, PHONES)
        ]

    def filter(self, record: logging.LogRecord) -> bool:
        for events, bucket in self._many:
            if record.msg in events:
                left_out = bucket.take(self._clock())
                if left_out:
                    self.tell(record, left_out)
                return left_out is not None
        is_one = record.levelno == logging.WARNING or record.msg in EVENTS
        return not is_one or super().filter(record)

    def tell(self, record: logging.LogRecord, left_out: int) -> None:
        """Add the number of dropped lines to a record, as the value `left_out`."""
        record.values = {**getattr(record, "values", {}), "left_out": left_out}
