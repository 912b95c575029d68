"""Where users can be reached."""

from dataclasses import replace

import pytest
from hypothesis import event
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from support.sip.elements import PORT
from support.sip.homes import ALICE, BOB, CAROL, Home, register, request, signed, store

from p2psip.server.location import Binding, MemoryLocation
from p2psip.server.register_request import MAX_EXPIRES, MIN_EXPIRES
from p2psip.server.registrar import MAX_BINDINGS, Registrar
from p2psip.sip.address import Address
from p2psip.sip.uri import Uri
from p2psip.transaction.flow import Flow

AOR = Uri.parse("sip:bob@home")


def answer(home, message, transport="TCP", **options):
    """The one response to a message; by TCP, where any Contact does."""
    [(response, *_)] = home.hear(message, transport=transport, **options)
    return response


def contacts(response):
    """{URI: seconds} of the Contacts in a response."""
    return {str(c.uri): int(c.param("expires")) for c in response.contacts}


def bound(home, now=0.0):
    return [str(binding.contact.uri) for binding in home.registrar.bindings(AOR, now)]


def test_a_binding_lives_as_long_as_it_was_granted():
    """Covers RFC 3261 §10.3 [in-order] [expires-told]."""
    home = Home()
    response = answer(home, register(expires=100))
    assert response.status == 200 and contacts(response) == {f"sip:bob@{BOB}": 100}
    assert bound(home, 99.0) == [f"sip:bob@{BOB}"] and home.registrar.count(99.0) == 1
    assert contacts(answer(home, register(contact=None, cseq=2), now=40.0)) == {
        f"sip:bob@{BOB}": 60
    }
    assert bound(home, 100.0) == [] and home.registrar.count(100.0) == 0


@pytest.mark.parametrize(
    ("contact", "expires", "granted"),
    [
        ("<sip:b@x>;expires=200", 3600, 200),
        ("<sip:b@x>", 200, 200),
        ("<sip:b@x>", None, 3600),
        ("<sip:b@x>", 10**9, MAX_EXPIRES),
        ("<sip:b@x>;expires=nonsense", 200, 3600),
        ("<sip:b@x>", MIN_EXPIRES, MIN_EXPIRES),
    ],
)
def test_the_lifetime_is_the_contacts_own_or_the_headers_or_an_hour(contact, expires, granted):
    """Covers RFC 3261 §10.3 [contact-expires] [header-expires] [default-expires].

    Covers RFC 3261 §10.2 [malformed-is-an-hour].
    """
    response = answer(Home(), register(contact=contact, expires=expires))
    assert list(contacts(response).values()) == [granted]


def test_all_bindings_in_force_are_told_the_latest_first():
    """Covers RFC 3261 §10.3 [all-bindings-told] [expires-told]: whichever were asked about."""
    home = Home()
    answer(home, register(contact="<sip:b@x>", expires=100))
    answer(home, register(contact="<sip:b@y>, <sip:b@z>", cseq=2, expires=200))
    found = answer(home, register(contact=None, cseq=3), now=40.0)
    told = [("sip:b@z", 160), ("sip:b@y", 160), ("sip:b@x", 60)]
    assert list(contacts(found).items()) == told
    found = answer(home, register(contact="<sip:b@w>", cseq=4, expires=70), now=100.0)
    assert list(contacts(found).items()) == [("sip:b@w", 70), ("sip:b@z", 100), ("sip:b@y", 100)]


