"""The workers of a gateway under test: their processes, their log lines, and clients of one."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.gateway.gateway import Gateway

TRIES = 24  # clients, of which the system gives each worker half


def workers_of(gateway: Gateway) -> list[int]:
    """The processes of the workers, in the order they were started."""
    pid = gateway.child.pid
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def lines(gateway: Gateway, event: str) -> list[str]:
    """The log lines of an event."""
    return [line for line in gateway.output.splitlines() if f" siprtmp {event} " in line]


def worker_in(line: str) -> int:
    """The worker that has written a line."""
    found = re.search(r" worker=(\d+)", line)
    assert found, line
    return int(found[1])


def one_at(gateway: Gateway, worker: int, event: str, begin: Callable[[], Any]) -> Any:
    """Begin clients until one has reached this worker; the others are stopped."""
    for _ in range(TRIES):
        known = len(lines(gateway, event))
        client = begin()
        gateway.wait_until(lambda: len(lines(gateway, event)) > known, what=event)  # noqa: B023
        if worker_in(lines(gateway, event)[known]) == worker:
            return client
        client.stop()
    pytest.fail(f"{TRIES} clients, and none has reached worker {worker}")
