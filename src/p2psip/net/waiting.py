"""Waiting for a result, with a time limit.

Own design: `TimeoutError` is Python's word for it; gevent's own does not inherit from `Exception`.
"""

import logging
from collections.abc import Callable
from typing import Final, TypeVar, cast

import gevent
from gevent.event import AsyncResult

from p2psip.errors import RemoteError
from p2psip.net.clock import monotonic
from p2psip.sip.message import Response
from p2psip.ua.registering.registration import Registration
from p2psip.ua.requests.authenticated_request import AuthenticatedRequest

T = TypeVar("T")
POLL_SECONDS: Final = 0.02  # s between looks at a condition that no event announces
log: Final = logging.getLogger(__name__)


def result_of(result: "AsyncResult[T]", timeout: float | None, failure: str) -> T:
    """Wait for a result; raises its exception, or TimeoutError with the words of `failure`."""
    try:
        return cast(T, result.get(timeout=timeout))
    except gevent.Timeout:
        raise TimeoutError(f"{failure} within {timeout:g} s") from None


class FinalAnswer:
    """Waits for the final answer to one request: RFC 3261 §8.1.3."""

    def __init__(self) -> None:
        self.answer: AsyncResult[Response] = AsyncResult()

    def on_response(self, exchange: AuthenticatedRequest, response: Response, now: float) -> None:
        """Take a response: RFC 3261 §8.1.3."""
        self.heard(response, now)

    def heard(self, response: Response, now: float) -> None:
        """Take a response; a provisional one changes nothing: RFC 3261 §8.1.3."""
        if 200 <= response.status < 300:
            self.answer.set(response)
        elif response.status >= 300:
            self.answer.set_exception(RemoteError(response.reason, response.status))


class Registered:
    """Waits for the registrar's first answer: RFC 3261 §10.2."""

    def __init__(self, granted: "AsyncResult[int]") -> None:
        self._granted = granted

    def on_registered(self, registration: Registration, expires: int, now: float) -> None:
        """Take the first success, and log later ones: RFC 3261 §10.2.4."""
        if self._granted.ready():
            log.info("registered again")
        else:
            self._granted.set(expires)

    def on_failed(self, registration: Registration, status: int, reason: str, now: float) -> None:
        """Take the first failure, and log later ones: RFC 3261 §10.2.7."""
        if self._granted.ready():
            log.warning("no longer registered: %d %s", status, reason)
        else:
            self._granted.set_exception(RemoteError(reason, status))


def wait_until(condition: Callable[[], bool], timeout: float) -> bool:
    """Wait for a condition that no event announces; False if time runs out first."""
    end = monotonic() + timeout
    while not condition():
        if monotonic() > end:
            return False
        gevent.sleep(POLL_SECONDS)
    return True
