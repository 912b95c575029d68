"""The dialogs that pass through a proxy: each leads to its other side alone, and is in bounds."""

import pytest
from support.sip.elements import PORT
from support.sip.homes import (
    ALICE,
    BOB,
    CAROL,
    FAR,
    HOME,
    Home,
    answer_to,
    forked,
    methods,
    register,
    request,
    signed,
    statuses,
    store,
)

from p2psip.server import proxied_dialogs
from p2psip.server.proxied_dialogs import SILENCE, WITHIN
from p2psip.sip.build import response_to
from p2psip.sip.message import Request
from p2psip.stack.stack import Flow
from p2psip.ua.requests.request_validation import IDENTITY


def dialog(home, branches):
    """The Route of a dialog that was set up through `home`."""
    sent = home.hear(response_to(branches[BOB], 200, to_tag="t"), source=BOB)
    return sent[0][0].record_routes[0]


def within(method, uri, route, *more, to=";tag=t", cseq=2, **options):
    return request(method, uri, ("Route", route), *more, to=to, cseq=cseq, **options)


def of_bob(method, uri, route, *more, cseq=7):
    """A request from the callee's side."""
    fields = [("From", "<sip:bob@home>;tag=t"), ("To", "<sip:alice@home>;tag=a"), *more]
    return request(method, uri, ("Route", route), *fields, cseq=cseq)


def test_a_dialog_goes_on_through_us():
    """Covers RFC 3261 §16.11 [ack-is-checked] [ack-is-copied] [ack-is-routed] [one-target]."""
    home, branches = forked(BOB)
    route = dialog(home, branches)
    [(out, to, _)] = home.hear(within("ACK", f"sip:bob@{BOB}", route))
    assert (out.method, to, out.routes) == ("ACK", BOB, ()) and out.max_forwards == 69
    assert not home.hear(within("ACK", f"sip:b@{BOB}", route, ("Max-Forwards", 0), cseq=3))
    [(out, to, _)] = home.hear(within("BYE", f"sip:bob@{BOB}", route, cseq=4))
    assert (out.method, to, out.routes) == ("BYE", BOB, ())


def test_from_either_side():
    """Covers RFC 3261 §16.4: the callee's requests carry the tags the other way round."""
    home, branches = forked(BOB)
    route = dialog(home, branches)
    message = of_bob("BYE", f"sip:alice@{ALICE}", route)
    assert ("BYE", ALICE) in methods(home.hear(message, source=BOB))


@pytest.mark.parametrize("method", sorted(WITHIN))
@pytest.mark.parametrize("routes", ["{us}", "{us}, <sip:10.0.9.9;lr>", "<sip:10.0.9.9;lr>", None])
def test_a_dialog_leads_to_its_other_side_alone(method, routes):
    """Covers RFC 3261 §12.2: not to whom a request names, nor by whom it asks to be routed."""
    home, branches = forked(BOB)
    route = dialog(home, branches)
    routes = routes and routes.format(us=route)
    out = methods(home.hear(within(method, f"sip:victim@{FAR}:25;transport=tcp", routes)))
    assert out == [(method, BOB)]


@pytest.mark.parametrize("method", ["INVITE", "REGISTER", "PUBLISH", "BYE", "MESSAGE", "ACK"])
def test_our_route_is_no_way_out_for_what_is_in_no_dialog(method):
    """Covers RFC 3261 §16.5: a Route that somebody has read opens nothing to strangers."""
    home, branches = forked(BOB)
    route = dialog(home, branches)
    stranger = ("From", "<sip:x@away>;tag=a")
    for number, (tag, call) in enumerate([("", "call"), (";tag=u", "call"), (";tag=t", "other")]):
        message = within(
            method, f"sip:x@{FAR}", route, stranger, to=tag, call=call, cseq=5 + number
        )
        assert methods(home.hear(message)) == []


