"""How much may be in the network at once.

Implements RFC 7016 §A.2.  The window grows while it is used to the full and everything arrives,
and shrinks on loss: by half, or by an eighth where real-time data would suffer.  Who sends none
yields to whoever does: to a far end that says so, and to our own other sessions.
"""

from math import ceil, inf
from typing import Final

SMSS: Final = 1460  # Source: RFC 7016 §A.2, its example
CWND_INIT: Final = 4380
CWND_TIMEDOUT: Final = SMSS
NOTICE_SECONDS: Final = 0.8  # §3.5.2.1
LARGE_WINDOW: Final = 67200  # bytes in flight from which losing half is too much: §A.1
BURST_PACKETS: Final = 6  # §3.5.2.3 [six-packets]


class TimeCritical:
    """What all sessions of an endpoint know of each other's real-time data: §3.5.2.1.

    Own design: every session of an endpoint is given the same one.  A session is told apart by
    any object; of those heard lately two are enough to tell whether there is another.
    """

    __slots__ = ("_heard", "_heard_before", "sent")

    def __init__(self) -> None:
        self.sent = -inf  # the last Time Critical Forward Notification on any session
        self._heard: tuple[object, float] = None, -inf
        self._heard_before: tuple[object, float] = None, -inf

    def heard(self, session: object, now: float) -> None:
        """A packet with the timeCritical flag has come on `session`: §3.5.2.1."""
        if self._heard[0] is not session:
            self._heard_before = self._heard
        self._heard = session, now

    def others(self, session: object, now: float) -> bool:
        """Whether to send a Reverse Notification on `session`: §3.5.2 [tcr-when-others]."""
        who, when = self._heard if self._heard[0] is not session else self._heard_before
        return who is not None and now - when <= NOTICE_SECONDS

    def forget(self, session: object) -> None:
        """Keep nothing of a session that has ended.  Own design: nor its memory."""
        if self._heard_before[0] is session:
            self._heard_before = None, -inf
        if self._heard[0] is session:
            self._heard, self._heard_before = self._heard_before, (None, -inf)


class CongestionControl:
    """The congestion window of one session: §A.2.

    `cwnd` and `ssthresh` are bytes.  A received packet is
    bracketed by `begin` and `finish`, with `acknowledged`, `nak` and `loss` in between.
    """

    __slots__ = (
        "_notices",
        "acked_bytes_accumulator",
        "acked_bytes_this_packet",
        "any_acks",
        "any_loss",
        "any_naks",
        "cwnd",
        "data_packet_count",
        "pre_ack_outstanding",
        "ssthresh",
        "tc_sent",
        "tcr_received",
    )

    def __init__(self, notices: TimeCritical) -> None:
        self._notices = notices
        # §A.2 [initial]
        self.cwnd = CWND_INIT
        self.ssthresh: float = inf
        self.acked_bytes_accumulator = self.acked_bytes_this_packet = 0
        self.pre_ack_outstanding = 0
        self.any_loss = self.any_naks = self.any_acks = False
        self.data_packet_count = 0
        self.tc_sent = self.tcr_received = -inf

    def allows(self, outstanding: int) -> bool:
        """Whether a packet of user data may leave, with so many bytes outstanding: §3.5.2."""
        # §3.5.2 [tcp-compatible]; §3.5.2.3 [six-packets]
        return outstanding < self.cwnd and self.data_packet_count < BURST_PACKETS

    def sent(self, time_critical: bool, now: float) -> None:
        """A packet of user data has left: §3.5.2.3."""
        self.data_packet_count += 1
        if time_critical:
            self.tc_sent = self._notices.sent = now

    def begin(self, outstanding: int) -> None:
        """Before the chunks of a received packet, with so many bytes outstanding: §A.2."""
        self.any_loss = self.any_naks = self.any_acks = False
        self.acked_bytes_this_packet = 0
        self.pre_ack_outstanding = outstanding

    def acknowledged(self, count: int) -> None:
        """An acknowledgement, of `count` bytes in flight: §A.2, §3.5.2.3 [six-packets]."""
        self.any_acks = True
        self.acked_bytes_this_packet += count
        self.data_packet_count = 0

    def timeout(self, was_loss: bool) -> None:
        """Nothing was acknowledged for ERTO: §A.2 [timeout]."""
        self.ssthresh = max(self.ssthresh, self.cwnd * 3 / 4)
        self.acked_bytes_accumulator = 0
        self.cwnd = CWND_TIMEDOUT if was_loss else CWND_INIT
        self.data_packet_count = 0  # §3.5.2.3 [six-packets]

    def finish(self, now: float) -> None:
        """After the chunks of a received packet: §A.2 [loss] [full-window-grows]."""
        tc_sent = now - self.tc_sent <= NOTICE_SECONDS
        # §A.2 [fastgrow]
        fastgrow = (
            now - self.tcr_received > NOTICE_SECONDS and now - self._notices.sent > NOTICE_SECONDS
        )
        if self.any_loss:
            self._shrink(tc_sent, fastgrow)
        elif self.any_acks and not self.any_naks and self.pre_ack_outstanding >= self.cwnd:
            increase = self._grow_fast() if fastgrow else self._grow_slowly(tc_sent)
            # §A.2 [increase-capped]; §3.5.2 [not-above-slow-start]
            self.cwnd = max(self.cwnd + min(increase, SMSS), CWND_INIT)

    def _shrink(self, tc_sent: bool, fastgrow: bool) -> None:
        """Lose an eighth of what was in flight, or a half: §A.2 [loss]."""
        before = self.pre_ack_outstanding
        if tc_sent or (before > LARGE_WINDOW and fastgrow):
            self.cwnd = max(before * 7 // 8, CWND_INIT)
        else:
            self.cwnd = max(before // 2, CWND_INIT)
        self.ssthresh = self.cwnd
        self.acked_bytes_accumulator = 0

    def _grow_fast(self) -> int:
        """Slow start below the threshold, 48 bytes per share above: §A.2 [normal-increase]."""
        if self.cwnd < self.ssthresh:
            return self.acked_bytes_this_packet
        return 48 * self._shares(4800)

    def _grow_slowly(self, tc_sent: bool) -> int:
        """Leave room for real-time data, ours here or another's: §A.2 [yielding-increase].

        Only who sends such data here starts up faster than that: §3.5.2.1 [no-slow-start]
        [half-percent].
        """
        if self.cwnd < self.ssthresh and tc_sent:  # §3.5.2.1 [no-slow-start]
            return ceil(self.acked_bytes_this_packet / 4)
        return 24 * self._shares(2400 if tc_sent else 4800)  # §3.5.2.1 [half-percent]

    def _shares(self, most: int) -> int:
        """How many sixteenths of a window have been acknowledged since the last: §A.2."""
        self.acked_bytes_accumulator += self.acked_bytes_this_packet
        threshold = min(max(self.cwnd // 16, 64), most)
        shares, self.acked_bytes_accumulator = divmod(self.acked_bytes_accumulator, threshold)
        return shares
