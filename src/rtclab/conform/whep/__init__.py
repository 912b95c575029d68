"""Cases for servers from which pages play by WHEP."""

from rtclab.conform.case import Suite
from rtclab.conform.web import sessions
from rtclab.conform.web.peer import connecting, reaching
from rtclab.conform.whep import playback

_reach, _alive = reaching("recvonly")

SUITE = Suite(
    cases=(*sessions.WHEP.all, *playback.cases.all),
    connect=connecting("recvonly"),
    reach=_reach,
    alive=_alive,
    target="the URL of a stream that is live, such as http://192.0.2.1:8080/live/conform/whep",
    at_once=1,
)
