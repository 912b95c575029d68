"""Congestion control: how much a session may have in the network at once.

Implements RFC 7016 §A.2.  The window grows while it is used to the full and everything arrives,
and shrinks on loss: by half, or by an eighth where real-time data would suffer.  A session that
sends no real-time data leaves room for sessions that do: other sessions of the same endpoint, and
those that the far end receives from others.
"""

from math import inf
from typing import Final

from rtmplite.rtmfp.session.rtt import RoundTrip

SMSS: Final = 1460  # Source: RFC 7016 §A.2, its example
CWND_INIT: Final = 4380
CWND_TIMEDOUT: Final = SMSS
NOTICE_SECONDS: Final = 0.8  # §3.5.2.1
LARGE_WINDOW: Final = 67200  # bytes in flight from which losing half is too much: §A.1

MSS: Final = 1160  # bytes of user data in a datagram of usual size, about
BURST_BYTES: Final = 6 * MSS
PACED_SECONDS: Final = 0.0045  # a round trip that is shorter is no time to spread anything over


class Burst:
    """How many bytes of user data may leave at once: §3.5.2.3.

    `left` is what the burst may still take; the packet that uses it up may exceed it.  `alarm` is
    when the next segment may leave although nothing was acknowledged, infinite for never.

    Departs from RFC 7016 §3.5.2.3 [six-packets]: bytes are counted, and after six segments one more
    leaves each time that its share of the round trip has passed.  A receiver that reads a burst at
    once answers it once, so six packets a round trip would be all that ever leave.  They are the
    limit, however small, after ERTO without an acknowledgement.

        >>> timing = RoundTrip()
        >>> timing.srtt = 0.1
        >>> burst = Burst(timing)
        >>> burst.sent(BURST_BYTES + 580, 17400, 0.0)
        >>> burst.allows, round(burst.alarm, 6)     # a segment and a half, of fifteen in 0.1 s
        (False, 0.01)
        >>> burst.tick(burst.alarm, 17400)
        >>> burst.allows, burst.left, burst.alarm
        (True, 1160, inf)
    """

    __slots__ = ("_is_answered", "_round_trip", "_since", "alarm", "left")

    def __init__(self, round_trip: RoundTrip) -> None:
        self._round_trip = round_trip
        self._is_answered = True
        self._since = inf  # the first packet after the last acknowledgement
        self.left = BURST_BYTES
        self.alarm = inf

    @property
    def allows(self) -> bool:
        """Whether a packet of user data may leave: §3.5.2.3."""
        return self.left > 0 or 0 <= self._spread < PACED_SECONDS

    @property
    def _spread(self) -> float:
        """Over how many seconds to spread a window, negative if it has to wait for an answer."""
        srtt = self._round_trip.srtt
        return -1.0 if srtt is None or not self._is_answered else srtt

    def sent(self, size: int, cwnd: int, now: float) -> None:
        """Count a packet of `size` bytes that leaves; `cwnd` is the congestion window: §3.5.2.3."""
        self._since = min(self._since, now)
        if now - self._since > self._round_trip.erto:
            self._is_answered = False
        self.left -= size if self._is_answered else max(size, MSS)
        spread = self._spread
        if self.left <= 0 and self.alarm == inf and spread >= PACED_SECONDS:
            self.alarm = now + spread * (MSS - self.left) / cwnd

    def acknowledged(self) -> None:
        """Let a whole burst go, as something has arrived: §3.5.2.3."""
        self._is_answered, self._since = True, inf
        self.left = max(self.left, BURST_BYTES)
        self.alarm = inf

    def timeout(self) -> None:
        """Let six packets go, and no more until an acknowledgement: §3.5.2.3."""
        self.left, self.alarm, self._is_answered = BURST_BYTES, inf, False

    def tick(self, now: float, cwnd: int) -> None:
        """Let one more segment go if the alarm is due, and what it is too late for: §3.5.2.3."""
        if now >= self.alarm:
            self.left = MSS
            if self._spread > 0:
                self.left += int((now - self.alarm) / self._spread * cwnd)
            self.alarm = inf