def test_a_contact_is_removed_by_zero_and_all_by_a_star():
    """Covers RFC 3261 §8.2 [all] and §10.3 [star-in-order] [higher-cseq], steps 6 and 7."""
    home = Home()
    answer(home, register(contact="<sip:b@x>, <sip:b@y>, <sip:b@z>"))
    assert len(contacts(answer(home, register(contact="<sip:b@y>;expires=0", cseq=2)))) == 2
    assert bound(home) == ["sip:b@x", "sip:b@z"]
    assert contacts(answer(home, register(contact="*", expires=0, cseq=3))) == {}
    assert bound(home) == [] and home.registrar.count(0.0) == 0


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"contact": "*"}, 400),
        ({"contact": "*", "expires": None}, 400),
        ({"contact": "*, <sip:b@x>", "expires": 0}, 400),
        ({"contact": "<sip:b@new>", "expires": 5}, 423),
        ({"contact": "<tel:+1555>"}, 416),
        ({"contact": f"<sip:b@new>;x={'y' * 2000}"}, 400),
        ({"contact": "<sip:b@new>, <sip:b@x>", "cseq": 1}, 400),  # the second was overtaken
        ({"contact": "*", "expires": 0, "cseq": 1}, 400),
        ({"contact": ", ".join(f"<sip:b@{n}>" for n in range(MAX_BINDINGS + 1))}, 403),
    ],
)
def test_a_refused_register_changes_nothing(change, status):
    """Covers RFC 3261 §8.2 [or-none] and §10.3 [all-or-nothing] [lower-refused] [star-refused].

    Covers RFC 3261 §10.3 [star-alone] [min-expires].
    """
    home = Home()
    answer(home, register(contact="<sip:b@x>", cseq=1))
    options = {"cseq": 2, **change}
    message = register(**options)
    via = f"SIP/2.0/UDP {ALICE};branch=z9hG4bKother"
    message = message.replace(headers=message.headers.with_("Via", via))
    response = answer(home, message)
    assert response.status == status
    assert (response.headers.get("Min-Expires") == str(MIN_EXPIRES)) == (status == 423)
    assert bound(home) == ["sip:b@x"]


def test_a_register_of_another_boot_wins():
    """Covers RFC 3261 §10.3 [another-call-id] [star-removes]: CSeq counts within one Call-ID."""
    home = Home()
    answer(home, register(contact="<sip:b@x>", cseq=100))
    assert answer(home, register(contact="<sip:b@x>;expires=0", cseq=1, call="new")).status == 200
    assert bound(home) == []
    answer(home, register(contact="<sip:b@x>", cseq=100))
    again = register(contact="<sip:b@x>;expires=0", cseq=100)
    assert answer(home, again).status == 400 and bound(home) == ["sip:b@x"]
    assert answer(home, register(contact="*", expires=0, cseq=2, call="new")).status == 200
    assert bound(home) == []


def test_a_route_that_was_recorded_has_no_meaning():
    """Covers RFC 3261 §10.3 [no-record-route]."""
    message = register("bob", f"<sip:bob@{BOB}>", ("Record-Route", "<sip:away;lr>"))
    response = answer(Home(), message)
    assert response.status == 200 and "Record-Route" not in response.headers


def test_the_same_contact_twice_in_a_message_counts_once():
    response = answer(Home(), register(contact="<sip:b@x>;expires=100, <sip:b@X>;expires=200"))
    assert list(contacts(response).values()) == [200]


def test_what_needs_an_extension_is_refused():
    """Covers RFC 3261 §10.3 [extensions-are-checked]."""
    home = Home()
    response = answer(home, register("bob", f"<sip:bob@{BOB}>", ("Require", "path, x")))
    assert response.status == 420 and response.headers.get("Unsupported") == "path, x"
    assert bound(home) == []


@pytest.mark.parametrize("to", ["<sip:home>", "<sip:bob@away>", "<tel:+1555>"])
def test_who_is_nobody_of_ours_is_not_found(to):
    """Covers RFC 3261 §10.3 [404-for-strangers]; a telephone number is no user of SIP."""
    message = register("bob", "<sip:b@x>")
    message = message.replace(headers=message.headers.with_("To", to))
    response = answer(Home(), message)
    assert response.status == (400 if to.startswith("<tel") else 404)


def test_a_user_proves_to_be_that_user():
    """Covers RFC 3261 §10.3 [authenticates] [authorizes] [403-for-anothers]."""
    home = Home(users=store("bob", "eve"))
    first = answer(home, register())
    assert first.status == 401 and bound(home) == []
    assert answer(home, signed(register(), first, user="eve")).status == 403
    assert answer(home, signed(register(), first, password="sesame", cseq=3)).status == 401
    assert bound(home) == []
    assert answer(home, signed(register(), first, nc=2, cseq=4)).status == 200
    assert bound(home) == [f"sip:bob@{BOB}"]
    assert answer(home, register("ann", cseq=9)).status == 401  # whom nobody knows


