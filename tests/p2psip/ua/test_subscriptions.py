"""Subscriptions outside of calls: made, refreshed, ended, refused, lost."""

import pytest
from support.rtmfp.link import Link
from support.sip.elements import Script
from support.sip.flows import A, B, C, drop, first_request
from support.sip.watchers import KIND, Watcher

from p2psip.dialog.subscription import State
from p2psip.errors import RemoteError
from p2psip.sip.build import response_to
from p2psip.sip.headers import Headers
from p2psip.sip.message import Request, parse_message
from p2psip.ua.ua import MAX_SERVED


def watchers(*lost):
    link = Link(drop(*lost) if lost else None)
    return link, Watcher(link, A), Watcher(link, B)


def bodies(link, method):
    sent = [parse_message(data) for *_, (_, data) in link.sent]
    return [m for m in sent if isinstance(m, Request) and m.method == method]


@pytest.mark.parametrize("lost", [(), ("SIP/2.0 200",), ("NOTIFY",), ("NOTIFY", "SIP/2.0 200")])
def test_a_subscription_from_its_beginning_to_its_end(lost):
    """Covers RFC 6665 §4.2.1.2 [notifies-at-once], §4.2.2 [notifies-at-once] and
    §4.1.2.4 [notify-may-be-first] and §4.1.3 [200-at-once] [waits-for-nobody] [says-the-state]
    and §4.2.1.1 [waits-for-nobody] [no-longer-than-asked].
    And §3.1.1 [subscribe-has-expires], §3.2.1 [one-event] [same-event].
    """
    link, alice, bob = watchers(*lost)
    watch = alice.subscribe(B, 0.0)
    link.run(until=5.0)
    assert alice.heard == [b"state 1"] and watch.state is State.ACTIVE
    assert bodies(link, "NOTIFY")[0].headers["Subscription-State"].startswith("active;expires=60")
    bob.state = b"state 2"
    bob.tell(link.now)
    link.run(until=10.0)
    assert alice.heard == [b"state 1", b"state 2"]
    watch.end(link.now)
    link.run(until=20.0)
    assert alice.heard[-1] == (200, "timeout") and not bob.served
    link.run()
    assert alice.idle and bob.idle


def test_a_subscription_is_refreshed_for_a_day():
    """Covers RFC 6665 §4.2.1.4 [no-longer-than-asked], §3.1.2 [one-event]."""
    link, alice, bob = watchers()
    watch = alice.subscribe(B, 0.0, expires=3600)
    link.run(until=86_400.0)
    assert 29 <= len(bodies(link, "SUBSCRIBE")) <= 31 and watch.state is State.ACTIVE
    assert len({each.call_id for each in bodies(link, "SUBSCRIBE")}) == 1 and len(bob.served) == 1
    expires = {data.split(b"Expires: ")[1][:4] for *_, (_, data) in link.sent if b"200 OK" in data
               and b"SUBSCRIBE\r" in data}  # fmt: skip
    assert expires == {b"3600"}
    assert {len(each.headers.values("Event")) for each in bodies(link, "SUBSCRIBE")} == {1}


@pytest.mark.parametrize("event", ["presence", "presence;id=7a", "presence;id=8"])
def test_every_notify_has_the_id_of_its_subscription(event):
    """Covers RFC 6665 §4.5.2 [id-in-notify]: and none without one."""
    link, alice, bob = watchers()
    watch = alice.subscribe(B, 0.0, event=event)
    link.run(until=5.0)
    bob.tell(link.now)
    link.run(until=10.0)
    watch.end(link.now)
    link.run(until=20.0)
    assert [each.headers["Event"] for each in bodies(link, "NOTIFY")] == [event] * 3


def test_a_watcher_that_is_gone_is_forgotten():
    """Covers RFC 6665 §4.2.2 [removed-without-an-answer] and §4.2.1.4 [says-that-it-ends]."""
    link, alice, bob = watchers()
    alice.subscribe(B, 0.0)
    link.run(until=1.0)
    link.weather = lambda parcel, source, destination: ()
    bob.tell(link.now)
    link.run(until=60.0)
    assert not bob.served
    link, alice, bob = watchers()
    watch = alice.subscribe(B, 0.0)
    link.run(until=1.0)
    alice.agent.core.timer_queue.set(watch, 1e9)  # it forgets to refresh
    link.run(until=610.0)
    assert alice.heard[-1] == (200, "timeout") and not bob.served


