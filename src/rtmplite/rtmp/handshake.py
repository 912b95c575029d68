"""The handshake: each side sends a version and two packets, then the chunks begin.

Implements RTMP 1.0 §5.2.  Both machines are fed bytes as they come and give bytes to send:

    >>> server, client = ServerHandshake(bytes, 0.0), ClientHandshake(bytes, 0.0)
    >>> c2 = client.receive(server.receive(client.start(0.0), 0.1), 0.2)
    >>> client.done, server.done
    (True, False)
    >>> server.receive(c2, 0.3), server.done, server.scheme
    (b'', True, 'simple')

Peers that sign their packets (Field §"Digest handshake") are answered in kind.  A wrong echo
does not end the connection (RTMP Errata §3).
"""

from collections.abc import Callable
from enum import StrEnum
from struct import Struct
from typing import Final

from rtmplite.errors import LocalError, RemoteError
from rtmplite.rtmp.wire import digest
from rtmplite.rtmp.wire.digest import PACKET_SIZE, PLAYER_KEY, PLAYER_TEXT, SERVER_KEY, SERVER_TEXT

VERSION: Final = 3  # §5.2.2
ENCRYPTED_VERSIONS: Final = (6, 8)  # RTMPE: Field §"RTMPE version byte"
FIRST_TEXT: Final = 32  # a version from here on is some text protocol: §5.2.2
TIME_LIMIT: Final = 10.0  # s.  Own design: a peer that only opens a socket should not keep it

# What a signing peer calls itself, in the bytes that §5.2.3 wants to be zero; a player checks
# for signatures if the first of them is 3 or more: Field §"Digest handshake".
SERVER_VERSION: Final = bytes((4, 5, 0, 1))
PLAYER_VERSION: Final = bytes((9, 0, 124, 2))

_TIME: Final = Struct(">I")


class State(StrEnum):
    """The boxes of the diagram in §5.2.5."""

    UNINITIALIZED = "Uninitialized"
    VERSION_SENT = "Version sent"
    ACK_SENT = "Ack sent"
    DONE = "Handshake Done"


class _Handshake:
    """The part of both ends: it collects bytes, keeps time and fills packets."""

    def __init__(self, random: Callable[[int], bytes], now: float) -> None:
        self.state = State.UNINITIALIZED
        self.scheme = "simple"
        self._random, self._epoch = random, now
        self._input = b""

    @property
    def done(self) -> bool:
        """Whether chunks may flow: §5.2.5, Handshake Done."""
        return self.state is State.DONE

    @property
    def rest(self) -> bytes:
        """The bytes after the handshake, which begin the chunks: §5.3."""
        return self._input if self.done else b""

    @property
    def deadline(self) -> float | None:
        """When to call `tick`, None once done.  Own design: RTMP sets no limit."""
        return None if self.done else self._epoch + TIME_LIMIT

    def tick(self, now: float) -> None:
        """Raise RemoteError if the peer takes too long.  Own design: RTMP sets no limit."""
        if self.deadline is not None and now >= self.deadline:
            raise RemoteError(f"no handshake within {TIME_LIMIT:.0f} s")

    def _take(self, count: int) -> bytes | None:
        """Remove `count` bytes from the input, None if it has fewer."""
        if len(self._input) < count:
            return None
        taken, self._input = self._input[:count], self._input[count:]
        return taken

    def _time(self, now: float) -> bytes:
        """The milliseconds since this machine was made, its epoch (§5.2.3)."""
        # §5.2.3 [time-is-epoch]
        return _TIME.pack(int((now - self._epoch) * 1000) & 0xFFFFFFFF)

    def _packet_1(self, now: float, version: bytes = bytes(4)) -> bytes:
        # §5.2.3 [packet-1536] [zero-field] [random-data]
        return self._time(now) + version + self._random(PACKET_SIZE - 8)

    def _echo(self, packet: bytes, now: float) -> bytes:
        """Make C2 of S1 or S2 of C1 (§5.2.4)."""
        # §5.2.4 [echo-time] [echo-time2] [echo-random]
        return packet[:4] + self._time(now) + packet[8:]

    def _filler(self) -> bytes:
        return self._random(PACKET_SIZE - digest.DIGEST_SIZE)


