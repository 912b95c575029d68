"""The fragments in the network, in the order in which they were sent, of all flows.

Implements RFC 7016 §3.6.2.5 and §3.6.2.6.

    >>> from rtmplite.rtmfp.session.send_queue import Entry, Outgoing
    >>> flight, message = Flight(), Outgoing(1, 4, 60.0, 60.0)
    >>> sent = [Entry(2, message, number, 0, b"") for number in range(1, 5)]
    >>> for entry in sent:
    ...     flight.send(entry, 100)
    >>> flight.outstanding
    400
    >>> for entry in sent[1:]:
    ...     flight.land(entry)
    ...     naks, lost = flight.negative()
    >>> naks, [entry.sequence_number for entry in lost], flight.outstanding
    (True, [1], 0)
"""

from typing import Final

from rtmplite.rtmfp.session.send_queue import Entry

NAKS: Final = 3  # §3.6.2.5 [three-naks]


class Flight:
    """The fragments outstanding, by TSN; `outstanding` is S_OUTSTANDING_BYTES: §3.6.2.5, §3.5."""

    __slots__ = ("_entries", "max_tsn_ack", "next_tsn", "outstanding")

    def __init__(self) -> None:
        self._entries: dict[int, Entry] = {}  # ascending
        self.next_tsn, self.max_tsn_ack = 1, 0
        self.outstanding = 0

    def send(self, entry: Entry, size: int) -> None:
        """Note that an entry leaves in a chunk of `size` bytes: §3.6.2.3."""
        entry.in_flight = entry.ever_sent = True
        entry.nak_count = 0
        entry.transmit_size = size
        self.outstanding += size
        entry.tsn = tsn = self.next_tsn
        self.next_tsn = tsn + 1
        self._entries[tsn] = entry

    def land(self, entry: Entry) -> None:
        """Note that an entry in flight was acknowledged: §3.6.2.4."""
        self._take(entry)
        if entry.tsn > self.max_tsn_ack:
            self.max_tsn_ack = entry.tsn

    def negative(self) -> tuple[bool, list[Entry]]:
        """Count a negative acknowledgement for every entry sent before the newest acknowledged.

        Called after a packet with acknowledgements.  Returns whether there was any, and the entries
        that count as lost by now: §3.6.2.5.
        """
        lost = []
        naks = False
        for tsn, entry in self._entries.items():
            if tsn >= self.max_tsn_ack:
                break
            naks = True
            entry.nak_count += 1  # §3.6.2.5 [three-naks]
            if entry.nak_count >= NAKS:  # §3.6.2.5 [three-naks]
                lost.append(entry)
        for entry in lost:
            self._take(entry)
        return naks, lost

    def time_out(self) -> list[Entry]:
        """Take all entries in flight for lost: §3.6.2.6 [lost-after-erto]."""
        lost = list(self._entries.values())
        for entry in lost:
            entry.in_flight = False
        self._entries.clear()
        self.outstanding = 0
        return lost

    def _take(self, entry: Entry) -> None:
        entry.in_flight = False
        self.outstanding -= entry.transmit_size
        del self._entries[entry.tsn]
