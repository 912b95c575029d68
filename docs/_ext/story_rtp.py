"""Stories of RTP: a phone that sends sound and pictures to us, over a network that is not even."""

from collections.abc import Callable, Iterable, Sequence

from story import Step, Story, told
from support.sip.elements import random_source

from p2psip.rtp.session import RtpSession
from rtclab.explain.fields.field import Field
from siprtmp.media.timeline import Timeline
from siprtmp.media.translate.timebase import MediaClock

CNAME, UNIX = "alice@192.0.2.1", 1_750_000_000.0
SOUND_CLOCK, PICTURE_CLOCK = 8000, 90000  # ticks a second
EVEN = 30  # ms that most packets take
UNEVEN = {2: 34, 4: 58, 5: 41, 9: 25}  # ms that these take, by their numbers
LOST = 7  # the packet of sound that is lost
OFFSETS = {"sound": 0x1234, "picture": 0xABCDE}  # where each clock begins
ONE_WAY = 0.03  # seconds, of reports


def clocks() -> Story:
    """Sound for three seconds, a report of each end, and pictures on the same line of time."""
    random = random_source("rtp")
    phone = RtpSession(None, SOUND_CLOCK, CNAME, random, 0.0, wallclock=UNIX)
    ours = RtpSession(None, SOUND_CLOCK, "gateway@192.0.2.2", random, 0.0)
    steps: list[Step] = []
    rows: list[list[str]] = []
    clock = MediaClock(SOUND_CLOCK)
    number, before = 0, 0.0
    while "rr" not in {each.name for each in steps}:
        at = 0.02 * number
        data = phone.send(0, bytes([0x7F]) * 160, OFFSETS["sound"] + 160 * number, number == 0, at)
        lost = number == LOST
        if number < 10:
            steps.append(sent(f"rtp-{number + 1}", at, "RTP", data, lost=lost))
        if not lost:
            arrival = at + UNEVEN.get(number, EVEN) / 1000
            transit = 1000 * (arrival - at)
            before = transit if number == 0 else before
            header = ours.received_rtp(data, arrival)
            assert header is not None
            time = clock.milliseconds(header[3], round(1000 * arrival))
            jitter = ours.reception.source.jitter
            if number < 10:
                shown = (header[2], header[3], 1000 * at, 1000 * arrival, transit - before, jitter)
                rows.append([f"{each:.0f}" for each in (*shown, time)])
            before = transit
        number += 1
        for name, reporter, other, kind in (
            ("sr", phone, ours, "SR"),
            ("rr", ours, phone, "RR"),
        ):
            for report in reporter.tick(at):
                other.received_rtcp(report, at + ONE_WAY)
                if reporter is ours and ours.reception.sender_clock is None:
                    continue  # not yet an answer to a report
                steps.append(sent(name, at, kind, report, back=reporter is ours))
    facts: dict[str, object] = {
        "arrivals": (
            ("sequence", "timestamp", "sent", "arrived", "D (ms)", "J (ticks)", "FLV time"),
            rows,
        ),
        "rtt": phone.rtt,
    }
    facts["pictures"] = pictures(ours, clock, random)
    return Story(("phone", "gateway"), tuple(steps), facts)


def pictures(
    sound: RtpSession, clock: MediaClock, random: Callable[[int], bytes]
) -> tuple[Sequence[str], list[list[str]]]:
    """Pictures beside the sound, the last packets of which take longer and longer."""
    phone = RtpSession(None, PICTURE_CLOCK, CNAME, random, 0.0, wallclock=UNIX)
    ours = RtpSession(None, PICTURE_CLOCK, "gateway@192.0.2.2", random, 0.0)
    timeline = Timeline(started=0.0)
    timeline.lead(sound.reception, clock)
    slow, rows, number = [0.03, 0.08, 0.15], list[list[str]](), 0
    while slow:
        at = 0.04 * number
        ticks = OFFSETS["picture"] + round(PICTURE_CLOCK * at)
        is_late = ours.reception.sender_clock is not None
        arrival = at + (slow.pop(0) if is_late else ONE_WAY)
        ours.received_rtp(phone.send(98, b"\x65", ticks, True, at), arrival)
        moment = ours.reception.time_of(ticks)
        if moment is not None:
            time = timeline.at(moment, arrival)
            assert time is not None
            shown = str(ticks), f"{1000 * arrival:.0f}", f"{moment - UNIX:.3f} s", f"{time:.0f}"
            rows.append([*shown, f"{timeline.arrival(arrival):.0f}"])
        for report in phone.tick(at):
            ours.received_rtcp(report, at + ONE_WAY)
        number += 1
    return ("timestamp", "arrived", "captured", "FLV time by reports", "by arrival alone"), rows


def sent(
    name: str, at: float, kind: str, data: bytes, *, lost: bool = False, back: bool = False
) -> Step:
    """One datagram."""
    field = told("rtp" if kind == "RTP" else "rtcp", data)
    ends = ("gateway", "phone") if back else ("phone", "gateway")
    label = kind if kind != "RTP" else f"RTP {value(field.walk(), 'sequence')}"
    return Step(name, at, *ends, label, field, data, lost)


def value(fields: Iterable[Field], name: str) -> str:
    """The value of the first field of this name."""
    return next(each.value for each in fields if each.name == name)
