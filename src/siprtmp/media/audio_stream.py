"""The audio of one peer: a phone's RTP on one side, a publisher's tags on the other.

Implements RFC 3550 §6.4 by way of `RtpSession`, between FLV 10.1 §E.4.2.1 tags and RTP.

A sans-I/O machine for datagrams and tags.  This is the hot path of a call: for each packet it
unpacks one header, looks into one table and makes one tag, or the reverse.
"""

from collections.abc import Callable
from typing import Final

from p2psip.rtp.reorder import ReorderBuffer
from p2psip.rtp.session import RtpSession, Statistics
from siprtmp.media.audio_codec_selection import AudioCodecSelection
from siprtmp.media.dtmf import CLOCK_RATE, DtmfKeys
from siprtmp.media.offload import Counted, Offloading, Sending
from siprtmp.media.pacing import LIVE_LIMIT, Pacer
from siprtmp.media.sdp_map import AudioPlan
from siprtmp.media.session_log import sound_format_name
from siprtmp.media.silence import Silence, SilenceWatch
from siprtmp.media.sink import AUDIO, MediaSink
from siprtmp.media.stream import MediaStream, SharedContext, Signalled, StreamContext, earliest
from siprtmp.media.timeline import Timeline
from siprtmp.media.translate.audio_formats import AudioCodec
from siprtmp.media.translate.conversion import AudioToFlv, AudioToRtp, Packet, UnsuitableError
from siprtmp.media.transport import MediaTransport, MediaWay

HEADER: Final = 12  # octets before the payload of a packet of ours: RFC 3550 §5.1

Heard = tuple[int, int, bytes, int, float]  # payload type, RTP timestamp, payload, ssrc, arrival
OnSent = Callable[[AudioCodec, bytes], None]


