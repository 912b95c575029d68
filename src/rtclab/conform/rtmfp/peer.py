"""The other side of an RTMFP target before there is a session: hellos and keyings as a case wants.

Own design: a peer has a UDP socket of its own, so that whatever arrives there answers its case.
Only hellos and keyings are sent again when nothing comes, as RFC 7016 §3.5.1.1.1 has it, since a
target may limit how many it answers.
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

from gevent import socket

from rtclab.conform.case import Unmet, Unreachable
from rtclab.conform.checks import at_most
from rtmplite.errors import LocalError, RemoteError
from rtmplite.rtmfp.crypto.epd import Epd
from rtmplite.rtmfp.crypto.flash_profile import FlashAgreement, FlashProfile
from rtmplite.rtmfp.crypto.keying import Policy
from rtmplite.rtmfp.wire.chunks import Chunk
from rtmplite.rtmfp.wire.packet import Mode, Packet, scramble, unscramble
from rtmplite.rtmfp.wire.startup_chunks import (
    InitiatorHello,
    InitiatorInitialKeying,
    ResponderHello,
    ResponderInitialKeying,
)
from rtmplite.rtmp.client import Target

QUIET: Final = 0.3  # s without a word from the target: it has nothing to say
REPEAT: Final = 1.5  # s: RFC 7016 §3.5.1.1.1
REACH: Final = 2  # s for a reply to a first hello
TAG_BYTES: Final = 16
GROUP: Final = 2  # every endpoint has it, and it takes the least time: RFC 7425 §4.2
_LARGEST: Final = 65535
_TICK: Final = 250  # of the timestamp, a second: RFC 7016 §2.2.4

C = TypeVar("C")


def connect(target: str) -> closing["RtmfpPeer"]:
    """Open a peer of a target, `rtmfp://HOST:PORT/APP`; raises Unreachable or ValueError."""
    return closing(RtmfpPeer(target))


def reach(target: str) -> None:
    """Raise Unreachable unless there is an RHello."""
    with closing(RtmfpPeer(target)) as peer, at_most(REACH):
        try:
            peer.hello()
        except Unmet as unmet:
            raise Unreachable(unmet.got) from None
        return
    raise Unreachable("no answer to a hello")


def alive(target: str) -> None:
    """Raise Unreachable unless a hello is answered by whatever it is: wrong answers are alive."""
    with closing(RtmfpPeer(target)) as peer, at_most(REACH):
        peer.say(peer.hello_chunk())
        with suppress(OSError):
            peer.socket.recv(_LARGEST)
            return
    raise Unreachable("no answer to a hello")


@dataclass(frozen=True, slots=True)
class Keying:
    """An IIKeying, and what is needed to read its answer (RFC 7016 §2.3.7)."""

    chunk: InitiatorInitialKeying
    agreement: FlashAgreement

    def changed(self, **fields: Any) -> "Keying":
        """The same keying with other fields of its chunk (RFC 7016 §2.3.7)."""
        return replace(self, chunk=replace(self.chunk, received=b"", **fields))


class RtmfpPeer:
    """An initiator with an address and an identity of its own, of a session that may come.

    `goodbyes` are called at the end of the case, last first; they close sessions.
    """

    def __init__(self, target: str, profile: FlashProfile | None = None) -> None:
        try:
            self.target = Target.parse(target, stream=False)
        except LocalError as error:
            raise ValueError(str(error)) from None
        if not self.target.by_datagrams:
            raise ValueError("no rtmfp URL")
        try:
            found = socket.getaddrinfo(self.target.host, self.target.port, type=socket.SOCK_DGRAM)[
                0
            ]
            self.socket = socket.socket(found[0], socket.SOCK_DGRAM)
            self.socket.connect(found[4])
        except OSError as error:
            raise Unreachable(error.strerror or str(error)) from None
        self._url = target
        self.profile = profile or FlashProfile.client(os.urandom, groups=(GROUP,))
        self.cipher = self.profile.default_cipher()
        self.goodbyes: list[Callable[[], None]] = []

    def close(self) -> None:
        """Close what a case has left open."""
        while self.goodbyes:
            with suppress(OSError):
                self.goodbyes.pop()()
        self.socket.close()

    def another(self, profile: FlashProfile | None = None) -> "RtmfpPeer":
        """A peer at another address, which is closed with this one (RFC 7016 §3.5.4.2)."""
        other = RtmfpPeer(self._url, profile)
        self.goodbyes.append(other.close)
        return other

    # -- packets ------------------------------------------------------------------------

    @property
    def uri(self) -> bytes:
        """What a client asks for a server by (RFC 7425 §5.3.1)."""
        return self.target.tc_url.encode()

    def send(self, datagram: bytes) -> None:
        """Send octets."""
        self.socket.send(datagram)

    def say_plain(self, packet: bytes, session_id: int = 0) -> None:
        """Seal a plain packet with the Default Session Key, and send it (RFC 7425 §4.1)."""
        self.send(scramble(session_id, self.cipher.seal(packet)))

    def say(self, *chunks: Chunk) -> None:
        """Send chunks in one packet of the startup (RFC 7016 §2.2.4)."""
        self.say_plain(self.startup(*chunks))

    def startup(self, *chunks: Chunk) -> bytes:
        """A plain packet of the startup (RFC 7016 §2.2.4)."""
        return Packet(Mode.STARTUP, chunks, timestamp=ticks()).encode()

    def datagram(self) -> tuple[int, bytes]:
        """Wait for a datagram; gives its session ID and the rest (RFC 7016 §2.2.2)."""
        try:
            return unscramble(self.socket.recv(_LARGEST))
        except OSError as error:
            raise Unmet("an answer", error.strerror or str(error)) from None
        except RemoteError as error:
            raise Unmet("a packet", str(error)) from None

    def replies(self) -> Iterator[tuple[int, Packet]]:
        """Wait for packets of the startup, with the session ID of each; others are left out."""
        while True:
            session_id, encrypted = self.datagram()
            with suppress(RemoteError):
                packet = Packet.parse(self.cipher.open(encrypted))
                if packet.mode is Mode.STARTUP:
                    yield session_id, packet

    def chunks(self, kind: type[C]) -> Iterator[C]:
        """Wait for chunks of the startup of one kind (RFC 7016 §2.3)."""
        for _, packet in self.replies():
            yield from (chunk for chunk in packet.chunks if isinstance(chunk, kind))

    # -- the opening --------------------------------------------------------------------

    def ask(self, chunk: Chunk, kind: type[C], wanted: Callable[[C], bool] = lambda _: True) -> C:
        """Send a chunk until an answer of this kind comes that is `wanted`."""
        while True:
            self.say(chunk)
            with at_most(REPEAT):
                return next(each for each in self.chunks(kind) if wanted(each))

    def hello_chunk(self, epd: bytes | None = None, tag: bytes | None = None) -> InitiatorHello:
        """A hello that asks for the target's URI, or by `epd` (RFC 7425 §5.3.1)."""
        if epd is None:
            epd = Epd(ancillary_data=self.uri).encode()
        return InitiatorHello(epd, os.urandom(TAG_BYTES) if tag is None else tag)

    def hello(self, epd: bytes | None = None, tag: bytes | None = None) -> ResponderHello:
        """Ask for an RHello with the hello's tag (RFC 7016 §3.5.1.1.1)."""
        chunk = self.hello_chunk(epd, tag)
        return self.ask(chunk, ResponderHello, lambda answer: answer.tag_echo == chunk.tag)

    def answers_within(self, seconds: float = QUIET) -> list[Chunk]:
        """All chunks of the startup that arrive within a moment."""
        found: list[Chunk] = []
        with at_most(seconds):
            for _, packet in self.replies():
                found += packet.chunks
        return found

    def expect_no_answer(self, about: str, *hellos: InitiatorHello) -> None:
        """Unmet if a hello, of all that were sent, is answered, or if a good one is not."""
        tags = [hello.tag for hello in hellos]
        for answer in self.answers_within():
            if isinstance(answer, ResponderHello) and answer.tag_echo in tags:
                raise Unmet(about, "an RHello")
        self.hello()

    def expect_no_session(self, about: str, keying: Keying, *more: type[Chunk]) -> None:
        """Raise Unmet if the keying is answered by RIKeying, or by a chunk of the kinds in `more`.

        Then the target must still answer a hello.
        """
        self.say(keying.chunk)
        for answer in self.answers_within():
            if isinstance(answer, (ResponderInitialKeying, *more)):
                raise Unmet(about, f"a chunk {type(answer).__name__}")
        self.hello()

    def keying(self, hello: ResponderHello, *, profile: FlashProfile | None = None) -> Keying:
        """An IIKeying for an RHello, as another identity if `profile` says so."""
        ours = profile or self.profile
        try:
            agreement = ours.initiate(hello.responder_certificate)
        except RemoteError as error:
            raise Unmet("a certificate with a Diffie-Hellman group of ours", str(error)) from None
        session_id = 1 + int.from_bytes(os.urandom(4)) % 0xFFFFFFFF
        return Keying(
            InitiatorInitialKeying(
                session_id, hello.cookie, ours.certificate, agreement.component, b"X"
            ),
            agreement,
        )

    def answer_to(self, keying: Keying) -> ResponderInitialKeying:
        """Ask for an RIKeying, which comes to our session (RFC 7016 §2.3.8)."""
        return self.ask(keying.chunk, ResponderInitialKeying)


def policy_profile(policy: Policy, group: int = GROUP) -> FlashProfile:
    """An identity that wants its packets protected so (RFC 7425 §4.5.2.4)."""
    return FlashProfile.client(os.urandom, groups=(group,), policy=policy)


def ephemeral_profile(group: int = GROUP) -> FlashProfile:
    """An identity with a new key for each session (RFC 7425 §4.6.1.1)."""
    return FlashProfile(os.urandom, groups=(group,), accepts_ancillary_data=False)


def ticks() -> int:
    """Our clock for timestamps (RFC 7016 §2.2.4)."""
    return int(time.monotonic() * _TICK) & 0xFFFF
