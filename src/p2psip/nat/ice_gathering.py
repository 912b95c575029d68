"""The candidates that an agent has itself: of its addresses, and of those that its peer sees.

Implements RFC 8445 §5.1.1.3 and §5.1.2.1, and RFC 6544 §4.1, §4.2 and §4.5 for those of TCP.

    >>> base = "192.0.2.1", 9000
    >>> str(tcp_candidate([], TcpType.PASSIVE, base, CandidateType.HOST, base)[0])
    '1 1 TCP 1621098495 192.0.2.1 9000 typ host tcptype passive'
"""

from collections.abc import Sequence

from p2psip.errors import LocalError
from p2psip.nat.ice_candidate import (
    ACTIVE_PORT,
    COMPONENT,
    MAX_OTHER,
    MAX_PREFERENCE,
    CandidateType,
    HostPort,
    IceBase,
    IceCandidate,
    TcpBase,
    TcpType,
    priority,
    tcp_preference,
)

Gathered = tuple[IceCandidate, IceBase]


def udp_candidate(
    before: Sequence[Gathered],
    address: HostPort,
    kind: CandidateType,
    base: HostPort,
    component: int = COMPONENT,
) -> IceCandidate:
    """The candidate of an address for UDP, after those that there are: RFC 8445 §5.1.2.1."""
    alike = [each for each, _ in before if each.type is kind and not each.is_tcp]
    return IceCandidate(
        _foundation(before, "UDP", kind, base[0]),
        component,
        "UDP",
        # RFC 8445 §5.1.2.1 [local-preferences-are-unique] [one-address-is-65535]
        priority(kind, MAX_PREFERENCE - len(alike), component=component),
        *address,
        kind,
        None if kind is CandidateType.HOST else base,
    )


def tcp_candidate(
    before: Sequence[Gathered],
    direction: TcpType,
    address: HostPort,
    kind: CandidateType,
    base: HostPort,
    component: int = COMPONENT,
) -> tuple[IceCandidate, TcpBase]:
    """The candidate of an address for TCP, and its base: RFC 6544 §4.5.

    LocalError for simultaneous open.
    """
    if direction is TcpType.SIMULTANEOUS_OPEN:
        raise LocalError("ICE by simultaneous open of TCP is not supported")
    host, port = base
    if direction is TcpType.ACTIVE:
        # RFC 6544 §4.1 [active-placeholders], §4.5 [active-has-its-address] [active-port-is-9]
        address, port = (address[0], ACTIVE_PORT), ACTIVE_PORT
    alike = [each for each, _ in before if (each.type, each.tcp_type) == (kind, direction)]
    # RFC 6544 §4.2 [other-preference-is-unique] [one-address-has-8191]
    preference = tcp_preference(kind, direction, MAX_OTHER - len(alike))
    candidate = IceCandidate(
        _foundation(before, "TCP", kind, host),
        component,
        "TCP",
        priority(kind, preference, is_tcp=True, component=component),
        *address,
        kind,
        None if kind is CandidateType.HOST else (host, port),
        (("tcptype", direction.value),),  # RFC 6544 §4.5 [transport-is-tcp]
    )
    return candidate, TcpBase(host, port, direction)


def reflexive_priority(local: IceCandidate) -> int:
    """The priority that a candidate has if the peer sees another address of it: RFC 8445 §7.1.1."""
    preference = local.priority >> 8 & MAX_PREFERENCE
    kind, component = CandidateType.PEER_REFLEXIVE, local.component
    return priority(kind, preference, is_tcp=local.is_tcp, component=component)


def reflexive_candidate(
    before: Sequence[Gathered], mapped: HostPort, local: IceCandidate, base: IceBase
) -> IceCandidate:
    """The candidate of an address that the peer sees `local` at: RFC 8445 §7.2.5.3.1."""
    return IceCandidate(
        f"r{len(before)}", local.component, local.transport, reflexive_priority(local), *mapped,
        CandidateType.PEER_REFLEXIVE, (base[0], base[1]), local.more,
    )  # fmt: skip


def learnt_candidate(name: str, near: IceCandidate, rank: int, source: HostPort) -> IceCandidate:
    """The candidate of a peer that a check came from, to `near`: RFC 8445 §7.3.1.3."""
    more = (("tcptype", TcpType.ACTIVE.value),) if near.is_tcp else ()
    return IceCandidate(
        name,
        near.component,
        near.transport,
        rank,
        *source,
        CandidateType.PEER_REFLEXIVE,
        None,
        more,
    )


def _foundation(before: Sequence[Gathered], transport: str, kind: CandidateType, host: str) -> str:
    """Give candidates of one type, transport and base host the same: RFC 8445 §5.1.1.3."""
    keys = list(dict.fromkeys((e.transport, e.type, of[0]) for e, of in before))
    key = transport, kind, host
    return str(1 + (keys.index(key) if key in keys else len(keys)))
