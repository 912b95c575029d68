"""Measures the bit rate and the round trip of a client by calls with a useless payload.

Own design: after Field §"Bandwidth check"; old Flash players ask for it to choose a bit rate.

    >>> check = BandwidthCheck("onBWCheck", "onBWDone", number=7.0)
    >>> check.begin(10.0).args
    ()
    >>> len(check.answered(7.0, 10.05).args[0])  # an answer to nothing took 50 ms
    8192
    >>> done = [check.answered(7.0, at) for at in (10.15, 10.25)][-1]
    >>> done.name, [round(value) for value in done.args]  # kbit/s, bytes, ms, ms
    ('onBWDone', [1311, 16384, 100, 50])
"""

from typing import Final

from rtmplite.amf.values import Value
from rtmplite.rtmp.wire.command import Command

PAYLOADS: Final = (0, 8192, 8192)  # bytes; the empty one measures the round trip
NAMES: Final = {
    "_checkbw": ("_onbwcheck", "_onbwdone"),
    "checkBandwidth": ("onBWCheck", "onBWDone"),
}


class BandwidthCheck:
    """One measurement: Field §"Bandwidth check".

    `call` and `end` are the names of the calls to the client, `number` their transaction id.
    """

    def __init__(self, call: str, end: str, number: float) -> None:
        self._call, self._end, self._number = call, end, number
        self._sent = 0
        self._latency, self._since, self._times = 0.0, 0.0, 0.0

    def begin(self, now: float) -> Command:
        """Give the first call."""
        return self._next(now)

    def answered(self, number: float, now: float) -> Command | None:
        """Give the next call, the last one with the figures; None for another transaction."""
        if number != self._number or self._sent > len(PAYLOADS):
            return None
        took = max(0.0, now - self._since)
        if self._sent == 1:
            self._latency = took
        else:
            self._times += max(0.0, took - self._latency)
        if self._sent < len(PAYLOADS):
            return self._next(now)
        self._sent += 1
        size, seconds = sum(PAYLOADS), max(self._times, 0.001)
        figures = size * 8 / seconds / 1000, size, self._times * 1000, self._latency * 1000
        return Command(self._end, 0.0, None, tuple(map(float, figures)))

    def _next(self, now: float) -> Command:
        size = PAYLOADS[self._sent]
        self._sent, self._since = self._sent + 1, now
        payload: tuple[Value, ...] = ("x" * size,) if size else ()
        return Command(self._call, self._number, None, payload)
