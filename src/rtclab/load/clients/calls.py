"""Callers, and phones that register or send OPTIONS: p2psip's own agent, by any transport.

Own design: callers of one process share an agent, as the lines of one exchange do.  Each phone that
registers has an agent and sockets of its own.  A call sends marked audio all the time.  Marked
audio that an echo sends back tells delay and loss; of other audio, RTP's numbers tell the loss.
"""

import os
import ssl
import time
from collections.abc import Callable
from functools import partial

import gevent
from gevent import socket

from p2psip.agent import Account, Agent, CallSettings, NetworkSettings
from p2psip.errors import LocalError, RemoteError
from p2psip.net.clock import monotonic
from p2psip.net.phone.call import Call
from p2psip.net.tls import TlsContexts
from p2psip.phone_options import PASSWORD
from p2psip.sip.uri import Uri
from rtclab.load.clients.client import TIMEOUT, Work, own_url
from rtclab.load.figures import film, stamp
from rtclab.load.figures.tally import AUDIO, State, Tally

FRAME = film.SOUND_MS / 1000  # s
TICKS_MS = 8  # of RTP, to a ms
EXPIRES = 3600


class Phones:
    """The agents of one process.  `hold` is how long a call or a registration lasts, None forever.

    After it the client begins again, which tells how many are done per second.
    """

    def __init__(self, url: str, tls: ssl.SSLContext | None, hold: float | None) -> None:
        self._url, self._hold = url, hold
        self._uri = Uri.parse(url.replace("{}", "0"))
        self._tls = TlsContexts(client=tls) if tls is not None else None
        self._by_web = (self._uri.param("transport") or "").lower() in ("ws", "wss")
        if self._by_web and self._uri.scheme == "sips":
            raise LocalError("write sip: and transport=wss for WebSockets with TLS")
        self._shared: Agent | None = None

    def caller(self, number: int) -> Work:
        """Call, and talk."""
        return partial(self._each, self._call, self._own(number))

    def registrant(self, number: int) -> Work:
        """Register, as the user of the URL with its number, by its host."""
        return partial(self._each, self._register, self._own(number, each=True))

    def asker(self, number: int) -> Work:
        """Send OPTIONS once a second, or as often as `hold` says."""
        return partial(self._each, self._ask, self._own(number))

    def close(self) -> None:
        """Close what is shared."""
        if self._shared is not None:
            self._shared.close(0.5)

    def _own(self, number: int, *, each: bool = False) -> str:
        if "{}" in self._url or not each:
            return own_url(self._url, number, each=False)
        uri = Uri.parse(self._url)
        return str(uri.replace(user=f"{uri.user or 'user'}_{number}"))

    def _each(self, work: Callable[[str, Tally], None], url: str, tally: Tally) -> None:
        try:
            while True:
                tally.begin(monotonic())
                work(url, tally)
        except RemoteError as error:
            tally.fail(f"{error.status} {error.reason}", refused=True)
        except (LocalError, OSError) as error:
            refused = isinstance(error, ConnectionError)
            tally.fail(str(error) or type(error).__name__, refused=refused)

    def _agent(self) -> Agent:
        if self._shared is None:
            self._shared = Agent(
                Account("load", password=os.environ.get(PASSWORD)),
                self._network(),
                CallSettings(codecs=("PCMU",), echo=True, user_agent="rtclab"),
            )
        return self._shared

    def _network(self) -> NetworkSettings:
        host, port = self._uri.host.strip("[]"), self._uri.port or 5060
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((host, port))
            own = str(probe.getsockname()[0])
        return NetworkSettings(listen=(own, 0), tls=self._tls, websocket=self._by_web)

    def _call(self, url: str, tally: Tally) -> None:
        call = self._agent().call(url, TIMEOUT)
        try:
            tally.connect(monotonic())
            call.on_audio = partial(_heard, tally)
            _talk(call, self._hold)
            lost = call.statistics.lost if call.statistics is not None else 0
            tally.lost = max(tally.lost, lost)
            if call.reason:
                raise RemoteError(f"the call was ended: {call.reason}", 487)
        finally:
            call.hangup()

    def _register(self, url: str, tally: Tally) -> None:
        uri = Uri.parse(url)
        place = f"{uri.host}:{uri.port}" if uri.port else uri.host
        account = Account(
            uri.user or "user",
            place,
            password=os.environ.get(PASSWORD),
            registrar=str(uri.replace(user=None)),
        )
        with Agent(account, self._network()) as agent:
            agent.register(TIMEOUT, EXPIRES)
            tally.connect(monotonic(), State.COMPLETED)
            gevent.sleep(self._hold if self._hold is not None else 1e7)

    def _ask(self, url: str, tally: Tally) -> None:
        self._agent().options(url, TIMEOUT)
        tally.connect(monotonic(), State.COMPLETED)
        gevent.sleep(self._hold if self._hold is not None else 1.0)


def _heard(tally: Tally, payload: bytes, timestamp: int) -> None:
    mark = stamp.find(payload, time.time_ns())
    tally.heard(AUDIO, monotonic(), timestamp // TICKS_MS, len(payload), mark)


def _talk(call: Call, hold: float | None) -> None:
    """Send a sound each 20 ms until the call ends, or for so long."""
    began, turn = monotonic(), 0
    while call.is_up and (hold is None or turn * FRAME < hold):
        call.send_audio(film.sound(turn, time.time_ns()))
        turn += 1
        gevent.sleep(max(0.0, began + turn * FRAME - monotonic()))
