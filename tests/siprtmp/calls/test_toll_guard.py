"""Toll fraud: what users may do with the telephone, by SIP, as rich clients and as stock tools."""

import pytest
from support.gateway.gateway_world import BOB as DESK_USER
from support.gateway.gateway_world import DESK, PCMU, SPEEX, Desk, GatewayWorld, Log, sdp
from support.sip.homes import (
    ALICE,
    BOB,
    CAROL,
    FAR,
    Home,
    answer_to,
    finals,
    forwarded,
    register,
    request,
    signed,
    store,
)

from p2psip.server.call_allowance import Allowance
from p2psip.sip.build import response_to
from p2psip.sip.message import Request
from siprtmp.calls.toll_guard import Tolls
from siprtmp.core.call_limits import allowance as allowance_of
from siprtmp.edge.overview import Overview
from siprtmp.operation.audit_log import AuditLog
from siprtmp.settings.table import Settings


class Judged(Home):
    """A home whose users have limits; `log` is what an operator reads."""

    def __init__(self, *, users=("alice", "bob"), **limits):
        super().__init__(users=store(*users) if users else None)
        self.log = Log()
        self.tolls = Tolls(Allowance(**limits), self.domains, has_passwords=bool(users))
        self.endpoint.judge = self.tolls
        self.endpoint.observer = AuditLog(self.endpoint.registrar, self.log, self.tolls.answered)
        self.number = 0

    def enter(self, user, host, contact=None):
        """A phone registers."""
        self.number += 1
        first = register(user, contact or f"<sip:{user}@{host}>", call=f"r{self.number}")
        asked = answer_to(self.hear(first, source=host))
        if asked.status == 401:
            self.hear(signed(first, asked, cseq=100 + self.number), source=host)

    def call(self, uri, *more, user="alice", source=ALICE, method="INVITE", call=None):
        """A user with the right password calls; the request that was sent last, and the answer."""
        self.number += 1
        sent = request(method, uri, *more, user=user, call=call or f"c{self.number}")
        out = self.hear(sent, source=source, now=self.now)
        if finals(out) == [407]:
            sent = signed(sent, answer_to(out), cseq=100 + self.number)
            out = self.hear(sent, source=source, now=self.now)
        return sent, out

    def refusals(self):
        """What the log says of those who may not."""
        refused = ("call-refused", "message-refused")
        return [values["reason"] for what, values in self.log.lines if what in refused]


def within(method, invite, tag, *, backwards=False, cseq=9):
    """A request of the dialog that `invite` began."""
    one, other = ("From", f"{invite.from_}"), ("To", f"{invite.to.with_tag(tag)}")
    if backwards:
        one, other = ("From", other[1]), ("To", one[1])
    return request(method, "sip:bob@home", one, other, call=invite.call_id, cseq=cseq)


def test_a_user_has_so_many_calls_at_once_until_they_fail_or_are_answered_and_over():
    """Covers RFC 3261 §21.4.4 and §16.3."""
    home = Judged(at_once=1)
    home.enter("bob", BOB)
    _, out = home.call("sip:bob@home")
    [(invite, *_)] = [each for each in out if each[1] == BOB]
    _, refused = home.call("sip:bob@home")
    assert finals(refused) == [403] and home.refusals() == ["403 Too Many Calls at Once"]
    assert [each.origin.callee for each in home.tolls] == ["sip:bob@home"]
    home.hear(response_to(invite, 486, to_tag="b"), source=BOB)  # bob does not want to
    assert list(home.tolls) == []
    _, out = home.call("sip:bob@home")
    [(invite, *_)] = [each for each in out if each[1] == BOB]
    home.hear(response_to(invite, 200, to_tag="b"), source=BOB)
    [through] = home.tolls
    assert through.up_at is not None and through.origin.source == f"UDP:{ALICE}"
    assert finals(home.call("sip:bob@home")[1]) == [403]


