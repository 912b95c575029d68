"""Cases for servers of a tree of resources, each by plain HTTP and by WebSocket where it can be."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from rtclab.conform.case import Suite
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
)
from rtclab.conform.resource.peer import cases, connecting, reach

_PARTS: Final = (
    *(methods, conditions, names, rights, messages),
    *(subscriptions, lifetime, limits, plain_http),
)


def _with_users(proofs: Sequence[str]) -> Suite:
    return replace(SUITE, connect=connecting(*proofs))


SUITE = Suite(
    cases=tuple(
        each for part in _PARTS for each in cases.all if each.run.__module__ == part.__name__
    ),
    connect=connecting(),
    reach=reach,
    target="the URL of a tree, such as http://192.0.2.1:8080/tree",
    at_once=1,
    timeout=10.0,
    with_users=_with_users,
)
