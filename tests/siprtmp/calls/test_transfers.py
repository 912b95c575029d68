"""Transfers: a client sends its phone to somebody else, and a phone sends the client."""

import pytest
from support.gateway.gateway_world import AUDIO, BOB, DESK, PCMU, Desk, GatewayWorld, sdp

from p2psip.errors import RemoteError
from p2psip.sip.address import Address
from p2psip.sip.uri import Uri
from p2psip.ua.replaces import Replaces
from siprtmp.calls.trunks import Trunk, Trunks
from siprtmp.settings.trunks import TrunkSettings

ULAW = b"\x82" + bytes(160)
CAROL = "10.0.0.7"


class Colleague(Desk):
    """A phone that calls as user@home, and hears what becomes of its transfers."""

    def __init__(self, link, address=DESK, **options):
        super().__init__(link, address, **options)
        self.transfers = []

    def on_transfer(self, call, status, reason, now):
        self.transfers.append(f"{status} {reason}")

    def rings(self, user, now, as_host="home"):
        to, me = (Address(Uri("sip", name, None, host))
                  for name, host in ((user, "10.0.0.1"), ("bob", as_host)))  # fmt: skip
        call = self.agent.invite(to, me, self.contact, sdp(PCMU), self, now)
        self.calls.append(call)
        return call


@pytest.fixture
def carol(world):
    """A phone elsewhere; `sip:carol@home` is a stream's name that waits, at the gateway."""
    return Desk(world.link, CAROL)


def talking(world, phone, client, as_host="home"):
    """A call from the phone to the client."""
    call = phone.rings("alice", world.now, as_host)
    world.wait()
    client.call("accept", "pcmu")
    world.wait()
    assert [name for name, *_ in client.heard()] == ["invited", "accepted"]
    return call


def send(world, client, local, at):
    """One packet of sound; how many the gateway's only call has had."""
    client.peer.write(AUDIO, at, local, ULAW)
    return len(world.gateway.media.sent)


# -- the client transfers its phone ------------------------------------------------------------


def test_the_client_sends_its_phone_to_somebody_else(world, alice):
    """Covers RFC 3515 §2.4.1 and §2.4.5: the client is told, and leaves when they talk."""
    phone, asked = Colleague(world.link), []
    phone.on_refer = lambda call, referral, now: asked.append(referral)
    alice.call("invite", BOB, "pcmu")
    world.wait()
    alice.call("transfer", "sip:carol@home")
    world.wait()
    [referral] = asked
    assert str(referral.target.uri) == "sip:carol@home"
    assert referral.referred_by == "<sip:alice@home>"
    referral.progress(180, "Ringing", world.now)
    world.wait()
    accepted, *told = alice.heard()
    assert accepted == ("accepted", "pcmu", None)
    assert told == [("transferred", "100 Trying"), ("transferred", "180 Ringing")]
    referral.progress(200, "OK", world.now)
    world.wait()
    assert alice.heard() == [("transferred", "200 OK"), ("byed",)]
    assert phone.events()[-1] == "ended" and world.is_clean()


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (("carol@home",), "603 Decline"),  # as phones do that know no transfers
        ((), "400 Bad destination"),
        ((7.0,), "400 Bad destination"),
        (("tel:+123",), "416 Unsupported URI Scheme"),
    ],
)
def test_a_transfer_that_comes_to_nothing(world, desk, alice, args, told):
    """Covers RFC 3515 §2.4.5: the call goes on."""
    alice.call("invite", BOB, "pcmu")
    world.wait()
    alice.call("transfer", *args)
    world.wait(1.0)
    assert alice.heard()[1:] == [("transferred", told)]
    assert len(world.gateway.context.calls) == 1 and world.is_clean()


