"""How much a session may cost us, whatever the far end does.

Own design: the spec asks for limits (RFC 7016 §5) and names few numbers.  What each protects, and
what happens at it, stands beside it.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SessionLimits:
    """The numbers that bound one session: see `limits`.

    `datagram_bytes` the largest datagram we send, until `mtu_probes` find that more is possible
    `mtu_probes`     larger ones to try, ascending; for sockets that forbid fragmentation only
    `queued_bytes`   of all sending flows; more: the session is aborted
    `flight_span`    sequence numbers between a flow's oldest unacknowledged and its newest sent;
                     more: nothing new is sent on that flow
    `flows`          receiving flows, those that linger included; more: the session is aborted
    `metadata_bytes` of a receiving flow; more: the flow is rejected
    `buffer_bytes`   BUFFER_CAPACITY of a receiving flow: RFC 7016 §3.6.3.5; what comes beyond is
                     forgotten as if it were lost
    `session_buffer_bytes`  of all receiving flows together; treated likewise
    `message_bytes`  of one message; more: the flow is rejected
    `gaps`           in the numbers of a receiving flow; more: what makes them is forgotten
    `keepalive`      seconds without a packet after which the far end is asked for one
    `patience`       seconds without a packet after which it is given up: RFC 7016 §3.5.4.1
    """

    datagram_bytes: int = 1192
    mtu_probes: tuple[int, ...] = ()
    queued_bytes: int = 16 << 20
    flight_span: int = 8192
    flows: int = 1024
    metadata_bytes: int = 1024
    buffer_bytes: int = 1 << 20
    session_buffer_bytes: int = 8 << 20
    message_bytes: int = 4 << 20
    gaps: int = 256
    keepalive: float = 25.0
    patience: float = 120.0
