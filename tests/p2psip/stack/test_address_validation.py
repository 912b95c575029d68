"""What is sent to who may never have asked: below three times what came, until it is heard."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.sip.elements import PORT
from support.sip.homes import ALICE, FAR, HOME, Home, register, request
from support.sip.stacks import THEM, UDP, Asker, Server, incoming, lone_stack, sent
from support.sip.stacks import request as asking

from p2psip.sip.build import response_to
from p2psip.sip.message import parse_message
from p2psip.stack.address_validation import FACTOR, AddressValidator, ReplyAllowance
from p2psip.stack.fair_pool import Pool
from p2psip.stack.stack import Flow


def doubting(*statuses):
    return lone_stack(Server(*statuses), trusting=False)


def until_silence(stack):
    """All that is sent until nothing is to come."""
    out = sent(stack)
    while stack.deadline is not None:
        stack.tick(stack.deadline)
        out += sent(stack)
    return [message for message, _ in out]


@given(st.integers(1, 2000), st.lists(st.tuples(st.booleans(), st.integers(0, 3000))))
def test_an_allowance_is_never_overdrawn(size, steps):
    """Own design: neither in messages nor in octets, whatever comes and goes."""
    allowance, heard, said = ReplyAllowance(size), 1, []
    for is_repeated, octets in steps:
        if is_repeated:
            allowance.repeated(size)
            heard += 1
        elif allowance.admits(octets, is_final=len(said) % 2 == 0):
            said.append(octets)
        assert len(said) < FACTOR * heard and sum(said) < FACTOR * heard * size


def test_a_provisional_response_leaves_room():
    allowance = ReplyAllowance(700, 300)
    assert allowance.admits(400, is_final=False) and not allowance.admits(10, is_final=False)
    assert allowance.admits(1600, is_final=True) and not allowance.admits(100, is_final=True)


def test_a_short_invite_hears_nothing_or_all():
    """Covers RFC 3261 §17.1.1.2: once it hears a provisional response it is not repeated.

    So that must leave room for a 200 with a session description, by as many octets as SIPp's
    `3pcc-C-A` and our agent send.
    """
    allowance = ReplyAllowance(335)
    assert not allowance.admits(449, is_final=False)
    allowance.repeated(335)
    assert allowance.admits(449, is_final=False) and allowance.admits(850, is_final=True)


@pytest.mark.parametrize("statuses", [(180, 486), (180, 200), (486,), (180,), ()])
def test_a_stranger_is_sent_little(statuses):
    """Covers RFC 3261 §26.3.2.4 in spirit: whatever the core says, and however long it takes."""
    stack = doubting(*statuses)
    stack.core.statuses = statuses
    stack.receive(incoming(), UDP, 0.0)
    for handle in stack.core.handles:
        for status in (180, 183, 180, 486):
            handle.reply(status, 1.0)
    said = until_silence(stack)
    assert 0 < len(said) < FACTOR and said[-1].status >= 200
    assert sum(len(bytes(message)) for message in said) < FACTOR * len(incoming())


def test_a_repeated_invite_pays_for_more():
    """Covers RFC 3261 §17.1.1.2: so a client that hears nothing gets through."""
    stack = doubting(180)
    heard = 0
    for at in range(5):
        stack.receive(incoming(), UDP, at / 10)
        heard += len(sent(stack))
    stack.core.handles[0].reply(486, 1.0)
    said = until_silence(stack)
    assert heard == 4 and len(said) > 3 and heard + len(said) < FACTOR * 5


def test_a_2xx_that_was_held_back_goes_with_the_copy_that_pays_for_it():
    """Own design: at that moment, and not with the core's next one (RFC 3261 §13.3.1.4)."""
    stack = doubting()
    stack.core.statuses = ()
    stack.receive(incoming(), UDP, 0.0)
    [handle] = stack.core.handles
    fine = response_to(handle.request, 200, to_tag=handle.to_tag)
    handle.respond(fine.replace(body=bytes(3 * len(incoming()))), 0.0)
    assert not sent(stack)
    stack.receive(incoming(), UDP, 0.5)
    assert [message.status for message, _ in sent(stack)] == [200]
    stack.receive(incoming(), UDP, 1.5)
    assert not sent(stack)  # which is the core's to repeat


