"""The audio of one call at a phone: its ports, its RTP session, the agreed codec, and keys.

Implements RFC 3264 §5 to §8 by `offer_answer`, RFC 3550 §6.4 by `RtpSession`, and RFC 4733 §2.5
by `EventSender` and `EventReceiver`.
"""

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final

from p2psip.errors import LocalError, RemoteError
from p2psip.net.clock import monotonic, wallclock
from p2psip.net.media.dtls_flow import DtlsSettings
from p2psip.net.media.ice_port import IcePlaces
from p2psip.net.media.media_transport import MediaTransport
from p2psip.net.media.rtp_ports import MediaPool
from p2psip.net.phone.audio_codecs import CN, RED, audio_codec_first, type_beside, with_keys
from p2psip.rtp.extended_report import VoipMetrics
from p2psip.rtp.payload.comfort_noise import ComfortNoise
from p2psip.rtp.payload.dtmf import event_of
from p2psip.rtp.payload.duration import ticks
from p2psip.rtp.payload.event_receiver import EventReceiver, HeardEvent
from p2psip.rtp.payload.event_sender import EventPress, EventSender
from p2psip.rtp.payload.red import RedundantPayload, RedundantSender
from p2psip.rtp.reorder import HOLD_SECONDS, ReorderBuffer
from p2psip.rtp.session import RtpSession, Statistics
from p2psip.rtp.voip_metrics import BurstMeter
from p2psip.sdp.agreed_media import FLOWS, Agreed
from p2psip.sdp.attributes import DEFAULT_PTIME, direction
from p2psip.sdp.dtls_transport import MID, DtlsTransport
from p2psip.sdp.line import Origin, reaches
from p2psip.sdp.offer_answer import (
    AgreedMedia,
    Codec,
    LocalMedia,
    accepted,
    apply_answer,
    make_answer,
    make_offer,
)
from p2psip.sdp.session import MediaDescription, SessionDescription

AudioHandler = Callable[[bytes, int], object]
EventHandler = Callable[[HeardEvent, int], object]

NOWHERE: Final = ("0.0.0.0", 9)  # of a line whose address comes by ICE.  Source: RFC 8839 §4.2.5
WRAP: Final = 0xFFFFFFFF  # of timestamps
TALKING: Final = 0.2  # s after which a talker who sends nothing is silent; RFC 3551 §4.2, a packet
UPDATE: Final = 1.0  # s between descriptions of our background, of which the first may be lost
# Own design: what a program leaves out has no background to measure, and a quiet line has this one.
NOISE: Final = bytes(ComfortNoise(70))


