"""Cases for servers to which pages and encoders publish by WHIP."""

from rtclab.conform.case import Suite
from rtclab.conform.web import sessions
from rtclab.conform.web.peer import connecting, reaching
from rtclab.conform.whip import ingest

_reach, _alive = reaching("sendonly")

SUITE = Suite(
    cases=(*sessions.WHIP.all, *ingest.cases.all),
    connect=connecting("sendonly"),
    reach=_reach,
    alive=_alive,
    target="the URL of an endpoint, such as http://TOKEN@192.0.2.1:8080/live/conform/whip",
    at_once=1,
)
