"""Subscriptions with a URL: who may have them, what is posted, and when they end."""

import hmac
import json
from hashlib import sha256

import pytest
from support.resources.posting import URL, Postings
from support.resources.trees import client, refusal, value

from p2psip.errors import RemoteError
from siprtmp.web.branches.roles import Roles
from siprtmp.web.branches.subscription_branch import SubscriptionBranch
from siprtmp.web.resources import url_subscriptions
from siprtmp.web.resources.asker import Asker
from siprtmp.web.resources.deliveries import MAX_TRIES
from siprtmp.web.resources.messages import Request, answer
from siprtmp.web.resources.tree import Wishes
from siprtmp.web.resources.url_subscriptions import GONE, LEAST_SECRET, MAX_OCTETS

CALL = ("call",)
BELOW = ("call", "a")
STAYS = Wishes(persistent=True)
SECRET = "s" * LEAST_SECRET


class Kept(dict):
    """A store in memory."""

    def load(self):
        return sorted(self.items(), key=lambda each: len(each[0]))

    def keep(self, path, held):
        if held is None:
            self.pop(path, None)
        else:
            self[path] = held


@pytest.fixture
def rig():
    rig = Postings(Kept())
    rig.store = rig.urls._store
    rig.bob, _ = client(rig.tree, "bob")
    rig.tree.put(CALL, value(0), rig.bob, STAYS)
    return rig


def subscribe(rig, asker=None, path=CALL, url=URL, secret="", *, persistent=True):
    asker = asker or rig.bob
    made, _ = rig.tree.subscribe_url(path, asker, url, secret, is_persistent=persistent)
    return made


def ask(rig, asker, **said):
    return answer(rig.tree, Request.read(said), asker)


def words(posted):
    return [(each["notify"], each.get("resource")) for each in posted]


def test_a_service_is_posted_what_a_subscriber_of_all_children_hears(rig):
    """Covers Resources §13.1 [events-of-children]."""
    made = subscribe(rig)
    rig.tree.put(BELOW, value({"state": "new"}), rig.bob)
    rig.tree.notify(BELOW, value({"event": "ringing"}), rig.bob)
    rig.tree.put((*BELOW, "below"), value(1), rig.bob)
    rig.tree.notify((*BELOW, "below"), value(1), rig.bob)  # which is too far down
    rig.tree.notify(CALL, value("x"), rig.bob)
    rig.tree.delete(BELOW, rig.bob)
    posted = rig.taken(made)
    assert words(posted) == [
        ("UPDATE", "/call"),
        ("NOTIFY", "/call/a"),
        ("NOTIFY", "/call"),
        ("UPDATE", "/call"),
    ]
    first = posted[0]
    assert first["create"] == "a" and first["entity"] == {"state": "new"}
    assert posted[1]["data"] == {"event": "ringing"} and posted[3]["delete"] == "a"
    assert first["subscription"] == made.id and first["epoch"] == rig.tree.epoch
    assert first["at"].startswith("2026-") and posted[1]["seq"] > first["seq"]
    assert rig.woken[0] == made.id


def test_a_user_alone_has_a_url_and_needs_the_right(rig):
    """Covers Resources §13.1 [proven-users-alone] [persistent-urls-by-http]."""
    nobody, _ = client(rig.tree)
    assert refusal(subscribe, rig, nobody) == 401
    rig.tree.set_access(CALL, {"mode": "cruws" + "-" * 15}, rig.bob)
    ann, _ = client(rig.tree, "ann")
    assert refusal(subscribe, rig, ann) == 403
    assert refusal(subscribe, rig, path=("none",)) == 404
    by_http = Asker("bob")
    assert refusal(subscribe, rig, by_http, persistent=False) == 409
    assert subscribe(rig, by_http).url == URL


def test_no_url_is_taken_that_is_not_listed(rig):
    """Covers Resources §13.2 [listed-hosts-alone]."""
    assert refusal(subscribe, rig, url="http://127.0.0.1/") == 403
    assert refusal(subscribe, rig, url=f"{URL}\r\nX: y") == 400
    assert refusal(subscribe, rig, url=URL + "x" * 2048) == 414
    assert refusal(subscribe, rig, secret="short") == 400
    assert refusal(Request.read, {"method": "SUBSCRIBE", "resource": "/", "url": "ftp://x"}) == 400
    off = Postings().tree
    off._urls = None
    bob, _ = client(off, "bob")
    assert refusal(off.subscribe_url, (), bob, URL, "", is_persistent=True) == 403
    assert refusal(off.unsubscribe, (), bob, URL) == 404


