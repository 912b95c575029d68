"""The status figures of an RTMFP endpoint."""

from typing import Final

from rtmplite.rtmfp.endpoint.endpoint import Endpoint

NAMES: Final = (
    *("sessions", "unproven", "closing", "openings", "keyings", "flows"),
    *("buffered", "reassemblies", "relayed", "ignored", "invalid", "evicted"),
)
NONE: Final = dict.fromkeys(NAMES, 0)


def figures(endpoint: Endpoint, relayed: int = 0) -> dict[str, int]:
    """The figures by `NAMES`; the last three count since the start.

    `relayed` is the number of clients that the server's relay stands for.
    """
    open_ones = [held for held in endpoint.table if held.is_open]
    sessions = [held.session for held in open_ones]
    return {
        "sessions": len(sessions),
        "unproven": sum(not held.is_proven for held in open_ones),
        "closing": len(endpoint.table) - len(sessions),
        "openings": len(endpoint.openings),
        "keyings": endpoint.keyings_in_work,
        "flows": sum(len(each.send_flows) + len(each.recv_flows) for each in sessions),
        "buffered": endpoint.budget.used,
        "reassemblies": endpoint.packets.reassembling,
        "relayed": relayed,
        "ignored": endpoint.ignored.total(),
        "invalid": endpoint.invalid,
        "evicted": endpoint.budget.evicted,
    }
