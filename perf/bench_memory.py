"""What a connection, player, call, session of RTMFP and browser hold, and what calls leave behind.

The server's resident memory with some of a kind, and with more of it: the difference by their
number, so that what the first one brings with it is not counted. The system's buffers of sockets
are not the process's, and not in it. nginx-rtmp is measured beside connections and players; `idle`
tells how many idle connections of RTMP each is. Then calls come and go, one after the other, with
a T1 so short that what a transaction keeps is gone after some seconds.
"""

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple, Protocol

from cpu import PAGE
from gateway import Gateway
from load import SPEEX_8K, Phone
from nginx import Nginx
from options import Options
from results import Figures
from rtmfp_load import RtmfpPlayer
from rtmp_load import CallClient, Player, Publisher, Session
from sip_load import SipPeer

PEER = Path(__file__).resolve().parent.parent / "tests" / "support" / "peers" / "webrtc_peer.py"
STREAM = "bench"
FIRST = 10  # that are there before the others are counted
MANY, SMALL_MANY = 500, 50
BROWSERS, SMALL_BROWSERS = (1, 8), (1, 2)  # before, and more; each is a whole aiortc
CALLS, SMALL_CALLS = 10_000, 300
SAMPLES = 10
WARMING = 50  # calls
PICTURES = 100  # turns of the publisher: a whole group is kept for late players
FAST_T1 = ("--sip-t1", "100")
WEB = ("--http", "127.0.0.1:0", "--webrtc", "127.0.0.1:0", "--sip", "off")
_CALL_ID = re.compile(r"^call-id: *(\S+)", re.MULTILINE | re.IGNORECASE)


class Closable(Protocol):
    """Whatever holds something of the server."""

    def close(self) -> None:
        """Let go of it."""


Join = Callable[[Gateway | Nginx, int], Closable]


class Kind(NamedTuple):
    """What there are many of, and how the next one comes."""

    name: str
    join: Join
    has_nginx: bool = False


class IdleRtmfp(RtmfpPlayer):
    """A session of RTMFP with its NetConnection, on which nothing is played."""

    def _play(self, name: str) -> None:
        pass


class Callee(SipPeer):
    """A phone for one call after the other, which does not mind repeated requests."""

    def __init__(self) -> None:
        super().__init__()
        self._known = set[tuple[str, str]]()

    def _next(self, method: str) -> tuple[str, tuple[str, int]]:
        while True:
            text, source = super()._next(method)
            found = _CALL_ID.search(text)
            key = (method, found[1] if found else "")
            if key not in self._known:
                self._known.add(key)
                return text, source