def test_a_transfer_without_a_call_and_a_second_one(world, desk, alice):
    """Covers RFC 3515 §2.4.1: one at a time."""
    alice.call("transfer", "carol@home")
    desk.on_refer = lambda call, referral, now: asked.append(referral)  # it takes its time
    asked = []
    alice.call("invite", BOB, "pcmu")
    alice.call("transfer", "carol@home")
    world.wait()
    alice.call("transfer", "carol@home")
    alice.call("transfer", "carol@home")
    world.wait()
    told = [status for name, status, *_ in alice.heard() if name == "transferred"]
    gone = "481 Call/Transaction Does Not Exist"
    assert told == [gone, gone, "491 Request Pending", "100 Trying"]
    asked[0].progress(486, "Busy Here", world.now)
    world.wait()
    assert alice.heard() == [("transferred", "486 Busy Here")] and world.is_clean()


# -- the phone transfers the client ------------------------------------------------------------


def test_a_colleague_sends_the_client_to_another(world, alice):
    """Covers RFC 3515 §2.4.2: in one domain; the phone is told, and the client changes over."""
    phone, zoe = Colleague(world.link), world.rich("zoe@home")
    local = alice.peer.publish("local")
    alice.peer.play("remote")
    call = talking(world, phone, alice)
    call.refer(Uri.parse("sip:zoe@home"), world.now)
    world.wait()
    assert zoe.heard() == [("invited", "<sip:alice@home>", "<sip:zoe@home>")]
    assert alice.heard() == [] and len(world.gateway.context.calls) == 3
    zoe.call("accept", "pcmu")
    world.wait()
    assert phone.transfers == ["100 Trying", "180 Ringing", "200 OK"]
    assert phone.events()[-1] == "ended"
    assert zoe.heard() == [("accepted", "pcmu", None)] == alice.heard()
    assert len(world.gateway.context.calls) == 2
    alice.peer.write(AUDIO, 0, local, ULAW)
    [of_alice] = [c for c in world.gateway.context.calls if c.origin.direction == "out"]
    assert of_alice.media.statistics.sent == 1
    alice.call("bye")
    world.wait()
    assert zoe.heard() == [("byed",)] and world.is_clean()


def test_the_phone_hangs_up_as_soon_as_it_may(world, alice):
    """Covers RFC 3515 §2.4.2: the client hears of the new call as of one of its own."""
    phone, zoe = Colleague(world.link), world.rich("zoe@home")
    call = talking(world, phone, alice)
    call.refer(Uri.parse("sip:zoe@home"), world.now)
    world.wait()
    call.bye(world.now)
    world.wait()
    assert alice.heard() == []
    zoe.call("accept", "pcmu")
    world.wait()
    assert alice.heard() == [("accepted", "pcmu", None)] == zoe.heard()[1:]
    zoe.call("bye")
    world.wait()
    assert alice.heard() == [("byed",)] and world.is_clean()


def test_the_other_is_not_there(world, alice):
    """Covers RFC 3515 §2.4.5: the old call goes on, or the client is rejected."""
    phone, zoe = Colleague(world.link), world.rich("zoe@home")
    call = talking(world, phone, alice)
    call.refer(Uri.parse("sip:nobody@home"), world.now)
    world.wait(1.0)
    assert phone.transfers[-1] == "480 Not Registered" and alice.heard() == []
    call.refer(Uri.parse("sip:zoe@home"), world.now)
    world.wait()
    call.bye(world.now)
    world.wait()
    zoe.call("reject", "486 Busy Here")
    world.wait()
    assert alice.heard() == [("rejected", "486 Busy Here")] and world.is_clean()


@pytest.mark.parametrize("how", ["bye", "drop"])
def test_the_client_leaves_while_it_is_transferred(world, alice, how):
    """Covers RFC 3261 §15: both calls end."""
    phone, zoe = Colleague(world.link), world.rich("zoe@home")
    call = talking(world, phone, alice)
    call.refer(Uri.parse("sip:zoe@home"), world.now)
    world.wait()
    if how == "bye":
        alice.call("bye")
    else:
        world.drop(alice.peer)
    world.wait()
    assert [name for name, *_ in zoe.heard()] == ["invited", "cancelled"]
    assert phone.events()[-1] == "ended" and world.is_clean()


def test_the_new_call_is_dropped_by_the_gateway(world, alice):
    """Own design: when it shuts down, all of it ends."""
    phone, _zoe = Colleague(world.link), world.rich("zoe@home")
    talking(world, phone, alice).refer(Uri.parse("sip:zoe@home"), world.now)
    world.wait()
    for call in list(world.gateway.context.calls):
        call.drop(world.now, "shutdown")
    world.wait()
    names = [name for name, *_ in alice.heard()]
    assert names in (["byed"], ["rejected"]) and world.is_clean()


