"""The media of a call between two gateways: RTMP messages of any codec, as they are.

Implements RFC 3550 §6.4 by way of `RtpSession`, for the payload `translate.x_flv`.

A sans-I/O machine.  Codec headers are sent once by their publisher, and would be lost for the whole
call with one packet; they are repeated before each key frame, and in a stream without video
after every so many messages of audio.  After a loss, frames are left out until the next key frame.
"""

from typing import Final

from p2psip.errors import LocalError, RemoteError
from p2psip.rtp.reorder import ReorderBuffer
from rtmplite.flv import audio, video
from siprtmp.media.pacing import Pacer
from siprtmp.media.sdp_map import XFlvPlan
from siprtmp.media.sink import AUDIO, DATA, VIDEO
from siprtmp.media.stream import MediaStream, Signalled, StreamContext, earliest
from siprtmp.media.translate.x_flv import TunnelAssembler, TunnelMessage, pack
from siprtmp.media.transport import MediaTransport

CLOCK_RATE: Final = 90000  # of x-flv; RFC 3551 §5
EARLY: Final = 0.02  # s that a message may be early
REPEAT_AUDIO: Final = 100  # messages of audio after which a codec header is sent again
METADATA: Final = b"onMetaData"
PEEK: Final = 40  # octets, in which that name is, after @setDataFrame or not


class TunnelStream(MediaStream):
    """One call's tunnel, from the description that agrees on it to the end."""

    def __init__(self, transport: MediaTransport, context: StreamContext) -> None:
        super().__init__(transport, context)
        settings = context.settings
        self._session = settings.rtp_session(CLOCK_RATE, context.started)
        self._reporter = self._session.reporter
        self._order: ReorderBuffer[tuple[int, int, bytes]] = ReorderBuffer()
        self._next: int | None = None  # the sequence number that follows
        self._assembler = TunnelAssembler()
        self.plan: XFlvPlan | None = None  # of the last answer
        self._offset = int.from_bytes(settings.random(4), "big")  # RFC 3550 §5.1: not guessable
        self._pacer: Pacer[list[bytes]] = Pacer(EARLY)
        self._number = self._audio_count = 0
        self._headers: dict[int, bytes] = {}  # by message type
        self._skipping = self._has_begun = False
        self._has_told = False  # that a message was too large

    # -- set-up -------------------------------------------------------------------------

    def start(self, plan: XFlvPlan, now: float, by: Signalled) -> None:
        """Send and receive as an answer settled; a later one may change all of it: RFC 3264 §8."""
        if self._closed:
            return
        self.plan, media = plan, plan.media
        self._trust(media, by, now)
        self._aim(media, by.hosts)
        self._wake()

    def _let_go(self) -> None:
        self._pacer.clear()
        self._hold_back(False)

    # -- from the publisher -------------------------------------------------------------

    def begin(self, now: float) -> None:
        """Send what was published before, once: headers, and the video since the last key frame."""
        if self._has_begun:
            return
        self._has_begun, last, published = True, 0, self.sink.published
        for last, payload in published.gop:
            self.publish(VIDEO, last, payload, now)
        if published.header.body:
            self.publish(AUDIO, last, published.header.body, now)

    def publish(self, type_id: int, timestamp: int, payload: bytes, now: float) -> None:
        plan = self.plan
        if plan is None or self._closed or type_id not in (AUDIO, VIDEO, DATA):
            return
        if not self._reaches(plan.media, now):
            self._note(type_id, payload)
            return
        if self._wants_headers(type_id, payload):
            for kind, header in self._headers.items():
                self._put(TunnelMessage(kind, timestamp, header), now)
        self._note(type_id, payload)
        self._put(TunnelMessage(type_id, timestamp, payload), now)

    def _note(self, type_id: int, payload: bytes) -> None:
        """Keep what no decoder can do without: FLV 10.1 §E.4.2.1, §E.4.3.1, §E.5."""
        if type_id == DATA:
            is_header = METADATA in payload[:PEEK]
        else:
            is_header = (audio if type_id == AUDIO else video).is_sequence_header(payload)
        if is_header:
            self._headers[type_id] = payload

    def _wants_headers(self, type_id: int, payload: bytes) -> bool:
        if type_id == VIDEO:
            self._audio_count = -REPEAT_AUDIO  # which key frames bring, unless the frames end
            return video.is_key_frame(payload)
        self._audio_count += type_id == AUDIO
        if self._audio_count < REPEAT_AUDIO:
            return False
        self._audio_count = 0
        return True

    def _put(self, message: TunnelMessage, now: float) -> None:
        try:
            payloads = pack(message, self._number)
        except LocalError:
            if not self._has_told:
                self._has_told = True
                self._listener.on_video_unsuitable("a message of 64 KiB or more")
            return
        self._number = self._number + 1 & 0xFFFFFFFF
        at, pacer = message.timestamp / 1000, self._pacer
        ticks = message.timestamp * (CLOCK_RATE // 1000) + self._offset & 0xFFFFFFFF
        item = [ticks.to_bytes(4, "big"), *payloads]
        if pacer.passes(at, now):
            self._send(item, now)
            return
        idle = pacer.deadline is None
        for due in pacer.put(at, item, now):
            self._send(due, now)
        if idle and pacer.deadline is not None:
            self._wake()
        if pacer.is_ahead:
            self._hold_back(True)

    def _send(self, item: list[bytes], now: float) -> None:
        plan, session = self.plan, self._session
        assert plan is not None
        ticks, last = int.from_bytes(item[0], "big"), len(item) - 1
        for at, payload in enumerate(item[1:], 1):
            datagram = session.send(plan.send_type, payload, ticks, at == last, now)
            self.way.send_rtp(datagram)

    # -- from the other side ------------------------------------------------------------

    def on_rtp(self, data: bytes, now: float) -> None:
        header = None if self._closed else self._session.received_rtp(data, now)
        if header is None:
            return
        self._welcome(now)
        self._alive(now)
        payload_type, _, sequence, _, _, start, end = header
        for item in self._order.put(sequence, (sequence, payload_type, data[start:end]), now):
            self._deliver(*item, now)
        if self._order.early:
            self._wake()

    def _deliver(self, sequence: int, payload_type: int, payload: bytes, now: float) -> None:
        plan = self.plan
        missing = 0 if self._next is None else max(0, sequence - self._next)
        self._next = sequence + 1
        # RFC 3550 §5.1: what was never agreed is ignored
        if plan is None or payload_type != plan.receive_type:
            return
        try:
            message = self._assembler.put(payload, missing)
        except RemoteError:
            return
        self._skipping |= self._assembler.has_lost_frame
        self._assembler.has_lost_frame = False
        if message is None or message.type_id not in (AUDIO, VIDEO, DATA):
            return
        type_id, timestamp, body = message
        if type_id == VIDEO:
            if video.is_key_frame(body):
                self._skipping = False
            elif self._skipping and not video.is_sequence_header(body):
                return  # it depends on a frame that was lost
        self.on_tag(type_id, timestamp, body, now)

    # -- time ---------------------------------------------------------------------------

    @property
    def deadline(self) -> float | None:
        if self._closed or self.plan is None:
            return None
        times = self._pacer.deadline, self._order.deadline, self._session.deadline
        return earliest(times)

    def tick(self, now: float) -> None:
        if self._closed or self.plan is None:
            return
        for item in self._pacer.tick(now):
            self._send(item, now)
        if self._holding and self._pacer.has_room:
            self._hold_back(False)
        for each in self._order.tick(now):
            self._deliver(*each, now)
        self._report(now)
