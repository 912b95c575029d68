"""The memory that a session may take at the most, under any behaviour of the far end.

Own design: RFC 7016 §5 asks for limits and names few numbers.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SessionLimits:
    """The limits of one session, and the consequence of exceeding each.

    `datagram_bytes` the largest datagram sent, until `mtu_probes` find that a larger one passes
    `mtu_probes`     larger sizes to try, ascending; only for sockets that forbid fragmentation
    `queued_bytes`   bytes that wait in all sending flows; more: the session is aborted
    `flight_span`    sequence numbers between a flow's oldest unacknowledged and its newest sent
                     fragment; more: nothing new is sent on that flow
    `flows`          receiving flows, lingering ones included; more: the session is aborted
    `metadata_bytes` length of a receiving flow's metadata; more: the flow is rejected
    `buffer_bytes`   BUFFER_CAPACITY of a receiving flow (RFC 7016 §3.6.3.5); a fragment beyond is
                     forgotten as if it were lost
    `session_buffer_bytes`  the same of all receiving flows together
    `message_bytes`  length of one received message; more: the flow is rejected
    `gaps`           holes in the numbers of a receiving flow; a fragment that would make one more
                     is forgotten as if it were lost
    `keepalive`      seconds without a packet after which a Ping asks the far end for one
    `silence_timeout`  seconds without a packet after which the session is aborted:
                     RFC 7016 §3.5.4.1
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
    silence_timeout: float = 120.0
