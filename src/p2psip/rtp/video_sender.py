"""One video stream of ours, which repeats lost packets and asks its encoder for key frames.

Implements RFC 4585 §6.2.1 and §6.3.1, and RFC 5104 §4.3.1.2, for one SSRC of a media sender.

A `Sender` whose `on_feedback` takes the events that `Reporter.received` answers:

    >>> from p2psip.rtp.feedback import Nack, Pli
    >>> wanted = []
    >>> sender = VideoSender(7, 90000, lambda n: bytes(n), lambda: wanted.append("key frame"))
    >>> packets = [sender.send(96, bytes(100), 0, False, now=0.0) for _ in range(8)]
    >>> sender.on_feedback(Nack.of(9, 7, lost=[3]), now=0.1) == [packets[2]]
    True
    >>> sender.on_feedback(Pli(9, 7), now=0.1), wanted
    ([], ['key frame'])
"""

from collections.abc import Callable, Mapping
from typing import Final

from p2psip.rtp.feedback import Fir, Nack, Pli
from p2psip.rtp.reporter import Event
from p2psip.rtp.resend_buffer import ResendBuffer
from p2psip.rtp.rtx import RtxSender
from p2psip.rtp.sender import Sender

KEY_FRAME_SECONDS: Final = 1.0  # Own design: between key frames, which are many times larger
MAX_COMMANDERS: Final = 16  # Own design: sources of FIR that are told apart; one is usual
ROUND_TRIP: Final = 0.04  # s, Own design: before the first report has told


class VideoSender(Sender):
    """A source of ours that heeds feedback: RFC 4585 §6.1.

    `on_key_frame_wanted()` is called when the encoder, or the publisher, has to make a key frame:
    at most once a `KEY_FRAME_SECONDS`, a request between them being kept for the next time.
    `resends` has the counts of repeated packets.
    `repairs` maps payload types to those of RTX, by which their packets are sent again where both
    ends have it (RFC 4588 §8.1); `on_repair` is given the source of these before its first packet.
    """

    def __init__(
        self,
        ssrc: int | None,
        clock_rate: int,
        random: Callable[[int], bytes],
        on_key_frame_wanted: Callable[[], object],
    ) -> None:
        super().__init__(ssrc, clock_rate, random)
        self.on_key_frame_wanted = on_key_frame_wanted
        self.resends = ResendBuffer()
        self.repairs: Mapping[int, int] = {}
        self.on_repair: Callable[[Sender], object] = lambda source: None
        self._repeater: RtxSender | None = None
        self._commands: dict[int, int] = {}  # the last FIR number of each source
        self._not_before = float("-inf")
        self._is_wanted = False

    def send(
        self, payload_type: int, payload: bytes, timestamp: int, marker: bool, now: float
    ) -> bytes:
        """Make the next datagram, and keep it for a while: RFC 3550 §5.1."""
        datagram = super().send(payload_type, payload, timestamp, marker, now)
        self.resends.keep(self._sequence, datagram, now)
        return datagram

    def take_ssrc(self) -> None:
        """Go on as another source, whose packets begin anew: RFC 3550 §8.2."""
        super().take_ssrc()
        self.resends.clear()

    def on_feedback(self, event: Event, now: float) -> list[bytes]:
        """Take an event of the reporter; answer the packets to send again: RFC 4585 §4.2."""
        match event:  # RFC 4585 §4.2 [reacts-to-what-is-agreed]
            case Nack(media_ssrc=self.ssrc):
                again = self.resends.again(event.lost(), now, (self.rtt or ROUND_TRIP) / 2)
                return [self._repair(each, now) for each in again] if self.repairs else again
            case Pli(media_ssrc=self.ssrc):
                self.want(now)
            case Fir(sender_ssrc=commander, requests=requests):
                numbers = [number for ssrc, number in requests if ssrc == self.ssrc]
                # RFC 5104 §4.3.1.1 [repetition-keeps-its-number]
                if numbers and self._commands.get(commander) != numbers[-1]:
                    if len(self._commands) >= MAX_COMMANDERS:
                        self._commands.clear()
                    self._commands[commander] = numbers[-1]
                    self.want(now)  # RFC 5104 §4.3.1.2 [refresh-on-fir]
        return []  # RFC 4585 §4.2 [other-feedback-discarded]

    def _repair(self, original: bytes, now: float) -> bytes:
        """Make the packet that is sent again, by RTX if that is agreed on: RFC 4588 §4."""
        number = self.repairs.get(original[1] & 0x7F)
        if number is None:
            return original
        if self.repeater.last_sent is None:
            self.on_repair(self.repeater)  # RFC 4588 §5.2 [one-cname], §6.1 [bye-for-both]
        return self.repeater.again(original, number, now)

    @property
    def repeater(self) -> RtxSender:
        """The source of packets that are sent again by RTX: RFC 4588 §4."""
        if self._repeater is None:
            # RFC 4588 §4 [two-ssrcs]
            self._repeater = RtxSender(None, self.send_rate, self._random)
        return self._repeater

    @property
    def deadline(self) -> float | None:
        """When to call `tick`, while a request for a key frame waits: RFC 5104 §4.3.1.2."""
        return self._not_before if self._is_wanted else None

    def tick(self, now: float) -> None:
        """Ask for the key frame that was wanted again too soon: RFC 5104 §4.3.1.2."""
        if self._is_wanted and now >= self._not_before:
            self._is_wanted, self._not_before = False, now + KEY_FRAME_SECONDS
            self.on_key_frame_wanted()

    def want(self, now: float) -> None:
        """Have a key frame made, as a peer has asked by RTCP, or by SIP: RFC 5104 §3.5.1."""
        # RFC 4585 §6.3.1.1 [pli-heeds-congestion], RFC 5104 §4.3.1.2 [refresh-heeds-congestion]
        self._is_wanted = True
        self.tick(now)