@pytest.mark.parametrize("method", ["REGISTER", "PUBLISH"])
def test_what_belongs_in_no_dialog_goes_nowhere_in_one(method):
    """Covers RFC 3261 §21.4.6."""
    home, branches = forked(BOB)
    sent = home.hear(within(method, f"sip:bob@{BOB}", dialog(home, branches)))
    assert methods(sent) == [] and statuses(sent) == [405]


def test_a_dialog_that_nobody_knows_any_more():
    """Covers RFC 3261 §12.2.2: also after a restart, which forgets all."""
    _, branches = forked(BOB)
    home, other = Home(), branches[BOB].record_routes[0]
    sent = home.hear(within("BYE", f"sip:bob@{BOB}", other))
    assert methods(sent) == [] and statuses(sent) == [481]
    assert home.hear(within("ACK", f"sip:bob@{BOB}", other)) == []


def test_a_strict_router_before_us():
    """Covers RFC 3261 §16.4: our own Route in the Request-URI, the target last in the Routes."""
    home, branches = forked(BOB)
    route = dialog(home, branches)
    message = within("BYE", str(route.uri), f"<sip:bob@{BOB}>")
    [(out, to, _)] = home.hear(message)
    assert (str(out.uri), out.routes, to) == (f"sip:bob@{BOB}", (), BOB)


def test_a_strict_router_behind_us():
    """Covers RFC 3261 §16.6 step 6: it gets its own URI as the target, and the true one last."""
    before = ("Record-Route", f"<sip:{FAR};x=y>")  # of an RFC 2543 proxy at the caller's side
    message = request("INVITE", "sip:bob@home", before)
    home, branches = forked(BOB, message=message, users=store("alice", "bob"))
    dialog(home, branches)
    [(out, to, _)] = home.hear(of_bob("BYE", "sip:x", "<sip:home;lr>"), source=BOB)
    assert (str(out.uri), to) == (f"sip:{FAR};x=y", FAR)
    assert [str(route.uri) for route in out.routes] == [f"sip:alice@{ALICE}"]


def test_the_proxies_of_either_side_are_kept():
    """Covers RFC 3261 §12.1: beyond us lies what each side has recorded, nearest first."""
    before = [("Record-Route", f"<sip:{FAR};lr>"), ("Record-Route", "<sip:p.away;lr>")]
    message = request("INVITE", "sip:bob@home", *before)
    home, branches = forked(BOB, message=message, users=store("alice", "bob"))
    fine = response_to(branches[BOB], 200, to_tag="t", headers=[("Contact", "<sip:b@10.0.7.7>")])
    routes = [f"<sip:q.there;lr>, <sip:{CAROL};lr>", *fine.headers.all("Record-Route")]
    fine = fine.replace(headers=fine.headers.with_("Record-Route", *routes))
    [(_, to, _)] = home.hear(fine, source=BOB)
    assert to == ALICE
    for bye, source, expected, target in (
        (within("BYE", "sip:x", "<sip:home;lr>"), FAR, [CAROL, "q.there"], "sip:b@10.0.7.7"),
        (of_bob("BYE", "sip:x", "<sip:home;lr>"), CAROL, [FAR, "p.away"], f"sip:alice@{ALICE}"),
    ):
        [(out, to, _)] = home.hear(bye, source=source)
        assert (str(out.uri), to) == (target, expected[0])
        assert [each.uri.host for each in out.routes] == expected


