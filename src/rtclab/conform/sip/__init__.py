"""Cases for user agent servers, registrars and proxies of SIP."""

from rtclab.conform.case import Suite
from rtclab.conform.sip import (
    calls,
    forks,
    proxy,
    registrar,
    streams,
    syntax,
    transactions,
    uas,
)
from rtclab.conform.sip.peer import alive, connect, reach

SUITE = Suite(
    cases=tuple(
        case
        for module in (uas, syntax, transactions, calls, streams, registrar, proxy, forks)
        for case in module.cases.all
    ),
    connect=connect,
    reach=reach,
    alive=alive,
    leave=registrar.leave,
    target="a SIP URI, such as sip:bob@192.0.2.1:5060",
)
