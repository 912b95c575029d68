"""The states of RTMFP's sessions, watched: machines are made to go through all of them.

RFC 7016 §3.5 has them as Figure 8.  There is no table in the code to draw, since a session that is
opening and one that is open are machines of their own; here each is driven, and its states are
written down.
"""

from collections.abc import Callable, Sequence
from hashlib import sha256

from drawing import Figure

from rtmplite.errors import RemoteError
from rtmplite.rtmfp.crypto.cipher import default_cipher
from rtmplite.rtmfp.crypto.epd import Epd
from rtmplite.rtmfp.crypto.flash_profile import FlashProfile
from rtmplite.rtmfp.endpoint.endpoint import Endpoint
from rtmplite.rtmfp.endpoint.endpoint_listener import EndpointListener
from rtmplite.rtmfp.endpoint.limits import StartupLimits
from rtmplite.rtmfp.session.listener import SessionListener
from rtmplite.rtmfp.session.session import Session
from rtmplite.rtmfp.wire import chunks
from rtmplite.rtmfp.wire.packet import Mode, Packet, unscramble

HERE, MOVED = ("198.51.100.7", 50000), ("198.51.100.7", 50001)
THERE, FULL = ("192.0.2.1", 1935), ("192.0.2.2", 1935)
URL = Epd(ancillary_data=b"rtmfp://192.0.2.1/live").encode()
GROUPS = (2,)  # the quickest
USUAL = StartupLimits()
NAMES = {
    chunks.InitiatorHello: "IHello",
    chunks.InitiatorInitialKeying: "IIKeying",
    chunks.SessionClose: "Close",
    chunks.SessionCloseAck: "Close Ack",
    chunks.Ping: "Ping",
}
Arrows = dict[str, dict[str, tuple[str, list[str]]]]


def opening() -> Figure:
    """An initiator's states: once everything happens that can, and twice nobody answers."""
    figure = _Opening(FULL).succeed()
    for answers in (0, 1):
        for state, arrows in _Opening(THERE).fail(answers).items():
            figure[state].update(arrows)
    return {**figure, "S_OPEN": {}, "S_OPEN_FAILED": {}}


class _Opening:
    """A client, the server that it wants, and one that has no room and names the other."""

    def __init__(self, first: tuple[str, int]) -> None:
        self._figure: Arrows = {}
        self._client = _endpoint(b"client")
        self._server = _endpoint(b"server")
        self._full = _endpoint(b"full", limits=StartupLimits(sessions=0), others=[THERE])
        self._opening = self._client.connect(URL, [first], 0.0)
        self._hello = self._sent()

    def succeed(self) -> Arrows:
        hello = self._step("Redirect", self._answer(self._full, self._hello))
        keying = self._step("RHello", self._answer(self._server, hello))
        again = self._step("RHello Cookie Change", self._answer(self._server, keying, MOVED))
        self._step("RIKeying", self._answer(self._server, again, MOVED))
        return self._figure

    def fail(self, answers: int) -> Arrows:
        if answers:
            self._receive(self._answer(self._server, self._hello))
            self._sent()
        self._step("1.5 s, 4.5 s, 9 s ...", None, 1.5)
        self._step("95 s", None, 95.0)
        return self._figure

    def _step(self, event: str, datagram: bytes | None, now: float = 0.0) -> bytes:
        before = str(self._opening.state)
        if datagram is None:
            self._client.tick(now)
        else:
            self._receive(datagram)
        sent = self._sent()
        todo = [f"send {name}" for name in _names(sent)] if sent else []
        self._figure.setdefault(before, {})[event] = (str(self._opening.state), todo)
        return sent

    def _receive(self, datagram: bytes) -> None:
        self._client.receive(datagram, THERE, 0.0)
        _work(self._client)

    def _sent(self) -> bytes:
        """The last datagram of the client."""
        return b"".join(data for data, _ in self._client.take()[-1:])

    def _answer(self, server: Endpoint, datagram: bytes, source: tuple[str, int] = HERE) -> bytes:
        server.receive(datagram, source, 0.0)
        _work(server)
        [(answer, _)] = server.take()
        return answer


def session() -> Figure:
    """An open session: what ends it, and how."""
    figure: Arrows = {}
    request, acknowledgement = _hear(chunks.SessionClose()), _hear(chunks.SessionCloseAck())
    for event, *actions in (
        ("closed here", _close),
        ("Close", request),
        ("Close Ack", acknowledgement),
        ("25 s of silence", _wait(25.0)),
        ("120 s of silence", _wait(120.0)),
        ("Close", _close, request),
        ("Close Ack", _close, acknowledgement),
        ("every 5 s", _close, _wait(5.0)),
        ("90 s", _close, _wait(90.0)),
        ("Close", request, request),
        ("Close Ack", request, acknowledgement),
        ("19 s", request, _wait(19.0)),
    ):
        tried = _session()
        for action in actions:
            tried.take(0.0)
            state = str(tried.state)
            action(tried)
        todo = [f"send {name}" for data, _ in tried.take(0.0) for name in _names(data)]
        figure.setdefault(state, {})[event] = (str(tried.state), todo)
    return {**figure, "S_CLOSED": {}}


def _session() -> Session:
    return Session(
        initiator=True,
        cipher=default_cipher(),
        near_id=1,
        far_id=2,
        address=THERE,
        far_certificate=b"",
        near_nonce=b"",
        far_nonce=b"",
        random=_random(b"session"),
        now=0.0,
        listener=SessionListener(),
    )


def _close(tried: Session) -> None:
    tried.close(0.0)


def _wait(seconds: float) -> Callable[[Session], None]:
    return lambda tried: tried.tick(seconds)


def _hear(chunk: chunks.Chunk) -> Callable[[Session], None]:
    packet = default_cipher().seal(Packet(Mode.RESPONDER, (chunk,)).encode())
    return lambda tried: tried.receive(packet, THERE, 0.0)


def _names(datagram: bytes) -> list[str]:
    """What chunks are in a datagram, if it is sealed with the key that everybody has."""
    try:
        packet = Packet.parse(default_cipher().open(unscramble(datagram)[1]))
    except RemoteError:
        return ["Ping, with the new keys"]
    return [NAMES[type(chunk)] for chunk in packet.chunks]


def _work(endpoint: Endpoint) -> None:
    for job in endpoint.take_jobs():
        job.run()
        endpoint.finish(job, 0.0)


class _Listener(EndpointListener):
    def on_session(self, *_: object) -> SessionListener:
        return SessionListener()


def _endpoint(
    name: bytes, limits: StartupLimits = USUAL, others: Sequence[tuple[str, int]] = ()
) -> Endpoint:
    random = _random(name)
    profile = FlashProfile(random, groups=GROUPS)
    return Endpoint(profile, random, 0.0, listener=_Listener(), limits=limits, others=others)


def _random(seed: bytes) -> Callable[[int], bytes]:
    """A source of bytes that is the same in every run."""
    state = [seed]

    def some(count: int) -> bytes:
        state[0] = sha256(state[0]).digest()
        return (state[0] * (count // 32 + 1))[:count]

    return some