@pytest.mark.parametrize("method", ["INVITE", "UPDATE"])
def test_targets_are_followed(method):
    """Covers RFC 3261 §12.2.1.2 and §12.2.2, RFC 3311 §5.1: once a 2xx has agreed to it."""
    home, branches = forked(BOB, users=store("alice", "bob"))
    route = dialog(home, branches)
    moved = [("Contact", f"<sip:alice@{CAROL}>")]
    [(asked, *_)] = home.hear(within(method, "sip:x", route, *moved))[-1:]
    again = {"to_tag": "t", "headers": [("Contact", "<sip:bob@10.0.8.8>")]}
    refused, cseq = response_to(asked, 488), 3
    home.hear(refused, source=BOB)
    assert ("BYE", ALICE) in methods(home.hear(of_bob("BYE", "sip:x", route), source=BOB))
    home, branches = forked(BOB, users=store("alice", "bob"))
    route = dialog(home, branches)
    [(asked, *_)] = home.hear(within(method, "sip:x", route, *moved))[-1:]
    home.hear(response_to(asked, 200, **again), source=BOB)
    assert ("BYE", CAROL) in methods(home.hear(of_bob("BYE", "sip:x", route), source=BOB))
    assert ("BYE", "10.0.8.8") in methods(home.hear(within("BYE", "sip:x", route, cseq=cseq)))


def test_an_early_dialog_has_a_way_too_and_ends_with_its_invite():
    """Covers RFC 3262 §3 and RFC 3261 §12.3."""
    home, branches = forked(BOB, CAROL)
    for phone in (BOB, CAROL):
        home.hear(response_to(branches[phone], 180, to_tag=phone), source=phone)
    assert len(home.proxy.dialogs) == 3  # and the INVITE
    route = branches[BOB].record_routes[0]
    for number, phone in enumerate((BOB, CAROL)):
        message = within("PRACK", f"sip:bob@{phone}", route, to=f";tag={phone}", cseq=2 + number)
        assert methods(home.hear(message)) == [("PRACK", phone)]
    home.hear(response_to(branches[BOB], 200, to_tag=BOB), source=BOB)
    home.wait(100.0)
    assert len(home.proxy.dialogs) == 1
    home.hear(within("BYE", "sip:x", route, to=f";tag={BOB}", cseq=9), now=100.0)
    home.wait(300.0)
    assert not home.proxy.dialogs._known and len(home.proxy.dialogs) == 0


def test_a_dialog_is_kept_until_the_answer_to_its_bye():
    """Covers RFC 3261 §15.1.1 and §22.3: a BYE that is challenged has not ended it."""
    home, branches = forked(BOB)
    route = dialog(home, branches)
    for cseq, status in ((3, 407), (4, 200)):
        [(bye, to, _)] = home.hear(within("BYE", "sip:x", route, cseq=cseq), now=float(cseq))
        assert to == BOB
        home.hear(response_to(bye, status), source=BOB, now=float(cseq))
        home.wait(10.0 + cseq)
        assert len(home.proxy.dialogs) == (status == 407)
    home.wait(100.0)
    assert len(home.proxy.dialogs) == 0 and home.idle and home.proxy.deadline is None


def test_a_silent_dialog_is_forgotten_and_a_talking_one_is_not():
    home, branches = forked(BOB)
    route = dialog(home, branches)
    home.wait(0.9 * SILENCE)
    assert methods(home.hear(within("INFO", "sip:x", route), now=0.9 * SILENCE))
    home.wait(1.8 * SILENCE)
    assert len(home.proxy.dialogs) == 1
    home.wait(1.95 * SILENCE)
    assert len(home.proxy.dialogs) == 0 and home.proxy.deadline is None


@pytest.mark.sources
def test_the_table_is_bounded(monkeypatch):
    """Covers RFC 3261 §21.5.4: a share for each caller, and a whole for all."""
    monkeypatch.setattr(proxied_dialogs, "MAX_OF_ONE", 2)
    monkeypatch.setattr(proxied_dialogs, "MAX_DIALOGS", 3)
    home = Home()
    home.hear(register(), source=BOB)
    seen = []
    for number, source in enumerate([ALICE, ALICE, ALICE, CAROL, FAR]):
        sent = home.hear(request(call=str(number)), source=source)
        seen += [m.status for m, *_ in sent if not isinstance(m, Request) and m.status != 100]
    assert seen == [503, 503] and len(home.proxy.dialogs) == 3
    home.wait(300.0)
    assert len(home.proxy.dialogs) == 0 and home.idle


