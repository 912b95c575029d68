"""The queue of a sending flow: fragments until they are acknowledged or abandoned.

Implements RFC 7016 §3.6.2: SEND_QUEUE, its entries, and in what order they go.
"""

import itertools
from collections import deque
from typing import Final

from rtmplite.rtmfp.session.range_set import RangeSet

ENTRY_BYTES: Final = 300  # approximate memory of an entry and its message besides the data


class Outgoing:
    """One message in a flow, from `first` to `last` sequence number: §3.6.1.2.

    It is to be abandoned after `expires`, and after `start_by` if none of it has been sent; both
    are infinite for a message that has to arrive in any case.
    """

    __slots__ = ("abandoned", "begun", "expires", "first", "last", "start_by")

    def __init__(self, first: int, last: int, expires: float, start_by: float) -> None:
        self.first, self.last = first, last
        self.expires, self.start_by = expires, start_by
        self.begun = self.abandoned = False

    def is_late(self, now: float) -> bool:
        """Whether to abandon it, being too old or not begun in time: §3.6.2.7."""
        return now > self.expires or (now > self.start_by and not self.begun)


class Entry:
    """One fragment of a message: §3.6.2, and TSN of §3.6.2.5."""

    __slots__ = (
        "abandoned",
        "data",
        "ever_sent",
        "flow_id",
        "fra",
        "in_flight",
        "message",
        "nak_count",
        "sent_abandoned",
        "sequence_number",
        "transmit_size",
        "tsn",
    )

    def __init__(
        self, flow_id: int, message: Outgoing, sequence_number: int, fra: int, data: bytes
    ) -> None:
        self.flow_id, self.message = flow_id, message
        self.sequence_number, self.fra, self.data = sequence_number, fra, data
        self.abandoned = self.sent_abandoned = self.ever_sent = self.in_flight = False
        self.nak_count = self.transmit_size = self.tsn = 0


class SendQueue:
    """The entries of one flow in the order of their numbers: §3.6.2.

    Own design: numbers are contiguous, so that an entry is found by its distance from the first.
    After the first entry, no entry below the number `cursor` is due to be sent; no number from
    `unsent` on was ever sent.  `told` is the highest FSN that was sent, last with the entry
    `teller`: while that is in flight, no other chunk needs to carry the FSN.
    """

    __slots__ = ("_entries", "_first", "_gone", "cursor", "entries", "teller", "told", "unsent")

    def __init__(self) -> None:
        self._entries: deque[Entry | None] = deque()  # the first is never None
        # The number of the first, or of the next to come: §2.3.11 [first-is-1] [first-above-0]
        self._first = 1
        self._gone = RangeSet()
        self.entries = 0
        self.cursor = self.unsent = 1
        self.teller: Entry | None = None
        self.told = 0

    @property
    def head(self) -> Entry | None:
        """The first entry, None if there is none."""
        return self._entries[0] if self._entries else None

    @property
    def second(self) -> Entry | None:
        """The entry after the first, None if there is none."""
        following = itertools.islice(self._entries, 1, None)
        return next((entry for entry in following if entry is not None), None)

    @property
    def tail(self) -> Entry | None:
        """The last entry, None if it has been removed: §3.6.2.11."""
        return self._entries[-1] if self._entries else None

    @property
    def first(self) -> int:
        """The number of the first entry."""
        return self._first

    @property
    def end(self) -> int:
        """NEXT_SN, the number of the next entry: §3.6.2."""
        return self._first + len(self._entries)

    def append(self, entry: Entry) -> None:
        """Queue an entry whose number is `end`: §3.6.1.2."""
        self._entries.append(entry)  # §3.6.1.2 [numbers-grow], §2.3.11 [contiguous]
        self.entries += 1

    def get(self, number: int) -> Entry | None:
        """Return the entry of that number, None if it has been removed."""
        at = number - self._first
        return self._entries[at] if 0 <= at < len(self._entries) else None

    def acknowledged(self, first: int, last: int) -> list[Entry]:
        """Return the entries from `first` to `last` that have been sent: §3.6.2.4.

        An acknowledgement takes time only for the entries that it is the first to name, however
        large its ranges are and however often it is repeated.
        """
        last = min(last, self.unsent - 1)
        if not self._gone.gaps:  # the usual case: all are there, from the first on
            start, end = max(first - self._first, 0), last - self._first + 1
            found = [self._entries[at] for at in range(start, end)]
            return [entry for entry in found if entry is not None]
        holes = self._gone.holes(first, last)
        found = [self._entries[number - self._first] for hole in holes for number in hole]
        return [entry for entry in found if entry is not None]

    def remove(self, entry: Entry) -> None:
        """Remove an entry: §3.6.2.4."""
        self._gone.add(entry.sequence_number)
        self._entries[entry.sequence_number - self._first] = None
        self.entries -= 1
        while self._entries and self._entries[0] is None:
            self._entries.popleft()
            self._first += 1

    def due_again(self, number: int) -> None:
        """Note that the entry of that number may have to be sent again: §3.6.2.3."""
        self.cursor = min(self.cursor, number)

    def eligible(self, final: int | None, span: int) -> Entry | None:
        """Return the first entry to send, within `span` of the first: §3.6.2.3, §3.6.1.2."""
        head = self.head
        # §3.6.1.2 [lowest-first]
        if head is None or not (head.in_flight or head.abandoned):
            return head
        at = max(self.cursor - self._first, 1)
        limit = min(len(self._entries), span)
        while at < limit:
            entry = self._entries[at]
            if (
                entry is not None
                and not entry.in_flight
                and (not entry.abandoned or entry.sequence_number == final)
            ):
                break
            at += 1
        self.cursor = self._first + at
        if at < limit:
            return self._entries[at]
        is_told = self.told >= self._first and self.teller is not None and self.teller.in_flight
        return None if head.in_flight or is_told else head
