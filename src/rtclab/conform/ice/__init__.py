"""Cases for the ICE of a server of WHIP, full or lite, whose answers have its credentials."""

from rtclab.conform.case import Suite
from rtclab.conform.ice import checks, credentials, errors, messages
from rtclab.conform.ice.peer import connect
from rtclab.conform.web.peer import reaching

_reach, _alive = reaching("sendonly")

SUITE = Suite(
    cases=tuple(
        case for module in (credentials, checks, messages, errors) for case in module.cases.all
    ),
    connect=connect,
    reach=_reach,
    alive=_alive,
    target="the URL of a WHIP endpoint, such as http://192.0.2.1:8080/live/conform/whip",
    at_once=1,
)
