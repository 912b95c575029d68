"""The events for a web service: in order, signed, tried again, and never too many."""

import hmac
import json
from hashlib import sha256

import pytest

from siprtmp.web.branches.webhooks import Webhook
from siprtmp.web.resources.deliveries import MAX_OCTETS, MAX_TRIES, MAX_WAITING, Deliveries

EVENTS = ("ringing", "ended")


class Rig:
    def __init__(self):
        self.said = []
        self.hook = Deliveries("secret", lambda *what: self.said.append(what))
        self.webhook = Webhook(self.hook, EVENTS, bytes)

    def add(self, event="ringing", **values):
        self.webhook.add({"event": event, **values}, "2026-01-02T03:04:05.678+00:00")


@pytest.fixture
def rig():
    return Rig()


def test_events_are_delivered_in_order_one_at_a_time(rig):
    rig.add(call={"id": "a"})
    rig.add("digit", digits="5")  # which this service does not hear of
    rig.add("ended")
    first = rig.hook.due(0.0, 1000.5)
    assert json.loads(first.body) == {
        "id": "00" * 12,
        "at": "2026-01-02T03:04:05.678+00:00",
        "event": "ringing",
        "call": {"id": "a"},
    }
    assert rig.hook.due(0.0, 1000.5) is None and rig.hook.deadline is None
    rig.hook.answered("", 0.1)
    assert json.loads(rig.hook.due(0.1, 1000.5).body)["event"] == "ended"
    rig.hook.answered("", 0.2)
    assert rig.hook.deadline is None and not len(rig.hook) and not rig.said


def test_the_signature_is_of_the_time_and_the_content(rig):
    rig.add()
    delivery = rig.hook.due(0.0, 1000.5)
    digest = hmac.new(b"secret", b"1000." + delivery.body, sha256).hexdigest()
    assert delivery.signature == f"t=1000,v1={digest}"


def test_what_is_refused_is_tried_again_later_and_later_and_then_lost(rig):
    rig.add()
    rig.add("ended")
    now, waits = 0.0, []
    for _ in range(MAX_TRIES):
        assert json.loads(rig.hook.due(now, 0.0).body)["event"] == "ringing"
        rig.hook.answered("status 500", now)
        assert rig.hook.due(now, 0.0) is None or len(rig.hook) == 1
        waits.append(rig.hook.deadline - now if rig.hook.deadline else 0.0)
        now = max(now, rig.hook.deadline or now)
    assert waits[:4] == [1.0, 2.0, 4.0, 8.0] and max(waits) == 256.0
    assert rig.said == [("failed", "status 500"), ("lost", "status 500")]
    assert len(rig.hook) == 1  # the next one goes on


def test_the_oldest_gives_way_but_not_the_one_under_way(rig):
    for i in range(MAX_WAITING):
        rig.add(number=i)
    under_way = rig.hook.due(0.0, 0.0)
    rig.add(number="new")
    assert len(rig.hook) == MAX_WAITING and rig.said == [("lost", "too many wait")]
    assert json.loads(under_way.body)["number"] == 0
    rig.hook.answered("", 0.0)
    assert json.loads(rig.hook.due(0.0, 0.0).body)["number"] == 2


def test_the_oldest_gives_way_to_much_content(rig):
    for i in range(3):
        rig.add(text=f"{i}" * (MAX_OCTETS // 3))
    assert len(rig.hook) == 2 and rig.said == [("lost", "too many wait")]
    assert json.loads(rig.hook.due(0.0, 0.0).body)["text"][0] == "1"