@pytest.mark.sources
def test_calls_that_are_over_take_no_place(monkeypatch):
    """Covers RFC 3261 §21.5.4: an office may place many calls a second, one after the other."""
    monkeypatch.setattr(proxied_dialogs, "MAX_OF_ONE", 2)
    monkeypatch.setattr(proxied_dialogs, "MAX_OVER", 3)
    home = Home()
    home.hear(register(), source=BOB)
    for number in range(5):
        call = str(number)
        sent = home.hear(request(call=call))
        [invite] = [m for m, *_ in sent if isinstance(m, Request)]
        [(ok, *_)] = home.hear(response_to(invite, 200, to_tag="t"), source=BOB)
        route = ok.record_routes[0]
        [(bye, *_)] = home.hear(within("BYE", "sip:x", route, call=call, cseq=3))
        home.hear(response_to(bye, 200), source=BOB)
    table = home.proxy.dialogs
    assert len(table) == 0 and sorted(call_id for call_id, *_ in table._known) == ["2", "3", "4"]
    home.wait(100.0)
    assert not table._known and home.idle and home.proxy.deadline is None


@pytest.mark.sources
def test_strangers_in_league_with_a_callee_leave_room_for_users(monkeypatch):
    """Covers RFC 3261 §21.5.4: who has answered for a day may be called by more no longer."""
    monkeypatch.setattr(proxied_dialogs, "MAX_OF_ONE", 3)
    monkeypatch.setattr(proxied_dialogs, "MAX_DIALOGS", 8)
    home = Home(users=store("alice", "bob"))
    asked = answer_to(home.hear(register(), source=BOB))
    home.hear(signed(register(), asked, cseq=2), source=BOB)
    stranger, seen = ("From", "<sip:m@evil.invalid>;tag=m"), []
    for number in range(6):
        sent = home.hear(
            request("INVITE", "sip:bob@home", stranger, call=f"{number}"), f"10.7.0.{number}"
        )
        for invite in (m for m, *_ in sent if isinstance(m, Request)):
            for tag in ("t", "u"):  # a second phone, as it says
                home.hear(response_to(invite, 200, to_tag=tag), source=BOB)
        seen += [m.status for m, *_ in sent if not isinstance(m, Request) and m.status != 100]
        home.wait(100.0 * (number + 1))
    assert seen == [503] * 4 and len(home.proxy.dialogs) == 3  # of a day
    challenged = answer_to(home.hear(request(), now=home.now))
    out = home.hear(signed(request(), challenged, cseq=2), now=home.now)
    assert ("INVITE", BOB) in methods(out)


def test_nobody_has_us_remember_much_of_a_dialog():
    """Covers RFC 3261 §21.5.7."""
    home = Home()
    home.hear(register(), source=BOB)
    long = ("Record-Route", f"<sip:{'x' * proxied_dialogs.MAX_STATE}@10.0.9.9;lr>")
    assert 513 in statuses(home.hear(request("INVITE", "sip:bob@home", long)))
    assert len(home.proxy.dialogs) == 0


def test_connections_of_dialogs_are_known_at_once():
    """Covers RFC 3261 §12.2: whatever side they are of, until the dialog is over."""
    home, branches = forked(BOB)
    dialog(home, branches)
    [known] = home.proxy.dialogs._known.values()
    for flow in (known[0].caller.flow, known[0].callee.flow):
        assert home.proxy.dialogs.keeps(flow)
    home.hear(within("INFO", "sip:x", None))
    assert sum(home.proxy.dialogs._flows.values()) == 2
    home.wait(2 * SILENCE)
    assert not home.proxy.dialogs._flows


def test_a_callee_makes_so_many_dialogs_and_no_more():
    home, branches = forked(BOB)
    for number in range(100):
        home.hear(response_to(branches[BOB], 180, to_tag=f"early{number}"), source=BOB)
    assert len(home.proxy.dialogs) == 1 + proxied_dialogs.MAX_FORKS
    for number in range(100):
        home.hear(response_to(branches[BOB], 200, to_tag=f"t{number}"), source=BOB)
    assert len(home.proxy.dialogs) == proxied_dialogs.MAX_FORKS
    assert methods(home.hear(within("ACK", "sip:x", "<sip:home;lr>", to=";tag=t0")))


