"""The resolver gets its answers from a server on loopback, whatever that server does."""

import struct

import dns.flags
import dns.message
import dns.rcode
import dns.rrset
import gevent
import pytest
from gevent import socket
from hypothesis import event, given
from hypothesis import strategies as st
from support.limits import patience
from support.mutations import mutations
from support.sockets import until

from p2psip.net import dns as resolver_module
from p2psip.net import locator as locator_module
from p2psip.net.dns import Config, NoAnswerError, Resolver, _query, _records, _response
from p2psip.sip.uri import Uri
from p2psip.stack.locate import Locator, Naptr, Question, Srv, in_order

ZONE = {
    ("example.com.", "NAPTR"): ['10 20 "s" "SIP+D2U" "" _sip._udp.Example.com.'],
    ("_sip._udp.example.com.", "SRV"): ["5 6 5070 a.example.com.", "6 0 5071 b.example.com."],
    ("a.example.com.", "A"): ["192.0.2.1"],
    ("two.example.com.", "A"): ["192.0.2.1", "192.0.2.2"],
    ("a.example.com.", "AAAA"): ["2001:db8::1"],
    ("alias.example.com.", "CNAME"): ["b.example.com."],
    ("b.example.com.", "A"): ["192.0.2.3"],
    ("loop.example.com.", "CNAME"): ["loop.example.com."],
    ("gone.example.com.", "SRV"): ["0 0 0 ."],
}


def free_pair():
    """A UDP and a TCP socket on one port; what is free for one may be taken for the other."""
    while True:
        udp, tcp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM), socket.socket()
        udp.bind(("127.0.0.1", 0))
        tcp.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tcp.bind(udp.getsockname())
        except OSError:
            udp.close()
            tcp.close()
            continue
        return udp, tcp


class Server:
    """A name server for ZONE on a free port, by UDP and TCP; `manners` spoil its answers."""

    def __init__(self):
        self.asked, self.manners, self.ttl = [], {}, 60
        self.udp, self.tcp = free_pair()
        self.address = self.udp.getsockname()
        self.tcp.listen()
        self.greenlets = [gevent.spawn(self.serve_udp), gevent.spawn(self.serve_tcp)]

    def rrset(self, name, kind):
        """The records of ZONE, as dnspython has them."""
        return dns.rrset.from_text(name, self.ttl, "IN", kind, *ZONE[name, kind])

    def answer(self, query):
        """The right answer, aliases followed."""
        response = dns.message.make_response(query)
        name, kind = str(query.question[0].name).lower(), query.question[0].rdtype.name
        while (name, "CNAME") in ZONE and len(response.answer) < 5:
            response.answer.append(self.rrset(name, "CNAME"))
            (name,) = ZONE[name, "CNAME"]
        if (name, kind) in ZONE:
            response.answer.append(self.rrset(name, kind))
        if not response.answer:
            response.set_rcode(dns.rcode.NXDOMAIN)
        return response

    def serve_udp(self):
        """Answer by UDP, in the manner set for the name."""
        while True:
            data, peer = self.udp.recvfrom(4096)
            query = dns.message.from_wire(data)
            name = str(query.question[0].name)[:-1]
            self.asked.append(f"{name} {query.question[0].rdtype.name}")
            response = self.answer(query)
            match self.manners.get(name):
                case "silent":
                    continue
                case "late":
                    gevent.sleep(0.05)
                case "servfail":
                    response = dns.message.make_response(query)
                    response.set_rcode(dns.rcode.SERVFAIL)
                case "truncated":
                    response = dns.message.make_response(query)
                    response.flags |= dns.flags.TC
                case "forged":
                    for spoiled in (b"", b"\xff" * 40, self.forged(query), response.to_wire()[:-3]):
                        self.udp.sendto(spoiled, peer)
                case "only forged":
                    for _ in range(60):
                        self.udp.sendto(self.forged(query), peer)
                    continue
            self.udp.sendto(response.to_wire(), peer)

    def forged(self, query):
        """An answer with a guessed id that names an attacker's machine."""
        response = self.answer(query)
        response.answer = [dns.rrset.from_text(query.question[0].name, 9, "IN", "A", "203.0.113.6")]
        response.id ^= 1
        return response.to_wire()

    def serve_tcp(self):
        """Answer by TCP, one question a connection, in two pieces."""
        while True:
            stream, _ = self.tcp.accept()
            with stream:
                data = stream.recv(4096)
                query = dns.message.from_wire(data[2:])
                wire = self.answer(query).to_wire()
                if self.manners.get("tcp") == "nonsense":
                    wire = self.forged(query)
                if self.manners.get("tcp") != "closes":
                    data = struct.pack("!H", len(wire)) + wire
                    stream.sendall(data[:7])
                    gevent.sleep(0.001)
                    stream.sendall(data[7:])

    def close(self):
        """Stop serving."""
        gevent.killall(self.greenlets)
        self.udp.close()
        self.tcp.close()


@pytest.fixture
def server():
    """A name server that lives for one test."""
    server = Server()
    yield server
    server.close()


@pytest.fixture
def clock():
    """A clock that stands still until it is set."""
    return [1000.0]