def test_what_fits_in_compact_form_alone_is_sent_so():
    """Covers RFC 3261 §7.3.3: the same response, with short names."""
    stack = doubting()
    stack.core.statuses = ()
    stack.receive(incoming(), UDP, 0.0)
    [handle] = stack.core.handles
    fine = response_to(handle.request, 200, to_tag=handle.to_tag)
    fine = fine.replace(body=bytes(3 * len(incoming()) - len(bytes(fine))))
    handle.respond(fine, 0.0)
    [(data, _)] = [(order.data, order.flow) for order in stack.take_orders()]
    assert len(data) < 3 * len(incoming()) <= len(bytes(fine)) and b"\r\nv: " in data
    assert parse_message(data) == parse_message(bytes(fine))


def test_who_knows_our_tag_hears_us():
    """Covers RFC 3261 §17.1.1.3 and §19.3: by the ACK of a refusal, and for all that follows."""
    stack = doubting(407)
    stack.receive(incoming(), UDP, 0.0)
    [(refusal, _)] = sent(stack)
    stack.receive(incoming("ACK", to=f";tag={refusal.to.tag}"), UDP, 0.1)
    stack.core.statuses = (180, 486)
    stack.receive(incoming(via=f"SIP/2.0/UDP {THEM};branch=z9hG4bKy"), UDP, 0.2)
    assert len(until_silence(stack)) == 12


def test_a_tag_speaks_for_one_address_and_call_alone():
    """Covers RFC 3261 §19.3 [tags-are-random]: who hears us here cannot speak for another."""
    reach, other = AddressValidator(b"secret"), Flow("UDP", ("192.0.2.9", PORT))
    tag = reach.tag("x", "call", UDP)
    for wrong in (tag.swapcase() + "x", "", ".", tag.partition(".")[0], "\ud800é"):
        assert not reach.shown(wrong, "call", UDP)
    assert not reach.shown(tag, "call", other) and not reach.shown(tag, "other", UDP)
    elsewhere = AddressValidator(b"another").tag("x", "call", UDP)  # by who has another secret
    assert all(a != b for a, b in zip(tag.split("."), elsewhere.split("."), strict=True))
    assert not reach.hears(UDP) and reach.shown(tag, "call", UDP) and reach.hears(UDP)
    assert not reach.hears(other) and reach.hears(Flow("TCP", other.remote))


@pytest.mark.sources
def test_few_addresses_are_remembered(monkeypatch):
    monkeypatch.setattr("p2psip.stack.address_validation.MAX_HEARERS", 3)
    reach = AddressValidator(b"secret")
    flows = [Flow("UDP", (THEM, port)) for port in range(1, 6)]
    for flow in flows:
        reach.heard_at(flow)
    assert [reach.hears(flow) for flow in flows] == [False, False, True, True, True]


def test_within_a_dialog_nothing_is_repeated_to_who_is_silent():
    """Own design: a Contact is a stranger's word; who has answered is asked on."""
    stack, asker = doubting(), Asker()
    bye = asking("BYE")
    bye = bye.replace(headers=bye.headers.with_("To", "<sip:bob@b.com>;tag=b"))
    stack.request(bye, asker, 0.0)
    assert len(until_silence(stack)) == 1 and asker.heard == [-408]
    stack.request(asking("OPTIONS"), asker, 0.0)
    [(asked, _)] = sent(stack)
    stack.receive(bytes(response_to(asked, 200, to_tag="t")), UDP, 0.1)
    stack.request(bye, asker, 40.0)
    assert len(until_silence(stack)) == 11