def test_connections_are_kept_as_long_as_a_dialog_needs_them():
    """Covers RFC 5626 §5.3 in spirit: that of either side, and after another connection the new."""

    def by_tcp(address, port=PORT):
        return Flow("TCP", (address, port), (HOME, PORT))

    home = Home()
    home.hear(register(contact=f"<sip:bob@{BOB};transport=tcp>"), source=BOB, transport="TCP")
    sent = home.hear(request(), transport="TCP")
    [branch] = [m for m, to, _ in sent if to == BOB]
    route = dialog(home, {BOB: branch})
    keeps = home.proxy.dialogs.keeps
    assert [keeps(by_tcp(each)) for each in (ALICE, BOB, CAROL)] == [True, True, False]
    info, again = within("INFO", "sip:x", route), by_tcp(ALICE, 40_000)
    home.stack.receive(bytes(info), again, 1.0)
    home.said()
    assert keeps(again) and not keeps(by_tcp(ALICE))
    home.wait(300.0 + SILENCE)
    assert home.idle and not home.proxy.dialogs._flows


def test_namesakes_do_not_meet():
    """A stranger who has overheard a dialog makes one of the same name: it leads nobody astray."""
    home, branches = forked(BOB)
    route = dialog(home, branches)
    home.hear(register("eve", f"<sip:eve@{CAROL}>", call="e"), source=CAROL)
    twin = request("INVITE", "sip:eve@home", ("From", "<sip:x@away>;tag=a"), cseq=50)
    [out] = [m for m, to, _ in home.hear(twin, source=FAR) if to == CAROL]
    home.hear(response_to(out, 200, to_tag="t"), source=CAROL)
    home.wait(0.0)
    assert methods(home.hear(within("INFO", "sip:x", route, cseq=51))) == [("INFO", BOB)]
    assert methods(home.hear(of_bob("INFO", "sip:x", route), source=BOB)) == [("INFO", ALICE)]
    theirs = within("BYE", "sip:x", route, ("From", "<sip:x@away>;tag=a"), cseq=52)
    assert methods(home.hear(theirs, source=FAR)) == [("BYE", CAROL)]


def test_a_subscription_is_a_dialog_until_it_is_terminated():
    """Covers RFC 6665 §4.4.1."""
    home, branches = forked(BOB, message=request("SUBSCRIBE"))
    route = dialog(home, branches)
    for state, left in (("active;expires=60", 1), ("terminated;reason=timeout", 0)):
        told = of_bob("NOTIFY", "sip:x", route, ("Subscription-State", state), cseq=10 - left)
        [asked] = [m for m, to, _ in home.hear(told, source=BOB) if to == ALICE]
        home.hear(response_to(asked, 200))
        home.wait(100.0 * (2 - left))
        assert len(home.proxy.dialogs) == left


@pytest.mark.parametrize("name", IDENTITY)
def test_what_strangers_say_of_identity_goes_no_further(name):
    """Covers RFC 3325 §4 [kept-private], §5 [strangers-assert-nothing], §6 [no-hint-goes-on]
    and §7 [private-is-removed]: in requests and responses, in either direction of the dialog.
    """
    says = (name, "<sip:president@home>")
    home, branches = forked(BOB, message=request("INVITE", "sip:bob@home", says))
    assert name not in branches[BOB].headers
    fine = response_to(branches[BOB], 200, to_tag="t", headers=[says])
    [(back, *_)] = home.hear(fine, source=BOB)
    assert name not in back.headers
    [(ack, *_)] = home.hear(within("ACK", "sip:x", "<sip:home;lr>", says))
    [(info, *_)] = home.hear(within("INFO", "sip:x", "<sip:home;lr>", says))
    assert name not in ack.headers and name not in info.headers