def test_a_notifier_that_is_gone_is_given_up():
    link, alice, _bob = watchers()
    watch = alice.subscribe(B, 0.0)
    link.run(until=1.0)
    link.weather = lambda parcel, source, destination: ()
    link.run(until=700.0)
    assert alice.heard[-1][0] == 408 and watch.state is State.TERMINATED
    link.run()
    assert alice.idle


@pytest.mark.parametrize("status", [403, 489, 603])
def test_a_refusal_ends_it(status):
    link = Link()
    alice, script = Watcher(link, A), Script(link, B)
    watch = alice.subscribe(B, 0.0)
    link.run(until=0.1)
    script.say(response_to(script.heard[0], status, to_tag="t"), A)
    assert alice.heard[0][0] == status and watch.state is State.TERMINATED
    link.run()
    assert alice.idle


def notify(subscribe, tag="t", state="active;expires=60", cseq=1, event="presence", body=b"x"):
    fields = [
        ("Via", f"SIP/2.0/UDP {B};branch=z9hG4bK{tag}{cseq}"),
        ("Max-Forwards", 70),
        ("From", f"{subscribe.to};tag={tag}"),
        ("To", subscribe.from_),
        ("Call-ID", subscribe.call_id),
        ("CSeq", f"{cseq} NOTIFY"),
        ("Contact", f"<sip:{B}>"),
        ("Event", event),
        ("Content-Type", KIND),
    ]
    if state:
        fields.append(("Subscription-State", state))
    return Request("NOTIFY", subscribe.contacts[0].uri, Headers(fields), body)


def test_a_notify_may_come_before_the_answer_and_a_second_notifier_is_refused():
    """Covers RFC 6665 §4.1.2.4 [notify-may-be-first], §4.1.3 [481-for-others] [200-at-once].

    Covers RFC 6665 §8.3.1 [200-not-202].
    And RFC 3515 §2.4.4 [notify-may-be-first].

    Covers Field §"News that nobody asked for".
    """
    link = Link()
    alice, script = Watcher(link, A), Script(link, B)
    watch = alice.subscribe(B, 0.0)
    link.run(until=0.1)
    [subscribe] = script.heard
    assert script.say(notify(subscribe, event="dialog"), A).status == 481
    assert script.say(notify(subscribe), A).status == 200 and watch.state is State.ACTIVE
    assert script.say(notify(subscribe, tag="other"), A).status == 481
    assert script.say(notify(subscribe, event="dialog", cseq=9), A).status == 481
    assert script.say(notify(subscribe, state=None, cseq=12), A).status == 400
    assert script.say(notify(subscribe, event="", cseq=13), A).status == 489
    script.say(response_to(subscribe, 200, to_tag="t", headers=[("Expires", 60)]), A)
    alice.reply_to_offer = RemoteError("Unsupported Media Type", 415)
    assert script.say(notify(subscribe, cseq=14), A).status == 415
    alice.reply_to_offer = b""
    last = notify(subscribe, state="terminated;reason=noresource;expires=5", cseq=15)
    assert script.say(last, A).status == 200
    assert alice.heard == [b"x", b"x", (200, "noresource")]
    link.run()
    assert alice.idle


def test_the_notifier_need_not_be_the_one_that_answered():
    """Covers RFC 6665 §4.1.4 [any-notifier]: a proxy may have forked the SUBSCRIBE."""
    link = Link()
    alice, script = Watcher(link, A), Script(link, B)
    watch = alice.subscribe(B, 0.0)
    link.run(until=0.1)
    [subscribe] = script.heard
    script.say(response_to(subscribe, 200, to_tag="one", headers=[("Expires", 60)]), A)
    assert script.say(notify(subscribe, tag="another"), A).status == 200
    assert watch.state is State.ACTIVE and alice.heard == [b"x"]


