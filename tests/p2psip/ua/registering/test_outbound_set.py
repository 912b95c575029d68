"""A user with several outbound proxies: a flow by each, and the next one when the first fails."""

import pytest
from support.rtmfp.link import Link
from support.sip.cores import TakesAll
from support.sip.elements import PORT, Element, Phone
from support.sip.flows import SDP

from p2psip.sip.address import Address
from p2psip.sip.build import response_to
from p2psip.sip.uri import Uri
from p2psip.stack.stack import Flow
from p2psip.ua.registering.outbound_set import OutboundSet
from p2psip.ua.registering.registrations import Registrations

BOB, HOME = "10.0.0.1", Uri("sip", None, None, "home")
EDGES = [f"10.0.0.{number}" for number in range(11, 15)]
GRANTED = (200, [("Require", "outbound"), ("Expires", 3600), ("Flow-Timer", 10)])
PASSING = (503, ())


class Edge(TakesAll, Element):
    """A proxy that answers each request with the next of `answers`, and then grants.

    One that is `dead` does nothing.
    """

    dead = False

    def __init__(self, link, address, *answers):
        super().__init__(link, address)
        self.answers, self.heard, self.stack.core = list(answers), [], self

    def on_request(self, server, request, now):
        if self.dead:
            return
        self.heard.append((now, request))
        status, headers = self.answers.pop(0) if self.answers else GRANTED
        headers = [("Contact", f"<sip:{self.address}>"), *headers]
        body, kind = (b"answer", SDP) if request.method == "INVITE" else (b"", None)
        answer = response_to(
            request, status, to_tag="t", headers=headers, body=body, content_type=kind
        )
        server.respond(answer, now)

    def on_ack(self, request, flow, now):
        """Any ACK is as good as the other."""

    def asked(self, name):
        """A header of each request."""
        return [request.headers.get(name) for _, request in self.heard]

    @property
    def times(self):
        return [at for at, request in self.heard if request.method == "REGISTER"]


class World:
    """A phone with the flows of a set, and its proxies."""

    def __init__(self, count, *answers):
        self.link, self.told, self.servers = Link(), [], []
        said = dict(enumerate(answers))
        self.edges = [Edge(self.link, EDGES[n], *said.get(n, ())) for n in range(count)]
        self.phone = phone = Phone(self.link, BOB)
        registrations = Registrations()
        registrations.ping, registrations.lose = self.ping, self.lose
        registrations.follow(phone.stack)
        phone.machines.append(registrations)
        self.registrations = registrations
        self.set = OutboundSet(
            phone.stack,
            Address(HOME.replace(user="bob")),
            self.contact_at,
            HOME,
            self,
            phone.random,
            proxies=[proxy(host) for host in EDGES[:count]],
        )
        for each in self.set.flows:
            registrations.add(each)
        self.set.start(0.0)

    def contact_at(self, server):
        self.servers.append(server.host)
        return self.phone.stack.contact("bob", "TCP", server.host)

    def ping(self, flow, data):
        if not any(each.dead for each in self.edges if each.address == flow.remote[0]):
            self.registrations.heard(flow, b"", self.link.now)

    def lose(self, flow):
        """The edge closes what does not answer."""

    def die(self, edge):
        """An edge is gone, with the connection to it."""
        edge.dead = True
        lost = Flow("TCP", (edge.address, PORT), (BOB, 40000))
        self.phone.stack.flow_failed(lost, self.link.now)

    def run(self, until):
        self.link.run(until=until)
        return self

    @property
    def at(self):
        """The proxy that requests go by now."""
        return self.set.route[0].host

    # RegistrationHandler
    def on_registered(self, registration, expires, now):
        self.told.append(expires)

    def on_failed(self, registration, status, reason, now):
        self.told.append(-status)


def proxy(host):
    return Uri("sip", None, None, host, None, (("transport", "tcp"), ("lr", None)))


