"""The sound of one call at a phone: its ports, its RTP session, and the agreed codec.

Implements RFC 3264 §5 to §8 by `offer_answer`, and RFC 3550 §6.4 by `RtpSession`.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from p2psip.errors import LocalError, RemoteError
from p2psip.net.clock import monotonic, wallclock
from p2psip.net.port_pool import PortPool
from p2psip.net.rtp_ports import MediaPort
from p2psip.rtp.reorder import ReorderBuffer
from p2psip.rtp.session import RtpSession, Statistics
from p2psip.sdp.line import Origin, reaches
from p2psip.sdp.offer_answer import (
    Agreed,
    AgreedMedia,
    Codec,
    LocalMedia,
    accepted,
    apply_answer,
    make_answer,
    make_offer,
)
from p2psip.sdp.session import SessionDescription

AudioHandler = Callable[[bytes, int], object]

OCTETS_ARE_SAMPLES: Final = ("PCMU", "PCMA")  # Source: RFC 3551 §4.5.14
FRAME_RATE: Final = 50  # packets a second of codecs whose payload does not tell its length


def audio_codec(text: str) -> Codec:
    """Read "PCMU" or "speex/16000": a name and, unless it is 8000, a clock rate (Hz).

    RFC 8866 §6.6.  Raises LocalError.
    """
    name, slash, rate = text.partition("/")
    if not name or (slash and not (rate.isascii() and rate.isdecimal() and int(rate))):
        raise LocalError(f"{text!r} is no codec")
    return Codec(name, int(rate) if slash else 8000)


class AudioStream:
    """One call's sound, from the first SDP to `close`.

    `on_audio(payload, timestamp)` is called in the hub for each payload of an agreed codec, in
    the order of sending; `wake` when `deadline` may have come nearer.  `direction` is what the
    next offer or answer asks for (RFC 8866 §6.7).  Raises NoPortsError.
    """

    def __init__(
        self,
        host: str,
        codecs: Sequence[Codec],
        pool: PortPool,
        on_audio: AudioHandler,
        wake: Callable[[], object],
    ) -> None:
        self._port = MediaPort(host, pool, self._on_rtp, self._on_rtcp)
        self._host, self._codecs = host, tuple(codecs)
        self._on_audio, self._wake = on_audio, wake
        self._origin = Origin.at(host, int.from_bytes(os.urandom(4), "big"))
        self._cname = f"{os.urandom(6).hex()}@{host}"  # says nothing of us: RFC 3550 §6.5.1
        self._ours: SessionDescription | None = None
        self._theirs: SessionDescription | None = None
        self._offered: SessionDescription | None = None
        self._media: AgreedMedia | None = None
        self._session: RtpSession | None = None
        self._order: ReorderBuffer[tuple[int, int, bytes]] = ReorderBuffer()
        self._start = int.from_bytes(os.urandom(4), "big")  # not guessable: RFC 3550 §5.1
        self._position = 0
        self._talking = self._closed = False
        self.direction = "sendrecv"

    # -- agreement ----------------------------------------------------------------------

    @property
    def codec(self) -> Codec | None:
        """The codec to send, None before offer and answer have agreed: RFC 3264 §6.1."""
        return self._media.codecs[0] if self._media else None

    @property
    def held(self) -> bool:
        """Whether the peer wants to hear nothing for now: RFC 3264 §8.4."""
        return self._media is not None and self._media.held

    @property
    def statistics(self) -> Statistics | None:
        """The figures of the stream so far; None before an answer: RFC 3550 §6.4.4."""
        return self._session.statistics if self._session else None

    def offer(self) -> bytes:
        """Write an offer, the first or a new one: RFC 3264 §5, §8."""
        self._offered = make_offer(
            [self._line()], self._origin, self._host, previous=self._ours, remote=self._theirs
        )
        return bytes(self._offered)

    def answer(self, sdp: bytes) -> bytes:
        """Answer an offer: RFC 3264 §6.  RemoteError(488) if nothing is in common."""
        theirs = SessionDescription.parse(sdp)
        ours, agreed = make_answer(
            theirs, [self._line()], self._origin, self._host, previous=self._ours
        )
        self._settle(agreed, ours, theirs)
        return bytes(ours)

    def conclude(self, sdp: bytes) -> None:
        """Take the answer to our offer: RFC 3264 §7.  RemoteError(488) if it cannot be used.

        An answer may come twice, first with a 18x: RFC 3261 §13.2.1.
        """
        if self._offered is None:
            raise LocalError("there is no offer to conclude")
        theirs = SessionDescription.parse(sdp)
        self._settle(apply_answer(self._offered, theirs), self._offered, theirs)

    def close(self) -> None:
        """Say goodbye (RFC 3550 §6.6) and give the ports back; a second time does nothing."""
        if not self._closed:
            self._closed = True
            if self._session is not None and (farewell := self._session.bye(monotonic())):
                self._port.send_rtcp(farewell)
            self._port.close()

    def _line(self) -> LocalMedia:
        return LocalMedia("audio", self._port.rtp_port, self._codecs, self.direction)

    def _settle(self, agreed: Agreed, ours: SessionDescription, theirs: SessionDescription) -> None:
        media = accepted(agreed, "audio")
        if media is None or not media.codecs:
            raise RemoteError("Not Acceptable Here", 488)
        if media.remote is not None and not reaches(self._host, media.remote[0]):
            raise RemoteError("Not Acceptable Here", 488)
        if media.remote_rtcp is not None and not reaches(self._host, media.remote_rtcp[0]):
            media = replace(media, remote_rtcp=None)  # the call goes on without reports
        now, codec = monotonic(), media.codecs[0]
        if self._session is None or self._session.clock_rate != codec.clock_rate:
            self._session = RtpSession(
                self._session.ssrc if self._session else None,
                codec.clock_rate,
                self._cname,
                os.urandom,
                now,
                wallclock=wallclock(),
            )
            self._order = ReorderBuffer()
        self._media, self._ours, self._theirs = media, ours, theirs
        self._port.remote, self._port.remote_rtcp = media.remote, media.remote_rtcp
        self._wake()

    # -- sound --------------------------------------------------------------------------

    def send(self, payload: bytes, timestamp: int | None = None) -> bool:
        """Send one payload now; False if the peer has not answered or does not want it.

        `timestamp` counts ticks from the beginning of the call.  Without one the payload
        follows the one before; a payload of other codecs than G.711 counts as 20 ms.  The marker
        opens a talk spurt: RFC 3551 §4.1.
        """
        media, session = self._media, self._session
        if media is None or session is None or self._closed:
            return False
        position = self._position if timestamp is None else timestamp
        marker = not self._talking or position != self._position
        self._position = position + self._ticks(payload, media.codecs[0])
        self._talking = media.sends
        if self._talking:
            ticks = self._start + position & 0xFFFFFFFF
            kind = media.send_payload_types[0]
            self._port.send_rtp(session.send(kind, payload, ticks, marker, monotonic()))
        return self._talking

    def _ticks(self, payload: bytes, codec: Codec) -> int:
        if codec.name.upper() in OCTETS_ARE_SAMPLES:
            return len(payload)
        return codec.clock_rate // FRAME_RATE

    def _on_rtp(self, data: bytes, now: float) -> None:
        header = self._session.received_rtp(data, now) if self._session else None
        if header is None:
            return
        kind, _, sequence, timestamp, _, start, end = header
        for item in self._order.put(sequence, (kind, timestamp, data[start:end]), now):
            self._hear(*item)
        if self._order.deadline is not None:
            self._wake()

    def _on_rtcp(self, data: bytes, now: float) -> None:
        if self._session is not None:
            self._session.received_rtcp(data, now)
            self._wake()

    def _hear(self, kind: int, timestamp: int, payload: bytes) -> None:
        """Pass on a payload of an agreed codec; events and comfort noise are dropped."""
        if self._media is not None and self._media.received_codec(kind) is not None:
            self._on_audio(payload, timestamp)

    # -- time ---------------------------------------------------------------------------

    @property
    def deadline(self) -> float | None:
        """When to call `tick`: for a report, or to give up a late packet."""
        if self._closed or self._session is None:
            return None
        waiting = self._order.deadline
        report = self._session.deadline
        return report if waiting is None else min(waiting, report)

    def tick(self, now: float) -> None:
        """Send the report that is due (RFC 3550 §6.3.6), pass on sound that has waited enough."""
        if self._closed or self._session is None:
            return
        for item in self._order.tick(now):
            self._hear(*item)
        for report in self._session.tick(now):
            self._port.send_rtcp(report)