def test_the_rights_are_judged_for_each_notification(rig):
    ann, _ = client(rig.tree, "ann")
    made = subscribe(rig, ann)
    rig.tree.notify(CALL, value(1), rig.bob)
    rig.tree.set_access(CALL, {"mode": "cruws" + "-" * 15}, rig.bob)
    rig.tree.notify(CALL, value(2), rig.bob)
    assert [each["data"] for each in rig.taken(made)] == [1]


def test_the_secret_is_told_once_and_signs_what_is_posted(rig):
    """Covers Resources §13.4 [secret-is-told-once] [signed-with-the-secret]."""
    said = {"method": "SUBSCRIBE", "resource": "/call", "url": URL, "persistent": True}
    reply = ask(rig, rig.bob, **said)
    told = reply.entity.data
    assert reply.status == 201 and reply.path == ("subscription", told["id"])
    assert len(told["secret"]) == 64 and told["epoch"] == rig.tree.epoch
    made = rig.urls.find(told["id"])
    rig.tree.notify(CALL, value(1), rig.bob)
    delivery = made.deliveries.due(0.0, 1000.5)
    code = hmac.new(told["secret"].encode(), b"1000." + delivery.body, sha256).hexdigest()
    assert delivery.signature == f"t=1000,v1={code}"
    again = ask(rig, rig.bob, **said, secret=SECRET)
    assert again.status == 200 and "secret" not in again.entity.data
    assert again.entity.data["id"] == told["id"] and made.deliveries.secret == SECRET
    assert "secret" not in str(made.shown()) and len(rig.urls) == 1


def test_what_is_missed_is_told_before_the_next(rig):
    """Covers Resources §13.3 [gap-is-told]."""
    made = subscribe(rig)
    for number in range(3):
        rig.tree.notify(CALL, value(number), rig.bob)
    now = 0.0
    for _ in range(MAX_TRIES):
        assert [each["data"] for each in rig.taken(made, "status 500", now)] == [0]
        now = made.deliveries.deadline or now
    assert rig.said == [("failed", "status 500"), ("lost", "status 500")]
    assert not len(made.deliveries)
    rig.tree.notify(CALL, value("new"), rig.bob)
    missed, new = rig.taken(made, now=now)
    assert missed["notify"] == "MISSED" and missed["seq"] == rig.tree.sequence
    assert missed["epoch"] == rig.tree.epoch and new["data"] == "new"


def test_what_waits_is_bounded(rig):
    made = subscribe(rig)
    most = MAX_OCTETS // (60 << 10)
    for _ in range(most + 2):
        rig.tree.notify(CALL, value("x" * (60 << 10)), rig.bob)
    assert words(rig.taken(made))[0] == ("MISSED", None) and ("lost", "too many wait") in rig.said


def test_a_subscription_ends_with_its_connection_by_unsubscribe_and_by_410(rig):
    """Covers Resources §13.5 [gone-ends-it]."""
    ann, _ = client(rig.tree, "ann")
    first = subscribe(rig, ann, persistent=False)
    rig.tree.gone(ann.connection)
    assert first.is_over and not len(rig.urls)
    subscribe(rig)
    said = {"method": "UNSUBSCRIBE", "resource": "/call", "url": URL}
    assert refusal(ask, rig, ann, **said) == 404
    assert ask(rig, rig.bob, **said).status == 204
    assert refusal(ask, rig, rig.bob, **said) == 404
    last = subscribe(rig)
    rig.tree.notify(CALL, value(0), rig.bob)
    rig.taken(last)
    assert not last.is_over
    rig.tree.notify(CALL, value(1), rig.bob)
    rig.taken(last, GONE)
    assert last.is_over and not len(rig.urls) and not len(rig.tree._subscriptions)
    assert [path for path in rig.store if path[0] == "subscription"] == []
    assert rig.woken[-1] == last.id
    rig.tree.notify(CALL, value(2), rig.bob)
    assert not rig.taken(last)
    last = subscribe(rig)
    rig.tree.delete(CALL, rig.bob)
    rig.taken(last)
    assert last.is_over


