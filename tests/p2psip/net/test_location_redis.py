"""Rows of bindings in Redis, without a Redis: what is written is read, and what was before."""

import json

from p2psip.net.location_redis import RedisLocation
from p2psip.server.location import Binding
from p2psip.sip.address import Address
from p2psip.transaction.flow import Flow

FLOW = Flow("UDP", ("10.0.0.3", 5060), ("10.0.0.1", 5060))
DEVICE = '+sip.instance="<urn:uuid:1>"'


def binding(**more):
    contact = Address.parse(f"<sip:b@x>;{DEVICE};reg-id=2")
    return Binding(contact, FLOW, "call", 7, 3600.0, **more)


def test_flows_and_paths_are_kept_and_rows_of_before_are_read():
    store = RedisLocation("redis://127.0.0.1:1/0", lambda *event: None, clock=lambda: 1000.0)
    path = Address.parse_list("<sip:a@10.0.0.8;lr;ob>, <sip:b@far;lr>")
    kept = [binding(), binding(reg_id=2), binding(path=path), binding(reg_id=1, path=path)]
    store.keep(("b", "home"), {("b", "home"): kept}, 0.0)
    rows = store._wanted["b", "home"]
    assert list(rows) == ["sip:b@x", "urn:uuid:1;2", "urn:uuid:1;1"]
    assert store._bindings(rows, 0.0) == [kept[2], kept[1], kept[3]]  # the third took a name
    old = store._row(kept[0], 1000.0)
    assert len(json.loads(old)) == 6 and store._bindings({"": old}, 0.0) == [kept[0]]
    broken = [json.dumps([*json.loads(old), 1, 7]), json.dumps([*json.loads(old), 1, ["<x"]])]
    assert store._bindings(dict(zip("ab", broken, strict=True)), 0.0) == []


def test_the_number_of_a_device_is_kept_and_written_again_when_it_changes():
    """Covers RFC 5627 §5.4: by it the registrar knows a temporary GRUU again."""
    store = RedisLocation("redis://127.0.0.1:1/0", lambda *event: None, clock=lambda: 1000.0)
    for number in ("00ff" * 4, "ff00" * 4):  # by another flow's REGISTER, so of the same version
        kept = [binding(gruu=number), binding(reg_id=2, gruu=number)]
        store.keep(("b", "home"), {("b", "home"): kept}, 0.0)
        assert store._bindings(store._wanted["b", "home"], 0.0) == kept
    before = json.dumps(json.loads(store._row(kept[1], 1000.0))[:8])
    assert [each.gruu for each in store._bindings({"": before}, 0.0)] == [""]
