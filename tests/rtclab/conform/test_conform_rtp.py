"""The cases of RTP that look at a call: each finds what it is about in a call with one fault."""

from dataclasses import replace

import pytest

from p2psip.rtp.packet import RtpPacket
from p2psip.rtp.rtcp import App, Bye, ReportBlock, SenderReport, ntp_time
from p2psip.rtp.source_description import SourceDescription
from p2psip.sdp.line import Attribute
from p2psip.sdp.session import MediaDescription
from rtclab.conform.case import Unmet
from rtclab.conform.rtp import SUITE
from rtclab.conform.rtp.peer import FIRST, LOST_OF
from rtclab.conform.rtp.talk import SILENCE, TICKS, Datagram, Sent, Talk

CASES = {case.name: case for case in SUITE.cases}
SSRC, OURS = 0xDECAFBAD, 0xCAFEBABE
RTP, RTCP = ("192.0.2.1", 4000), ("192.0.2.1", 4001)
NAME = SourceDescription.of_cname(SSRC, "them@example.com")
LATER = 1 << 20  # timestamp of the lossy call
LASTING = 300  # packets: six seconds


def packet(number, **fields):
    first = {"payload_type": 0, "sequence": 500 + number, "timestamp": 9000 + TICKS * number}
    return RtpPacket(**({**first, "ssrc": SSRC, "payload": SILENCE} | fields))


def report(number, **fields):
    """The sender report that comes with a packet of this number."""
    told = {"ntp": ntp_time(1e9 + number / 50), "timestamp": 9000 + TICKS * number}
    told |= {"packets": number + 1, "octets": TICKS * (number + 1)}
    return SenderReport(**({"ssrc": SSRC} | told | fields))


def together(*packets):
    """A datagram of control, right or wrong."""
    return b"".join(map(bytes, packets))


def heard(number, data, *, control=True, source=None):
    where = source or (RTCP if control else RTP)
    return Datagram(number / 50, where, bytes(data), control, control)


def a_talk(sound=lambda number: packet(number), controls=None, **fields):
    """A call with a report after two seconds and after five, and a BYE; `fields` of Talk."""
    usual = {
        100: together(report(100), NAME),
        250: together(report(250), NAME),
        LASTING + 1: together(report(LASTING - 1), NAME, Bye((SSRC,))),
    }
    controls = usual if controls is None else controls
    media = MediaDescription(
        "audio", 4000, "RTP/AVP", ("0",), attributes=(Attribute("ptime", "20"),)
    )
    talk = Talk(None, None, media, RTP, RTCP, began=0.0, ended=LASTING / 50)
    for number in range(LASTING):
        talk.heard.append(heard(number, sound(number), control=False))
        if number in controls:
            talk.heard.append(heard(number, controls[number]))
    talk.heard += [heard(at, data) for at, data in controls.items() if at >= LASTING]
    return replace(talk, **fields)


