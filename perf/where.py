"""`python perf/where.py PROFILE...`: where the time of RTMFP goes, from what --profile wrote.

The time of each function itself goes to its part of the work, and that of built-in ones to the part
that called them. Waiting in the loop is left out, so the shares are of the work.
"""

import pstats
import sys
from collections import Counter
from pathlib import Path
from typing import Any

WAITING = "serve", "sleep", "main", "run", "exec", "wait", "<module>"
SYSTEM_CALLS = "sendto", "recvfrom", "sendmsg", "'send' of", "'recv' of"
PARTS = {
    "AES": ("_mode_cbc", "_mode_ecb", "_raw_api", "ctypes", "cipher"),
    "HMAC": ("hmac",),
    "packets, chunks": ("wire", "packet", "fast_path", "vlu", "checksum", "chunks", "acks",
                        "option", "flow_chunks", "control_chunks"),
    "flows": ("send_flow", "send_queue", "send_side", "flight", "recv_flow", "recv_side",
              "sequence_set"),
    "session": ("session", "congestion", "rtt", "keepalive", "path_mtu", "mobility", "closing"),
    "endpoint, socket": ("endpoint", "schedule", "held", "rtmfp_port", "rtmfp_server"),
    "connection, streams": ("flow_connection", "lanes", "outlet", "barriers", "streams", "tracks"),
}  # fmt: skip
Function = tuple[str, int, str]


def part(function: Function) -> str:
    """To which part of the work a function belongs; a built-in one to none."""
    file, _, name = function
    if file == "~":
        if any(word in name for word in SYSTEM_CALLS):
            return "system calls"
        return "HMAC" if "HMAC" in name else ""
    stem = Path(file).parent.name if file.endswith("__init__.py") else Path(file).stem
    return next((title for title, stems in PARTS.items() if stem in stems), "others")


def shares(path: str) -> Counter[str]:
    """Seconds by part."""
    found = Counter[str]()
    # function: calls, calls without recursion, own seconds, seconds, the same by caller
    stats: dict[Function, Any] = pstats.Stats(path).stats  # type: ignore[attr-defined]
    for function, (_, _, own, _, callers) in stats.items():
        if function[2] in WAITING or "exec" in function[2]:
            continue
        if title := part(function):
            found[title] += own
            continue
        for caller, (_, _, seconds, _) in callers.items():
            found[part(caller) or "others"] += seconds
    return found


def main(paths: list[str]) -> None:
    """Print a line per part, a column per profile."""
    columns = [shares(path) for path in paths]
    print(f"{'':20}", *(f"{Path(path).name[-14:]:>14}" for path in paths))
    for title in ("system calls", *PARTS, "others"):
        each = (column[title] / max(column.total(), 1e-9) for column in columns)
        print(f"{title:20}", *(f"{share:14.0%}" for share in each))


if __name__ == "__main__":
    main(sys.argv[1:])