@pytest.mark.parametrize(
    ("as_host", "target"),
    [
        ("away.example", "sip:zoe@home"),  # a stranger asks
        ("home", "sip:premium@far.example"),  # somewhere else, perhaps at a price
        ("home", "sip:zoe@10.0.0.9"),
    ],
)
def test_a_stranger_sends_the_client_nowhere(world, alice, as_host, target):
    """Covers RFC 3515 §2.4.2: declined, and the call goes on."""
    phone, zoe = Colleague(world.link), world.rich("zoe@home")
    call = talking(world, phone, alice, as_host)
    call.refer(Uri.parse(target), world.now)
    world.wait()
    assert phone.transfers == ["603 Decline"] and zoe.heard() == []
    assert len(world.gateway.context.calls) == 1 and world.is_clean()


def test_a_colleague_sends_the_client_to_no_number_of_a_trunk(world, alice):
    """Own design: where users have no passwords, anybody may say to be a colleague."""
    provider = Trunk(
        TrunkSettings("one", Uri("sip", "acme", host=CAROL), numbers=("+*",)),
        world.gateway.contact("acme", "one"),
        "one",
        world.gateway.log,
    )
    world.gateway.context.trunks = Trunks([provider], world.gateway.domains)
    phone = Colleague(world.link)
    call = talking(world, phone, alice)
    call.refer(Uri.parse("sip:+1900555@home"), world.now)
    world.wait()
    assert phone.transfers == ["603 Decline"]
    assert len(world.gateway.context.calls) == 1 and world.is_clean()


def test_a_second_transfer_while_one_is_under_way(world, alice):
    """Covers RFC 3515 §2.4.2."""
    phone, _zoe = Colleague(world.link), world.rich("zoe@home")
    call = talking(world, phone, alice)
    call.refer(Uri.parse("sip:zoe@home"), world.now)
    world.wait()
    [first] = [c for c in world.gateway.context.calls if c.origin.callee == "sip:alice@10.0.0.1"]
    with pytest.raises(RemoteError, match="603"):
        first.user.on_call_refer(None, world.now)
    assert world.is_clean()


def test_transfers_count_as_calls_of_the_client():
    """Own design: they cost what its other calls cost."""
    world = GatewayWorld(max_user_calls_per_hour=1)
    alice, _zoe = world.rich("alice@home"), world.rich("zoe@home")
    phone = Colleague(world.link)
    call = talking(world, phone, alice)
    for last in ("200 OK", "403 Too Many Calls in an Hour"):
        call.refer(Uri.parse("sip:zoe@home"), world.now)
        world.wait()
        if last == "200 OK":
            _zoe.call("reject")
            world.wait()
    assert phone.transfers[-1].startswith("403") and world.is_clean()


def test_an_attended_transfer_names_the_call_to_replace(world, alice):
    """Covers RFC 3891 §4: the INVITE has the Replaces, and says by whom it was asked for."""
    phone, seen = Colleague(world.link), []
    accept = world.gateway.sip.find
    zoe = world.rich("zoe@home")
    world.gateway.sip.find = lambda request: seen.append(request) or accept(request)
    call = talking(world, phone, alice)
    call.refer(Uri.parse("sip:zoe@home"), world.now, Replaces("some", "to", "from"))
    world.wait()
    request = seen[-1]
    assert request.headers.get("Replaces") == "some;to-tag=to;from-tag=from"
    assert "bob@home" in request.headers.get("Referred-By")
    assert zoe.heard() and world.is_clean()


def test_a_stock_tool_stays_with_its_phone(world, desk):
    """Covers RFC 3515 §2.4.2: declined."""
    phone = Colleague(world.link, CAROL)
    world.tool().publish(f"user@{CAROL}")
    world.wait()
    phone.calls[-1].refer(Uri.parse("sip:zoe@home"), world.now)
    world.wait()
    assert phone.transfers == ["603 Decline"] and world.is_clean()
