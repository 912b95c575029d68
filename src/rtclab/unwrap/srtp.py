r"""SRTP of a capture, opened by the keys that its descriptions, its handshakes or an operator give.

Implements RFC 3711 §3.3 and §3.4 for whoever looks on, by `p2psip.srtp.srtp`.

Own design: each key is tried on what nobody has opened yet, since a description does not say which
address its sender's packets come from.  From the first packet that opens, the packets of that way
are SRTP, and one that does not open is refused.  A description under RTP/SAVP names the address
from which its owner sends (RFC 4961): those packets are refused from the first.

    >>> from p2psip.srtp.srtp import SrtpSender
    >>> suite = PROFILES[1]
    >>> sessions, way = SrtpSessions(), ("192.0.2.1:4", "192.0.2.2:5")
    >>> sessions.add(SrtpMaster(suite, bytes(16), bytes(14)))
    >>> packet = bytes.fromhex("80000001000000a00000cafe") + b"sound"
    >>> sealed = SrtpSender(bytes(16), bytes(14), suite).protect_rtp(packet)
    >>> sessions.opened(way, sealed).plain == packet
    True
    >>> sessions.opened(way, sealed[:-2] + b"\0\2").refusal.reason
    'SRTP packet that came before'
    >>> sessions.opened(way[::-1], packet) is None
    True
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from p2psip.errors import RemoteError
from p2psip.rtp import fast
from p2psip.srtp.srtp import CAME_BEFORE, SrtpReceiver
from p2psip.srtp.suites import SrtpSuite
from rtclab.unwrap.key_log import PROFILES, DtlsHello, DtlsSecret, SrtpMaster, exported

MAX_KEYS: Final = 1000
MAX_WAYS: Final = 10_000
TRIES: Final = 16  # packets of a way on which all keys are tried, until there is another key
WINDOW: Final = 4096  # packets late; a capture has what the network has brought out of order
_LEAST: Final = 12  # octets


class OpenedSrtp(NamedTuple):
    """What came of a packet: `plain` is the packet within, or `refusal` says why there is none."""

    suite: SrtpSuite
    is_rtcp: bool
    plain: bytes | None = None
    refusal: RemoteError | None = None

    @property
    def is_replayed(self) -> bool:
        """Whether it is refused as one that came before: RFC 3711 §3.3.2."""
        return self.refusal is not None and self.refusal.reason == CAME_BEFORE


@dataclass(slots=True)
class _Receiver:
    """One key on one way."""

    master: SrtpMaster
    receiver: SrtpReceiver

    @classmethod
    def of(cls, master: SrtpMaster) -> "_Receiver":
        made = SrtpReceiver(master.key, master.salt, master.suite, window=WINDOW)
        return cls(master, made)

    def open(self, data: bytes, *, is_rtcp: bool) -> OpenedSrtp:
        try:
            open_ = self.receiver.open_rtcp if is_rtcp else self.receiver.open_rtp
            return OpenedSrtp(self.master.suite, is_rtcp, open_(data))
        except RemoteError as error:
            return OpenedSrtp(self.master.suite, is_rtcp, refusal=error)


@dataclass(slots=True)
class _Way:
    """The keys that have opened packets of a way, the latest first."""

    receivers: list[_Receiver] = field(default_factory=list)
    failed: int = 0  # in sequence, with all keys
    keys: int = 0  # how many there were


class SrtpSessions:
    """The SRTP of a capture: RFC 3711 §3.  `log` is what `read_key_log` gives."""

    def __init__(
        self, keys: Iterable[SrtpMaster] = (), log: Mapping[bytes, DtlsSecret] | None = None
    ) -> None:
        self._keys = dict.fromkeys(keys)
        self._log = log or {}
        self._senders: dict[str, SrtpMaster] = {}
        self._ways: dict[tuple[str, ...], _Way] = {}
        self._clients: dict[tuple[str, ...], tuple[bytes, tuple[int, ...]]] = {}

    def add(self, master: SrtpMaster, sender: str = "") -> None:
        """Take a key; `sender` is the address from which nothing else comes, if that is known."""
        if len(self._keys) < MAX_KEYS:
            self._keys.setdefault(master)
            if sender:
                self._senders[sender] = master

    def greeted(self, way: tuple[str, ...], random: bytes, profiles: tuple[int, ...]) -> None:
        """Take the hello of a client of DTLS: RFC 5764 §4.1."""
        if len(self._clients) < MAX_WAYS:
            self._clients[way] = random, profiles or self._clients.get(way, (b"", ()))[1]

    def agreed(self, way: tuple[str, ...], hello: DtlsHello) -> None:
        """Take the hello of a server, and make the keys if the log has the secret: RFC 5764 §4.2.

        DTLS 1.3 encrypts the profile that is chosen; each that the client offers may be it.
        """
        random, offered = self._clients.get(way[::-1], (b"", ()))
        known = self._log.get(random)
        if known is not None:
            hello = hello._replace(profiles=hello.profiles or offered or tuple(PROFILES))
            for each in exported(known, random, hello):
                self.add(each)

    def opened(self, way: tuple[str, ...], data: bytes) -> OpenedSrtp | None:
        """Open a datagram; None for one that is no SRTP, or of which no key is known: §3.3."""
        if not self._keys or len(data) < _LEAST or data[0] >> 6 != 2:
            return None
        known = self._ways.get(way)
        if known is None:
            if len(self._ways) >= MAX_WAYS:
                return None
            known = self._ways[way] = _Way()
        is_rtcp, refused = fast.looks_like_rtcp(data), list[OpenedSrtp]()
        for each in known.receivers:
            found = each.open(data, is_rtcp=is_rtcp)
            if found.plain is not None:
                known.receivers.remove(each)
                known.receivers.insert(0, each)
                known.failed = 0
                return found
            refused.append(found)
        if known.failed < TRIES or known.keys != len(self._keys):
            if (first := self._tried(known, data, is_rtcp=is_rtcp)) is not None:
                return first
            known.failed, known.keys = known.failed + 1, len(self._keys)
        if not refused and way[0] in self._senders:
            refused.append(_Receiver.of(self._senders[way[0]]).open(data, is_rtcp=is_rtcp))
        return next((each for each in refused if each.is_replayed), next(iter(refused), None))

    def _tried(self, known: _Way, data: bytes, *, is_rtcp: bool) -> OpenedSrtp | None:
        """Try all keys that have opened nothing on this way so far."""
        used = {each.master for each in known.receivers}
        for master in reversed(self._keys):
            if master in used:
                continue
            receiver = _Receiver.of(master)
            found = receiver.open(data, is_rtcp=is_rtcp)
            if found.plain is not None:
                known.receivers.insert(0, receiver)
                known.failed = 0
                return found
        return None
