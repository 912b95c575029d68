"""Tools for those who write SIP, RTP, RTMP or RTMFP: explain, lint, oracle, conform, load.

Own design: the tools show and watch the source of what reads a field, so the families are read
from their sources here, also where they are compiled.
"""

import p2psip.compiled
import rtmplite.compiled

__version__ = "0.1.0"

p2psip.compiled.read_sources(p2psip.__path__)
rtmplite.compiled.read_sources(rtmplite.__path__)
rtmplite.compiled.obey_environment(__path__)  # `load` counts in C