@pytest.mark.parametrize(
    ("backwards", "status", "is_over"),
    [
        (False, 200, True),
        (True, 200, True),
        (False, 481, True),
        (False, 408, True),
        (False, 420, False),  # bob's phone still talks
        (False, 500, False),
    ],
)
def test_only_a_bye_that_the_other_side_has_taken_gives_the_call_back(backwards, status, is_over):
    """Covers RFC 3261 §15.1.1."""
    home = Judged(at_once=1)
    home.enter("bob", BOB)
    invite, out = home.call("sip:bob@home")
    [(ringing, *_)] = [each for each in out if each[1] == BOB]
    server = next(iter(home.tolls)).server
    home.hear(response_to(ringing, 200, to_tag="b"), source=BOB)
    other = within("BYE", invite, "other", backwards=backwards)
    home.tolls.answered(server, other, response_to(other, 200), home.now)
    assert len(list(home.tolls)) == 1  # not of this dialog
    bye = within("BYE", invite, "b", backwards=backwards)
    home.tolls.answered(server, bye, response_to(bye, status), home.now)
    assert len(list(home.tolls)) == (not is_over)
    assert finals(home.call("sip:bob@home")[1]) == ([] if is_over else [403])


def test_a_user_has_so_many_calls_an_hour_though_they_fail():
    home = Judged(an_hour=3)
    for _ in range(3):
        assert finals(home.call("sip:bob@home")[1]) == [480]
    assert finals(home.call("sip:bob@home")[1]) == [403]
    assert home.refusals()[-1] == "403 Too Many Calls an Hour"
    assert finals(home.call("sip:alice@home", user="bob", source=BOB)[1]) == [480]
    home.wait(2 * 3600.0)
    assert finals(home.call("sip:bob@home")[1]) == [480]


def test_wrong_passwords_cost_their_victim_no_call():
    home = Judged(at_once=1, an_hour=1)
    sent = request(call="guess")
    asked = answer_to(home.hear(sent))
    for nc in range(1, 6):
        assert finals(home.hear(signed(sent, asked, password="guess", nc=nc))) == [407]
    assert finals(home.call("sip:bob@home")[1]) == [480]


@pytest.mark.parametrize(
    ("uri", "more", "goes"),
    [
        (f"sip:+491@{FAR}", (), True),
        (f"sip:+1900@{FAR}", (), False),
        (f"sip:+491@{CAROL}", (), False),
        (f"sip:+491@{FAR};maddr={CAROL}", (), False),
        (f"sip:+491@{CAROL};maddr={FAR}", (), False),
        (f"sip:+491@{FAR}", (("Route", f"<sip:{CAROL};lr>"),), False),
        (f"sip:bob@{FAR}", (("Route", f"<sip:{CAROL};lr>"),), False),
        ("sip:bob@home", (("Route", f"<sip:{CAROL};lr>"),), False),
        (f"sip:+491@{FAR}", (("To", "<sip:x@y>;tag=made-up"),), True),
        (f"sip:+1900@{FAR}", (("To", "<sip:x@y>;tag=made-up"),), False),
    ],
)
def test_whom_users_may_call_elsewhere_is_said_by_patterns(uri, more, goes):
    """Covers RFC 3261 §16.5: every host on the way counts, so does a dialog that nobody knows."""
    home = Judged(targets=[f"+49*@{FAR}"])
    _, out = home.call(uri, *more)
    if goes:
        assert finals(out) != [403]
        assert [to for _, to, _ in forwarded(out)] in ([FAR], [])
    else:
        assert not forwarded(out) and finals(out)[0] in (403, 481)


@pytest.mark.parametrize("method", ["MESSAGE", "OPTIONS", "SUBSCRIBE"])
def test_what_is_no_call_stays_at_home_too(method):
    home = Judged(targets=[])
    assert finals(home.call(f"sip:x@{FAR}", method=method)[1]) == [403]


def test_a_phone_that_registers_somewhere_else_is_no_way_around():
    """A user registers a number at the trunk, and calls itself."""
    home = Judged(targets=["+49*@trunk.example"])
    for contact in (f"<sip:+1900@{FAR}>", "<sip:+1900@trunk.example>"):
        home.enter("bob", BOB, contact)
        _, out = home.call("sip:bob@home")
        assert not forwarded(out) or FAR not in [to for _, to, _ in forwarded(out)]
        assert finals(out)[0] in (403, 480)
    home.enter("bob", BOB)
    _, out = home.call("sip:bob@home")
    assert [to for _, to, _ in forwarded(out)] == [BOB]