class AudioStream:
    """One call's audio, from the first SDP to `close`.

    `on_audio(payload, timestamp)` is called in the hub for each payload of an agreed codec, in
    the order of sending: comfort noise (codec "CN") is silence, and of redundant audio ("red")
    comes what is new, with what was lost before it.  `on_event(event, clock_rate)` is called for
    each beginning and end of a telephone event; `wake` when `deadline` may have come nearer.
    `srtp` has us offer it, and accept no other answer.  `host` is ours; the peer sends to
    `advertised`, or where the pool says that others outside reach its ports.  `rtcp_mux` has us
    offer one port for both RTP and RTCP, which we take whenever it is offered.  With `voip_metrics`
    our reports tell how we hear the peer (RFC 3611 §4.7), unless its description asks for other
    reports alone.  `ptime` is how many ms of audio we ask for in a packet (RFC 8866 §6.4).
    `direction` is what the next offer or answer asks for (RFC 8866 §6.7).  Where comfort noise was
    agreed on, it marks our pauses (RFC 3389 §5).  With `ice`, `connect` begins to look for the way
    to the peer, if the peer has ICE as well.  With `dtls` too, a handshake on this way gives the
    keys of SRTP (RFC 5763 §5).  Raises NoPortsError.
    """

    def __init__(
        self,
        host: str,
        codecs: Sequence[Codec],
        pool: MediaPool,
        on_audio: AudioHandler,
        on_event: EventHandler,
        wake: Callable[[], object],
        *,
        srtp: bool = False,
        advertised: str | None = None,
        rtcp_mux: bool = False,
        voip_metrics: bool = False,
        echo: bool = False,
        ptime: int | None = None,
        ice: IcePlaces | None = None,
        dtls: DtlsSettings | None = None,
    ) -> None:
        self._transport = transport = MediaTransport(
            host,
            pool,
            self._on_rtp,
            self._on_rtcp,
            wake,
            srtp=srtp,
            advertised=advertised,
            rtcp_mux=rtcp_mux,
            ice=ice,
            dtls=dtls,
        )
        self.when_lost, self.when_moved = transport.when_lost, transport.when_moved
        self.connect = transport.connect
        self._host, self._codecs = transport.host, with_keys(codecs)
        self._on_audio, self._on_event, self._wake = on_audio, on_event, wake
        self._origin = Origin.at(self._host, int.from_bytes(os.urandom(4), "big"))
        self._cname = f"{os.urandom(6).hex()}@{self._host}"  # says nothing of us: RFC 3550 §6.5.1
        self._ours: SessionDescription | None = None
        self._theirs: SessionDescription | None = None
        self._offered: SessionDescription | None = None
        self._media: AgreedMedia | None = None
        self._session: RtpSession | None = None
        self._tells_metrics, self._hears_echo = voip_metrics, echo
        self._meter: BurstMeter | None = None
        self._order: ReorderBuffer[tuple[int, int, bytes]] = ReorderBuffer()
        self._heard_kind, self._heard = 0, b""  # the last audio
        self._heard_at: int | None = None
        self._redundancy = RedundantSender()
        self._start = int.from_bytes(os.urandom(4), "big")  # not guessable: RFC 3550 §5.1
        self._position = 0
        self._talked = monotonic()  # when the audio was at `_position`
        self._keys = EventSender(self._codecs[0].clock_rate)
        self._heard_keys = EventReceiver()
        self._talking = self._spoken = self._closed = False
        self._noise: int | None = None  # the payload types of our pauses, and of redundant audio
        self._red: int | None = None
        self.direction, self._ptime = "sendrecv", ptime

    # -- agreement ----------------------------------------------------------------------

    @property
    def codec(self) -> Codec | None:
        """The codec to send, None before offer and answer have agreed: RFC 3264 §6.1."""
        return self._media.codecs[0] if self._media else None

    @property
    def ptime(self) -> int:
        """How many ms of audio the peer wants in a packet: RFC 3264 §6.1, §7."""
        return self._media.ptime if self._media else DEFAULT_PTIME

    @property
    def encrypted(self) -> bool:
        """Whether the audio is encrypted both ways: RFC 3711 §3."""
        return self._transport.is_encrypted

    @property
    def is_by_ice(self) -> bool:
        """Whether ICE chooses the way, since both sides have it: RFC 8839 §4.2.5."""
        return self._transport.uses_ice

    @property
    def is_ready(self) -> bool:
        """Whether what we send gets through, which may be later than the answer: RFC 8656 §11.1."""
        return self._transport.is_ready

    @property
    def held(self) -> bool:
        """Whether the peer wants to hear nothing for now: RFC 3264 §8.4."""
        return self._media is not None and self._media.held

    @property
    def statistics(self) -> Statistics | None:
        """The figures of the stream so far; None before an answer: RFC 3550 §6.4.4."""
        return self._session.statistics if self._session else None

    @property
    def remote_metrics(self) -> VoipMetrics | None:
        """How the peer hears us, None before it has told: RFC 3611 §4.7."""
        return self._session.reporter.remote_metrics if self._session else None

    def _metrics(self) -> VoipMetrics | None:
        """Say how we hear the peer, None before its first packet: RFC 3611 §4.7."""
        session, media, meter = self._session, self._media, self._meter
        if session is None or media is None or meter is None or self._order.next is None:
            return None
        ssrc, codec = session.reception.ssrc, media.received_codec(self._heard_kind)
        if ssrc is None or codec is None:
            return None
        length = ticks(codec.name, self._heard, codec.clock_rate, codec.channels)
        packet_ms = 1000 * length / codec.clock_rate
        return meter.metrics(
            ssrc, self._order.next, packet_ms, session.rtt, HOLD_SECONDS, codec.name
        )

    def offer(self, *, restarts: bool = False) -> bytes:
        """Write an offer, the first or a new one, which may restart ICE: RFC 3264 §5, §8."""
        self._transport.offer(restarts=restarts)
        self._offered = make_offer(
            [self._line()], self._origin, self._host, previous=self._ours, remote=self._theirs
        )
        return bytes(self._offered)

    def answer(self, sdp: bytes) -> bytes:
        """Answer an offer: RFC 3264 §6.  RemoteError(488) if nothing is in common.

        `connect` has to follow, once the answer is on its way.
        """
        theirs = SessionDescription.parse(sdp)
        for _ in self._transport.answers(theirs):
            ours, agreed = make_answer(
                theirs, [self._line()], self._origin, self._host, previous=self._ours
            )
            if accepted(agreed, "audio"):
                self._settle(agreed, ours, theirs)
                return bytes(ours)
        raise RemoteError("Not Acceptable Here", 488)  # RFC 3261 §13.3.1.3 [488-for-the-offer]

    def conclude(self, sdp: bytes) -> None:
        """Take the answer to our offer, maybe twice: RFC 3264 §7.  RemoteError(488): of no use."""
        if self._offered is None:
            raise LocalError("there is no offer to conclude")
        theirs = SessionDescription.parse(sdp)
        agreed = apply_answer(self._offered, theirs, [self._line()])
        self._settle(agreed, self._offered, theirs)
        self.connect()

    def close(self) -> None:
        """Say goodbye (RFC 3550 §6.6) and give the ports back; a second time does nothing."""
        if not self._closed:
            self._closed = True
            if self._session is not None and (farewell := self._session.bye(monotonic())):
                self._transport.send_rtcp(farewell)
            self._transport.close()

    def _line(self) -> LocalMedia:
        line, ptime = self._transport.line, self._ptime
        mid = MID if isinstance(line, DtlsTransport) else None
        return LocalMedia("audio", self._codecs, line, self.direction, mid=mid, ptime=ptime)

    def _settle(self, agreed: Agreed, ours: SessionDescription, theirs: SessionDescription) -> None:
        media = accepted(agreed, "audio")
        if media is None or not media.codecs:
            raise RemoteError("Not Acceptable Here", 488)
        line, media = theirs.media[agreed.index(media)], audio_codec_first(media)
        if self._transport.is_by_ice(line, theirs):
            media = _by_ice(media, line, theirs)
        elif media.remote is not None and not reaches(self._host, media.remote[0]):
            raise RemoteError("Not Acceptable Here", 488)
        if media.remote_rtcp is not None and not reaches(self._host, media.remote_rtcp[0]):
            media = replace(media, remote_rtcp=None)  # the call goes on without reports
        now, codec = monotonic(), media.codecs[0]
        if self._session is None or self._session.clock_rate != codec.clock_rate:
            self._session = RtpSession(  # of a new SSRC: RFC 3550 §5.2 ties one to a clock rate
                # RFC 3711 §4.1.1 [block-is-distinct] [index-is-distinct], §9.2 [distinct-packets]
                # RFC 3711 §8 [distinct-ssrcs], §9.1 [ssrcs-are-unique]
                # RFC 4568 §6.4 [keystream-is-used-once], §6.4.2 [ssrcs-differ]
                None,
                codec.clock_rate,
                self._cname,
                os.urandom,
                now,
                wallclock=wallclock(),
                echo=self._hears_echo,
            )
            if self._tells_metrics:
                self._meter = BurstMeter()
            self._order = ReorderBuffer(meter=self._meter)
            self._keys, self._heard_keys = EventSender(codec.clock_rate), EventReceiver()
        if media.telephone_event is None or not media.sends:
            self._keys.clear()
        tells = self._tells_metrics and _may_tell_metrics(theirs, line)
        self._session.reporter.local_metrics = self._metrics if tells else None
        self._media, self._ours, self._theirs = media, ours, theirs
        self._noise = type_beside(media, CN) if media.sends else None
        self._red = type_beside(media, RED)
        self._transport.settle(media, line, theirs)
        # RFC 3711 §3.4 [first-size-with-srtcp] [sizes-with-srtcp]
        self._session.reporter.count_below(self._transport.report_octets)
        self._wake()

    # -- audio --------------------------------------------------------------------------

    def send(self, payload: bytes, timestamp: int | None = None) -> bool:
        """Send one payload now; False if the peer has not answered or does not want it.

        `timestamp` counts ticks from the beginning of the call.  Without one the payload
        follows the one before, whose length is counted by `duration.ticks`.  The marker opens
        a talk spurt: RFC 3551 §4.1.  While a key is sent, audio is left out.
        """
        media, session = self._media, self._session
        if media is None or session is None or self._closed:
            return False
        position = self._position if timestamp is None else timestamp
        marker = not self._talking or position != self._position
        now = monotonic()
        codec = media.codecs[0]
        length = ticks(codec.name, payload, codec.clock_rate, codec.channels)
        self._position, self._talked = position + length, now
        self._talking = media.sends and not self._keys.busy and self._transport.is_ready
        if self._talking:
            at = self._start + position & 0xFFFFFFFF
            audio = media.send_payload_types[0]
            kind, packed = self._redundancy.packed(audio, self._red, payload, position)
            self._transport.send_rtp(session.send(kind, packed, at, marker, now))
            if marker:
                self._spoken = True
                self._wake()
        return media.sends

    def press(self, digits: str, seconds: float) -> bool:
        """Send keys (LocalError for no key): RFC 4733 §2.5.1.  False if the peer takes none."""
        codes = [event_of(digit) for digit in digits]
        media = self._media
        if media is None or media.telephone_event is None or self._closed or not media.sends:
            return False
        if not media.events.issuperset(codes):  # RFC 4733 §2.5.1.1 [only-events-listed]
            return False
        for code in codes:
            self._keys.press(EventPress(code, seconds), monotonic())
        self._wake()
        return True

    @property
    def _pause_at(self) -> float | None:
        """When to tell the peer of our background, None while there is nothing to tell."""
        if self._noise is None or not self._spoken or self._keys.busy:
            return None
        # RFC 3389 §5: at the beginning of a pause, and now and then
        return self._talked + (TALKING if self._talking else UPDATE)

    def _send_noise(self, now: float) -> None:
        at, session, kind = self._pause_at, self._session, self._noise
        is_due = at is not None and at <= now and self._transport.is_ready
        if not is_due or session is None or kind is None:
            return
        begun = self._position
        self._position += int((now - self._talked) * session.clock_rate)
        position = begun if self._talking else self._position  # RFC 3389 §4 [as-a-codec-of-its-own]
        self._talked, self._talking = now, False
        ticks = self._start + position & WRAP
        # RFC 3389 §4 [no-marker]
        self._transport.send_rtp(session.send(kind, NOISE, ticks, False, now))

    def _send_keys(self, now: float) -> None:
        media, session = self._media, self._session
        if media is None or session is None or media.telephone_event is None:
            return
        if not (self._keys.busy and self._transport.is_ready):
            return  # `wake` follows
        silent = now - self._talked
        if silent > TALKING:  # time goes on without audio
            self._position += int(silent * session.clock_rate)
            self._talked = now
        # RFC 4733 §2.5.1.2 [same-base-as-audio]
        for position, marker, payload in self._keys.tick(now, self._position):
            at = self._start + position & 0xFFFFFFFF
            datagram = session.send(media.telephone_event, payload, at, marker, now)
            self._transport.send_rtp(datagram)

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
        """Pass on a payload of an agreed codec, or a telephone event; nothing else."""
        media = self._media
        if media is None:
            return
        if kind in media.receive_telephone_events:
            with suppress(RemoteError):  # a malformed event is dropped as a lost one
                self._tell_events(self._heard_keys.heard(timestamp, payload, monotonic()))
        elif (codec := media.received_codec(kind)) is None or codec.name.upper() == CN:
            return  # RFC 3389 §5: a receiver may be as silent as it likes
        elif codec.name.upper() == RED:
            with suppress(RemoteError):
                self._hear_redundant(media, RedundantPayload.parse(payload), timestamp)
        else:
            self._heard_kind, self._heard, self._heard_at = kind, payload, timestamp
            self._on_audio(payload, timestamp)

    def _hear_redundant(self, media: AgreedMedia, whole: RedundantPayload, timestamp: int) -> None:
        """Pass on what is newer than all heard before: RFC 2198 §3."""
        blocks = [(each.offset, each.payload_type, each.data) for each in whole.older]
        blocks = [*sorted(blocks, reverse=True), (0, whole.payload_type, whole.data)]
        for offset, kind, data in blocks:
            at, codec, last = timestamp - offset & WRAP, media.received_codec(kind), self._heard_at
            is_new = last is None or (at - last - 1) & WRAP < WRAP >> 1
            if data and codec is not None and codec.name.upper() != RED and is_new:
                self._hear(kind, at, data)

    def _tell_events(self, heard: Sequence[HeardEvent]) -> None:
        rate = self._session.clock_rate if self._session else 0
        for each in heard:
            self._on_event(each, rate)

    # -- time ---------------------------------------------------------------------------

    @property
    def deadline(self) -> float | None:
        """When to call `tick`: for a report, a key, or to give up a late packet."""
        if self._closed or self._session is None:
            return None
        is_ready = self._transport.is_ready
        keys, pause = (self._keys.deadline, self._pause_at) if is_ready else (None, None)
        waiting = (self._order.deadline, keys, pause, self._heard_keys.deadline)
        return min((self._session.deadline, *(at for at in waiting if at is not None)))

    def tick(self, now: float) -> None:
        """Send the report that is due (RFC 3550 §6.3.6), pass on audio that has waited enough."""
        if self._closed or self._session is None:
            return
        self._send_keys(now)
        self._send_noise(now)
        for item in self._order.tick(now):
            self._hear(*item)
        self._tell_events(self._heard_keys.tick(now))
        for report in self._session.tick(now):
            self._transport.send_rtcp(report)


def _by_ice(media: AgreedMedia, line: MediaDescription, session: SessionDescription) -> AgreedMedia:
    """The same, of a line whose address ICE finds, and the description may not know yet."""
    # RFC 8839 §4.2.5 [nowhere-is-no-mismatch]
    held = not FLOWS[direction(line, session)][1]
    return replace(media, remote=media.remote or NOWHERE, held=held)


def _may_tell_metrics(theirs: SessionDescription, line: MediaDescription) -> bool:
    """Whether a peer's description leaves room for VoIP metrics: RFC 3611 §5.1.

    Not done: RFC 3611 §5.2 [sends-what-is-asked]: a program decides whether its calls are measured.
    """
    asked = line.attribute("rtcp-xr")
    if asked is None:  # RFC 3611 §5.1 [line-before-session]
        asked = theirs.attribute("rtcp-xr")
    return asked is None or "voip-metrics" in asked.split()  # RFC 3611 §5.1 [only-what-is-named]
