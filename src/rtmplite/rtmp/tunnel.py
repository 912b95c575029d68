"""RTMPT: the bytes of an RTMP connection in the bodies of HTTP requests and of their answers.

Implements Field §"HTTP tunnel", all that is known of it.  The client is behind a firewall that lets
only HTTP through; it sends request after request, since the server can only answer.

    >>> from rtmplite.live.streams import Registry
    >>> tunnels = Tunnels(lambda address: ServerConnection({}.get, Registry(), bytes, 0.0), bytes)
    >>> opened = tunnels.request("/open/1", bytes(1), ("192.0.2.1", 1), 0.0)
    >>> number = opened.body.decode().strip()
    >>> tunnels.request(f"/idle/{number}/0", bytes(1), ("192.0.2.1", 1), 0.1)
    TunnelAnswer(status=200, body=b'\\x01')
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

from rtmplite.limits.memory_budget import Account
from rtmplite.limits.rate_limit_key import rate_limit_key
from rtmplite.rtmp.server import ServerConnection

IDLE_LIMIT: Final = 30.0  # s without a request; a client asks every half second at the latest
TURN_LIMIT: Final = 5.0  # s that a request waits for the ones before it
AHEAD: Final = 8  # requests; HTTP clients open no more connections than that
FIRST_LIMIT: Final = 5.0  # s from the opening to the first bytes, which a client sends at once
MAX_SESSIONS: Final = 1000
MAX_OF_HOST: Final = MAX_SESSIONS // 8  # sessions of one host, which may be the NAT of many
MAX_SILENT: Final = 16  # of those, the ones that have sent nothing yet
SMALL_BODY: Final = 1024  # bytes; an empty request has one byte

# The first byte of an answer, from "ask again soon" to every half second, and the number of empty
# answers after which the next one is used.
INTERVALS: Final = (0x01, 0x03, 0x05, 0x09, 0x11, 0x21)
EMPTY_ANSWERS: Final = 10

Address: TypeAlias = tuple[str, int]


@dataclass(frozen=True, slots=True)
class TunnelAnswer:
    """An HTTP status and a body.  Own design: the edge adds the headers."""

    status: int
    body: bytes = b""


_NO_SUCH: Final = TunnelAnswer(404)


class Tunnels:
    """All tunnels of a server: Field §"HTTP tunnel".

    `make_connection` gives the machine for a client from `(host, port)`, or None if there is no
    room for one; one host has `max_of_host` at most.  `random` makes the numbers of tunnels, which
    must be hard to guess, since the number is all that a request needs.  `cut_off` is told of
    connections that are aborted, `over` of all that have ended.
    """

    def __init__(
        self,
        make_connection: Callable[[Address], ServerConnection | None],
        random: Callable[[int], bytes],
        *,
        max_sessions: int = MAX_SESSIONS,
        max_of_host: int = MAX_OF_HOST,
        cut_off: Callable[[ServerConnection], None] = lambda machine: None,
        over: Callable[[ServerConnection], None] = lambda machine: None,
    ) -> None:
        self._make_connection, self._random, self._over = make_connection, random, over
        self._max_sessions, self._max_of_host = max_sessions, max_of_host
        self._cut_off = cut_off
        self._tunnels: dict[str, _Tunnel] = {}

    @property
    def connections(self) -> list[ServerConnection]:
        """Own design: the connections in order of arrival."""
        return [tunnel.machine for tunnel in self._tunnels.values()]

    def request(
        self,
        path: str,
        body: bytes,
        address: Address,
        now: float,
        feed: Callable[[ServerConnection, bytes], None] | None = None,
    ) -> TunnelAnswer | None:
        """Answer a POST; None if an earlier one is missing: ask again after the next answer.

        Own design: a request whose number is ahead waits, as does one for a connection that must
        not be read at present.  The edge lets it wait for `TURN_LIMIT` and then calls `give_up`.
        `feed` gives the body to the connection, and may take time: later requests wait meanwhile.
        """
        words = path.strip("/").split("/")
        if words[0] == "open" and len(words) <= 2:
            return self._open(address, now)
        if len(words) != 3 or words[0] not in ("send", "idle", "close"):
            return _NO_SUCH  # of /fcs/ident2, too, and the client goes on
        tunnel = self._tunnels.get(words[1])
        if tunnel is None or not words[2].isdecimal() or len(words[2]) > 10:
            return _NO_SUCH
        answer = tunnel.request(words[0], int(words[2]), body, now, feed)
        self._judge(words[1], tunnel)
        return answer

    def room(self, path: str) -> tuple[int, Account | None]:
        """Own design: the longest body of a request, and who pays; little for strangers."""
        words = path.strip("/").split("/")
        tunnel = self._tunnels.get(words[1]) if len(words) == 3 and words[0] == "send" else None
        if tunnel is None:
            return SMALL_BODY, None
        return tunnel.machine.transport.room, tunnel.machine.transport.account

    def give_up(self, path: str, reason: str, now: float) -> None:
        """Own design: end the tunnel of a request that cannot be answered."""
        number = path.strip("/").split("/")[1:2]
        tunnel = self._tunnels.pop(number[0], None) if number else None
        if tunnel is not None:
            tunnel.machine.abort(reason, now)
            self._over(tunnel.machine)

    @property
    def deadline(self) -> float | None:
        """Own design: when to call `tick`."""
        return min((tunnel.deadline for tunnel in self._tunnels.values()), default=None)

    def tick(self, now: float) -> None:
        """Own design: pass the time on, and end connections whose client has been silent."""
        for number, tunnel in list(self._tunnels.items()):
            tunnel.tick(now)
            self._judge(number, tunnel)

    def stop(self, now: float) -> None:
        """Own design: end all tunnels; a client learns it from its next request."""
        tunnels, self._tunnels = self._tunnels, {}
        for tunnel in tunnels.values():
            tunnel.machine.transport.connection_lost(now, "server stopped")
            self._over(tunnel.machine)

    def _judge(self, number: str, tunnel: "_Tunnel") -> None:
        """Forget a tunnel that is over; the client gets a 404 for its next request."""
        if tunnel.is_over and self._tunnels.pop(number, None) is not None:
            self._over(tunnel.machine)
            if tunnel.machine.transport.aborted and not tunnel.was_left:
                self._cut_off(tunnel.machine)

    def _open(self, address: Address, now: float) -> TunnelAnswer:
        host = rate_limit_key(address[0])
        own = [number for number, tunnel in self._tunnels.items() if tunnel.host == host]
        silent = [number for number in own if self._tunnels[number].is_silent]
        if len(silent) >= MAX_SILENT:
            self._end_silent(silent[0], now)
        elif len(own) >= self._max_of_host or len(self._tunnels) >= self._max_sessions:
            return TunnelAnswer(503)
        machine = self._make_connection(address)
        if machine is None:
            return TunnelAnswer(503)
        machine.transport.peer_address = address
        number = self._random(16).hex()
        self._tunnels[number] = _Tunnel(machine, host, now)
        return TunnelAnswer(200, number.encode() + b"\n")

    def _end_silent(self, number: str, now: float) -> None:
        """End the oldest unused tunnel of a host that opens many."""
        tunnel = self._tunnels.pop(number)
        tunnel.machine.transport.connection_lost(now, "nothing came")
        self._over(tunnel.machine)


class _Tunnel:
    """One connection, with the last answer, which is repeated if the client asks again."""

    def __init__(self, machine: ServerConnection, host: str, now: float) -> None:
        self.machine, self.host = machine, host
        self.is_silent = True  # nothing has been sent through it yet
        self._heard = self._opened = now
        self._next: int | None = None  # any number will do for the first
        self._last = _NO_SUCH
        self._empty = 0  # answers in a row
        self.is_over = self.was_left = self._busy = False
        machine.transport.unsent(1)  # all output has to wait: see `Outlet`

    @property
    def deadline(self) -> float:
        ends = self._ends
        return ends if self.machine.deadline is None else min(ends, self.machine.deadline)

    @property
    def _ends(self) -> float:
        return self._opened + FIRST_LIMIT if self.is_silent else self._heard + IDLE_LIMIT

    def tick(self, now: float) -> None:
        if now >= self._ends and self.is_silent:
            self.machine.abort("nothing came in time", now)
        elif now >= self._ends:
            self._left(now, "asks no more")
        elif self.machine.deadline is not None:
            self.machine.tick(now)
        self.is_over = self.is_over or self.machine.transport.aborted

    def request(
        self,
        command: str,
        number: int,
        body: bytes,
        now: float,
        feed: Callable[[ServerConnection, bytes], None] | None = None,
    ) -> TunnelAnswer | None:
        self._heard = now
        expected = number if self._next is None else self._next
        if number == expected - 1 and self._last is not _NO_SUCH:
            return self._last  # asked again: the answer was lost, not the question
        if number < expected or number >= expected + AHEAD:
            self.machine.abort(f"request {number} instead of {expected}", now)
            self.is_over = True
            return TunnelAnswer(400)
        waits = command == "send" and not self.machine.transport.reading and not self.machine.closed
        if number > expected or waits or self._busy:
            return None
        if command == "send":
            self.is_silent = self.is_silent and not body
            self._busy = True
            try:
                if feed is None:
                    self.machine.transport.receive(body, now)
                else:
                    feed(self.machine, body)
            finally:
                self._busy = False
        self._next = number + 1
        if command == "close":
            self._left(now, "closed by the peer")
            return TunnelAnswer(200, bytes(1))
        self._last = _NO_SUCH if self.machine.transport.aborted else self._answer()
        self.is_over = self.machine.closed
        return self._last

    def _left(self, now: float, reason: str) -> None:
        self.machine.transport.connection_lost(now, reason)
        self.is_over = self.was_left = True

    def _answer(self) -> TunnelAnswer:
        """Give the interval, then the output of the connection."""
        output = b"".join(self.machine.transport.take_output())
        self.machine.transport.unsent(1)
        self._empty = 0 if output else self._empty + 1
        step = min(self._empty // EMPTY_ANSWERS, len(INTERVALS) - 1)
        return TunnelAnswer(200, bytes((INTERVALS[step],)) + output)