class TimeCritical:
    """Which sessions of an endpoint send or receive real-time data now: §3.5.2.1.

    Own design: all sessions of an endpoint share one of these.  Any object may stand for a session.
    To know whether another session received such data lately, the last two are enough.
    """

    __slots__ = ("_heard", "_heard_before", "sent")

    def __init__(self) -> None:
        self.sent = -inf  # the last Time Critical Forward Notification on any session
        self._heard: tuple[object, float] = None, -inf
        self._heard_before: tuple[object, float] = None, -inf

    def heard(self, session: object, now: float) -> None:
        """Note that a packet with the timeCritical flag has come on `session`: §3.5.2.1."""
        if self._heard[0] is not session:
            self._heard_before = self._heard
        self._heard = session, now

    def others(self, session: object, now: float) -> bool:
        """Whether to send a Reverse Notification on `session`: §3.5.2 [tcr-when-others]."""
        other, when = self._heard if self._heard[0] is not session else self._heard_before
        return other is not None and now - when <= NOTICE_SECONDS

    def forget(self, session: object) -> None:
        """Drop the references to a session that has ended, so that its memory is freed."""
        if self._heard_before[0] is session:
            self._heard_before = None, -inf
        if self._heard[0] is session:
            self._heard, self._heard_before = self._heard_before, (None, -inf)


