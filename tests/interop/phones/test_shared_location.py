"""Registrars that share their bindings through a real Redis, which dies and comes back."""

import os
import socket
from contextlib import suppress

import gevent
import pytest
from gevent.queue import Queue
from interop.phones.test_registrar import Place
from support.limits import Clock, patience
from support.peers.process import free_port
from support.peers.redis_server import RedisServer
from support.peers.sip_server import SipServer
from support.sip.cores import TakesAll

from p2psip.agent import Agent
from p2psip.errors import RemoteError
from p2psip.net.clock import monotonic
from p2psip.net.location_redis import CHANNEL, PREFIX, RedisLocation
from p2psip.net.phone.settings import Account
from p2psip.server.domains import Domains
from p2psip.server.registrar import Registrar
from p2psip.sip.message import parse_message
from p2psip.sip.uri import Uri
from p2psip.stack.stack import Flow, Listener, Send, Stack
from siprtmp import __main__

MESSAGE = (
    b"MESSAGE sip:bob@127.0.0.1 SIP/2.0\r\nVia: SIP/2.0/UDP ADDRESS;branch=z9hG4bKNNN;rport\r\n"
    b"From: <sip:eve@elsewhere.invalid>;tag=NNN\r\nTo: <sip:bob@127.0.0.1>\r\nCall-ID: NNN\r\n"
    b"CSeq: 1 MESSAGE\r\nMax-Forwards: 70\r\nContent-Length: 0\r\n\r\n"
)
BOB = Uri.parse("sip:bob@example.com")


class Node(TakesAll):
    """A registrar of example.com with its store; phones register by `register`."""

    def __init__(self, port, host, transport="UDP"):
        self.told, self.cseq, self.host = [], 0, host
        self.stack = Stack(
            random=os.urandom,
            listeners=[Listener("UDP", host, 5060), Listener("TCP", host, 5060)],
            hosts=["example.com"],
            trusting=True,
        )
        self.store = RedisLocation(
            f"redis://127.0.0.1:{port}/0", lambda what, reason: self.told.append(what)
        )
        domains = Domains(["example.com"], self.stack.is_own_address, distinct=False)
        self.registrar = Registrar(domains, None, self.stack, os.urandom, store=self.store)
        self.stack.core = self
        self.registrar.restore(monotonic())
        self.store.follow(self.registrar.adopt)

    def on_request(self, server, request, now):
        self.registrar.on_register(server, request, now)

    def register(self, phone, expires=600, transport="UDP", port=5060):
        """A REGISTER of the phone at this address; the contacts of the answer."""
        self.cseq += 1
        text = (
            f"REGISTER sip:example.com SIP/2.0\r\n"
            f"Via: SIP/2.0/{transport} {phone};branch=z9hG4bK{phone}{self.host}{self.cseq}\r\n"
            f"From: <{BOB}>;tag={phone}\r\nTo: <{BOB}>\r\nCall-ID: {phone}@{self.host}\r\n"
            f"CSeq: {self.cseq} REGISTER\r\nContact: <sip:bob@{phone}>;expires={expires}\r\n\r\n"
        )
        flow = Flow(transport, (phone, port), (self.host, 5060))
        self.stack.receive(text.encode(), flow, monotonic())
        sent = [order.data for order in self.stack.take_orders() if isinstance(order, Send)]
        answer = parse_message(sent[0])
        assert answer.status == 200
        return {contact.uri.host for contact in answer.contacts}

    @property
    def phones(self):
        """Where bob would be called."""
        return {each.contact.uri.host for each in self.registrar.bindings(BOB, monotonic())}


def eventually(condition):
    with patience():
        while not condition():
            gevent.sleep(0.01)


@pytest.fixture
def node():
    nodes = []

    def make(*args):
        nodes.append(Node(*args))
        return nodes[-1]

    yield make
    for each in nodes:
        each.store.close()


def test_what_one_registers_the_other_calls(start, node):
    """Covers RFC 3261 §10.3: new contacts, a removed one, a phone that moves, and a late comer."""
    port = start(RedisServer).port
    a, b = node(port, "192.0.2.1"), node(port, "192.0.2.2")
    a.register("198.51.100.1")
    assert a.phones == {"198.51.100.1"}
    eventually(lambda: b.phones == {"198.51.100.1"})
    assert b.register("198.51.100.2") == {"198.51.100.1", "198.51.100.2"}
    eventually(lambda: a.phones == {"198.51.100.1", "198.51.100.2"})
    b.register("198.51.100.1", expires=0)  # the phone says goodbye to the other one
    eventually(lambda: a.phones == {"198.51.100.2"})
    late = node(port, "192.0.2.3")
    assert late.phones == {"198.51.100.2"}
    a.register("198.51.100.2", expires=0)
    eventually(lambda: not b.phones and not late.phones)
    assert a.told == b.told == late.told == []


def test_a_connection_to_one_is_of_no_use_to_the_other(start, node):
    """Covers RFC 5626 §5.3: the other must not take it away either."""
    port = start(RedisServer).port
    a, b = node(port, "192.0.2.1"), node(port, "192.0.2.2")
    a.register("198.51.100.1", transport="TCP")
    b.register("198.51.100.2")
    eventually(lambda: a.phones == {"198.51.100.1", "198.51.100.2"})
    b.register("198.51.100.3")
    eventually(lambda: len(a.phones) == 3)
    assert b.phones == {"198.51.100.2", "198.51.100.3"}


def both_listen(a, b):
    eventually(lambda: a.store._writer.pubsub_numsub(CHANNEL)[0][1] == 2)