class Browser:
    """aiortc that plays by WHEP, in a process of its own; it is there when it sees pictures."""

    def __init__(self, gateway: Gateway, kind: str) -> None:
        url = f"http://{gateway.http}/live/{STREAM}/{kind}"
        words = [sys.executable, str(PEER), kind, url]
        self._process = subprocess.Popen(
            words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        assert self._process.stdout is not None
        wanted = '"number"' if kind == "whep" else '"location"'
        if not any(wanted in line for line in self._process.stdout):
            raise RuntimeError("a browser sees nothing")

    def close(self) -> None:
        """End it."""
        self._process.terminate()
        self._process.communicate()


def connection(server: Gateway | Nginx, number: int) -> Closable:
    """An RTMP connection that does nothing."""
    return Session(server.url("").rstrip("/"))


def player(server: Gateway | Nginx, number: int) -> Closable:
    """A player of sound and pictures."""
    return Player(server.url("").rstrip("/"), STREAM)


def session(server: Gateway | Nginx, number: int) -> Closable:
    """A session of RTMFP that does nothing."""
    assert isinstance(server, Gateway)
    return IdleRtmfp(f"rtmp://{server.rtmfp}/live", STREAM)


class Line:
    """A call of a rich client; the phone is on its own."""

    def __init__(self, server: Gateway, peer: SipPeer, number: int) -> None:
        self._phone = Phone(SPEEX_8K, 98)
        self._client = CallClient(f"rtmp://{server.rtmp}/sip/caller{number}@127.0.0.1", SPEEX_8K)
        self._client.invite(f"sip:phone@127.0.0.1:{peer.port}", "narrowband")
        peer.answer(self._phone)
        self._client.open()

    def close(self) -> None:
        """Drop the connection, which ends the call."""
        self._client.close()
        self._phone.close()


def caller() -> Join:
    """Calls, all to the same phone's port."""
    peer = Callee()

    def call(server: Gateway | Nginx, number: int) -> Closable:
        assert isinstance(server, Gateway)
        return Line(server, peer, number)

    return call


def browser(server: Gateway | Nginx, number: int) -> Closable:
    """A player by WHEP; the first one of all publishes by WHIP before."""
    assert isinstance(server, Gateway)
    return Browser(server, "whep")


def resident(server: Gateway | Nginx) -> float:
    """KB that the process holds."""
    pages = int(Path(f"/proc/{server.process.pid}/statm").read_text().split()[1])
    return pages * PAGE / 1024


def each_of(server: Gateway | Nginx, join: Join, first: int, more: int) -> tuple[float, float]:
    """KB of one of `more`, which came after `first`, and MB with all."""
    with ExitStack() as stack:
        for number in range(first):
            stack.callback(join(server, number).close)
        before = resident(server)
        for number in range(first, first + more):
            stack.callback(join(server, number).close)
        after = resident(server)
    return (after - before) / more, after / 1024


def rows(options: Options) -> Iterator[Figures]:
    """A row for each kind, then the course of the calls that come and go."""
    many = SMALL_MANY if options.small else MANY
    kinds = [
        Kind("idle RTMP connection", connection, has_nginx=True),
        Kind("RTMP player", player, has_nginx=True),
        Kind("idle RTMFP session", session),
        Kind("call of a rich client", caller()),
    ]
    idle: float | None = None
    for kind in kinds:
        with Gateway(options.server_core) as gateway, ExitStack() as stack:
            _publish(gateway, stack)
            kb, total = each_of(gateway, kind.join, FIRST, many)
        other = None
        if kind.has_nginx:
            with Nginx(options.server_core) as nginx, ExitStack() as stack:
                _publish(nginx, stack)
                other, _ = each_of(nginx, kind.join, FIRST, many)
        idle = idle or kb
        yield line(kind.name, many, kb, total, other, idle)
    first, more = SMALL_BROWSERS if options.small else BROWSERS
    try:
        with Gateway(options.server_core, *WEB) as gateway, ExitStack() as stack:
            stack.callback(Browser(gateway, "whip").close)
            kb, total = each_of(gateway, browser, first, more)
        yield line("browser by WHEP", more, kb, total, None, idle)
    except RuntimeError as absent:
        print(f"left out: browsers, {absent}")
    yield from growth(options)


def growth(options: Options) -> Iterator[Figures]:
    """The memory after each part of the calls, and what one call leaves."""
    calls = SMALL_CALLS if options.small else CALLS
    peer = Callee()
    with Gateway(options.server_core, *FAST_T1) as gateway:
        _calls(gateway, peer, WARMING)
        begin = resident(gateway)
        for part in range(1, SAMPLES + 1):
            _calls(gateway, peer, calls // SAMPLES)
            held = resident(gateway)
            done = part * calls // SAMPLES
            kb = (held - begin) / done
            yield line("calls that have ended", done, kb, held / 1024, None, None)


def line(
    kind: str, count: int, kb: float, total: float, other: float | None, idle: float | None
) -> Figures:
    """A row; `kb` is for each."""
    figures = {
        "KB each": kb,
        "nginx": other,
        "ratio": kb / other if other else None,
        "idle": kb / idle if idle else None,
        "MB": total,
    }
    return Figures("siprtmp", kind, count, figures)


def _publish(server: Gateway | Nginx, stack: ExitStack) -> None:
    """A stream with a group of pictures that late players get."""
    publisher = Publisher(server.url("").rstrip("/"), STREAM, video=True)
    stack.callback(publisher.close)
    publisher.socket.setblocking(True)
    for _ in range(PICTURES):
        publisher.send()


def _calls(gateway: Gateway, peer: Callee, count: int) -> None:
    """Calls one after the other; each is answered, and ended by its client."""
    for number in range(count):
        Line(gateway, peer, number).close()
        peer.end()
