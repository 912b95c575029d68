"""Cases for servers of a tree of resources, each by plain HTTP and by WebSocket where it can be."""

from collections.abc import Sequence
from typing import Final

from rtclab.conform.case import ConformCase, Suite
from rtclab.conform.resource import (
    conditions,
    lifetime,
    limits,
    messages,
    methods,
    names,
    plain_http,
    rights,
    subscriptions,
    urls,
)
from rtclab.conform.resource.peer import cases, connecting, reach
from rtclab.conform.resource.service import PostService

_PARTS: Final = (
    *(methods, conditions, names, rights, messages),
    *(subscriptions, lifetime, limits, plain_http, urls),
)


def _suite(proofs: Sequence[str] = (), place: tuple[str, int] | None = None) -> Suite:
    """The suite with these users, and with a web service at this place if there is one."""
    service = None if place is None else PostService(place)

    def leave(target: str, run: Sequence[ConformCase]) -> None:
        if service is not None:
            service.stop()

    return Suite(
        cases=tuple(
            each for part in _PARTS for each in cases.all if each.run.__module__ == part.__name__
        ),
        connect=connecting(*proofs, service=service),
        reach=reach,
        target="the URL of a tree, such as http://192.0.2.1:8080/tree",
        at_once=1,
        timeout=10.0,
        leave=leave,
        with_users=lambda users: _suite(users, place),
        with_webhook=lambda at: _suite(proofs, at),
    )


SUITE = _suite()