class ServerHandshake(_Handshake):
    """The server's end: §5.2.1.

    `random(n)` gives n bytes; `now` is in seconds, on any clock that never runs backwards.
    `scheme` becomes "digest0" or "digest1" when the client signs its C1.
    """

    def receive(self, data: bytes | memoryview, now: float) -> bytes:
        """Give bytes to send for bytes of the client: §5.2.1.  LocalError when `done`."""
        if self.done:
            raise LocalError("the handshake is over")
        self._input += bytes(data)
        send = b""
        if self.state is State.UNINITIALIZED and (c0 := self._take(1)):
            self._check_version(c0[0])
            self.state = State.VERSION_SENT
        if self.state is State.VERSION_SENT and (c1 := self._take(PACKET_SIZE)):
            send = self._answer(c1, now)  # §5.2.1 [s0-s1-after-c0] [s2-after-c1]
            self.state = State.ACK_SENT
        # §5.2.1 [data-after-c2], RTMP Errata §3 [echo-may-differ]
        if self.state is State.ACK_SENT and self._take(PACKET_SIZE):
            self.state = State.DONE
        return send

    @staticmethod
    def _check_version(version: int) -> None:
        """Accept any version that may be answered by 3: §5.2.2."""
        if version >= FIRST_TEXT:
            # §5.2.2 [not-text]
            raise RemoteError(f"{version:#04x} does not begin an RTMP connection")
        if version in ENCRYPTED_VERSIONS:
            raise RemoteError("RTMPE is not spoken here; use rtmp or rtmps")

    def _answer(self, c1: bytes, now: float) -> bytes:
        """Give S0, S1 and S2: §5.2.2, §5.2.3, §5.2.4."""
        signed = digest.find(c1, PLAYER_TEXT) if any(c1[4:8]) else None
        if signed is None:
            s1, s2 = self._packet_1(now), self._echo(c1, now)
        else:
            scheme, their_digest = signed
            self.scheme = scheme.name
            s1 = digest.sign(self._packet_1(now, SERVER_VERSION), scheme, SERVER_TEXT)
            # Field §"Digest handshake" [answered-in-kind]
            s2 = digest.answer(self._filler(), their_digest, SERVER_KEY)
        return bytes((VERSION,)) + s1 + s2  # §5.2.2 [version-3] [answer-3]


class ClientHandshake(_Handshake):
    """The client's end; with `digest` C1 is signed, `scheme` tells of S1: §5.2.1."""

    def __init__(self, random: Callable[[int], bytes], now: float, digest: bool = False) -> None:
        super().__init__(random, now)
        self._sign = digest

    def start(self, now: float) -> bytes:
        """Give C0 and C1, which open the conversation: §5.2.1.  LocalError the second time."""
        if self.state is not State.UNINITIALIZED:
            raise LocalError("the handshake has begun already")
        self.state = State.VERSION_SENT
        if self._sign:
            c1 = digest.sign(self._packet_1(now, PLAYER_VERSION), digest.SCHEMES[0], PLAYER_TEXT)
        else:
            c1 = self._packet_1(now)
        return bytes((VERSION,)) + c1  # §5.2.2 [version-3]

    def receive(self, data: bytes | memoryview, now: float) -> bytes:
        """Give bytes to send; LocalError out of turn, RemoteError for a version: §5.2.2."""
        if self.state is State.UNINITIALIZED or self.done:
            raise LocalError("the handshake has not begun or is over")
        self._input += bytes(data)
        send = b""
        if self._input[:1] != bytes((VERSION,)) and self.state is State.VERSION_SENT:
            # §5.2.2 [client-abandons]
            raise RemoteError("the server answers with another version of RTMP")
        if self.state is State.VERSION_SENT and (s0_s1 := self._take(1 + PACKET_SIZE)):
            send = self._acknowledge(s0_s1[1:], now)  # §5.2.1 [c2-after-s1]
            self.state = State.ACK_SENT
        # §5.2.1 [data-after-s2], RTMP Errata §3 [echo-may-differ]
        if self.state is State.ACK_SENT and self._take(PACKET_SIZE):
            self.state = State.DONE
        return send

    def _acknowledge(self, s1: bytes, now: float) -> bytes:
        """Give C2: §5.2.4, or Field §"Digest handshake" if both ends sign."""
        signed = digest.find(s1, SERVER_TEXT) if self._sign else None
        if signed is None:
            return self._echo(s1, now)
        scheme, their_digest = signed
        self.scheme = scheme.name
        return digest.answer(self._filler(), their_digest, PLAYER_KEY)
