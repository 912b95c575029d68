"""A video stream of the peer: packets in order, and requests for those that are missing.

Implements RFC 4585 §6.2.1 and §6.3.1, and RFC 5104 §4.3.1, for a receiver.

The `Reporter` of the transport sends the requests.  Packets that come out go to a depacketizer; if
that reports damage, tell `damaged`, and when a whole key frame has come, `refreshed`:

    >>> from p2psip.rtp.sender import Sender
    >>> random = lambda n: bytes(range(n))
    >>> ours, peer = Sender(1, 90000, random), Sender(2, 90000, random)
    >>> reporter = Reporter("us@host", random, 0.0, [ours], [], bandwidth=3000.0, early=True)
    >>> video = VideoReceiver(90000, reporter, {"nack", "nack pli"})
    >>> first, second, third = (peer.send(96, b"part", 0, False, 0.0) for _ in range(3))
    >>> len(video.received(first, 0.0)), len(video.received(third, 0.0)), video.deadline
    (1, 0, 0.01)
    >>> video.tick(0.01), reporter.deadline
    ([], -inf)
    >>> [packet.sequence for packet in video.received(second, 0.05)]
    [3, 4]
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Final, NamedTuple

from p2psip.rtp import fast, rtx
from p2psip.rtp.fast import unpack_fixed
from p2psip.rtp.feedback import Fir, Nack, Pli
from p2psip.rtp.losses import GIVE_UP_AFTER, Losses
from p2psip.rtp.reception import Reception
from p2psip.rtp.reorder import HOLD_SECONDS, ReorderBuffer
from p2psip.rtp.reporter import Reporter

DEPTH: Final = 512  # packets that wait for one which is missing ...
MAX_WAITING: Final = 1 << 22  # ... and their octets, as long ones are; Own design: bounded memory
LONG: Final = MAX_WAITING // DEPTH  # octets of a packet; of shorter ones `DEPTH` are few enough
REQUEST_SECONDS: Final = 0.5  # Own design: before a key frame is asked for again
COMMAND_TIMES: Final = 2  # Own design: that a FIR is sent before there is a new one
ROUND_TRIP: Final = 0.1  # s, Own design: before the first report has told


class VideoPacket(NamedTuple):
    """A packet in its turn, with its extended sequence number: RFC 3550 §5.1, §A.1."""

    sequence: int
    payload_type: int
    timestamp: int
    marker: bool
    payload: bytes


class VideoReceiver(Reception):
    """A source of the peer that is asked for lost packets and for key frames: RFC 4585 §6.1.

    `feedback` is `AgreedMedia.feedback`, what was agreed on: "nack" has packets sent
    again, "nack pli" and "ccm fir" have key frames sent.  Without "nack", packets wait for early
    ones no longer than audio does.  The receiver joins the `receivers` of `reporter`.
    Departs from RFC 5104 §4.3.1.2 [no-fir-for-loss]: without PLI a loss is answered by FIR, since
    all pictures up to the next key frame are of no use then.
    `repairs` maps the payload types of RTX to those of the packets that they repeat: RFC 4588 §8.1.
    """

    def __init__(
        self,
        clock_rate: int,
        reporter: Reporter,
        feedback: Collection[str],
        payload_types: Collection[int] | None = None,
    ) -> None:
        super().__init__(clock_rate, payload_types, misorder=DEPTH)
        reporter.receivers.append(self)
        self._reporter, self._feedback = reporter, feedback
        self._repairs = "nack" in feedback  # RFC 4585 §4.2 [nothing-unlisted]
        self.repairs: Mapping[int, int] = {}
        self.losses = Losses()
        # RFC 4585 §4.2 [requests-may-be-in-vain]
        self._order: ReorderBuffer[VideoPacket] = ReorderBuffer(
            DEPTH, GIVE_UP_AFTER if self._repairs else HOLD_SECONDS
        )
        self._request_at: float | None = None
        self._command: int | None = None  # of the FIR that is in force
        self._commands = self._times = 0
        self.invalid = 0

    def received(self, data: bytes | memoryview, now: float) -> list[VideoPacket]:
        """Take a datagram; answer the packets whose turn it is: RFC 3550 §A.1."""
        header = fast.unpack(data)
        if header is not None and header[0] in self.repairs:
            return self._repaired(header, data, now)
        ours = header and self._reporter.sender(header[4])
        # RFC 3550 §8.2
        if header is None or (ours is not None and self._reporter.collided(ours, now)):
            self.invalid += 1
            return []
        before = self.ssrc
        sequence = self.heard(header, now)
        if sequence is None:
            self.invalid += 1
            return []
        self.last_received = now
        ready = self._begin() if self.ssrc != before else []
        payload_type, marker, _, timestamp, _, start, end = header
        if self._repairs:
            self.losses.heard(sequence, now)
        packet = VideoPacket(sequence, payload_type, timestamp, marker, bytes(data[start:end]))
        ready += self._order.put(sequence, packet, now)
        if end - start > LONG and self._waiting_octets > MAX_WAITING:
            ready += self._order.tick(float("inf"))
        return ready

    def _repaired(
        self, header: fast.Header, data: bytes | memoryview, now: float
    ) -> list[VideoPacket]:
        """Take a packet of RTX: RFC 4588 §5.3.

        Own design: it counts only if it was asked for, so that its stream is that of our source,
        whatever its SSRC; a browser that repeats others probes the path.  The reports about the
        source tell of the loss as it was.
        """
        found = rtx.original_of(data)
        if found is None or self.ssrc is None:
            return []
        number, start = found
        highest = self.source.highest
        sequence = highest - (highest - number & 0xFFFF)
        if not self.losses.is_missing(sequence):  # RFC 4588 §5.3 [associated-by-requests]
            return []
        self.last_received = now
        self.losses.heard(sequence, now)
        payload_type, marker, _, timestamp, _, _, end = header
        packet = (self.repairs[payload_type], timestamp, marker, bytes(data[start:end]))
        return self._order.put(sequence, VideoPacket(sequence, *packet), now)

    @property
    def arrival(self) -> tuple[int, int, float, int, float] | None:
        """What another goes on with: RFC 3550 §A.1; None while a packet is missing, or early.

        The last sequence number, the clock rate, and `Source.arrival`.
        """
        order, source = self._order, self.source
        arrival, is_mended = source.arrival, not (self._repairs and self.losses.has_missing)
        if order.early or order.next != source.highest + 1 or arrival is None or not is_mended:
            return None
        return source.highest & 0xFFFF, self._clock_rate, *arrival

    def went_on(
        self, advance: int, packets: int, octets: int, arrival: tuple[float, int, float]
    ) -> None:
        """Count packets of the source that were heard elsewhere, each the next: RFC 3550 §A.1."""
        super().went_on(advance, packets, octets, arrival)
        self._order.went_on(packets, 0)
        if self._repairs:
            self.losses.went_on(packets)

    @property
    def following(self) -> int:
        """The extended number whose turn it is: RFC 3550 §5.1; 0 before the first."""
        return self._order.next or 0

    def waited(self, data: Sequence[bytes]) -> list[VideoPacket]:
        """The last ones of those packets, which nobody has read yet: RFC 3550 §5.1."""
        first = self.following - len(data)
        out = []
        for sequence, each in enumerate(data, first):
            _, second, _, timestamp, _ = unpack_fixed(each)
            packet = sequence, second & 0x7F, timestamp, second > 0x7F, each[12:]
            out.append(VideoPacket(*packet))
        return out

    @property
    def _waiting_octets(self) -> int:
        return sum(len(packet.payload) for _, packet in self._order.early.values())

    def _begin(self) -> list[VideoPacket]:
        """Wait for nothing of the source before: its numbers have ended."""
        ready = self._order.tick(float("inf"))
        self._order.next = None
        self.losses.restart()  # RFC 4588 §5.3 [associated-anew]
        return ready

    def damaged(self, now: float) -> None:
        """Ask for a key frame until it comes, by FIR if PLI is not agreed on: RFC 4585 §6.3.1."""
        if self._request_at is None:
            if "nack pli" not in self._feedback and "ccm fir" in self._feedback:
                self._order_key_frame()
            self._request(now)

    def join(self, now: float) -> None:
        """Ask for a key frame for a new viewer, who has seen none: RFC 5104 §4.3.1.2."""
        if "ccm fir" not in self._feedback:
            self.damaged(now)  # RFC 5104 §7.2 [agreed-commands-alone]
        elif self._command is None:
            self._order_key_frame()  # RFC 5104 §4.3.1.2 [fir-if-unusable]
            self._request(now)

    def refreshed(self) -> None:
        """Ask no more, since a whole key frame has come: RFC 5104 §4.3.1.2."""
        self._request_at = self._command = None

    @property
    def deadline(self) -> float | None:
        """When to call `tick`: RFC 4585 §3.4, for requests that are of use."""
        waiting = (self._order.deadline, self.losses.deadline, self._request_at)
        return min((at for at in waiting if at is not None), default=None)

    def tick(self, now: float) -> list[VideoPacket]:
        """Send the requests that are due: RFC 4585 §6.2.1.  Return packets that waited enough."""
        if (at := self.losses.deadline) is not None and at <= now:
            self._ask_again(now)
        if self._request_at is not None and self._request_at <= now:
            self._request(now)
        return self._order.tick(now)

    def _ask_again(self, now: float) -> None:
        lost = self.losses.due(now, self._round_trip)
        # RFC 4588 §5.3 [stops-with-the-source]
        if lost and self.ssrc is not None:
            numbers = [sequence & 0xFFFF for sequence in lost]
            # RFC 4585 §4.2 [feedback-is-given]
            # RFC 4588 §6.3 [asks-by-nack] [nack-for-the-original]
            self._reporter.ask(Nack.of(self._own_ssrc, self.ssrc, numbers), now)

    def _request(self, now: float) -> None:
        """Ask for a key frame, as soon as there is a source to ask."""
        if self.ssrc is not None and self._command is not None:
            if self._times == COMMAND_TIMES:  # its key frame may be what was lost
                self._order_key_frame()
            self._times += 1
            self._reporter.ask(Fir(self._own_ssrc, ((self.ssrc, self._command),)), now)
        elif self.ssrc is not None and "nack pli" in self._feedback:
            # RFC 4585 §4.2 [nothing-unlisted]
            self._reporter.ask(Pli(self._own_ssrc, self.ssrc), now)
        # RFC 5104 §4.3.1.3 [fir-repeated-after-a-round-trip]
        self._request_at = now + max(REQUEST_SECONDS, self._round_trip)

    def _order_key_frame(self) -> None:
        """Count a new command, whose repetitions keep its number: RFC 5104 §4.3.1.1."""
        # RFC 5104 §4.3.1.1 [command-counts] [repetition-keeps-its-number]
        self._command = self._commands = self._commands + 1 & 0xFF
        self._times = 0

    @property
    def _own_ssrc(self) -> int:
        return self._reporter.senders[0].ssrc

    @property
    def _round_trip(self) -> float:
        return self._reporter.senders[0].rtt or ROUND_TRIP
