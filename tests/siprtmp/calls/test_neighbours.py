"""What workers tell each other of names, lines and phones, and what each makes of it."""

import json

import pytest

from siprtmp.calls import neighbours as module
from siprtmp.calls.neighbours import KnownHost, NameElsewhere, Neighbours, Phone

PHONE = Phone("TLS", "192.0.2.9", is_own=False)
KEY = ("alice", "home", None)


class Workers:
    """Some workers, whose messages are JSON on their way."""

    def __init__(self, count=3):
        self.all = [Neighbours(each, count, self.teller(each)) for each in range(count)]

    def teller(self, index):
        def tell(message):
            for each in self.all:
                if each.index != index:
                    self.give(each, index, message)

        return tell

    @staticmethod
    def give(to, sender, message):
        message = json.loads(json.dumps(message))
        to.handlers[message["do"]](sender, message)

    def restart(self, index):
        for each in self.all:
            each.lost(index)
        self.all[index] = Neighbours(index, len(self.all), self.teller(index))
        for each in self.all:
            if each.index != index:
                for message in each.greeting():
                    self.give(self.all[index], each.index, message)


@pytest.fixture
def workers():
    return Workers()


def test_a_busy_name_comes_first_and_then_the_lowest(workers):
    first, second, third = workers.all
    second.has_name("studio", None, is_busy=False)
    third.has_name("studio", frozenset({"bob@home"}), is_busy=True)
    assert first.names("studio") == [
        NameElsewhere(2, frozenset({"bob@home"}), is_busy=True),
        NameElsewhere(1, None, is_busy=False),
    ]
    assert first.holder_of("studio") == {"bob@home"}
    third.has_name_no_more("studio")
    assert [each.worker for each in first.names("studio")] == [1]
    assert first.holder_of("studio") is None


def test_a_line_elsewhere_is_known_until_it_has_gone(workers):
    """A client that logs in again elsewhere is another line; the end of the first means nothing."""
    first, second, third = workers.all
    told = []
    first.on_line = told.append
    second.has_line(KEY, "one", "192.0.2.7", frozenset({"x"}), is_proving=True)
    third.has_line(KEY, "two", "192.0.2.8", frozenset({"y"}), is_proving=False)
    second.has_line_no_more(KEY, "one")
    assert told == [KEY, KEY] and first.line(KEY).worker == 2
    assert first.holder_of("two") == {"y"} and first.holder_of("one") is None
    third.has_line_no_more(KEY, "two")
    assert first.line(KEY) is None


def test_a_worker_that_begins_hears_all_and_one_that_has_ended_has_nothing(workers):
    first, second, _ = workers.all
    first.has_phones(("bob", "home"), [PHONE])
    second.has_name("studio", None, is_busy=True)
    second.has_line(KEY, "one", "192.0.2.7", frozenset(), is_proving=False)
    workers.restart(2)
    third = workers.all[2]
    assert third.phones(("bob", "home")) == [PHONE]
    assert third.names("studio") and third.line(KEY) is not None
    workers.restart(1)
    assert not third.names("studio") and third.line(KEY) is None
    first.has_phones(("bob", "home"), [])
    assert not third.phones(("bob", "home"))


def test_what_is_the_same_is_told_once():
    told = []
    worker = Neighbours(1, 2, told.append)
    for _ in range(2):
        worker.has_name("studio", None, is_busy=False)
    worker.has_name_no_more("studio")
    worker.has_name_no_more("studio")
    assert [message["do"] for message in told] == ["name", "name-gone"]


def test_alone_it_tells_nothing():
    told = []
    worker = Neighbours(tell=told.append)
    worker.has_name("studio", None, is_busy=True)
    worker.registers("call", "192.0.2.7")
    assert not told and worker.is_first and not worker.mark and not worker.contact_params


def test_what_clients_and_hosts_are_remembered_for_is_bounded(workers, monkeypatch):
    monkeypatch.setattr(module, "MAX_HOSTS", 5)
    monkeypatch.setattr(module, "MAX_CALL_IDS", 5)
    first, second, _ = workers.all
    for number in range(9):
        second.registers(f"call{number}", "192.0.2.7")
        first.meet(f"192.0.2.{number}", KnownHost(has_phone=True, is_trunk=False))
    assert first.origin("call0") is None and first.origin("call8") == "192.0.2.7"
    assert first.known("192.0.2.0") is None and first.known("192.0.2.8").has_phone
