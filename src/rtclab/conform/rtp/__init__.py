"""Cases for the RTP and RTCP of a SIP phone, and how it handles the RTP and RTCP that we send."""

from rtclab.conform.case import Suite
from rtclab.conform.rtp import control, reports, robustness, sound
from rtclab.conform.rtp.peer import SharedCalls
from rtclab.conform.sip.peer import alive

_CALLS = SharedCalls()
SUITE = Suite(
    cases=tuple(
        case for module in (sound, control, reports, robustness) for case in module.cases.all
    ),
    connect=_CALLS.connect,
    reach=_CALLS.reach,
    alive=alive,
    target="a SIP URI of a phone that answers by itself, such as sip:bob@192.0.2.1:5060",
    timeout=30,
)
