"""The story of one call: its messages, its lines of the log, and its quality, all bounded.

Own design: what happens is noted as it is, and put into words when somebody looks.
"""

from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple

from p2psip.rtp.session import Statistics
from p2psip.transaction.flow import LOCAL, Flow
from siprtmp.web.branches.advice import MissingMedia, advised
from siprtmp.web.branches.sip_step import MAX_OCTETS, causes_in, step_of

Row = dict[str, object]
MAX_STEPS: Final = 300
MAX_KEPT: Final = 65_536  # octets of the messages of one call
MAX_LINES: Final = 200
MAX_SAMPLES: Final = 240
SAMPLE_SECONDS: Final = 5.0
SLACK: Final = 0.1  # s, by which a timer may be early
LATE_SECONDS: Final = 10.0  # after an answer, until the first packet is missed
GATEWAY: Final = "gateway"
PHONE: Final = "phone"
CLIENT: Final = "client"  # of RTMP
INSIDE: Final = "inside"  # the other end of a message of this process to itself
LADDER, LOG, QUALITY, ADVICE = PARTS = ("ladder", "log", "quality", "advice")


class Sip(NamedTuple):
    """One SIP message."""

    at: float
    is_sent: bool
    flow: Flow
    data: bytes

    @property
    def place(self) -> str:
        """Where it goes or comes from, "" within this process."""
        transport, (host, port) = self.flow.transport, self.flow.remote[:2]
        return "" if transport == LOCAL else f"{transport} {host}:{port}"


class LogLine(NamedTuple):
    """One line of the log: its event, what it is about, and a function that writes it."""

    at: float
    event: str
    about: Row
    write: Callable[[], str]


class Clients(NamedTuple):
    """The RTMP clients of a call: whether one publishes, and how many play."""

    publishes: bool = False
    players: int = 0


class Media(NamedTuple):
    """What a call has sent and received until now, and the suite of its keys for SRTP."""

    codec: str
    sent: int
    received: int
    rtp: Statistics | None
    is_browser: bool
    suite: str = ""
    clients: Clients = Clients()


Noted = Sip | LogLine
_NONE: Final = Media("", 0, 0, None, is_browser=False)


