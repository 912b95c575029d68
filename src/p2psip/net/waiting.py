"""Waiting for a result, with a time limit.

Own design: `TimeoutError` is Python's word for it; gevent's own is no `Exception`.
"""

from typing import TypeVar, cast

import gevent
from gevent.event import AsyncResult

T = TypeVar("T")


def result_of(result: "AsyncResult[T]", timeout: float | None, failure: str) -> T:
    """Wait for a result; raises its exception, or TimeoutError with the words of `failure`."""
    try:
        return cast(T, result.get(timeout=timeout))
    except gevent.Timeout:
        raise TimeoutError(f"{failure} within {timeout:g} s") from None