def test_a_phone_behind_a_proxy_is_called_where_a_pattern_allows_it():
    """The proxy may trust the gateway: it is no way to the trunk for a user."""
    home = Judged(targets=["*@192.168.0.*"])
    seen = []
    for number, contact in enumerate((f"<sip:+1900@{FAR}>", "<sip:bob@192.168.0.7>")):
        path = ("Path", f"<sip:{BOB};lr>")
        first = register("bob", contact, path, call=f"p{number}")
        asked = answer_to(home.hear(first, source=BOB))
        assert finals(home.hear(signed(first, asked, cseq=9 + number), source=BOB)) == [200]
        _, out = home.call("sip:bob@home")
        seen += [(uri, to) for uri, to, _ in forwarded(out)] or finals(out)
    assert seen == [403, ("sip:bob@192.168.0.7", BOB)]


def far_phone(home, *contacts):
    """Bob registers numbers at the trunk, which says that it knows them."""
    first = register("bob", ", ".join(contacts), call="far")
    out = home.hear(signed(first, answer_to(home.hear(first, BOB)), cseq=2), BOB)
    while questions := [m for m, *_ in out if isinstance(m, Request)]:
        out = [each for m in questions for each in home.hear(response_to(m, 200, to_tag="t"), FAR)]


def test_strangers_call_on_to_the_trunk_at_the_cost_of_who_registered_there():
    """A user's own calls are few; so are those of his friends, whom nobody asks for a password."""
    home = Judged(at_once=2, targets=[f"+49*@{FAR}"])
    far_phone(home, f"<sip:+491@{FAR}>")
    seen = []
    for number in range(4):
        stranger = ("From", "<sip:eve@away>;tag=a")
        out = home.hear(request("INVITE", "sip:bob@home", stranger, call=f"s{number}"), CAROL)
        seen += [to for _, to, _ in forwarded(out)] or finals(out)
    assert seen == [FAR, FAR, 403, 403]
    assert finals(home.call(f"sip:+492@{FAR}", user="bob")[1]) == [403]


def test_each_number_at_the_trunk_is_a_call_of_its_own():
    """One call to a user who has registered ten of them."""
    home = Judged(at_once=2, targets=[f"+49*@{FAR}"])
    far_phone(home, *(f"<sip:+49{number}@{FAR}>" for number in range(10)))
    sent, out = home.call("sip:bob@home")
    assert [to for _, to, _ in forwarded(out)] == [FAR] * 3  # one is alice's
    invite = next(m for m, *_ in out if isinstance(m, Request))
    home.hear(response_to(invite, 200, to_tag="t"), FAR)
    assert finals(home.call(f"sip:+492@{FAR}", user="bob")[1]) == [403]
    out = home.hear(within("BYE", sent, "t"), now=home.now)
    bye = next(m for m, *_ in out if isinstance(m, Request))
    home.hear(response_to(bye, 200), FAR)
    assert forwarded(home.call(f"sip:+492@{FAR}", user="bob")[1])


def test_what_is_kept_of_a_call_is_little():
    """Covers RFC 3261 §16: its messages may have been of any size."""
    home = Judged()
    home.enter("bob", BOB)
    _, out = home.call("sip:bob@home", ("Subject", "x" * 9000))
    invite = next(m for m, *_ in out if isinstance(m, Request))
    home.hear(response_to(invite, 200, to_tag="t", body=b"x" * 9000), BOB)
    [call] = home.tolls
    assert call.server is None and len(bytes(call.invite)) + len(bytes(call.answer)) < 1000


def test_who_needs_no_password_is_told_apart_by_host():
    home = Judged(users=(), an_hour=1)
    assert finals(home.call("sip:bob@home", user="one")[1]) == [480]
    assert finals(home.call("sip:bob@home", user="two")[1]) == [403]
    assert finals(home.call("sip:bob@home", user="two", source=CAROL)[1]) == [480]


def test_strangers_who_call_in_have_no_limits_of_users():
    home = Judged(at_once=1, targets=[])
    home.enter("bob", BOB)
    for number in range(3):
        stranger = ("From", "<sip:eve@away>;tag=a")
        out = home.hear(request("INVITE", "sip:bob@home", stranger, call=f"s{number}"), source=FAR)
        assert forwarded(out) and finals(out) == []
    assert len(list(home.tolls)) == 3