def while_reading(node, act):
    """Have a node read, and `act` done between the answer of Redis and the node's next step."""
    asked = node.store._writer.hgetall

    def hgetall(key):
        rows = asked(key)
        node.store._writer.hgetall = asked
        act()
        return rows

    node.store._writer.hgetall = hgetall
    node.store._to_read["bob", "example.com"] = None
    node.store._news.set()


def test_what_changes_while_a_node_reads_is_read_as_well(start, node):
    """Own design: else it would be known only after the next change."""
    port = start(RedisServer).port
    a, b = node(port, "192.0.2.1"), node(port, "192.0.2.2")

    def b_changes():
        a.store._to_read.clear()
        b.register("198.51.100.2")
        eventually(lambda: a.store._to_read)  # it has heard of this change

    both_listen(a, b)
    b.register("198.51.100.1")
    eventually(lambda: a.phones == {"198.51.100.1"})
    while_reading(a, b_changes)
    eventually(lambda: a.phones == {"198.51.100.1", "198.51.100.2"})


def test_what_registers_while_a_node_reads_is_written(start, node):
    """Own design: reading must not go round and round before what is to be written."""
    port = start(RedisServer).port
    a, b = node(port, "192.0.2.1"), node(port, "192.0.2.2")
    both_listen(a, b)
    b.register("198.51.100.1")
    while_reading(a, lambda: a.register("198.51.100.2"))
    eventually(lambda: a.phones == b.phones == {"198.51.100.1", "198.51.100.2"})


def test_redis_is_killed_and_comes_back_with_nothing(start, node):
    """Covers RFC 3261 §10.3: nobody waits, and all is there again, what came meanwhile as well."""
    redis = start(RedisServer)
    a, b = node(redis.port, "192.0.2.1"), node(redis.port, "192.0.2.2")
    a.register("198.51.100.1")
    b.register("198.51.100.2")
    both = {"198.51.100.1", "198.51.100.2"}
    eventually(lambda: a.phones == b.phones == both)
    redis.child.kill()
    redis.child.wait()
    assert a.register("198.51.100.3") == {*both, "198.51.100.3"}
    eventually(lambda: a.told == b.told == ["state-unwritable"])
    b.register("198.51.100.2", expires=0)
    assert a.phones == {*both, "198.51.100.3"} and b.phones == {"198.51.100.1"}
    start(RedisServer, redis.port)
    eventually(lambda: a.told == b.told == ["state-unwritable", "state-written"])
    eventually(lambda: {"198.51.100.1", "198.51.100.3"} <= b.phones)
    late = node(redis.port, "192.0.2.3")
    eventually(lambda: late.phones == {"198.51.100.1", "198.51.100.3"} == a.phones)


def test_a_redis_that_is_not_there_holds_nobody_up(node, monkeypatch):
    """Covers RFC 3261 §10.3: the registrar serves from memory, and nothing stops the loop."""
    monkeypatch.setattr("redis.retry.sleep", pytest.fail)
    a = node(free_port(), "192.0.2.1")
    assert a.register("198.51.100.1") == a.phones == {"198.51.100.1"}
    assert a.told == ["state-unwritable"]


def test_what_others_have_written_there_does_no_harm(start, node):
    """Own design: a key or a row that no registrar has made is left alone."""
    port = start(RedisServer).port
    a = node(port, "192.0.2.1")
    a.register("198.51.100.1")
    eventually(lambda: not a.store._to_write)
    key = PREFIX + '["bob", "example.com"]'
    a.store._writer.hset(key, mapping={b"\xff": b"{}", b"x": b"[[1, 2], 3]", b"y": b"nonsense"})
    a.store._writer.hset(PREFIX + "nonsense", mapping={"x": "y"})
    assert node(port, "192.0.2.2").phones == {"198.51.100.1"}


def test_a_phone_of_one_server_is_written_to_by_the_other(start):
    """Covers RFC 3261 §10.3: two processes of `p2psip serve` share what their phones register."""
    url = f"redis://127.0.0.1:{start(RedisServer).port}/0"
    one, two = (start(SipServer, "home", location=url, name=name) for name in ("one", "two"))
    heard = Queue()
    with (
        Agent(Account("bob", "home", registrar=one.sip)) as bob,
        Agent(Account("eve", "home", registrar=two.sip)) as eve,
    ):
        bob.on_message = heard.put
        bob.register(20)

        def written():
            with suppress(RemoteError):
                return eve.message("bob", "hello", 20).status == 200

        eventually(written)  # some milliseconds after the REGISTER
        assert heard.get(timeout=20).text == "hello"


def test_a_phone_of_one_gateway_is_called_by_the_other(start, gateway):
    """Covers RFC 3261 §16.5: two processes, one domain."""
    url = f"redis://127.0.0.1:{start(RedisServer).port}/0"
    one, two = gateway("--location", url), gateway("--location", url)
    caller, phone = Place(two), socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    phone.bind(("127.0.0.1", 0))
    phone.settimeout(0.2)
    contact = "<sip:bob@{}:{}>".format(*phone.getsockname())
    assert Place(one).register(contact)[0] == 200
    heard, clock = b"", Clock()
    while b"MESSAGE sip:bob@" not in heard:
        assert not clock.over(20)
        number = os.urandom(4).hex().encode()
        caller.say(MESSAGE.replace(b"ADDRESS", caller.address.encode()).replace(b"NNN", number))
        with suppress(TimeoutError):
            heard = phone.recv(65536)
    phone.close()


@pytest.mark.parametrize("url", ["http://localhost", "rediss://localhost", "redis://a:b:c/0"])
def test_without_a_url_the_gateway_does_not_start(capsys, url):
    """Covers RFC 3261 §10.3: one line, and no trace."""
    assert __main__.main(["serve", "--sip", "127.0.0.1:0", "--location", url]) == 2
    assert "redis://" in capsys.readouterr().err
