"""The other side of an ICE target: a page that has begun a session by WHIP, and checks it by UDP.

Own design: the page is the controlling agent, as it offers.  It sends a check again where no answer
comes, so that a lost datagram is no verdict.
"""

import os
import struct
from collections.abc import Iterable
from contextlib import ExitStack, closing
from typing import Final

from gevent import socket

from p2psip.errors import RemoteError
from p2psip.nat.ice_candidate import CandidateType, IceCandidate, priority
from p2psip.nat.ice_credentials import IceType
from p2psip.nat.stun import BINDING, StunAttribute, StunClass, StunMessage, StunType
from rtclab.conform.case import NotApplicable, Unmet
from rtclab.conform.checks import at_most
from rtclab.conform.web.offers import UFRAG
from rtclab.conform.web.peer import WebPeer, WebSession

QUIET: Final = 0.3  # s without a word: the target has nothing to say
PATIENCE: Final = 2.0  # s for an answer, in which a check is sent three times
TRIES: Final = 3
LARGEST: Final = 2048  # octets of a datagram

Attributes = Iterable[tuple[int, bytes]]


def connect(target: str) -> closing["IcePeer"]:
    """Begin a session at a target; raises ValueError, Unreachable, Unmet and NotApplicable."""
    return closing(IcePeer(target))


class IcePeer:
    """A page whose session is at `address`; `ufrag` and `password` are those of the target."""

    def __init__(self, target: str) -> None:
        self._open = ExitStack()
        self.web = self._open.enter_context(closing(WebPeer("sendonly", target)))
        try:
            self.session = self.web.begin()
            self.ufrag, self.password = credentials(self.session)
            self.candidates = list(candidates(self.session))
            udp = [e for e in self.candidates if e.transport.lower() == "udp" and e.version]
            if not udp:
                raise NotApplicable("the answer has no address by UDP")
            self.address = max(udp, key=lambda each: each.priority).address
            self.socket = self.port()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End the session, and close the ports."""
        self._open.close()

    def port(self) -> socket.socket:
        """A port of the page, which hears the target alone."""
        family = socket.AF_INET6 if ":" in self.address[0] else socket.AF_INET
        made = self._open.enter_context(closing(socket.socket(family, socket.SOCK_DGRAM)))
        made.connect(self.address)
        return made

    def attributes(self, *more: tuple[int, bytes]) -> list[tuple[int, bytes]]:
        """Those of a check (RFC 8445 §7.1), and others."""
        return [
            (StunType.USERNAME, f"{self.ufrag}:{UFRAG}".encode()),
            (IceType.PRIORITY, struct.pack("!I", priority(CandidateType.PEER_REFLEXIVE))),
            (IceType.ICE_CONTROLLING, os.urandom(8)),
            *more,
        ]

    def check(
        self, *more: tuple[int, bytes], attributes: Attributes = (), password: str | None = None
    ) -> bytes:
        """A check: its own attributes and more, or `attributes` in their place, signed."""
        key = self.password if password is None else password
        return StunMessage.write(
            StunClass.REQUEST, BINDING, os.urandom(12), attributes or self.attributes(*more),
            key=key.encode(), fingerprint=True,
        ).data  # fmt: skip

    def ask(self, check: bytes, port: socket.socket | None = None) -> StunMessage:
        """Send a check, and read the answer; Unmet for none, or one that is no STUN."""
        at = port or self.socket
        for _ in range(TRIES):
            at.send(check)
            with at_most(PATIENCE / TRIES):
                while True:
                    answer = self._read(at)
                    if answer.kind is not StunClass.REQUEST:
                        return answer
        raise Unmet("an answer to a check", "none")

    def _read(self, at: socket.socket) -> StunMessage:
        """Read a STUN message, perhaps a check of the peer's own.  Raises Unmet for other data."""
        data = at.recv(LARGEST)
        try:
            return StunMessage.parse(data)
        except RemoteError as error:
            raise Unmet("a message of STUN", f"{error}: {data[:40].hex()}") from None

    def succeed(self, check: bytes, port: socket.socket | None = None) -> StunMessage:
        """Send a check, and read the answer; Unmet unless it is a success (RFC 8445 §7.3)."""
        answer = self.ask(check, port)
        if answer.kind is not StunClass.SUCCESS:
            raise Unmet("a success", said(answer))
        return answer

    def fail(self, check: bytes) -> StunMessage | None:
        """Send a check that is wrong: None where nothing comes; Unmet if it succeeds."""
        answer = self._answer_before(check)
        if answer is not None and answer.kind is StunClass.SUCCESS:
            raise Unmet("an error, or no answer", "a success")
        return answer

    def silent(self, data: bytes) -> None:
        """Send what deserves no answer; Unmet if one comes, or if checks are not answered then."""
        answer = self._answer_before(data)
        if answer is not None:
            raise Unmet("no answer", said(answer))

    def _answer_before(self, data: bytes) -> StunMessage | None:
        """What comes for a datagram before the answer to a good check, which follows it, or None.

        Own design: the order of both tells silence from slowness, at any speed.
        """
        self.socket.send(data)
        check = self.check()
        answer = self.ask(check)
        return None if answer.transaction_id == check[8:20] else answer

    def heard(self, data: bytes, port: socket.socket | None = None) -> StunMessage | None:
        """Send a datagram once; what answers it within a moment, or None."""
        at = port or self.socket
        at.send(data)
        with at_most(QUIET):
            while True:
                answer = self._read(at)
                if answer.kind is not StunClass.REQUEST:
                    return answer
        return None


def credentials(session: WebSession) -> tuple[str, str]:
    """The user name and the password of an answer (RFC 8839 §5.4)."""
    found = [(session.attributes(name) or [None])[0] for name in ("ice-ufrag", "ice-pwd")]
    if not all(found):
        raise Unmet("ice-ufrag and ice-pwd in the answer", str(found))
    return str(found[0]), str(found[1])


def candidates(session: WebSession) -> Iterable[IceCandidate]:
    """The candidates of the first line of an answer (RFC 8839 §5.1); Unmet for a broken one."""
    for line in session.lines[:1]:
        for each in line.attributes:
            if each.name == "candidate":
                try:
                    yield IceCandidate.parse(each.value or "")
                except RemoteError as error:
                    raise Unmet("a candidate", f"{error}: {each.value}") from None


def code(answer: StunMessage) -> int:
    """The number of an error, 0 for none (RFC 8489 §14.8)."""
    value = answer.get(StunType.ERROR_CODE) or b""
    return (value[2] & 7) * 100 + value[3] if len(value) >= 4 else 0


def said(answer: StunMessage) -> str:
    """An answer in words."""
    return f"{answer.kind.name.lower()} {code(answer) or ''}".strip()


def types(attributes: Iterable[StunAttribute]) -> list[int]:
    """The types of attributes, in their order."""
    return [each.type for each in attributes]