@pytest.fixture
def resolver(server, clock):
    """A resolver that asks that server alone."""
    return Resolver(Config((server.address,), 20.0, 2), lambda: clock[0])


def test_records_of_every_kind(resolver):
    """Own design: dnspython's records become the locator's."""
    assert resolver.resolve(Question("Example.com.", "NAPTR")) == (
        Naptr(10, 20, "s", "SIP+D2U", "", "_sip._udp.example.com"),
    )
    assert in_order(resolver.resolve(Question("_sip._udp.example.com", "SRV")), bytes) == [
        Srv(5, 6, 5070, "a.example.com"), Srv(6, 0, 5071, "b.example.com"),
    ]  # fmt: skip
    both = resolver.resolve(Question("two.example.com", "A"))
    assert sorted(both) == ["192.0.2.1", "192.0.2.2"]  # dnspython's servers shuffle
    assert resolver.resolve(Question("a.example.com", "AAAA")) == ("2001:db8::1",)
    assert resolver.resolve(Question("alias.example.com", "A")) == ("192.0.2.3",)
    assert resolver.resolve(Question("alias.example.com", "CNAME")) == ()  # of no use here
    assert resolver.resolve(Question("gone.example.com", "SRV")) == (Srv(0, 0, 0, ""),)


def test_a_whole_search(resolver, server):
    """Covers RFC 3263 §4, over a real socket."""
    hops = resolver.locate(Locator.of_uri(Uri.parse("sip:bob@example.com"), random=bytes))
    assert [(hop.transport, hop.host, hop.port) for hop in hops] == [
        ("UDP", "192.0.2.1", 5070), ("UDP", "192.0.2.3", 5071),
    ]  # fmt: skip
    assert sorted(server.asked[2:]) == ["a.example.com A", "b.example.com A"]
    assert resolver.locate(Locator.of_uri(Uri.parse("sip:1.2.3.4"), random=bytes))[0].port == 5060
    assert resolver.locate(Locator.of_uri(Uri.parse("sip:nobody.example"), random=bytes)) == ()


def test_answers_are_remembered_for_their_time(resolver, server, clock):
    """Own design: by TTL, an hour at most; a no is remembered as well."""
    question = Question("b.example.com", "A")
    server.ttl = 10**6
    for now, asked in [(1000.0, 1), (4599.0, 1), (4601.0, 2)]:
        clock[0] = now
        assert resolver.resolve(question) == ("192.0.2.3",) and len(server.asked) == asked
    for _ in range(2):
        assert resolver.resolve(Question("nobody.example", "A")) == ()
    assert server.asked.count("nobody.example A") == 1


def test_memory_is_bounded(resolver, monkeypatch):
    """Own design: the oldest answer makes room."""
    monkeypatch.setattr(resolver_module, "CACHED", 3)
    for index in range(6):
        resolver.resolve(Question(f"x{index}.example", "A"))
    assert len(resolver._cache) == 3


def test_the_same_question_is_asked_once(resolver, server):
    """Own design: those who ask at the same time share the answer, even if one is killed."""
    server.manners["a.example.com"] = "late"
    jobs = [gevent.spawn(resolver.resolve, Question("a.example.com", "A")) for _ in range(5)]
    assert until(lambda: server.asked)
    jobs[0].kill()
    assert [job.get() for job in jobs[1:]] == [("192.0.2.1",)] * 4
    assert server.asked == ["a.example.com A"]


def test_a_silent_server_is_asked_again_then_left_alone(server, clock):
    """Own design: two tries of 0.5 s, then nothing for 5 s."""
    resolver = Resolver(Config((server.address,), 0.5, 2), lambda: clock[0])
    server.manners["a.example.com"] = "silent"
    with patience(20):
        assert resolver.resolve(Question("a.example.com", "A")) == ()
        assert len(server.asked) == 2
        assert resolver.resolve(Question("a.example.com", "A")) == () and len(server.asked) == 2
    server.manners.clear()
    clock[0] += 5.1
    assert resolver.resolve(Question("a.example.com", "A")) == ("192.0.2.1",)


@pytest.mark.parametrize("manner", ["servfail", "silent"])
def test_the_next_server_is_asked(server, manner):
    """Own design: every server in turn; a closed port costs no time."""
    other = Server()
    try:
        server.manners["b.example.com"] = manner
        closed = ("127.0.0.1", 1)
        config = Config((closed, server.address, other.address), 1.0, 1)
        assert Resolver(config).resolve(Question("b.example.com", "A")) == ("192.0.2.3",)
        assert server.asked == other.asked == ["b.example.com A"]
    finally:
        other.close()


def test_forged_answers_are_passed_over(resolver, server):
    """Own design: the id and the question must be ours, and the whole must be DNS."""
    server.manners = {"a.example.com": "forged", "b.example.com": "only forged"}
    assert resolver.resolve(Question("a.example.com", "A")) == ("192.0.2.1",)
    assert resolver.resolve(Question("b.example.com", "A")) == ("192.0.2.3",)  # by TCP at last


