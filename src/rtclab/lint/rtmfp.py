"""RTMFP of a capture: the handshakes, and with the keys of its sessions the flows.

Implements RFC 7016 §3.5 and §3.6 as a rule book.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, TypeVar

from rtclab.explain.fields.context import RtmfpKey
from rtclab.lint.findings.finding import Findings
from rtclab.lint.findings.ladder import Ladder
from rtclab.lint.findings.packet import SeenPacket
from rtclab.lint.rtmfp_flows import RtmfpFlows
from rtmplite.errors import RtmpError
from rtmplite.rtmfp.crypto.cipher import Opener, Protection, default_cipher
from rtmplite.rtmfp.crypto.params import HMAC_LENGTHS
from rtmplite.rtmfp.wire.acks import DataAckBitmap, DataAckRanges
from rtmplite.rtmfp.wire.chunks import Chunk, expand_next_user_data
from rtmplite.rtmfp.wire.control_chunks import (
    ForwardedInitiatorHello,
    SessionClose,
    SessionCloseAck,
)
from rtmplite.rtmfp.wire.flow_chunks import UserData
from rtmplite.rtmfp.wire.packet import Mode, unscramble
from rtmplite.rtmfp.wire.packet import Packet as RtmfpPacket
from rtmplite.rtmfp.wire.startup_chunks import (
    InitiatorHello,
    InitiatorInitialKeying,
    ResponderHello,
    ResponderInitialKeying,
    ResponderRedirect,
    RHelloCookieChange,
)

_K = TypeVar("_K")

_BLOCK: Final = 16
REPEATED: Final = 3  # Hellos or keyings which show that nobody answers
PATIENCE: Final = 5.0  # s
_EVERYTHING: Final = (
    *(InitiatorHello, ResponderHello, ResponderRedirect, RHelloCookieChange),
    *(InitiatorInitialKeying, ResponderInitialKeying, SessionClose, SessionCloseAck),
    ForwardedInitiatorHello,
)


@dataclass(slots=True)
class _Asked:
    """A chunk that wants an answer, and how often it was sent."""

    packet: SeenPacket
    times: int = 1
    answered: bool = False


@dataclass(slots=True)
class _Ids:
    """The session IDs that a handshake has given, by their owners."""

    initiator: set[int] = field(default_factory=set)
    responder: set[int] = field(default_factory=set)


class RtmfpSessions:
    """All RTMFP of a capture: §3.5."""

    def __init__(self, findings: Findings, ladder: Ladder, keys: tuple[RtmfpKey, ...]) -> None:
        self._findings, self._ladder, self._keys = findings, ladder, keys
        self._ways: set[frozenset[str]] = set()
        self._hellos: dict[tuple[bytes, str], _Asked] = {}  # by tag and target
        self._forwarded: set[bytes] = set()  # tags that came by FIHello
        self._deaf: set[str] = set()  # ends that may have got more than is read here
        self._cookies: set[bytes] = set()
        self._keyings: dict[tuple[str, int], _Asked] = {}  # by initiator and its session ID
        self._closes: dict[tuple[str, int], _Asked] = {}
        self._ids = _Ids()
        self._protections: dict[tuple[str, int], Protection] = {}
        self._flows = RtmfpFlows(findings)

    def heard(self, packet: SeenPacket) -> bool:
        """Take a datagram; False if it is no RTMFP: §2.2.2."""
        try:
            session_id, encrypted = unscramble(packet.data)
        except RtmpError:
            return False
        way = frozenset((packet.source, packet.target))
        startup = self._startup(session_id, encrypted)
        if startup is not None:
            self._ways.add(way)
            for chunk in startup.chunks:
                self._handshake(packet, session_id, chunk)
            return True
        if way not in self._ways:
            return False
        if session_id == 0:
            what = "a packet with session ID 0 that the default key does not open"
            self._findings.add("rtmfp-checksum", packet, what)
        elif session_id not in self._ids.initiator | self._ids.responder:
            if self._ids.responder:
                what = f"session ID {session_id:#010x}"
                self._findings.add("rtmfp-session", packet, what)
        elif self._keys:
            self._session(packet, session_id, encrypted)
        else:
            self._deaf.add(packet.target)
        return True

    def finish(self, now: float) -> None:
        """Report what had no answer, and what flows lack: §3.5.1.1, §3.6.3."""
        waiting = [
            ("rtmfp-hello-unanswered", "IHello", list(self._hellos.values())),
            ("rtmfp-keying-unanswered", "IIKeying", list(self._keyings.values())),
            ("rtmfp-close", "Session Close Request", list(self._closes.values())),
        ]
        for rule, name, all_asked in waiting:
            for asked in all_asked:
                late = now - asked.packet.time > PATIENCE
                if not asked.answered and (asked.times >= REPEATED or late):
                    times = f"{asked.times} time{'s' if asked.times > 1 else ''}"
                    what, who = f"no answer to {name}, sent {times}", asked.packet.target
                    self._findings.add(rule, asked.packet, what, who=who)
        self._flows.finish()

    # -- the handshake -------------------------------------------------------------------

    def _startup(self, session_id: int, encrypted: bytes) -> RtmfpPacket | None:
        """A packet under the default key; those to an initiator may have its session ID."""
        if session_id and session_id not in self._ids.initiator:
            return None
        try:
            read = RtmfpPacket.parse(default_cipher().open(encrypted))
        except RtmpError:
            return None
        return read if read.mode is Mode.STARTUP and read.chunks else None

    def _handshake(self, packet: SeenPacket, session_id: int, chunk: Chunk) -> None:
        self._draw(packet, chunk)
        match chunk:
            case InitiatorHello(_, tag):
                _ask(self._hellos, (tag, packet.target), packet)
            case ResponderHello(tag, cookie):
                self._answered(packet, tag)
                self._cookies.add(cookie)
            case ResponderRedirect(tag):
                self._redirected(packet, tag)
            case RHelloCookieChange(_, new):
                self._cookies.add(new)
            case InitiatorInitialKeying():
                if chunk.cookie_echo not in self._cookies and self._cookies:
                    what = "IIKeying with a cookie that no RHello gave"
                    self._findings.add("rtmfp-cookie", packet, what)
                self._ids.initiator.add(chunk.initiator_session_id)
                _ask(self._keyings, (packet.source, chunk.initiator_session_id), packet)
            case ResponderInitialKeying():
                asked = self._keyings.get((packet.target, session_id))
                if asked is None:
                    what = f"RIKeying to session ID {session_id:#010x}"
                    self._findings.add("rtmfp-keying-alone", packet, what)
                else:
                    asked.answered = True
                self._ids.responder.add(chunk.responder_session_id)
            case _:
                pass

    def _answered(self, packet: SeenPacket, tag: bytes) -> None:
        """An RHello ends the search, wherever it comes from: §3.5.1.4, §3.5.1.5."""
        asked = [each for (known, _), each in self._hellos.items() if known == tag]
        for each in asked:
            each.answered = True
        is_forwarded = tag in self._forwarded or packet.source in self._deaf
        if not asked and not is_forwarded:
            self._untold(packet, tag, "RHello")

    def _redirected(self, packet: SeenPacket, tag: bytes) -> None:
        """A Redirect answers the IHello to its sender; those to other ends wait on: §3.5.1.4."""
        asked = self._hellos.get((tag, packet.source))
        if asked is not None:
            asked.answered = True
        elif all(known != tag for known, _ in self._hellos):
            self._untold(packet, tag, "Redirect")

    def _untold(self, packet: SeenPacket, tag: bytes, name: str) -> None:
        what = f"{name} with tag {tag.hex()[:32]}, which no IHello had"
        self._findings.add("rtmfp-tag", packet, what)

    def _draw(self, packet: SeenPacket, chunk: Chunk) -> None:
        if isinstance(chunk, _EVERYTHING):
            one, other = sorted((packet.source, packet.target))
            self._ladder.add("rtmfp", f"{one} - {other}", packet, type(chunk).__name__)

    # -- sessions ------------------------------------------------------------------------

    def _session(self, packet: SeenPacket, session_id: int, encrypted: bytes) -> None:
        read = self._opened((packet.target, session_id), encrypted)
        if read is None:
            self._deaf.add(packet.target)
            what = f"a packet of session {session_id:#010x} that no key opens"
            self._findings.add("rtmfp-decrypt", packet, what)
            return
        meant = Mode.RESPONDER if session_id in self._ids.initiator else Mode.INITIATOR
        if read.mode is not meant and session_id not in self._ids.initiator & self._ids.responder:
            what = f"mode {read.mode.name.lower()} to session {session_id:#010x}"
            self._findings.add("rtmfp-mode", packet, what)
        way = packet.source, packet.target, session_id
        for chunk in expand_next_user_data(read.chunks):
            self._draw(packet, chunk)
            match chunk:
                case UserData():
                    self._flows.data(packet, way, chunk)
                case DataAckBitmap() | DataAckRanges():
                    self._flows.acknowledged(packet, chunk)
                case ForwardedInitiatorHello():
                    self._forwarded.add(chunk.tag)
                case SessionClose():
                    _ask(self._closes, (packet.target, session_id), packet)
                case SessionCloseAck():
                    for asked in self._closes.values():
                        asked.answered |= asked.packet.target == packet.source
                case _:
                    pass

    def _opened(self, place: tuple[str, int], encrypted: bytes) -> RtmfpPacket | None:
        """Decrypt a packet; both ends may have chosen the same session ID."""
        known = self._protections.get(place)
        for protection in (known,) if known else self._possible(len(encrypted)):
            try:
                read = RtmfpPacket.parse(Opener(protection).open(encrypted))
            except RtmpError:
                continue
            if read.mode is not Mode.STARTUP:
                self._protections[place] = protection
                return read
        return None

    def _possible(self, size: int) -> Iterator[Protection]:
        """The ways in which packets of this size may be protected: RFC 7425 §4.6."""
        for key, hmac_key in self._keys:
            lengths = [each for each in HMAC_LENGTHS if (size - each) % _BLOCK == 0]
            for length in (*lengths, 0) if hmac_key else (0,):
                for numbered in (True, False):
                    yield Protection(key, hmac_key, length, numbered)


def _ask(asked: dict[_K, _Asked], key: _K, packet: SeenPacket) -> None:
    if (known := asked.get(key)) is not None:
        known.times += 1
    else:
        asked[key] = _Asked(packet)
