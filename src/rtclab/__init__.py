"""Tools for those who write SIP, RTP, RTMP or RTMFP: explain, lint, oracle, conform.

Own design: the tools show and watch the source of what reads a field, so the families are read
from their sources here, also where they are compiled.
"""

import os
from importlib import import_module

__version__ = "0.1.0"

_chosen = os.environ.get("SIPRTMP_PURE")
os.environ["SIPRTMP_PURE"] = "1"
for _family in ("p2psip", "rtmplite"):
    import_module(_family)
if _chosen is None:
    del os.environ["SIPRTMP_PURE"]  # programs that a tool starts run as they would without it
else:
    os.environ["SIPRTMP_PURE"] = _chosen
