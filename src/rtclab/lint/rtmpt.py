"""RTMP in HTTP: the numbers of a tunnel's requests, and the connection that their bodies make.

Implements Field §"HTTP tunnel" as a rule book.  The requests of a tunnel may come by several
connections, and the connection inside has the addresses of the one that opened it.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from rtclab.lint.findings.finding import Findings
from rtclab.lint.findings.ladder import Ladder
from rtclab.lint.findings.packet import SeenPacket
from rtclab.lint.rtmp import RtmpConnection
from rtclab.unwrap.http import HttpMessage
from rtmplite.rtmp.tunnel import AHEAD, INTERVALS

COMMANDS: Final = ("send", "idle", "close")
_OK: Final = "200"


def words_of(request: HttpMessage) -> list[str]:
    """The command of a POST, the name of the tunnel, and the number: Field §"HTTP tunnel"."""
    method, path = request.words
    return path.strip("/").split("/") if method == "POST" else []


def is_tunnelled(request: HttpMessage) -> bool:
    """Whether a request is one of a tunnel: Field §"HTTP tunnel"."""
    words = words_of(request)
    return words[:1] in (["open"], ["fcs"]) or (len(words) == 3 and words[0] in COMMANDS)


@dataclass(slots=True)
class _Asked:
    """A request that waits for the ones before it."""

    packet: SeenPacket
    command: str
    body: bytes


@dataclass(slots=True)
class _Tunnel:
    """The connection in one tunnel; `is_lost` behind a request that is missing."""

    rtmp: RtmpConnection
    expected: int | None = None
    waiting: dict[int, _Asked] = field(default_factory=dict)
    answered: set[int] = field(default_factory=set)
    is_closed: bool = False
    is_lost: bool = False

    def feed(self, packet: SeenPacket, data: bytes, *, is_client: bool) -> None:
        if data and not self.is_lost:
            ends = self.rtmp.client, self.rtmp.server
            source, target = ends if is_client else reversed(ends)
            self.rtmp.feed(packet._replace(source=source, target=target), data)


class RtmpTunnels:
    """All tunnels of a capture: Field §"HTTP tunnel"."""

    def __init__(self, findings: Findings, ladder: Ladder, note: Callable[[str], None]) -> None:
        self._findings, self._ladder, self._note = findings, ladder, note
        self._all: dict[tuple[str, str], _Tunnel] = {}

    def request(self, packet: SeenPacket, request: HttpMessage) -> None:
        """Take a request; those ahead of their turn wait: Field §"HTTP tunnel"."""
        found = self._found(packet.target, request)
        if found is None:
            return
        tunnel, command, number = found
        expected = number if tunnel.expected is None else tunnel.expected
        if number < expected - 1 or (tunnel.is_closed and number >= expected):
            end = ", which was the last" if tunnel.is_closed else ""
            what = f"request {number} behind {expected - 1}{end}"
            self._findings.add("rtmpt-sequence", packet, what)
        elif number >= expected:
            tunnel.expected = expected
            tunnel.waiting.setdefault(number, _Asked(packet, command, request.body))
            self._proceed(tunnel)
            if len(tunnel.waiting) > AHEAD:
                self._gap(tunnel)

    def answer(self, packet: SeenPacket, request: HttpMessage, answer: HttpMessage) -> None:
        """Take an answer; its first octet is the interval: Field §"HTTP tunnel"."""
        if answer.words[1] != _OK:
            return
        if words_of(request)[:1] == ["open"]:
            self._open(packet, answer)
            return
        found = self._found(packet.source, request)
        if found is None:
            return
        tunnel, command, number = found
        interval = answer.body[:1]
        if command != "close" and not (interval and INTERVALS[0] <= interval[0] <= INTERVALS[-1]):
            what = f"the answer begins with {interval.hex() or 'nothing'}"
            self._findings.add("rtmpt-interval", packet, what)
        if number not in tunnel.answered:  # asked again, the same is said again
            tunnel.answered.add(number)
            tunnel.feed(packet, answer.body[1:], is_client=False)

    def finish(self, now: float) -> None:
        """Report on all that is missing: Field §"HTTP tunnel"."""
        for tunnel in self._all.values():
            if tunnel.waiting:
                self._gap(tunnel)
            tunnel.rtmp.finish(now, is_closed=tunnel.is_closed)

    def _open(self, packet: SeenPacket, answer: HttpMessage) -> None:
        name = answer.body.decode("latin-1").strip()
        if (packet.source, name) not in self._all:
            rtmp = RtmpConnection(self._findings, self._ladder, packet.target, packet.source)
            self._all[packet.source, name] = _Tunnel(rtmp)

    def _found(self, server: str, request: HttpMessage) -> tuple[_Tunnel, str, int] | None:
        words = words_of(request)
        if len(words) != 3 or words[0] not in COMMANDS:
            return None
        tunnel = self._all.get((server, words[1]))
        if tunnel is None:
            self._note("the opening of an RTMP tunnel is not in the capture")
            return None
        if not words[2].isdecimal() or len(words[2]) > 10:
            return None
        return tunnel, words[0], int(words[2])

    def _proceed(self, tunnel: _Tunnel) -> None:
        while tunnel.expected in tunnel.waiting:
            asked = tunnel.waiting.pop(tunnel.expected)
            tunnel.expected += 1
            if asked.command == "send":
                tunnel.feed(asked.packet, asked.body, is_client=True)
            tunnel.is_closed |= asked.command == "close"

    def _gap(self, tunnel: _Tunnel) -> None:
        """A request never came: what follows cannot be read."""
        number = min(tunnel.waiting)
        what = f"request {number}, and {tunnel.expected} is missing"
        self._findings.add("rtmpt-sequence", tunnel.waiting[number].packet, what)
        tunnel.is_lost, tunnel.expected = True, number
        self._proceed(tunnel)
