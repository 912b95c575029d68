"""Cases for servers of RTMP, which clients publish to and play from."""

from rtclab.conform.case import Suite
from rtclab.conform.rtmp import (
    chunks,
    commands,
    control,
    enhanced,
    handshake,
    media,
    robustness,
    streams,
)
from rtclab.conform.rtmp.peer import alive, connect, reach

SUITE = Suite(
    cases=tuple(
        case
        for module in (
            handshake,
            chunks,
            control,
            commands,
            streams,
            media,
            enhanced,
            robustness,
        )
        for case in module.cases.all
    ),
    connect=connect,
    reach=reach,
    alive=alive,
    target="a URL of an application, such as rtmp://192.0.2.1/live",
)