@pytest.mark.parametrize("more", [[], [("Supported", "outbound")]])
def test_calls_to_a_forged_registration_are_no_flood(more):
    """Own design: a few INVITEs are repeated in full, for a phone that has never been called."""
    device = ';reg-id=1;+sip.instance="<urn:uuid:1>"' if more else ""
    home = Home(trusting=False)
    home.hear(register("bob", f"<sip:bob@{FAR}>{device}", *more), source=FAR)
    told = []
    for number in range(50):
        invite = request(
            "INVITE", "sip:bob@home", ("From", "<sip:eve@away>;tag=a"), call=f"{number}"
        )
        told += home.hear(invite, now=number / 1000)
    told += home.wait(until=200.0)
    drawn = [bytes(message) for message, to, _ in told if to == FAR]
    invites = [each for each in drawn if each.startswith(b"INVITE")]
    assert len(invites) < FACTOR * 50 and home.idle
    home.hear(register("bob", f"<sip:bob@{FAR}>{device}", *more, cseq=2), source=FAR, now=300.0)
    alone = home.hear(request(call="alone"), now=300.0) + home.wait(until=500.0)
    assert len([message for message, to, _ in alone if to == FAR]) == 7


@pytest.mark.parametrize("asks", [("OPTIONS", "BYE"), ("BYE",)])
def test_a_contact_elsewhere_is_told_once_of_each(asks):
    """Own design: a caller that hears us may name anybody, and so gets nobody more than that."""

    class Owner:
        """Takes the call, and whatever becomes of it."""

        def __getattr__(self, name):
            return lambda *news: None

    def incoming_call(server, now):
        contact = home.stack.contact("bob")
        calls.append(home.agent.incoming(server, contact, Owner(), now))
        calls[0].accept(b"answer", now)

    calls = []
    home = Home(trusting=False, route=lambda message: incoming_call)
    elsewhere = ("Contact", f"<sip:alice@{FAR}>")
    [fine, *_] = finals_of(home.hear(request("INVITE", "sip:bob@home", elsewhere)))
    home.hear(request("ACK", "sip:bob@home", to=f";tag={fine.to.tag}"))
    [call] = calls
    (call.ask if len(asks) == 2 else call.bye)(1.0)
    sent = home.wait(until=200.0)
    told = [message.method for message, to, _ in sent if to == FAR]
    assert told == list(asks) and home.idle


def finals_of(sent):
    """The final responses among what was sent."""
    return [m for m, _, _ in sent if not hasattr(m, "method") and m.status >= 200]


def test_a_call_that_nobody_heard_ends_without_a_word():
    """Covers RFC 3261 §13.3.1.4, and departs from it: no BYE for who never asked for the call."""

    class Owner:
        def __init__(self):
            self.ended = []

        def on_ended(self, call, reason, now):
            self.ended.append(reason)

    def incoming_call(server, now):
        call = home.agent.incoming(server, home.stack.contact("bob"), owner, now)
        call.accept(b"answer", now)

    for trusting, methods in ((False, []), (True, ["BYE"] * 11)):
        owner = Owner()
        home = Home(trusting=trusting, route=lambda message: incoming_call)
        sent = home.hear(request()) + home.wait(until=200.0)
        assert [m.method for m, _, _ in sent if hasattr(m, "method")] == methods
        assert owner.ended == ["no ACK"] and home.idle
        assert {to for _, to, _ in sent} == {ALICE} and HOME not in owner.ended


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(1, 50), st.booleans())))
def test_a_pool_holds_what_it_may_and_leaves_a_share(wishes):
    """Own design: never more than the limit, nor than the open part for those unknown."""
    pool = Pool(400)
    for host, units, known in wishes:
        before = pool.of_host.get(host, 0), pool.used
        if pool.has_room(host, units, known=known):
            pool.add(host, units)
            free = (400 if known else 350) - before[1]
            assert before[0] + units <= free
        else:
            assert (pool.of_host.get(host, 0), pool.used) == before
    assert pool.used == sum(pool.of_host.values()) <= 400
    for host, units in list(pool.of_host.items()):
        pool.add(host, -units)
    assert pool.used == 0 and not pool.of_host