class CongestionControl:
    """The congestion window of one session: §A.2.

    `cwnd` and `ssthresh` are bytes.  For every received packet the session calls `begin`, then
    `acknowledged` for each acknowledgement in it, sets `any_naks` and the bytes that are `lost`,
    and calls `finish`.  After it has sent what it could it calls `filled`: `pre_ack_outstanding` is
    what was outstanding then.  Packets that are read together share it, as the first of them would
    leave to the others a window that is not full, and does not grow.

    Departs from RFC 7016 §A.2 [loss]: the window is cut once for all losses of one window, until
    what was outstanding at the cut has been acknowledged or lost; what a router drops when its
    queue is full comes back as many acknowledgements with a loss each.  It is never cut by less
    than one and a half of what was lost, since a window twice too large loses half of itself.
    Frames of real-time data leave gaps, so their sender is cut from its window, not from what
    happened to be in flight.
    Departs from RFC 7016 §A.2 [full-window-grows]: a window counts as full when less than a 64th of
    it is free, as data leave in whole packets and, by the burst's alarm, one by one.  Real-time
    data let it grow while half of it is used: they are all there is to send, and a window that just
    holds them delays each key frame, and all that follow a loss, by round trips.
    """

    __slots__ = (
        "_before",
        "_is_full",
        "_is_half_full",
        "_lost",
        "_notices",
        "_recovery",
        "acked_bytes_accumulator",
        "acked_bytes_this_packet",
        "any_acks",
        "any_naks",
        "burst",
        "cwnd",
        "lost",
        "outstanding",
        "pre_ack_outstanding",
        "ssthresh",
        "tc_sent",
        "tcr_received",
    )

    def __init__(self, notices: TimeCritical, round_trip: RoundTrip) -> None:
        self._notices = notices
        self.burst = Burst(round_trip)
        # §A.2 [initial]
        self.cwnd = CWND_INIT
        self.ssthresh: float = inf
        self.acked_bytes_accumulator = self.acked_bytes_this_packet = 0
        self.pre_ack_outstanding = 0
        self._is_full = self._is_half_full = False
        self.any_naks = self.any_acks = False
        self.lost = 0
        self._recovery = self._before = self._lost = 0
        self.tc_sent = self.tcr_received = -inf

    def allows(self, outstanding: int) -> bool:
        """Whether a packet of user data may leave while `outstanding` bytes are: §3.5.2."""
        return outstanding < self.cwnd and self.burst.allows  # §3.5.2 [tcp-compatible]

    def sent(self, size: int, time_critical: bool, now: float) -> None:
        """Count a packet with `size` bytes of user data that has left: §3.5.2.3."""
        self.burst.sent(size, self.cwnd, now)
        if time_critical:
            self.tc_sent = self._notices.sent = now

    def filled(self, outstanding: int) -> None:
        """Note that `outstanding` bytes are in flight, and no more can leave now: §A.2."""
        self.pre_ack_outstanding = outstanding
        self._is_full = outstanding > self.cwnd - self.cwnd // 64
        self._is_half_full = outstanding > self.cwnd // 2

    def begin(self) -> None:
        """Start a received packet, before its chunks: §A.2."""
        self.any_naks = self.any_acks = False
        self.acked_bytes_this_packet = self.lost = 0

    def acknowledged(self, count: int) -> None:
        """Take an acknowledgement of `count` bytes in flight: §A.2, §3.5.2.3."""
        self.any_acks = True
        self.acked_bytes_this_packet += count
        self.burst.acknowledged()

    def timeout(self, was_loss: bool) -> None:
        """Shrink the window, as nothing was acknowledged for ERTO: §A.2 [timeout]."""
        self.ssthresh = max(self.ssthresh, self.cwnd * 3 / 4)
        self.acked_bytes_accumulator = self._recovery = self.pre_ack_outstanding = 0
        self.cwnd = CWND_TIMEDOUT if was_loss else CWND_INIT
        self.burst.timeout()

    def moved(self) -> None:
        """Begin with a small window on another path, of which nothing is known: §3.5.4.2."""
        self.cwnd = CWND_INIT
        self.acked_bytes_accumulator = self._recovery = self.pre_ack_outstanding = 0
        self.burst.acknowledged()

    def finish(self, outstanding: int, now: float) -> None:
        """Adapt the window after the chunks of a packet that leaves `outstanding` bytes: §A.2."""
        self._recovery = max(0, self._recovery - self.acked_bytes_this_packet - self.lost)
        if self._recovery:
            self._lost += self.lost
            self._not_above(self._before - self._lost * 3 // 2)
            return
        tc_sent = now - self.tc_sent <= NOTICE_SECONDS
        # §A.2 [fastgrow]
        fastgrow = (
            now - self.tcr_received > NOTICE_SECONDS and now - self._notices.sent > NOTICE_SECONDS
        )
        if self.lost:
            self._shrink(tc_sent, fastgrow)
            self._recovery = outstanding
            return
        is_used = self._is_half_full if tc_sent else self._is_full
        if self.any_acks and not self.any_naks and is_used:
            increase = self._grow_fast() if fastgrow else self._grow_slowly(tc_sent)
            # §A.2 [increase-capped]; §3.5.2 [not-above-slow-start]
            self.cwnd = max(self.cwnd + min(increase, SMSS), CWND_INIT)

    def _shrink(self, tc_sent: bool, fastgrow: bool) -> None:
        """Reduce the window to 7/8 of the bytes in flight, or to a half, or further: §A.2."""
        before = self.cwnd if tc_sent else min(self.pre_ack_outstanding, self.cwnd)
        self._before = before
        self._lost = self.lost
        if tc_sent or (self.pre_ack_outstanding > LARGE_WINDOW and fastgrow):
            self.cwnd = max(before * 7 // 8, CWND_INIT)
        else:
            self.cwnd = max(before // 2, CWND_INIT)
        self.ssthresh = float(self.cwnd)
        self.acked_bytes_accumulator = 0
        self._not_above(before - self._lost * 3 // 2)

    def _not_above(self, most: int) -> None:
        """Reduce the window to `most`, but not below the initial one."""
        if self.cwnd > most:
            self.cwnd = max(most, CWND_INIT)
            self.ssthresh = float(self.cwnd)

    def _grow_fast(self) -> int:
        """Return the growth: slow start below ssthresh, 96 bytes per share above.

        Departs from RFC 7016 §A.2 [normal-increase]: twice 48 bytes, which is about a segment a
        round trip, as TCP grows and as the author's own library does now.
        """
        if self.cwnd < self.ssthresh:
            return self.acked_bytes_this_packet
        return 96 * self._shares(9600)

    def _grow_slowly(self, tc_sent: bool) -> int:
        """Return the growth that leaves room for real-time data: §A.2.

        A session that sends real-time data itself grows faster: §3.5.2.1.
        Departs from RFC 7016 §A.2 [yielding-increase]: it grows by twice 24 bytes a share, and
        starts up like any other.  A quarter of that would delay the first second of a stream,
        which begins with its largest frame; and a stream overshoots by no more than it has to send.
        """
        if self.cwnd < self.ssthresh and tc_sent:  # §3.5.2.1 [no-slow-start]
            return self.acked_bytes_this_packet
        return (48 if tc_sent else 24) * self._shares(4800)  # §3.5.2.1 [half-percent]

    def _shares(self, most: int) -> int:
        """Count the shares, each about a sixteenth of the window, acknowledged since: §A.2."""
        self.acked_bytes_accumulator += self.acked_bytes_this_packet
        threshold = min(max(self.cwnd // 16, 64), most)
        shares, self.acked_bytes_accumulator = divmod(self.acked_bytes_accumulator, threshold)
        return shares
