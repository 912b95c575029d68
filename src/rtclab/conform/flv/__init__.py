"""Cases for FLV, in a file or by HTTP."""

from rtclab.conform.case import Suite
from rtclab.conform.flv import codecs, layout, script
from rtclab.conform.flv.peer import FlvTargets

_TARGETS = FlvTargets()
SUITE = Suite(
    cases=tuple(case for module in (layout, script, codecs) for case in module.cases.all),
    connect=_TARGETS.connect,
    reach=_TARGETS.reach,
    target="a file, or the URL of one or of a stream, such as http://192.0.2.1:8080/live/x.flv",
    timeout=30,
    alive=lambda target: None,  # what was read stays
)