def test_a_connection_is_the_way_back():
    """Covers RFC 5626 §5.3: the binding keeps the flow of its REGISTER."""
    home = Home()
    answer(home, register(contact="<sip:b@x>"), source=BOB)
    contact = f"<sip:b@{BOB}>;q=0.2"
    answer(home, register(contact=contact, cseq=2), source=BOB, transport="UDP")
    tcp, udp = home.registrar.bindings(AOR, 0.0)
    flow = Flow("TCP", (BOB, PORT), (home.address, PORT))
    assert tcp.way(nat=False) == tcp.way(nat=True) == [flow]
    assert udp.way(nat=False) == [] and udp.way(nat=True) == [udp.flow]


def test_the_preferred_contact_comes_first():
    """Covers RFC 3261 §10.2.1.2 [q-is-a-preference] and §20.10: q."""
    home = Home()
    texts = ["<sip:a@x>;q=0.1", "<sip:b@x>;q=oops", "<sip:c@x>;q=0.5", "<sip:d@x>;q=nan"]
    answer(home, register(contact=", ".join(texts)))
    assert bound(home) == ["sip:b@x", "sip:d@x", "sip:c@x", "sip:a@x"]


def test_places_are_limited():
    """The registrar holds so many users and no more, until some of them expire."""
    home = Home()
    home.registrar = home.endpoint.registrar = Registrar(
        home.domains, None, home.stack, home.random, max_users=2
    )
    for cseq, (user, status) in enumerate([("a", 200), ("b", 200), ("c", 503), ("a", 200)], 1):
        message = register(user, f"<sip:{user}@x>", expires=100, call=user, cseq=cseq)
        assert answer(home, message, now=float(ord(user))).status == status
    assert home.registrar.count(100.0) == 2
    late = register("c", "<sip:c@x>", call="late")
    assert answer(home, late, now=250.0).status == 200 and home.registrar.count(250.0) == 1


URIS = [f"sip:bob@10.0.1.{n}" for n in range(4)]


class Bindings(RuleBasedStateMachine):
    """The registrar against a dictionary, with REGISTERs in any order, restarts and time."""

    def __init__(self):
        super().__init__()
        self.now, self.cseq = 0.0, 0
        self.home = Home(nat=True, store=MemoryLocation())
        self.model = {}  # uri: (expires at, call, cseq)

    @property
    def alive(self):
        return {uri: entry for uri, entry in self.model.items() if entry[0] > self.now}

    def send(self, contact, expires, call, older):
        self.cseq += 1
        cseq = max(1, self.cseq - older)
        message = register(contact=contact, expires=expires, call=call, cseq=cseq)
        via = f"SIP/2.0/UDP {ALICE};branch=z9hG4bK{self.cseq}"
        message = message.replace(headers=message.headers.with_("Via", via))
        return answer(self.home, message, "UDP", now=self.now, source=ALICE), cseq

    @rule(
        wanted=st.dictionaries(st.sampled_from(URIS), st.sampled_from([0, 5, 60, 600])),
        call=st.sampled_from("xy"),
        older=st.integers(0, 3),
    )
    def contacts(self, wanted, call, older):
        text = ", ".join(f"<{uri}>;expires={seconds}" for uri, seconds in wanted.items())
        response, cseq = self.send(text or None, 3600, call, older)
        alive = self.alive
        overtaken = any(
            uri in alive and alive[uri][1] == call and cseq <= alive[uri][2] for uri in wanted
        )
        brief = 5 in wanted.values()
        event(f"refused: {overtaken or brief}")
        assert response.status in ({423} if brief else set()) | ({400} if overtaken else set()) or (
            response.status == 200 and not brief and not overtaken
        )
        if response.status == 200:
            self.model = alive
            for uri, seconds in wanted.items():
                self.model.pop(uri, None)
                if seconds:
                    self.model[uri] = self.now + seconds, call, cseq
            left = {uri: round(at - self.now) for uri, (at, *_) in self.model.items()}
            assert contacts(response) == left

    @rule(call=st.sampled_from("xy"), older=st.integers(0, 2))
    def clear(self, call, older):
        response, cseq = self.send("*", 0, call, older)
        overtaken = any(call == c and cseq <= n for _, c, n in self.alive.values())
        assert response.status == (400 if overtaken else 200)
        if not overtaken:
            self.model = {}

    @rule()
    def restart(self):
        self.home = Home(nat=True, store=self.home.registrar._location)
        self.home.registrar.restore(self.now)

    @rule(seconds=st.sampled_from([1.0, 59.0, 700.0]))
    def sleep(self, seconds):
        self.now += seconds

    @invariant()
    def agrees(self):
        assert set(bound(self.home, self.now)) == set(self.alive)

    def teardown(self):
        self.now += 10_000
        assert self.home.registrar.count(self.now) == 0
        assert not len(self.home.registrar._binding_index) and not self.home.registrar._bindings
        self.home.wait(self.now)
        assert self.home.idle


