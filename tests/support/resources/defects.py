"""The defects of a tree that the cases of resources have to find, and how to plant them."""

from rtclab.conform.resource import SUITE
from siprtmp.web.resources import http, session
from siprtmp.web.resources.subscriptions import Event

DEFECTS = {}
NAMES = {case.name for case in SUITE.cases}


def found_by(*cases):
    """The function below breaks the tree; the cases that find it, by both ways if they have two."""
    names = [
        name
        for case in cases
        for name in (case, f"{case}_by_http", f"{case}_by_websocket")
        if name in NAMES
    ]
    return lambda defect: DEFECTS.setdefault(defect.__name__, (defect, names))


def changed(patch, owner, name, change):
    """Have what a function returns changed by `change(result, *arguments)`."""
    original = getattr(owner, name)
    patch.setattr(owner, name, lambda *args, **more: change(original(*args, **more), *args, **more))


def tells(patch, change):
    """Have each notification changed by `change(message, event)`."""
    changed(patch, Event, "message", lambda said, event, **_: change(said, event))


def answers(patch, change):
    """Have each answer changed by `change(reply, request)`."""
    for module in (http, session):
        changed(patch, module, "answer", lambda reply, _, request, __: change(reply, request))