def test_a_refresh_has_the_id_of_the_first():
    """Covers RFC 6665 §4.5.2 [same-id-again]."""
    link = Link()
    alice, script = Watcher(link, A), Script(link, B)
    alice.subscribe(B, 0.0, event="presence;id=7", expires=100)
    link.run(until=0.1)
    [subscribe] = script.heard
    script.say(response_to(subscribe, 200, to_tag="t", headers=[("Expires", 100)]), A)
    script.say(notify(subscribe, event="presence;id=7", state="active;expires=100"), A)
    link.run(until=90.0)
    heard = [each for each in script.heard if isinstance(each, Request)]
    asked = [each for each in heard if each.method == "SUBSCRIBE"]
    assert len(asked) > 1 and {each.headers["Event"] for each in asked} == {"presence;id=7"}


def test_a_watcher_follows_a_notifier_that_moves():
    """Covers RFC 3261 §12.2.1.1 [refresh-has-a-contact] [same-contact], §12.2.1.2
    [2xx-moves-the-target] and §12.2.2 [contact-moves-the-target].
    """
    link = Link()
    alice, script, moved = Watcher(link, A), Script(link, B), Script(link, C)
    watch = alice.subscribe(B, 0.0)
    link.run(until=0.1)
    [subscribe] = script.heard
    script.say(response_to(subscribe, 200, to_tag="t", headers=[("Expires", 60)]), A)
    script.say(notify(subscribe), A)
    there = notify(subscribe, cseq=2).replace(body=b"")
    script.say(there.replace(headers=there.headers.with_("Contact", f"<sip:{C}>")), A)
    link.run(until=60.0)
    refresh = moved.heard[0]
    assert refresh.method == "SUBSCRIBE"
    assert [each.uri for each in refresh.contacts] == [alice.contact]
    answer = response_to(refresh, 200, headers=[("Expires", 60), ("Contact", f"<sip:{B}>")])
    moved.say(answer, A)
    script.heard.clear()
    watch.end(link.now)
    link.run(until=link.now + 0.1)
    assert [each.method for each in script.heard if isinstance(each, Request)] == ["SUBSCRIBE"]
    link.run()
    assert alice.idle


def test_a_notifier_follows_a_watcher_that_moves():
    """Covers RFC 3261 §12.2.1.1 [refresh-has-a-contact] [same-contact], §12.2.1.2
    [2xx-moves-the-target] and §12.2.2 [contact-moves-the-target].
    """
    link = Link()
    bob, script, moved = Watcher(link, B), Script(link, A), Script(link, C)
    fields = {"Event": "presence", "Expires": "60"}
    script.say(first_request("SUBSCRIBE", b"", **fields), B)
    asked = next(each for each in script.heard if isinstance(each, Request))
    assert [each.uri for each in asked.contacts] == [bob.contact]
    script.say(response_to(asked, 200, headers=[("Contact", f"<sip:{C}>")]), B)
    bob.tell(link.now)
    link.run(until=link.now + 0.1)
    assert [each.method for each in moved.heard] == ["NOTIFY"]
    fields |= {"To": asked.headers["From"], "CSeq": "2 SUBSCRIBE"}
    script.heard.clear()
    moved.say(response_to(moved.heard[0], 200), B)
    script.say(first_request("SUBSCRIBE", b"", "2", **fields), B)
    assert any(isinstance(each, Request) for each in script.heard)  # the NOTIFY comes back here
    link.run()
    assert bob.idle


def test_a_refused_notify_ends_what_is_served():
    """Covers RFC 6665 §4.2.2 [removed-when-refused]."""
    link = Link()
    bob, script = Watcher(link, B), Script(link, A)
    subscribe = first_request("SUBSCRIBE", b"", Event="presence", Expires="60")
    script.say(subscribe, B)
    asked = [m for m in script.heard if isinstance(m, Request)][-1]
    bob.tell(link.now)
    bob.tell(link.now)  # while the first is open
    script.say(response_to(asked, 200), B)
    asked = [m for m in script.heard if isinstance(m, Request)][-1]
    assert asked.cseq.number == 2
    script.say(response_to(asked, 481), B)
    assert not bob.served
    again = first_request("SUBSCRIBE", b"", "2", CSeq="2 SUBSCRIBE", Event="presence",
                          To=asked.headers["From"])  # fmt: skip
    assert script.say(again, B).status == 481
    link.run()
    assert bob.idle


