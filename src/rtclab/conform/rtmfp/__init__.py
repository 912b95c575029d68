"""Cases for responders of RTMFP, and for servers of its Flash profile."""

from rtclab.conform.case import Suite
from rtclab.conform.rtmfp import (
    acknowledging,
    connection,
    opening,
    packets,
    protection,
    receiving,
    rejecting,
    sending,
    sessions,
    streams,
)
from rtclab.conform.rtmfp.peer import alive, connect, reach

SUITE = Suite(
    cases=tuple(
        case
        for module in (
            *(packets, protection, opening, sessions),
            *(receiving, acknowledging, rejecting, sending),
            *(connection, streams),
        )
        for case in module.cases.all
    ),
    connect=connect,
    reach=reach,
    alive=alive,
    target="an RTMFP URL, such as rtmfp://192.0.2.1:1935/live",
)