# -- clients by RTMP --------------------------------------------------------------------


@pytest.fixture
def limited():
    """A gateway where each client has one call at once, and may call the desk's host alone."""
    return GatewayWorld(max_user_calls=1, max_user_calls_per_hour=3, allow_targets=(f"*@{DESK}",))


def test_a_rich_client_is_told_why_and_may_call_again_later(limited):
    world = limited
    desk, alice = Desk(world.link, answers=SPEEX), world.rich("alice@home")
    alice.call("invite", f"sip:user@{FAR}")
    assert alice.heard() == [("rejected", "403 Target Not Allowed")]
    alice.call("invite", f"<sip:user@{DESK};maddr={FAR}>")
    assert alice.heard() == [("rejected", "403 Target Not Allowed")]
    [(what, values), _] = world.gateway.log.lines
    assert what == "call-refused" and values["reason"] == "403 Target Not Allowed"
    assert values["caller"] == "sip:alice@home" and values["rtmp"]
    for _ in range(3):
        alice.call("invite", DESK_USER)
        world.wait()
        assert alice.heard()[-1] == ("accepted",)
        alice.call("bye")
        world.wait()
    alice.call("invite", DESK_USER)
    assert alice.heard()[-1] == ("rejected", "403 Too Many Calls an Hour")
    assert desk.calls and world.is_clean()


def test_stock_tools_of_one_host_have_so_many_calls_at_once(limited):
    world = limited
    desk = Desk(world.link, answers=b"")
    first, second = world.tool(), world.tool()
    first.publish(DESK_USER)
    second.publish(f"other@{DESK}")
    world.wait()
    assert second.codes() == ["NetStream.Publish.Rejected"] and second.server.closed
    assert not first.server.closed and len(desk.calls) == 1
    desk.calls[0].reject(486, "Busy Here", world.now)
    world.wait()
    third = world.tool()
    third.publish(DESK_USER)
    world.wait()
    desk.calls[1].accept(sdp(PCMU), world.now)
    world.wait()
    assert third.codes() == ["NetStream.Publish.Start"]
    assert world.is_clean()


# -- defaults ---------------------------------------------------------------------------


def limits_of(**options):
    """(at once, an hour, targets) as settings say."""
    settings = Settings.of(**options)
    allowance = allowance_of(settings.calls, is_open=settings.listeners.is_open)
    limits = allowance._at_once, allowance._an_hour, allowance._messages
    return (*limits, allowance._targets)


@pytest.mark.parametrize(
    ("options", "limits"),
    [
        ({}, (0, 0, 0, None)),
        ({"http": ("192.0.2.1", 80)}, (0, 0, 0, None)),
        ({"sip": (("192.0.2.1", 5060),)}, (10, 60, 600, ())),
        ({"sips": (("192.0.2.1", 5061),)}, (10, 60, 600, ())),
        ({"ws": (("192.0.2.1", 8443),)}, (10, 60, 600, ())),
        ({"rtmps": ("0.0.0.0", 443)}, (10, 60, 600, ())),
        ({"sip": (("192.0.2.1", 5060),), "max_user_calls": 0}, (0, 60, 600, ())),
        ({"sip": (("192.0.2.1", 5060),), "allow_targets": ("*",)}, (10, 60, 600, ("*",))),
        ({"max_user_calls": 2, "max_user_calls_per_hour": 5}, (2, 5, 0, None)),
        ({"max_user_messages_per_hour": 7}, (0, 0, 7, None)),
        ({"allow_targets": ("*@A.example",)}, (0, 0, 0, ("*@a.example",))),
    ],
)
def test_limits_are_off_on_loopback_and_sane_elsewhere(options, limits):
    assert limits_of(**options) == limits


