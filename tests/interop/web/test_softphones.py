"""Pages by JsSIP and SIP.js call streams, rooms, phones and each other.

Judged by the numbers in the pictures and the tones in the audio, at both ends.
"""

from contextlib import ExitStack
from itertools import pairwise

import pytest
from support.gateway.accounts import PASSWORD, users_file
from support.gateway.gateway import Gateway
from support.peers.baresip import Baresip
from support.peers.browser_peer import Chromium
from support.peers.softphones import JSSIP, SIPJS, SoftPhone, softphones_page
from support.peers.tones import tone_fraction
from support.peers.webrtc_peers import NumberedPublisher, WebRtcPeer

pytestmark = pytest.mark.needs("chromium", "ffmpeg")

OPTIONS = ("--ws", "127.0.0.1:0", "--webrtc", "127.0.0.1:0", "--room", "meeting")
# A phone stays registered to the end, so each test has users of its own.
USERS = ("alice", "ann", "bob", "bill", "carol", "dave", "desk", "erin", "eve", "fred", "gus")
ENOUGH = 20  # pictures in a row


class World:
    """A gateway, and one page with all phones."""

    def __init__(self, stack, folder):
        self.shown = stack.enter_context(softphones_page())
        users = ("--users", str(users_file(folder, *USERS)))
        self.gateway = stack.enter_context(Gateway(folder / "gateway", *OPTIONS, *users))
        url = f"http://127.0.0.1:{self.shown.server_address[1]}/"
        self.browser = stack.enter_context(Chromium(folder / "chromium", url))
        self.phones = []

    def phone(self, user, **options):
        server = self.gateway.ws
        self.phones.append(SoftPhone(self.browser, self.shown, server, user, PASSWORD, **options))
        return self.phones[-1]

    def address(self, name):
        return f"sip:{name}@127.0.0.1"


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    with ExitStack() as stack:
        yield World(stack, tmp_path_factory.mktemp("softphones"))


@pytest.fixture(autouse=True)
def calls_end(world):
    """What a test leaves when it fails is not in the way of the next."""
    yield
    while world.phones:
        world.phones.pop().end_all()
    world.gateway.wait_status({"calls": 0, "room_members": 0, "media_legs": 0})


def rising(numbers):
    """How many pictures at the end show a number that is higher than the one before."""
    count = 0
    for before, after in pairwise(numbers):
        count = count + 1 if before < after <= before + 8 else 0
    return count


def wait(peer, condition, what):
    peer.wait_until(condition, what=what, timeout=60)


def wait_pictures(world, phone):
    wait(world.browser, lambda: rising(phone.numbers) >= ENOUGH, f"pictures at {phone.user}")


@pytest.mark.parametrize(("user", "library"), [("alice", JSSIP), ("ann", SIPJS)])
def test_a_page_calls_a_stream_and_is_played(start, world, user, library):
    """H.264 both ways; AAC of the publisher is made Opus, and the page's Opus is played."""
    server, name = world.gateway, f"cam-{user}"
    start(NumberedPublisher, server.url("call", name))
    player = start(WebRtcPeer, "rtmp", server.url("call", name))
    server.wait_until(lambda: f"name={name}" in server.output, what="the publisher", timeout=60)
    page = world.phone(user, library=library, tone=500, video=True)
    page.call(world.address(name))
    page.wait("confirmed")
    page.wait_tone(660)
    wait_pictures(world, page)
    wait(player, lambda: rising(player.told("number")) >= ENOUGH, "rising numbers")
    wait(player, lambda: abs(player.told("pitch")[-1] - 500) < 10, "a tone of 500 Hz")
    page.end()
    server.wait_status({"calls": 0, "media_legs": 0})


@pytest.mark.parametrize(("user", "library"), [("bob", JSSIP), ("bill", SIPJS)])
def test_a_stream_calls_a_page(start, world, user, library):
    """The gateway offers; the page takes H.264 and Opus, and hangs up."""
    server = world.gateway
    page = world.phone(user, library=library, tone=520, video=True)
    page.forget()
    start(NumberedPublisher, server.url("call", f"{user}@127.0.0.1"))
    page.wait("confirmed")
    page.wait_tone(660)
    wait_pictures(world, page)
    page.end()
    server.wait_status({"calls": 0, "media_legs": 0})


def test_pages_meet_in_a_room(start, world):
    """Each hears the other, sees who speaks, and says by hold that it hears nothing."""
    carol = world.phone("carol", tone=540, video=True)
    dave = world.phone("dave", library=SIPJS, tone=760, video=True)
    for each in (carol, dave):
        each.call(world.address("meeting"))
        each.wait("confirmed")
    carol.wait_tone(760)
    dave.wait_tone(540)
    wait(world.browser, lambda: any(map(rising, (carol.numbers, dave.numbers))), "a speaker")
    carol.hold(True)
    carol.wait("hold-local")
    dave.wait_tone(0)
    carol.hold(False)
    dave.wait_tone(540)
    for each in (carol, dave):
        each.end()
    world.gateway.wait_status({"calls": 0, "room_members": 0, "media_legs": 0})


@pytest.mark.needs("baresip")
@pytest.mark.parametrize(
    ("calls", "library", "codec", "video", "pitch"),
    [(True, JSSIP, "PCMU/8000/1", "VP8", 900), (False, SIPJS, "G722/16000/1", "H264", 800)],
)
def test_a_page_and_a_phone_call_each_other(start, world, calls, library, codec, video, pitch):
    """G.711 and either codec of video pass, G.722 becomes Opus; the phone sends back what it sees.

    Both have to prove their names, and the gateway calls on in that of the caller.
    """
    server, user = world.gateway, "erin" if calls else "eve"
    page = world.phone(user, library=library, tone=480, video=True)
    options = {"codecs": codec, "hz": pitch, "mirror": True, "video": video}
    desk = start(Baresip, "desk", registrar=server.sip, password=PASSWORD, **options)
    if calls:
        page.call(world.address("desk"))
    else:
        page.forget()
        desk.dial(f"sip:{user}@{server.sip}")
    desk.wait_event("CALL_ESTABLISHED")
    page.wait("confirmed")
    page.wait_tone(pitch)
    wait_pictures(world, page)
    (page.end if calls else desk.hangup)()
    desk.wait_event("CALL_CLOSED")
    server.wait_status({"calls": 0, "media_legs": 0})
    samples, rate = desk.heard()
    assert tone_fraction(samples, rate, 480) > 0.9


def test_pages_call_each_other_past_the_gateway(world):
    """Both have the same transport, so that the proxy changes nothing."""
    fred = world.phone("fred", tone=540, video=True)
    gus = world.phone("gus", library=SIPJS, tone=760, video=True)
    gus.forget()
    fred.call(world.address("gus"))
    for one, hz in ((fred, 760), (gus, 540)):
        one.wait("confirmed")
        one.wait_tone(hz)
        wait_pictures(world, one)
    world.gateway.wait_status({"proxied_dialogs": 1, "calls": 0, "media_legs": 0})
    gus.end()
    fred.wait("ended")
