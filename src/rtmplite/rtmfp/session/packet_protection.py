"""Turns chunks into the datagrams of one session and back: header, encryption, session ID.

Implements RFC 7016 §2.2 and §3.5.2.
"""

from typing import Final

from rtmplite.errors import RemoteError
from rtmplite.rtmfp.crypto.profile import PacketCipher
from rtmplite.rtmfp.session.congestion import TimeCritical
from rtmplite.rtmfp.session.rtt import RoundTrip
from rtmplite.rtmfp.wire.fast_path import encode_header, read_header
from rtmplite.rtmfp.wire.packet import Mode, scramble

TIME_CRITICAL: Final = 0x80  # flags of a packet: §2.2.4
TIME_CRITICAL_REVERSE: Final = 0x40
_MODE: Final = 0x03
_ID_BYTES: Final = 4  # of the session ID before the packet: §2.2.2
_HEADER_MOST: Final = 5  # flags, timestamp and echo: §2.2.4


class PacketProtection:
    """Seals and opens the packets of one session: §2.2.

    `initiator` tells which end of the session this is; `far_id` is the session ID for packets to
    the far end.
    """

    __slots__ = ("_cipher", "_far_id", "_far_mode", "_mode", "_notices", "_round_trip")

    def __init__(
        self,
        cipher: PacketCipher,
        initiator: bool,
        far_id: int,
        round_trip: RoundTrip,
        notices: TimeCritical,
    ) -> None:
        self._cipher, self._far_id = cipher, far_id
        # §2.2.4 [initiator-marks] [responder-marks]
        self._mode = Mode.INITIATOR if initiator else Mode.RESPONDER
        self._far_mode = Mode.RESPONDER if initiator else Mode.INITIATOR
        self._round_trip, self._notices = round_trip, notices

    def room(self, size: int) -> int:
        """Return the bytes of chunks that fit in a datagram of `size` bytes: §3.6.2.2."""
        return self._cipher.room(size - _ID_BYTES) - _HEADER_MOST

    def seal(self, chunks: bytes, now: float, *, critical: bool = False) -> bytes:
        """Return the datagram for encoded chunks; `critical` if real-time data is in them: §2.2.2.

        A flag tells the far end when other sessions receive real-time data: §3.5.2.
        """
        timestamp, echo = self._round_trip.stamp(now)
        flags = int(self._mode)
        if critical:
            flags |= TIME_CRITICAL
        if self._notices.others(self, now):  # §3.5.2 [tcr-when-others]
            flags |= TIME_CRITICAL_REVERSE
        packet = encode_header(flags, timestamp, echo) + chunks
        return scramble(self._far_id, self._cipher.seal(packet))

    def open(self, encrypted: bytes) -> tuple[bytes, int, int | None, int | None, int]:
        """Return packet, flags, timestamp, echo and the index of the first chunk: §2.2.4.

        RemoteError for a packet that the far end of this session has not sent.
        """
        packet = self._cipher.open(encrypted)  # §2.2.3 [decrypted-by-session]
        flags, timestamp, echo, at = read_header(packet)
        if flags & _MODE != self._far_mode:
            # §2.2.4 [initiator-ignores-1] [responder-ignores-2]
            raise RemoteError(f"a packet with the flags {flags:#x}")
        return packet, flags, timestamp, echo, at

    def heard(self, flags: int, now: float) -> bool:
        """Note a packet's flags about real-time data: §3.5.2.1.

        Returns whether the far end receives real-time data in other sessions.
        """
        if flags & TIME_CRITICAL:
            self._notices.heard(self, now)
        return flags & TIME_CRITICAL_REVERSE != 0