@pytest.mark.parametrize("count", [1, 2, 4])
def test_each_proxy_has_a_flow_of_its_own(count):
    """Covers RFC 5626 §4.2.1 [sets-of-two] [registers-by-each] [registers-by-two] [has-reg-id].

    Covers RFC 5626 §4.2.1 [same-reg-ids], §10 [reg-id-of-31-bits].
    """
    world = World(count).run(1.0)
    asked = [edge.heard for edge in world.edges]
    assert [len(each) for each in asked] == [1] * count and world.told == [3600]
    requests = [each[0][1] for each in asked]
    contacts = [request.contacts[0] for request in requests]
    assert [each.param("reg-id") for each in contacts] == [str(n + 1) for n in range(count)]
    assert len({each.param("+sip.instance") for each in contacts}) == 1
    assert len({request.call_id for request in requests}) == count
    routes = [request.routes[0].uri.host for request in requests]
    assert routes == EDGES[:count] and {request.uri for request in requests} == {HOME}
    assert world.set.is_registered and not world.set.pending and world.at == EDGES[0]
    assert world.servers == EDGES[:count]


def test_without_a_proxy_it_is_a_registration_at_the_registrar():
    """Covers RFC 5626 §4.2.1 [sets-of-two] [same-reg-ids]: of one, too."""
    world = World(0)
    [flow] = world.set.flows
    assert world.set.route == [] and world.set.current is flow and world.set.pending
    assert world.servers == [HOME.host]


def test_a_single_proxy_that_refuses_at_once_is_not_asked_again():
    world = World(1, [PASSING]).run(400.0)
    assert world.told == [-503] and len(world.edges[0].times) == 1


def test_calls_go_by_the_next_flow_when_the_first_fails():
    """Covers RFC 5626 §4.5 [same-reg-id] [waits-for-the-delay]."""
    world = World(2).run(20.0)
    first, second = world.edges
    world.die(first)
    world.run(21.0)
    assert world.at == second.address and world.set.is_registered and world.told == [3600]
    call = world.phone.dial(second.address, 21.0, route=world.set.route)
    world.run(22.0)
    assert call.is_up and second.heard[-1][1].method == "INVITE"
    world.run(100.0)
    assert len(first.heard) == 1 and world.at == second.address
    first.dead = False
    world.run(300.0)
    # at once, for the flow was good; and again when that was not answered for 32 s, after 90 to
    # 180 s, since the other one stands
    at = first.times[1]
    assert 20.0 + 32.0 + 90.0 <= at <= 20.0 + 33.0 + 181.0 and len(first.times) == 2
    assert first.asked("Contact")[0] == first.asked("Contact")[1]
    assert world.at == first.address and world.told == [3600]
    assert len(second.times) == 1


@pytest.mark.parametrize("silent", [False, True])
def test_a_first_proxy_that_fails_at_once_is_asked_again_beside_the_other(silent):
    """Covers RFC 5626 §4.5 [waits-for-the-delay]."""
    world = World(2, [] if silent else [PASSING])
    first = world.edges[0]
    first.dead = silent
    world.run(29.0)
    assert world.told == [3600] and world.at == EDGES[1]
    world.run(40.0)
    first.dead = False
    world.run(220.0)
    # when it was refused the other one did not stand yet; when it had been silent for 32 s, it did
    least, most = (32.0 + 90.0, 33.0 + 180.0) if silent else (30.0, 60.1)
    assert least <= first.times[-1] <= most and len(first.times) == 2 - silent
    assert world.at == EDGES[0] and world.told == [3600]


def test_when_all_fail_the_owner_is_told_and_they_come_back_sooner():
    """Covers RFC 5626 §4.5 [waits-for-the-delay]."""
    world = World(2, [PASSING], [(403, ())]).run(29.0)
    assert len(world.told) == 1 and world.told[0] in (-503, -403) and not world.set.is_registered
    assert [len(edge.times) for edge in world.edges] == [1, 1]
    world.run(62.0)
    assert world.told[1:] == [3600] and world.set.is_registered
    first = min(edge.times[1] for edge in world.edges)
    assert 30.0 <= first <= 60.1  # all of them had failed until then


def test_a_flow_that_answers_no_keep_alive_is_passed_over():
    world = World(2).run(20.0)
    world.edges[0].dead = True
    world.run(20.0 + 10.0 + 10.1)
    assert world.at == EDGES[1] and world.set.is_registered


def test_all_of_them_are_taken_back():
    world = World(2).run(1.0)
    world.set.close(1.0)
    assert world.set.pending
    world.run(2.0)
    assert [edge.asked("Expires") for edge in world.edges] == [["3600", "0"]] * 2
    assert not world.set.pending and world.registrations.deadline is None