TestBindings = Bindings.TestCase


def test_a_register_for_another_domain_is_not_ours_to_take():
    """Covers RFC 3261 §10.3 step 1."""
    message = request("REGISTER", "sip:away", ("To", "<sip:bob@away>"))
    assert answer(Home(), message).status == 403


# What other processes have stored


def stored(*phones, cseq=1, transport="UDP", proven=True):
    """Bindings of bob's as another process would have them, by a REGISTER from each phone."""
    return [
        Binding(
            Address.parse(f"<sip:bob@{phone}>"),
            Flow(transport, (phone, 40_000 if transport == "TCP" else PORT), ("10.9.9.9", PORT)),
            phone,
            cseq,
            600.0,
            is_proven=proven,
        )
        for phone in phones
    ]


def test_the_bindings_of_other_processes_are_adopted_and_dropped():
    """Covers RFC 3261 §10.3: what is stored is in force, and an own binding stays as it is."""
    home, aor = Home(), ("bob", "home")
    answer(home, register(), transport="UDP")
    [own] = home.registrar.registered(AOR, 0.0)
    kept = home.registrar.adopt(aor, [own, *stored(CAROL)], 1.0)
    assert [each.contact.uri.host for each in kept] == [BOB, CAROL] and kept[0] is own
    assert bound(home, 1.0) == [f"sip:bob@{BOB}", f"sip:bob@{CAROL}"]
    [later] = home.registrar.adopt(aor, stored(BOB, cseq=7), 2.0)
    assert (later.cseq, later.call_id) == (7, BOB)
    assert home.registrar.adopt(aor, [], 3.0) == [] and home.registrar.count(3.0) == 0
    assert home.registrar.adopt(aor, stored(BOB), 600.0) == []  # over by now


def test_what_only_the_other_process_can_reach_is_left_to_it():
    """Covers RFC 5626 §5.3: a connection is of use to the process that it leads to."""
    home, aor = Home(), ("bob", "home")
    [asked] = home.registrar.adopt(aor, stored(BOB, transport="TCP"), 0.0)
    assert not asked.is_proven and bound(home) == []  # its Contact has another port: it is asked
    assert home.registrar.adopt(aor, stored(CAROL, proven=False), 0.0) == []
    far = [replace(each, flow=Flow("UDP", ("198.51.100.1", PORT))) for each in stored(CAROL)]
    assert home.registrar.adopt(aor, far, 0.0) == []


def test_a_stranger_in_the_store_is_nobody_here():
    """Covers RFC 3261 §10.3 step 5: users come from the users file, and there is a limit."""
    home = Home(users=store("bob"))
    assert home.registrar.adopt(("eve", "home"), stored(BOB), 0.0) == []
    assert len(home.registrar.adopt(("bob", "home"), stored(BOB), 0.0)) == 1
    home = Home()
    home.registrar._max_users = 1
    home.registrar.adopt(("bob", "home"), stored(BOB), 0.0)
    assert home.registrar.adopt(("carol", "home"), stored(CAROL), 0.0) == []
    assert len(home.registrar.adopt(("bob", "home"), stored(BOB, CAROL), 0.0)) == 2