def test_messages_of_a_user_are_limited_by_the_hour():
    """Own design: a provider bills them as well; those of strangers to users are not counted."""
    home = Judged(messages=2)
    home.enter("bob", BOB)
    answers = [finals(home.call("sip:bob@home", method="MESSAGE")[1]) for _ in range(4)]
    assert answers == [[], [], [403], [403]]
    assert home.refusals() == ["403 Too Many Messages an Hour"] * 2
    assert finals(home.call("sip:bob@home")[1]) == []  # calls are counted apart
    home.now = 4000.0
    assert finals(home.call("sip:bob@home", method="MESSAGE")[1]) == [480]  # bob's phone has gone


def test_the_messages_of_a_rich_client_count_as_well():
    world = GatewayWorld(max_user_messages_per_hour=2)
    alice = world.rich("alice@home")
    for _ in range(3):
        alice.call("sendMessage", "hello", "bob@home")
        world.wait()
    assert [reason.partition(" ")[2] for reason in alice.failures()] == [
        "480 Not Registered",
        "480 Not Registered",
        "403 Too Many Messages an Hour",
    ]


def test_the_operator_gives_up_a_call_between_phones_while_it_rings(world):
    """Covers RFC 3261 §16.10: the caller is told 487."""
    home = Judged(users=())
    overview = Overview(world.registry, list, home.log)
    overview.tolls, overview.registrar = home.tolls, home.registrar
    home.enter("bob", BOB)
    _, out = home.call("sip:bob@home", call="first")
    [(ringing, *_)] = [each for each in out if each[1] == BOB]
    home.hear(response_to(ringing, 180, to_tag="b"), source=BOB)
    [(kind, row), *_] = overview.rows(home.now)
    assert kind == "calls" and (row["id"], row["state"]) == ("first", "ringing")
    assert (row["direction"], row["source"]) == ("through", f"UDP:{ALICE}")
    assert overview.end("first", home.now) == ["call"]
    [(cancel, to, _)] = [each for each in home.said() if isinstance(each[0], Request)]
    assert cancel.method == "CANCEL" and to == BOB
    out = home.hear(response_to(ringing, 487, to_tag="b"), source=BOB)
    assert finals(out) == [487] and list(home.tolls) == []


@pytest.mark.parametrize("transports", [("UDP", "UDP"), ("TCP", "UDP"), ("UDP", "TCP")])
def test_the_operator_ends_an_answered_call_between_phones(world, transports):
    """Covers RFC 3261 §15.1.1: each hears a BYE from the other, by the way that leads there."""
    home = Judged(users=(), at_once=1)
    overview = Overview(world.registry, list, home.log)
    overview.tolls, overview.hear = home.tolls, home.stack.receive
    behind_nat = "<sip:bob@192.168.0.9>" if transports[1] == "TCP" else f"<sip:bob@{BOB}>"
    home.hear(register(contact=behind_nat), source=BOB, transport=transports[1])
    by = ";transport=tcp" if transports[0] == "TCP" else ""
    me = f"sip:alice@{ALICE}{by}"
    invite = request("INVITE", "sip:bob@home", ("Contact", f"<{me}>"), call="first")
    [ringing] = [
        message
        for message, to, _ in home.hear(invite, source=ALICE, transport=transports[0])
        if isinstance(message, Request) and to == BOB
    ]
    contact = [("Contact", behind_nat)]
    answer = response_to(ringing, 200, to_tag="b", headers=contact)
    home.hear(answer, source=BOB, transport=transports[1])
    assert overview.end("first", home.now) == ["call"]
    assert ("proxy-end", {"call": "first", "reason": "operator"}) in home.log.lines
    said = home.said()
    byes = {to: (each, how) for each, to, how in said if isinstance(each, Request)}
    assert {to: how for to, (_, how) in byes.items()} == {BOB: transports[1], ALICE: transports[0]}
    to_bob, to_alice = byes[BOB][0], byes[ALICE][0]
    assert (to_bob.method, to_alice.method) == ("BYE", "BYE")
    assert (to_bob.from_.tag, to_bob.to.tag) == ("a", "b") == (to_alice.to.tag, to_alice.from_.tag)
    assert str(to_bob.uri) == behind_nat.strip("<>") and str(to_alice.uri) == me
    assert to_bob.cseq.number > ringing.cseq.number and not to_bob.routes + to_alice.routes
    home.hear(response_to(to_bob, 200), source=BOB, transport=transports[1])
    assert list(home.tolls) == []