def a_lossy_talk(**fields):
    """A call in which we sent 200 packets but every tenth, and a block about them."""
    sent = [
        Sent(n // 2 / 25, packet(n, sequence=(FIRST + n) & 0xFFFF, timestamp=n * TICKS, ssrc=OURS))
        for n in range(200)
        if n % LOST_OF != LOST_OF - 1
    ]
    ours = replace(report(0), ssrc=OURS)
    block = {"fraction_lost": 256 * 19 // 199, "lost": 19, "highest_sequence": FIRST + 198}
    block |= {"jitter": 160, "last_sr": ours.ntp >> 16 & 0xFFFFFFFF, "delay": 65536 * 3}
    told = together(report(100, reports=(ReportBlock(**({"ssrc": OURS} | block | fields)),)), NAME)
    talk = a_talk(lambda n: packet(n, ssrc=1 << 20, sequence=9, timestamp=LATER), {201: told})
    return replace(talk, sent=sent, reports=[(1.0, ours)])


class OnePeer:
    """In place of a peer that calls: the two calls that cases share."""

    def __init__(self, plain=None, lossy=None):
        self._plain, self._lossy = plain or a_talk(), lossy or a_lossy_talk()

    def plain(self):
        return self._plain

    def lossy(self):
        return self._lossy


def only(number, **fields):
    """Sound in which one packet is another."""
    return a_talk(lambda n: packet(n, **(fields if n == number else {})))


def told(data, at=100):
    """Control of which the datagram at two seconds is another."""
    good = {100: together(report(100), NAME), 250: together(report(250), NAME)}
    return a_talk(controls=good | {at: data})


LOOKING = [
    case
    for case in SUITE.cases
    if case.name.startswith(("version", "packets_", "ssrc", "sequence", "timestamp", "marker"))
    or case.name in ("payload_type_was_agreed", "sound_comes_in_real_time")
    or "report" in case.run.__module__
    or (".control" in case.run.__module__ and case.name != "reports_share_the_port")
]
FAULTS = {
    "version_is_two": a_talk(lambda n: b"\x40" + bytes(packet(n))[1:]),
    "packets_are_well_formed": a_talk(lambda n: b"\xa0" + bytes(packet(n))[1:-1] + b"\xff"),
    "ssrc_stays_the_same": only(7, ssrc=1),
    "ssrc_is_random": a_talk(lambda n: packet(n, ssrc=1 << 20)),
    "sequence_begins_anywhere": a_talk(lambda n: packet(n, sequence=n + 9)),
    "timestamp_begins_anywhere": a_talk(lambda n: packet(n, timestamp=LATER + n * TICKS)),
    "sequence_steps_by_one": only(7, sequence=4),
    "timestamp_steps_by_the_sound": only(7, timestamp=9000 + 7 * TICKS + 1),
    "marker_is_for_the_start_of_talk": only(7, marker=True),
    "payload_type_was_agreed": only(7, payload_type=8),
    "packets_have_the_agreed_length": a_talk(lambda n: packet(n, payload=bytes(240))),
    "sound_comes_in_real_time": a_talk(lambda n: packet(n, timestamp=n * TICKS * 2)),
    "reports_are_sent": a_talk(controls={}),
    "compounds_are_well_formed": told(together(report(100), NAME)[:-2]),
    "compound_begins_with_a_report": told(together(App(0, SSRC, b"PING"), report(100), NAME)),
    "compound_has_a_cname": told(together(report(100))),
    "cname_is_of_the_sound": told(together(report(100), SourceDescription.of_cname(1, "them"))),
    "sender_sends_sender_reports": told(together(report(100, ssrc=7), NAME)),
    "packets_are_counted": told(together(report(100, packets=1), NAME)),
    "octets_are_counted": told(together(report(100, octets=172 * 101), NAME)),
    "timestamp_is_that_of_the_sound": told(together(report(100, timestamp=1), NAME)),
    "wall_clock_goes_on": told(together(report(100, ntp=ntp_time(1e9)), NAME)),
    "first_report_waits": told(together(report(1), NAME), 1),
    "reports_are_not_too_many": told(together(report(150), NAME), 150),
    "bye_is_sent_at_the_end": told(together(report(100), NAME)),
    "reports_come_from_where_they_are_received": a_talk(control_place=("192.0.2.1", 9)),
}
BLOCKS = {
    "our_packets_are_reported": {"ssrc": 1},
    "highest_number_is_told": {"highest_sequence": FIRST + 150},
    "wraps_are_counted": {"highest_sequence": (FIRST + 198) & 0xFFFF},
    "lost_packets_are_counted": {"lost": 18},
    "fraction_is_of_the_lost": {"fraction_lost": 0},
    "jitter_is_measured": {"jitter": 20},
    "our_report_is_named": {"last_sr": 0},
    "delay_since_our_report_is_told": {"delay": 0},
}


@pytest.mark.parametrize("case", LOOKING, ids=lambda case: case.name)
def test_a_good_call_meets_all(case):
    case.run(OnePeer())


@pytest.mark.parametrize("name", FAULTS)
def test_each_fault_of_sound_and_control_is_found(name):
    with pytest.raises(Unmet):
        CASES[name].run(OnePeer(FAULTS[name]))


def test_a_timestamp_of_16_random_bits_is_found():
    """Wherever the two calls of baresip 1.0 begin."""
    lossy = a_talk(lambda n: packet(n, timestamp=n * TICKS + 60_000))
    with pytest.raises(Unmet):
        CASES["timestamp_begins_anywhere"].run(OnePeer(lossy=lossy))


@pytest.mark.parametrize("name", BLOCKS)
def test_each_fault_of_a_block_is_found(name):
    with pytest.raises(Unmet):
        CASES[name].run(OnePeer(lossy=a_lossy_talk(**BLOCKS[name])))
