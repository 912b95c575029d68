"""Our readers of RTP and RTCP refuse each fault of the strategies, and say what is wrong."""

import pytest
from support.faults import refused

from p2psip.errors import RemoteError
from p2psip.rtp import fast
from p2psip.rtp.packet import RtpPacket
from p2psip.rtp.payload.dtmf import parse_events
from p2psip.rtp.rtcp import parse_compound
from p2psip.strategies import faults, large, rtp_faults

SHORT = "too short for what it says it holds"
RTP = {
    "header cut": "shorter than its fixed header",
    "another version": "RTP version [013]",
    "sources cut": "CSRC list beyond the end",
    "extension header cut": "extension beyond the end",
    "extension cut": "extension beyond the end",
    "padding of 0": "0 octets of padding",
    "padding beyond the payload": "octets of padding in",
    "no room for padding": "octets of padding in 0",
}
PADDING = "padding of a wrong size"
COMPOUNDS = {
    "no packet": "empty",
    "header cut": "header beyond the end",
    "another version": "RTCP version [013]",
    "another version later": "RTCP version [013]",
    "length beyond the end": "packet beyond the end",
    "padding before the last packet": "not at the end",
    "padding of 0": PADDING,
    "padding of half a word": PADDING,
    "padding beyond the packet": PADDING,
    "padding of no octet": PADDING,
}
RTCP = {
    "sender report cut": SHORT,
    "blocks of a sender cut": "report blocks beyond the end",
    "receiver report cut": SHORT,
    "blocks of a receiver cut": "report blocks beyond the end",
    "source missing": SHORT,
    "item cut": "source description beyond the end",
    "items not ended": "source description without an end",
    "leaving source missing": SHORT,
    "reason cut": "reason for leaving beyond the end",
    "name missing": "without a name",
}
FEEDBACK = {
    "feedback cut": SHORT,
    "picture loss cut": SHORT,
    "loss of nothing": "NACK, or one of nothing",
    "request of nothing": "without whole entries",
    "request cut": "without whole entries",
    "limit of nothing": "request for no bit rate",
    "limit cut": "without whole entries",
    "report block cut": "blocks beyond the end",
    "report of nobody": SHORT,
    "arrivals of nothing": "not a transport-wide feedback, or one of nothing",
    "arrivals cut": SHORT,
    "statuses cut": SHORT,
    "reserved status": "packet status that is reserved",
    "deltas cut": "fewer deltas than packets",
    "sources missing": "another number of sources than it says",
}
EXCESSES = {"too many report blocks": "too many", "too many items": "too many"}
EVENTS = dict.fromkeys(
    ("no event", "event cut", "event of a group cut"), "payload of [0-9]+ octets"
)


def read_rtp(data):
    """Read with both readers."""
    assert fast.unpack(data) is None
    RtpPacket.parse(data)


@pytest.mark.parametrize(
    ("broken", "read", "reasons"),
    [
        (faults.broken(rtp_faults.RTP_FAULTS), read_rtp, RTP),
        (faults.broken(rtp_faults.COMPOUND_FAULTS), parse_compound, COMPOUNDS),
        (faults.broken(rtp_faults.RTCP_FAULTS), parse_compound, RTCP),
        (faults.broken(rtp_faults.FEEDBACK_FAULTS), parse_compound, FEEDBACK),
        (faults.broken(rtp_faults.EVENT_FAULTS), parse_events, EVENTS),
        (faults.broken(large.RTCP_EXCESSES), parse_compound, EXCESSES),
    ],
    ids=["RTP", "compound", "RTCP", "feedback", "telephone-event", "excess"],
)
def test_each_fault_is_refused(broken, read, reasons):
    """Covers RFC 3550 §5.1, §A.1, §A.2 and §6.4 to §6.7, RFC 4585 §6.1 and RFC 4733 §2.3.

    Covers RFC 5104 §4.2.1.1 and RFC 3611 §2 and §3.
    """
    refused(broken, read, RemoteError, reasons)
