"""The parsers of the SIP family, and what the strategies draw for them."""

from support.reach.reading import Family, of_oracle

from p2psip.nat import stun
from p2psip.rtp import (
    extended_report,
    fast,
    feedback,
    packet,
    rtcp,
    rtcp_frame,
    source_description,
    voip_metrics,
)
from p2psip.sdp import line, session
from p2psip.sip import (
    address,
    grammar,
    headers,
    message,
    message_limits,
    params,
    uri,
    via,
    views,
)

_PARSERS = (
    *(address, grammar, headers, message, message_limits, params, uri, via, views),
    *(line, session),
    *(packet, fast, rtcp, rtcp_frame, feedback, extended_report, source_description, voip_metrics),
    stun,
)

FAMILY = Family(_PARSERS, of_oracle("sip", "sdp", "rtp", "rtcp", "stun"))