def test_a_truncated_answer_comes_by_tcp(resolver, server):
    """Own design: ask again where there is room."""
    server.manners["a.example.com"] = "truncated"
    assert resolver.resolve(Question("a.example.com", "A")) == ("192.0.2.1",)
    for tcp, name in [("closes", "b.example.com"), ("nonsense", "two.example.com")]:
        server.manners |= {name: "truncated", "tcp": tcp}
        assert resolver.resolve(Question(name, "A")) == ()


def test_aliases_without_end(resolver):
    """Own design: no answer, no endless loop."""
    assert resolver.resolve(Question("loop.example.com", "A")) == ()


@pytest.mark.parametrize("name", ["", ".", "a..b", "x" * 64 + ".example", "\udcff.example", "a b",
                                  ".".join(["abcdefgh"] * 40)])  # fmt: skip
def test_names_that_are_no_names(resolver, name):
    """Own design: a SIP URI may hold anything; the answer is nothing."""
    assert resolver.resolve(Question(name, "A")) == ()


def test_names_answered_here(server):
    """Own design: localhost, the hosts file and numbers need no server."""
    hosts = {"pbx": ("10.0.0.5", "2001:db8::5"), "phone.lan": ("10.0.0.6",)}
    resolver = Resolver(Config((server.address,), 0.1, 1, hosts))
    for name, kind, answer in [
        ("localhost", "A", ("127.0.0.1",)),
        ("a.LOCALHOST.", "AAAA", ("::1",)),
        ("localhost", "NAPTR", ()),
        ("_sip._udp.localhost", "SRV", ()),
        ("PBX", "A", ("10.0.0.5",)),
        ("pbx", "AAAA", ("2001:db8::5",)),
        ("phone.lan", "AAAA", ()),
        ("_sip._tcp.phone.lan", "SRV", ()),
        ("192.0.2.77", "A", ("192.0.2.77",)),
    ]:
        assert resolver.resolve(Question(name, kind)) == answer
    assert server.asked == []
    (hop,) = resolver.locate(Locator.of_uri(Uri.parse("sip:x@phone.lan"), random=bytes))
    assert (hop.host, hop.port) == ("10.0.0.6", 5060)


def test_system_files(tmp_path):
    """Own design: the formats of resolv.conf(5) and hosts(5); nonsense is passed over."""
    conf, hosts = tmp_path / "resolv.conf", tmp_path / "hosts"
    conf.write_text(
        "# comment\nnameserver 10.0.0.1 ; remark\nnameserver 2001:db8::53\nnameserver junk\n"
        "nameserver\nsearch example.com\noptions timeout:3 attempts:9 rotate ndots:x\n"
        "nameserver 10.0.0.2\nnameserver 10.0.0.3\n"
    )
    hosts.write_text("127.0.0.1 localhost\n::1 localhost\n10.0.0.9\tPBX pbx.lan # remark\nbad x\n")
    config = Config.read(str(conf), str(hosts))
    assert config == Config(
        (("10.0.0.1", 53), ("2001:db8::53", 53), ("10.0.0.2", 53)), 3.0, 5,
        {"localhost": ("127.0.0.1", "::1"), "pbx": ("10.0.0.9",), "pbx.lan": ("10.0.0.9",)},
    )  # fmt: skip
    assert Config.read(str(tmp_path / "none"), str(tmp_path / "none")) == Config()
    assert Resolver()._config == Config.read()


def test_a_server_by_ipv6():
    """Own design: the socket is of the server's family."""
    resolver = Resolver(Config((("::1", 1),), 0.1, 1))
    assert resolver.resolve(Question("a.example", "A")) == ()


@given(st.data())
def test_no_response_does_harm(data):
    """Own design: dnspython's errors end in `_response` and `_records`."""
    query = _query(Question("alias.example.com", "A"))
    good = dns.message.make_response(query)
    for (name, kind), records in list(ZONE.items())[2:6]:
        good.answer.append(dns.rrset.from_text(name, 60, "IN", kind, *records))
    wire, keep = good.to_wire(), data.draw(st.sampled_from([0, 12, len(query.to_wire())]))
    wire = wire[:keep] + data.draw(mutations(st.just(wire[keep:])))
    response = _response(query, wire)
    event(f"header kept: {wire[:12] == good.to_wire()[:12]}, read: {response is not None}")
    if response:
        try:
            answer, ttl = _records(response)
        except NoAnswerError:
            return
        assert ttl >= 0 and all(isinstance(record, str) for record in answer)


def test_a_server_is_tried_at_its_addresses_of_both_families(monkeypatch):
    """Covers RFC 3263 §4.2: AAAA as well as A; a server may have no more than the former."""
    both = {"both.lan": ("2001:db8::5", "192.0.2.5"), "six.lan": ("2001:db8::6",)}
    monkeypatch.setattr(locator_module, "Resolver", lambda: Resolver(Config(hosts=both)))
    flows = locator_module.ServerLocator().flows
    found = [flow.remote for flow in flows(Uri.parse("sip:x@both.lan:5070"))]
    assert found == [("192.0.2.5", 5070), ("2001:db8::5", 5070)]
    assert [flow.remote for flow in flows(Uri.parse("sip:six.lan"))] == [("2001:db8::6", 5060)]