class AudioStream(MediaStream):
    """One call's audio, from the first SDP to the end.

    It notes signs of life of the peer, also those that the call's other streams report, and sends
    keys (`press`).  `shared` is the context that those streams are given.
    """

    def __init__(self, transport: MediaTransport, context: StreamContext) -> None:
        settings, now = context.settings, context.started
        self._watch = SilenceWatch(settings.media_timeout, now)
        self.sent = self.received = self.unsuitable = 0
        self._offloading = Offloading(settings.has_pump, self._reclaim_received, context.wake)
        outlet = transport.outlet(self.publish) if settings.has_pump else None
        self._sending = Sending(outlet, self._reclaim_sent)
        self.codec_selection = AudioCodecSelection(settings.transcoding)
        timeline = Timeline(now, lambda: self._count(self._offloading.follow()))
        self.shared = SharedContext(self._watch.alive, self.hears, timeline)
        super().__init__(transport, context._replace(shared=self.shared))
        self._send_rtp = transport.send_rtp
        self.plan: AudioPlan | None = None  # of the last answer
        self._session: RtpSession | None = None
        self._order: ReorderBuffer[Heard] = ReorderBuffer()
        self._to_phone: AudioToRtp | None = None
        self._to_phone_type = self._to_phone_format = -1
        self._unsuitable_formats: set[int] = set()  # that the listener has been told of
        self._to_rtmp: AudioToFlv | None = None
        # RFC 3550 §5.1 [timestamp-is-drawn]
        self._origin = int.from_bytes(settings.random(4), "big")  # RFC 3550 §5.1: not guessable
        self._offset = 0
        self._pacer: Pacer[Packet] = Pacer()
        self._dtmf = DtmfKeys()
        self._mutes: frozenset[object] = frozenset()
        self._draining = self._swallowed = self._sends = False  # it sends without questions
        self.take = outlet.publish if outlet is not None else self.publish
        transport.on_ready = self._heed_consent

    # -- set-up -------------------------------------------------------------------------

    def give_to(self, sink: MediaSink) -> None:
        super().give_to(sink)
        selection, self._published = self.codec_selection, sink.published
        selection.header, selection.takes_opus = sink.published.header, sink.takes_opus

    def start(self, plan: AudioPlan, now: float, by: Signalled) -> None:
        """Send and receive as an answer settled; a later one may change all of it: RFC 3264 §8."""
        if self._closed:
            return
        self.reclaim()
        self._offloading.next_try, self.codec_selection.takes_opus = 0, self.sink.takes_opus
        media, codec = plan.media, plan.codec
        if self._session is None or self._session.clock_rate != codec.clock_rate:
            self._session = self._settings.rtp_session(codec.clock_rate, now)
            self._order, self._reporter = ReorderBuffer(), self._session.reporter
        if self._to_rtmp is not None:
            self._timeline.lead(self._session.reception, self._to_rtmp.clock)
        before = self.plan
        # RFC 3264 §8.3.2 [new-formats-at-once] [no-old-formats] and §8.3.4 [new-parameters-at-once]
        if before and (before.sending, before.media.ptime) != (plan.sending, media.ptime):
            self._to_phone, self._to_phone_format = None, -1
        self.plan = plan
        self._trust(media, by, now)
        self._alive(now)
        if not by.early:
            self._watch.begin(now)
        self._aim(media, by.hosts)
        self._heed_consent()
        self._wake()

    def _go_by(self, way: MediaWay) -> None:
        if self._send_rtp == self.way.send_rtp:  # else a tap has it, which asks for the way
            self._send_rtp = way.send_rtp
        self._sending.never()
        self.way, self._offloading.is_wanted, self.take = way, False, self.publish

    def hears(self, host: str) -> bool:
        """Whether audio comes from this host, and so other media may go there: RFC 3264 §8.3.1."""
        at = self.plan.media.remote if self.plan is not None else None
        return self._consent.is_heard and at is not None and at[0] == host

    @property
    def audio_format(self) -> tuple[int, int] | None:
        """SoundFormat and samples a second of the tags, once there are any: FLV 10.1 §E.5."""
        return self._to_rtmp.audio_format if self._to_rtmp is not None else None

    @property
    def left_out(self) -> int:
        """The packets that came too late to be sent."""
        return self._pacer.dropped

    @property
    def statistics(self) -> Statistics | None:
        """Loss, jitter and round trip both ways; None before the first answer.  RFC 3550 §6.4.4."""
        self.reclaim()
        return self._session.statistics if self._session is not None else None

    def _let_go(self) -> None:
        self._sending.never()
        self._pacer.clear()
        self._hold_back(False)
        # The call is remembered for a while (RFC 3261 §13.3.1.4); its codecs and taps end here.
        self._to_phone = self._to_rtmp = None
        self._send_rtp, self._order = self.way.send_rtp, ReorderBuffer()
        self.codec_selection.close()

    # -- from the publisher -------------------------------------------------------------

    def publish(self, type_id: int, timestamp: int, payload: bytes, now: float) -> None:
        plan = self.plan
        if type_id != AUDIO or plan is None or self._closed or not payload:
            self._published.put(type_id, timestamp, payload)  # for what begins later
            return
        if self._sending.lent is not None:
            self._reclaim_sent()
        to_phone = self._to_phone
        if payload[0] >> 4 != self._to_phone_format or to_phone is None:
            to_phone = self._choose(plan, payload, now)
            if to_phone is None:
                self.unsuitable += 1
                return
        try:
            packets = to_phone.convert(payload, timestamp)
        except UnsuitableError as error:
            self.unsuitable += 1
            if self.codec_selection.learns(error):
                self._to_phone, self._to_phone_format = None, -1
                self._pacer.clear()
                self._hold_back(False)
            elif to_phone.transcodes:
                self._say_unsuitable(payload[0] >> 4)
            return
        if packets:
            self._pace(to_phone.codec.clock_rate, packets, now)
            session, sending = self._session, self._sending
            if session and self._sends and sending.outlet and sending.is_due():
                number, offset = self._to_phone_type, self._offset
                sending.begin(to_phone, payload, number, offset, session, self._pacer)

    def publish_ended(self, now: float) -> None:
        """The publisher has ended, a file perhaps; `on_drained` follows when all has been sent."""
        if self._closed:
            return
        self._reclaim_sent()
        if self._to_phone is not None:
            self._pace(self._to_phone.codec.clock_rate, self._to_phone.flush(), now)
        self._to_phone, self._to_phone_format, self._draining = None, -1, True
        self.codec_selection.publish_ended()
        self._finish(now)

    def _say_unsuitable(self, sound_format: int) -> None:
        if sound_format not in self._unsuitable_formats:
            self._unsuitable_formats.add(sound_format)
            self._listener.on_unsuitable(sound_format)

    def _choose(self, plan: AudioPlan, tag: bytes, now: float) -> AudioToRtp | None:
        """Choose the translation for a publisher's codec, for use until the codec changes."""
        self.reclaim()  # it goes by our SSRC, which may change: RFC 3550 §5.2
        sound_format = tag[0] >> 4
        chosen = self.codec_selection.to_phone(plan, tag, self._to_phone)
        if chosen is None:
            self._say_unsuitable(sound_format)
            return None
        to_phone, self._to_phone_type = chosen
        codec = to_phone.codec
        self._draining = False
        if self._session is not None:
            self._session.send_at(codec.clock_rate)
        if to_phone is not self._to_phone:
            self._to_phone = to_phone
            self._pacer = Pacer(to_phone.packet_seconds / 2, self._pacer.dropped)
            self._hold_back(False)  # the packets that held the publisher back are dropped
            # RTP time continues where a first publisher, or codec, would be now
            self._offset = self._origin + int((now - self._started) * codec.clock_rate)
        self._to_phone_format = sound_format
        if to_phone.transcodes:
            self._listener.on_transcoding(f"{sound_format_name(sound_format)} > {codec.name}")
        return to_phone

    def _pace(self, clock_rate: int, packets: list[Packet], now: float) -> None:
        pacer = self._pacer
        for packet in packets:
            at = packet[0] / clock_rate
            if pacer.passes(at, now):
                self._send(packet, now)
            else:
                self._queue(at, packet, now)

    def _queue(self, at: float, packet: Packet, now: float) -> None:
        """Queue a packet that is early or behind others, and send packets that are due."""
        pacer = self._pacer
        idle = pacer.deadline is None
        self._send_due(pacer.put(at, packet, now), now)
        if idle and pacer.deadline is not None:
            self._wake()
        if pacer.is_ahead and not self._doubts(pacer.backlog):
            self._hold_back(True)

    def _send_due(self, packets: list[Packet], now: float) -> None:
        for packet in packets:
            self._send(packet, now)
        self._tell_late(self._pacer.dropped, now)

    def _doubts(self, backlog: float) -> bool:
        """Whether a publisher may seem to be ahead of time because its audio is of another rate.

        Own design: it is not held back then, as what tells the rate would come late, and all audio
        behind it.
        """
        to_phone = self._to_phone
        return to_phone is not None and to_phone.in_doubt and backlog <= LIVE_LIMIT

    def _send(self, packet: Packet, now: float) -> None:
        session = self._session
        at, payload, marker = packet
        if session is None or not (self._sends or self._tries(len(payload), now)):
            self._swallowed = True
            return
        if self._swallowed:  # after packets that were not sent, a new talk spurt begins
            marker, self._swallowed = True, False
        ticks = at + self._offset & 0xFFFFFFFF
        self._send_rtp(session.send(self._to_phone_type, payload, ticks, marker, now))
        self.sent += 1

    def tap(self, heard: OnSent) -> None:
        """Give `heard` the audio of each packet that is sent from now on: RFC 3551 §4.5."""

        def send(data: bytes) -> None:
            self.way.send_rtp(data)
            for codec, number in self.plan.sending if self.plan is not None else ():
                if number == data[1] & 0x7F:
                    heard(codec, data[HEADER:])

        self._reclaim_sent()
        self._sending.never()
        self._send_rtp = send

    def _finish(self, now: float) -> None:
        if self._draining and self._pacer.deadline is None:
            self._draining = False
            self.sink.on_drained(now)

    # -- keys, and what may be sent ------------------------------------------------------

    def press(self, digits: str, now: float) -> bool:
        """Press keys one after another; False if the peer takes no such events: RFC 4733 §2.5.1."""
        is_taken = not self._closed and self._dtmf.press(digits, self.plan, now)
        if is_taken:
            self.mute(self._dtmf, self._dtmf.sender.busy)
            self._wake()
        return is_taken

    def mute(self, asker: object, on: bool) -> None:
        """Leave out the publisher's audio while any asker wants it.  RFC 4733 §2.5.1.2."""
        self._mutes = self._mutes | {asker} if on else self._mutes - {asker}
        self._heed_consent()

    def _send_keys(self, now: float) -> None:
        """Send the reports of keys that are due: RFC 4733 §2.5.1.2."""
        plan, session = self.plan, self._session
        number = plan.media.telephone_event if plan is not None else None
        for timestamp, marker, payload in self._dtmf.sender.tick(now, self._timestamp(now)):
            if session is None or number is None or not self._may_send:
                continue
            if self._consent.is_open or self._consent.spend(len(payload), now):
                # RFC 4733 §2.5.1.2 [same-base-as-audio]
                packet = session.send_about(number, payload, timestamp, marker, now)
                self.way.send_rtp(packet)
        self.mute(self._dtmf, self._dtmf.sender.busy)

    def _timestamp(self, now: float) -> int:
        """The RTP timestamp that audio of this moment would have: RFC 4733 §2.5.1.2."""
        session = self._session
        if session is not None and session.last_sent is not None:
            return session.timestamp(now)
        rate = session.send_rate if session is not None else CLOCK_RATE
        return self._origin + int((now - self._started) * rate) & 0xFFFFFFFF

    @property
    def _may_send(self) -> bool:
        """Whether the peer takes media, and packets get through to it: RFC 3264 §5.1."""
        return self.plan is not None and self.plan.media.sends and self.transport.is_ready

    def _heed_consent(self) -> None:
        self._reclaim_sent()
        self._sends = self._may_send and self._consent.is_open and not self._mutes

    def _tries(self, octets: int, now: float) -> bool:
        """Whether to send a packet to a third party that has sent none: see `Consent`."""
        return self._may_send and not self._mutes and self._consent.spend(octets, now)

    # -- from the phone -----------------------------------------------------------------

    def on_rtp(self, data: bytes, now: float) -> None:
        session, order, offloading = self._session, self._order, self._offloading
        if session is None or self._closed:
            return
        if offloading.lent is not None:
            self._reclaim_received()
        header = session.received_rtp(data, now)
        if header is None:
            return
        self._watch.heard = now
        if not self._consent.is_heard:
            self._welcome(now)
        payload_type, _, sequence, timestamp, ssrc, start, end = header
        if sequence == order.next and not order.early:  # in order, as nearly all are
            order.next = sequence + 1
            self._deliver(payload_type, timestamp, data[start:end], ssrc, now)
            if offloading.is_wanted and sequence >= offloading.next_try:
                self._offload(session, payload_type)
            return
        heard = payload_type, timestamp, data[start:end], ssrc, now
        for item in order.put(sequence, heard, now):
            self._deliver(*item)
        if order.early:
            self._wake()

    def _welcome(self, now: float) -> None:
        super()._welcome(now)
        self._heed_consent()

    def _deliver(
        self, payload_type: int, timestamp: int, payload: bytes, ssrc: int, now: float
    ) -> None:
        """Pass on audio of the phone, which arrived at `now` and may have waited for its turn."""
        plan, to_rtmp = self.plan, self._to_rtmp
        # RFC 3264 §6.1 [hears-after-the-answer]
        codec = plan.receiving.get(payload_type) if plan else None
        if codec is None:
            if plan is not None and payload_type in plan.media.receive_telephone_events:
                for digit in self._dtmf.heard(timestamp, payload, now):
                    self._listener.on_digit(digit, now)
            # RFC 3550 §5.1 [unknown-types-ignored]
            return  # comfort noise, or what was never agreed
        self.received += 1
        if to_rtmp is None or codec is not to_rtmp.codec:
            to_rtmp = self._to_rtmp = self.codec_selection.to_rtmp(codec, to_rtmp)
            assert self._session is not None
            self._timeline.lead(self._session.reception, to_rtmp.clock)
            if to_rtmp.transcodes:
                self._listener.on_transcoding(to_rtmp.transcodes)
        arrival = int((now - self._started) * 1000)
        for time, tag in to_rtmp.convert(payload, timestamp, ssrc, arrival):
            self.on_tag(AUDIO, time, tag, now)

    def _offload(self, session: RtpSession, payload_type: int) -> None:
        """Have a pump pass on the packets behind this one, if it was audio of the codec in use."""
        plan, to_rtmp = self.plan, self._to_rtmp
        if plan and to_rtmp and plan.receiving.get(payload_type) is to_rtmp.codec:
            way = self.transport.offload, self.sink
            self._offloading.begin(*way, session, self._order, to_rtmp, payload_type)

    def reclaim(self) -> None:
        self._reclaim_received()
        self._reclaim_sent()

    def _reclaim_received(self) -> None:
        self._count(self._offloading.end())

    def _count(self, counted: Counted | None) -> None:
        if counted is not None:
            self._watch.heard = max(self._watch.heard, counted.heard_at)
            self.received += counted.delivered

    def _reclaim_sent(self) -> None:
        self.sent += self._sending.end()

    # -- time ---------------------------------------------------------------------------

    @property
    def deadline(self) -> float | None:
        if self._closed or self._session is None:
            return None
        order, reports = self._order.deadline, self._session.reporter.deadline
        early = self._offloading.deadline
        others = self._watch.deadline, self._dtmf.sender.deadline
        return earliest((self._pacer.deadline, order, early, reports, *others))

    def tick(self, now: float) -> None:
        if self._closed or self._session is None:
            return
        self._send_due(self._pacer.tick(now), now)
        if self._holding and self._pacer.has_room:
            self._hold_back(False)
        self._finish(now)
        if self._closed:
            return
        for heard in self._order.tick(now):
            self._deliver(*heard)
        self._offloading.tick(now)
        keys = self._dtmf.sender.deadline
        if keys is not None and keys <= now:
            self._send_keys(now)
        self._report(now)
        if self._watch.deadline is not None and self._watch.deadline <= now:
            self.reclaim()
            seen = self._watch.check(now)
            if seen is Silence.QUIET:
                self._listener.on_quiet(now)
            elif seen is Silence.DEAD:
                self._listener.on_silence(now)
