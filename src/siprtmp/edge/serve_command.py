"""`siprtmp serve`: the gateway as a program, from its command line to its last BYE.

Own design: SIGTERM, SIGINT and the end of the terminal stop it; SIGHUP of a program without a
terminal makes it read its files again; SIGUSR1 logs its status.
"""

import signal
from collections.abc import Sequence
from functools import partial
from typing import Final

import gevent
from gevent.event import AsyncResult

from p2psip.net.alarm import Alarm
from p2psip.net.clock import monotonic
from rtmplite.net.last_resort import SECONDS, ended_within
from rtmplite.net.sighup import on_hangup
from siprtmp.edge.gateway import Gateway
from siprtmp.edge.process.garbage_collection import GarbageCollector, settle
from siprtmp.operation import logs
from siprtmp.operation.logs import FloodFilter
from siprtmp.settings.load import load

FAREWELL_SECONDS: Final = 0.5  # for answers to our BYEs to come in


def run(arguments: Sequence[str]) -> int:
    """Run the gateway until SIGTERM or SIGINT, or until its terminal closes; returns 0.

    Raises ConfigError, one line for the operator.
    """
    settings = load(arguments)
    logs.configure(settings.logs.log_level, settings.logs.log_format, FloodFilter())
    gateway = Gateway(settings)
    done: AsyncResult[str] = AsyncResult()
    for number in (signal.SIGTERM, signal.SIGINT):
        gevent.signal_handler(number, done.set, number.name)
    on_hangup(partial(done.set, signal.SIGHUP.name), gateway.reload)
    gevent.signal_handler(signal.SIGUSR1, lambda: gateway.log.report("status", **gateway.status()))
    gateway.start()
    settle()
    Alarm(GarbageCollector(gateway.is_quiet, gateway.totals.ended.total, monotonic())).set()
    listening = (f"{name}={address}" for name, address in gateway.addresses().items())
    print("ready", *listening, flush=True)
    reason = done.get()
    with ended_within(SECONDS + settings.end.drain):
        gateway.stop_calls(reason)
        gevent.sleep(FAREWELL_SECONDS)
        gateway.stop()
    return 0
