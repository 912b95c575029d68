"""A user agent that registers many users: `python perf/sip_registering.py REGISTRAR COUNT`.

REGISTRAR is HOST:PORT. So many registrations are made, `AT_ONCE` of them under way at any time.
The last line tells how many were granted, in how many seconds, and the CPU seconds of it.
"""

import os
import sys
import time

from gevent.event import Event

from p2psip.errors import RemoteError
from p2psip.net.clock import monotonic
from p2psip.net.driver import SipDriver, SipPorts
from p2psip.sip.address import Address
from p2psip.sip.message import Request
from p2psip.sip.uri import Uri
from p2psip.stack.stack import Recipient, Stack
from p2psip.transaction.flow import Flow
from p2psip.ua.registering.registration import Registration
from p2psip.ua.registering.registrations import Registrations

AT_ONCE = 16
PATIENCE = 300.0  # s for all of them


class Nobody:
    """Takes no request."""

    def recipient(self, request: Request, flow: Flow, now: float) -> Recipient:
        """Refuse it."""
        raise RemoteError("Not Found", 404)

    def on_ack(self, request: Request, flow: Flow, now: float) -> None:
        """Let it be."""


class Users:
    """Registers one user after the other, and hears of the answers."""

    def __init__(
        self, stack: Stack, registrations: Registrations, registrar: str, count: int
    ) -> None:
        self._stack, self._registrations, self._registrar = stack, registrations, registrar
        self._count = self._left = count
        self.granted = self._ended = 0
        self.done = Event()

    def next(self, now: float) -> None:
        """Send the REGISTER of one more user, if there is one."""
        if not self._left:
            return
        self._left -= 1
        user = f"agent{self._left}"
        made = Registration(
            self._stack,
            Address(Uri.parse(f"sip:{user}@{self._registrar}")),
            self._stack.contact(user),
            Uri.parse(f"sip:{self._registrar}"),
            self,
            os.urandom,
        )
        self._registrations.add(made)
        made.start(now)

    def on_registered(self, registration: Registration, expires: int, now: float) -> None:
        """Go on with the next."""
        self.granted += 1
        self._end(now)

    def on_failed(self, registration: Registration, status: int, reason: str, now: float) -> None:
        """Go on with the next, and count this one as refused."""
        self._end(now)

    def _end(self, now: float) -> None:
        self._ended += 1
        self.next(now)
        if self._ended == self._count:
            self.done.set()


def main() -> None:
    """Register them all, and tell."""
    registrar, count = sys.argv[1], int(sys.argv[2])
    ports = SipPorts("127.0.0.1", 0)
    stack = Stack(random=os.urandom, listeners=ports.listeners)
    stack.core = Nobody()
    driver = SipDriver(stack, ports)
    registrations = Registrations()
    driver.drive(registrations)
    users = Users(stack, registrations, registrar, count)
    wall, cpu = time.monotonic(), time.process_time()
    for _ in range(min(AT_ONCE, count)):
        driver.run(users.next, monotonic())
    users.done.wait(PATIENCE)
    wall, cpu = time.monotonic() - wall, time.process_time() - cpu
    print(f"granted {users.granted} {wall:.6f} {cpu:.6f}", flush=True)


if __name__ == "__main__":
    main()