class CallStory:
    """One call by the name of its resource; `begun` is the time that steps are counted from."""

    def __init__(self, name: str, call_id: str, begun: float) -> None:
        self.name, self.call_id, self.begun = name, call_id, begun
        self.end_row: Row | None = None  # once it has ended
        self.up_at: float | None = None
        self._steps: list[Sip | Row] = []
        self._lines: deque[LogLine] = deque(maxlen=MAX_LINES)
        self._samples: deque[Row] = deque(maxlen=MAX_SAMPLES)
        self._problems: dict[str, Row] = {}  # warnings by their events
        self._kept, self._is_truncated = 0, False
        self._last, self._sampled_at, self._is_silent = _NONE, begun, False
        self._clients, self._suite, self._has_reports = Clients(), "", False
        self._next_look = begun
        self._ended_at: float | None = None

    def note(self, noted: Noted) -> tuple[str, Callable[[], Row]] | None:
        """Add a message or a line; the part that it is of, and what says it to subscribers."""
        if isinstance(noted, LogLine):
            self._lines.append(noted)
            self._problems.setdefault(noted.event, noted.about)
            return LOG, lambda: {"line": noted.write()}
        if not self._add(noted._replace(data=noted.data[:MAX_OCTETS])):
            return None
        return LADDER, lambda: {"step": self._said(noted)}

    def begin(self, clients: Clients, now: float) -> None:
        """Note the clients that are there when the call begins."""
        for step in self._news_of_clients(clients, now):
            self._add(step)

    def look(self, media: Callable[[], Media], now: float) -> list[tuple[str, Row]]:
        """Note what has become of the media, if it is time; what subscribers are told."""
        if self.up_at is None or now < self._next_look:
            return []
        if self._next_look == self.begun:  # the first time since its answer
            self._sampled_at = now
        seen, before = media(), self._last
        told: list[tuple[str, Row]] = []
        for step in self._news(seen, now):
            if self._add(step):
                told.append((LADDER, {"step": step}))
        if self._is_due(now):
            if seen.rtp is not None:
                sample = _sample(seen.rtp, before.rtp, now - self._sampled_at)
                sample = {"at": self._at(now), **sample}
                self._samples.append(sample)
                told.append((QUALITY, {"sample": sample}))
            self._last, self._sampled_at = seen, now
        is_whole = seen.sent and seen.received
        is_early = not is_whole and now - self.up_at < LATE_SECONDS
        self._next_look = now + 1.0 if is_early else self._sampled_at + SAMPLE_SECONDS - SLACK
        return told

    def end(self, row: Row, now: float) -> None:
        """The call has ended, with the `reason` in its row."""
        self.end_row, self._ended_at = row, now

    @property
    def messages(self) -> list[Sip]:
        """The messages that are kept, in order."""
        return [each for each in self._steps if isinstance(each, Sip)]

    def read(self, part: str, now: float) -> Row:
        """What one of `PARTS` holds."""
        if part == LADDER:
            local = all(isinstance(each, dict) or not each.place for each in self._steps)
            shown = [each for each in self._steps if local or isinstance(each, dict) or each.place]
            return {"steps": [*map(self._said, shown)], "truncated": self._is_truncated}
        if part == LOG:
            return {"lines": [each.write() for each in self._lines]}
        if part == QUALITY:
            return {"samples": [*self._samples]}
        return self._advice(now)

    # -- within -------------------------------------------------------------------------

    def _at(self, now: float) -> float:
        return round(max(now - self.begun, 0.0), 3)

    def _is_due(self, now: float) -> bool:
        return now - self._sampled_at >= SAMPLE_SECONDS - SLACK

    def _add(self, step: Sip | Row) -> bool:
        octets = len(step.data) if isinstance(step, Sip) else 0
        if len(self._steps) >= MAX_STEPS or self._kept + octets > MAX_KEPT:
            self._is_truncated = True
            return False
        self._kept += octets
        self._steps.append(step)
        return True

    def _said(self, step: Sip | Row) -> Row:
        if isinstance(step, dict):
            return step
        text, detail = step_of(step.data)
        ends = GATEWAY, PHONE if step.place else INSIDE
        source, target = ends if step.is_sent else ends[::-1]
        where = f"{'to' if step.is_sent else 'from'} {step.place}\n" if step.place else ""
        said: Row = {"at": self._at(step.at), "from": source, "to": target, "protocol": "SIP"}
        return {**said, "text": text, "detail": where + detail}

    def _news(self, seen: Media, now: float) -> list[Row]:
        """What is new of the packets: the first ones, silence, and the end of that."""
        last, found = self._last, self._news_of_clients(seen.clients, now)
        if seen.is_browser and seen.received and not last.received:
            text = "connected: what the browser sends has arrived"
            found.append(self._of_media(now, "ICE", PHONE, GATEWAY, text))
        if seen.suite != self._suite:
            self._suite, protocol = seen.suite, "DTLS" if seen.is_browser else "SRTP"
            text = f"keys for {seen.suite}" if seen.suite else "no keys any more"
            found.append(self._of_media(now, protocol, PHONE, GATEWAY, text))
        for source, target, count, before in (
            (PHONE, GATEWAY, seen.received, last.received),
            (GATEWAY, PHONE, seen.sent, last.sent),
        ):
            if count and not before:
                text = f"first packets, {seen.codec or 'no audio'}"
                found.append(self._of_media(now, "RTP", source, target, text))
        if not self._has_reports and seen.rtp is not None and seen.rtp.rtt is not None:
            self._has_reports = True
            text = f"round trip {1000 * seen.rtp.rtt:.0f} ms"
            found.append(self._of_media(now, "RTCP", PHONE, GATEWAY, text))
        if last.received and self._is_due(now):
            is_silent = seen.received == last.received
            if is_silent != self._is_silent:
                text = "silent" if is_silent else "heard again"
                found.append(self._of_media(now, "RTP", PHONE, GATEWAY, text))
            self._is_silent = is_silent
        if not (last.received and last.sent):  # the first packets are news once
            self._last = last._replace(
                sent=last.sent or seen.sent, received=last.received or seen.received
            )
        return found

    def _news_of_clients(self, seen: Clients, now: float) -> list[Row]:
        """A publisher that has come or gone, and how many play, if that has changed."""
        before, self._clients = self._clients, seen
        texts = []
        if seen.publishes != before.publishes:
            texts.append("publishes" if seen.publishes else "publishes no longer")
        if seen.players != before.players:
            texts.append(f"players: {seen.players}")
        return [self._of_media(now, "RTMP", CLIENT, GATEWAY, text) for text in texts]

    def _of_media(self, now: float, protocol: str, source: str, target: str, text: str) -> Row:
        said: Row = {"at": self._at(now), "from": source, "to": target}
        return {**said, "protocol": protocol, "text": text, "detail": ""}

    def _advice(self, now: float) -> Row:
        reason = "" if self.end_row is None else str(self.end_row["reason"])
        silence, until = MissingMedia.NONE, now if self._ended_at is None else self._ended_at
        if self.up_at is not None and until - self.up_at >= LATE_SECONDS:
            if not self._last.received:
                silence = MissingMedia.NOTHING_HEARD
            elif self._is_silent and self.end_row is None:
                silence = MissingMedia.NO_LONGER_HEARD
            elif not self._last.sent:
                silence = MissingMedia.NOTHING_SENT
        causes = [*dict.fromkeys(text for each in self.messages for text in causes_in(each.data))]
        return advised(reason, self._problems, silence, causes)


def _sample(seen: Statistics, before: Statistics | None, seconds: float) -> Row:
    """Both directions since the last sample: `a` from the phone, `b` to it."""
    received, lost = seen.packets_received, seen.lost
    octets_in, octets_out = seen.octets_received, seen.octets_sent
    if before is not None:
        received, lost = received - before.packets_received, lost - before.lost
        octets_in -= before.octets_received
        octets_out -= before.octets_sent
    rtt = None if seen.rtt is None else round(1000 * seen.rtt, 1)
    share = max(lost, 0) / (received + max(lost, 0)) if received > 0 else None
    return {
        "a": {
            "loss": None if share is None else round(100 * share, 2),
            "jitter_ms": round(seen.jitter_ms, 1),
            "rtt_ms": rtt,
            "kbps": round(max(octets_in, 0) * 8 / seconds / 1000, 1),
        },
        "b": {
            "loss": round(100 * seen.remote_fraction_lost, 2),
            "jitter_ms": round(seen.remote_jitter_ms, 1),
            "rtt_ms": rtt,
            "kbps": round(max(octets_out, 0) * 8 / seconds / 1000, 1),
        },
    }