def test_a_subscribe_is_answered_at_once_and_gets_no_more_than_it_asks_for():
    """Covers RFC 6665 §4.2.1.1 [waits-for-nobody] [no-longer-than-asked].

    And §4.2.1.4 [no-longer-than-asked], §3.1.1 [200-has-expires], §8.3.1 [200-not-202].
    Covers RFC 3261 §12.1.1 [adds-a-contact].
    """
    link = Link()
    bob, script = Watcher(link, B), Script(link, A)
    fields = {"Event": "presence", "Expires": "60"}
    script.say(first_request("SUBSCRIBE", b"", **fields), B)
    first = next(m for m in script.heard if not isinstance(m, Request))
    fields |= {"Expires": "30", "To": first.headers["To"], "CSeq": "2 SUBSCRIBE"}
    script.heard.clear()
    script.say(first_request("SUBSCRIBE", b"", "2", **fields), B)
    again = next(m for m in script.heard if not isinstance(m, Request))
    assert [each.status for each in (first, again)] == [200, 200]
    assert [each.headers["Expires"] for each in (first, again)] == ["60", "30"]
    assert [each.contacts[0].uri for each in (first, again)] == [bob.contact, bob.contact]


def test_a_refresh_may_not_ask_for_another_type():
    """Covers RFC 6665 §3.2.1 [body-as-accepted]."""
    link = Link()
    bob, script = Watcher(link, B), Script(link, A)
    fields = {"Event": "presence", "Expires": "60"}
    script.say(first_request("SUBSCRIBE", b"", **fields), B)
    first = next(m for m in script.heard if not isinstance(m, Request))
    said = []
    for number, accept in enumerate(("text/html", f"text/html, {KIND}"), 2):
        more = {"Accept": accept, "To": first.headers["To"], "CSeq": f"{number} SUBSCRIBE"}
        script.heard.clear()
        script.say(first_request("SUBSCRIBE", b"", str(number), **fields, **more), B)
        said += [m.status for m in script.heard if not isinstance(m, Request)][:1]
    assert said == [406, 200] and len(bob.served) == 1


@pytest.mark.parametrize(
    ("changes", "status"),
    [({"Event": None}, 489), ({"Event": "refer"}, 403), ({"Contact": None}, 400), ({}, 200)],
)
def test_what_cannot_be_served(changes, status):
    """Covers RFC 3515 §2.4.4 [403-without-a-refer] and RFC 6665 §4.2.1.1 [489-for-unknown]."""
    link = Link()
    bob, script = Watcher(link, B), Script(link, A)
    fields = {"Event": "presence", "Expires": "60"} | changes
    script.say(first_request("SUBSCRIBE", b"", **fields), B)
    assert next(m.status for m in script.heard if not isinstance(m, Request)) == status
    assert len(bob.served) == (status == 200)


@pytest.mark.parametrize("expires", ["60", "0"])
def test_subscriptions_have_a_limit(expires):
    """Own design: one host has less than half of the places, and they are free again later."""
    link = Link()
    bob, greedy, other = Watcher(link, B), Script(link, C), Script(link, A)

    def asks(script, host, number):
        fields = {"Event": "presence", "Expires": expires, "Call-ID": f"{host}-{number}"}
        fields |= {"Via": f"SIP/2.0/UDP {host};branch=z9hG4bK{number}"}
        fields["Contact"] = f"<sip:x@{host}>"
        script.heard.clear()
        script.say(first_request("SUBSCRIBE", b"", **fields), B)
        link.run(until=link.now + 0.001)
        return next(m.status for m in script.heard if not isinstance(m, Request))

    said = [asks(greedy, C, number) for number in range(MAX_SERVED)]
    got = said.count(200)
    assert said == [200] * got + [503] * (MAX_SERVED - got) and 0 < got < MAX_SERVED / 2
    assert len(bob.served) == got and asks(other, A, 0) == 200
    link.run(until=200.0)
    assert not bob.served and asks(greedy, C, "again") == 200