def test_what_waits_is_posted_when_the_resource_has_ended(rig):
    made, idle = subscribe(rig), subscribe(rig, path=(), url=f"{URL}?top")
    rig.tree.delete(CALL, rig.bob)
    assert not made.is_over and rig.urls.found(CALL, "bob", URL) is None
    assert words(rig.taken(made)) == [("DELETE", "/call")]
    assert made.is_over and not idle.is_over and len(rig.urls) == 1


def test_users_have_so_many_urls_and_no_more(rig, monkeypatch):
    """Covers Resources §13.6 [urls-are-bounded]."""
    monkeypatch.setattr(url_subscriptions, "MAX_OF_ONE", 2)
    monkeypatch.setattr(url_subscriptions, "MAX_OF_ALL", 3)
    ann, _ = client(rig.tree, "ann")
    for number in range(2):
        subscribe(rig, url=f"{URL}/{number}")
    assert refusal(subscribe, rig, url=f"{URL}/2") == 507
    subscribe(rig, url=f"{URL}/1")  # which is there
    subscribe(rig, ann)
    assert refusal(subscribe, rig, ann, url=f"{URL}/3") == 507


def test_a_persistent_one_outlives_a_restart_while_its_user_may(rig):
    """Covers Resources §13.1 [urls-outlive-a-restart]."""
    ann, _ = client(rig.tree, "ann", "staff")
    subscribe(rig, secret=SECRET)
    subscribe(rig, ann)
    subscribe(rig, url=f"{URL}?transient", persistent=False)
    rig.tree.put(("gone",), value(1), rig.bob)
    subscribe(rig, path=("gone",))
    rig.store[("subscription", "x")] = rig.store[CALL]  # which is none of ours
    again = Postings(rig.store)
    again.tree.restore_urls(lambda asker: asker.user == "bob" and not asker.by_token)
    [made] = again.urls
    assert (made.url, made.path, made.deliveries.secret) == (URL, CALL, SECRET)
    assert [path[0] for path in rig.store] == ["call", "subscription"]
    again.tree.notify(CALL, value(1), Asker("ann"))
    assert [each["data"] for each in again.taken(made)] == [1]
    again.urls.keep_users(lambda asker: False)
    assert not len(again.urls) and [*rig.store] == [CALL]


def test_an_owner_and_an_admin_see_and_end_a_subscription_and_nobody_else(rig):
    """Covers Resources §13.5 [listed-for-the-owner]."""
    roles = Roles((), is_local=False, admins=("root",))
    rig.tree.mount("subscription", SubscriptionBranch(roles, rig.urls))
    ann, _ = client(rig.tree, "ann")
    root, _ = client(rig.tree, "root")
    nobody, _ = client(rig.tree)
    made = subscribe(rig, secret=SECRET)
    at = ("subscription", made.id)
    assert rig.tree.children(at[:1], rig.bob) == rig.tree.children(at[:1], root) == [made.id]
    assert rig.tree.children(at[:1], ann) == rig.tree.children(at[:1], nobody) == []
    shown = rig.tree.get(at, rig.bob).data
    assert shown["url"] == URL and shown["waiting"] == 0 and shown["failing"] is False
    assert SECRET not in json.dumps(shown)
    assert refusal(rig.tree.get, at, ann) == 403 and refusal(rig.tree.delete, at, ann) == 403
    for action in (rig.tree.put, rig.tree.post):
        assert refusal(action, at, value(1), rig.bob) in (403, 405)
    assert refusal(rig.tree.subscribe, at, rig.bob) == 403
    rig.tree.delete(at, root)
    assert made.is_over and refusal(rig.tree.get, at, rig.bob) == 403


def test_a_request_for_a_url_is_noted_without_it(rig):
    noted = []
    rig.tree.on_change = lambda *what: noted.append(what)
    ask(rig, rig.bob, method="SUBSCRIBE", resource="/call", url=URL, persistent=True)
    ask(rig, rig.bob, method="UNSUBSCRIBE", resource="/call", url=URL)
    with pytest.raises(RemoteError):
        ask(rig, rig.bob, method="UNSUBSCRIBE", resource="/call", url=URL)
    assert [(each[0], each[4]) for each in noted] == [
        ("SUBSCRIBE", 201),
        ("UNSUBSCRIBE", 204),
        ("UNSUBSCRIBE", 404),
    ]
