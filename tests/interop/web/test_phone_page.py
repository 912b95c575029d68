"""The gateway's own phone in a browser: it calls a phone, is called by one, and is easy to use."""

import re
import sys

import pytest
from support.gateway.accounts import PASSWORD, users_file
from support.nat.lossy_relay import lossy_relay
from support.peers.baresip import Baresip
from support.peers.driven_browser import DrivenBrowser
from support.peers.process import Process
from support.peers.tones import tone_fraction, trimmed

# What the page hears: the loudest pitch of the call's picture, as the analyser of Web Audio has it.
PITCH = """
  if (!window.heard) {
    const sound = new AudioContext();
    const stream = document.querySelector("active-calls video").srcObject;
    await sound.resume();
    window.heard = new AnalyserNode(sound, { fftSize: 8192 });
    sound.createMediaStreamSource(stream).connect(window.heard);
  }
  const bins = new Float32Array(window.heard.frequencyBinCount);
  window.heard.getFloatFrequencyData(bins);
  return bins.indexOf(Math.max(...bins)) * window.heard.context.sampleRate / window.heard.fftSize;
"""

SECOND = 16_000  # octets of a recording
WHISTLED = 440  # Hz, the usual of an oscillator
# The microphone has a tone, which no suppression of noise takes away; the camera sees small and
# blue pictures, and the screen that Chromium invents is green.
OWN_MEDIA = """
  const media = navigator.mediaDevices, ask = media.getUserMedia.bind(media);
  media.getUserMedia = async (wanted) => {
    const stream = await ask({ audio: wanted.audio }), sound = new AudioContext();
    const out = sound.createMediaStreamDestination(), tone = new OscillatorNode(sound);
    window.tone = tone;
    tone.frequency.value = HZ;
    tone.connect(out);
    tone.start();
    stream.getTracks().forEach((track) => stream.removeTrack(track));
    stream.addTrack(out.stream.getTracks()[0]);
    if (!wanted.video) return stream;
    const canvas = Object.assign(document.createElement("canvas"), { width: 160, height: 120 });
    const paint = canvas.getContext("2d");
    let at = 0;
    setInterval(() => {
      paint.fillStyle = `rgb(0 0 ${200 + ++at % 50})`;
      paint.fillRect(0, 0, 160, 120);
    }, 200);
    stream.addTrack(canvas.captureStream().getTracks()[0]);
    return stream;
  };
  const show = media.getDisplayMedia.bind(media);
  media.getDisplayMedia = () => show({ video: { width: 320, frameRate: 5 } });
"""
# The colour of what the page sees there.
COLOUR = """
  const canvas = Object.assign(document.createElement("canvas"), { width: 1, height: 1 });
  const paint = canvas.getContext("2d");
  const picture = document.querySelector("active-calls PLACE");
  if (!picture) return "";
  paint.drawImage(picture, 0, 0, 1, 1);
  const [red, green, blue] = paint.getImageData(0, 0, 1, 1).data;
  return Math.max(red, green, blue) < 50 ? "" : green > blue ? "green" : "blue";
"""
# The gateway is reached through a relay, and by UDP alone.
BY_RELAY = """
  const { prototype } = RTCPeerConnection, set = prototype.setRemoteDescription;
  prototype.setRemoteDescription = function ({ type, sdp }) {
    const there = sdp.replace(/^a=candidate.* tcp .*\\r\\n/gim, "");
    return set.call(this, { type, sdp: there.replace(/\\d+ typ host/g, "PORT typ host") });
  };
"""
TILE = "document.querySelectorAll('[aria-label=\"Picture of carol\"]').length"
HEARD = "/[1-9]\\d* kbit.s in/.test(document.querySelector('.quality').textContent)"


@pytest.fixture
def server(gateway, tmp_path):
    return gateway(
        "--users", users_file(tmp_path, "alice", "bob", "carol"), "--webrtc", "127.0.0.1:0",
        "--room", "team",
    )  # fmt: skip


def address(server):
    return f"http://{server.listeners['http']}/phone/"


def sign_in(browser, name, tone=WHISTLED):
    """The phone of a user, signed in."""
    browser.run(OWN_MEDIA.replace("HZ", str(tone)))
    browser.fill("Password", PASSWORD, submits=False)
    browser.fill("Name", f"{name}@127.0.0.1")
    says(browser, f"Signed in as {name}")
    return browser


def sees(browser, colour, place="video"):
    script = COLOUR.replace("PLACE", place)
    browser.wait_until(lambda: browser.run(script) == colour, what=colour, timeout=60)


@pytest.fixture
def page(start, server):
    return sign_in(start(DrivenBrowser, address(server)), "alice")


@pytest.fixture
def phone(start, server):
    return start(Baresip, "bob", registrar=server.sip, password=PASSWORD, hz=900)


def hears(browser, tone):
    browser.wait_until(lambda: abs(browser.run(PITCH) - tone) < 10, what="the tone", timeout=60)


def records(phone, more=False):
    """A second, or two more."""
    recording = next(phone.folder.glob("dump-*-dec.wav"))
    enough = recording.stat().st_size + 2 * SECOND if more else SECOND
    phone.wait_until(lambda: recording.stat().st_size > enough, what="sound", timeout=60)


def says(browser, text):
    browser.until(f"document.body.textContent.includes({text!r})", text)


@pytest.mark.needs("baresip", "chromium")
def test_a_page_calls_a_phone(server, page, phone):
    """Both see and hear, keys and messages go both ways, and the page hangs up."""
    page.fill("Number or address", f"bob@{server.sip}")
    phone.wait_event("CALL_ESTABLISHED")
    says(page, "In a call")
    hears(page, 900)
    page.run("document.querySelector('active-calls details').open = true")
    page.press("Key 5")
    assert phone.wait_event("CALL_DTMF_START")["param"] == "5"
    phone.command("sndcode", "7")
    says(page, "They pressed 7")
    page.fill("Message", "good evening")
    phone.wait_until(lambda: "good evening" in phone.output, what="the message")
    page.until(HEARD, "bits")
    assert page.faults() == []
    page.press("Hang up")
    phone.wait_event("CALL_CLOSED")
    server.wait_status({"calls": 0, "browsers": 0})
    samples, rate = phone.heard()
    assert tone_fraction(trimmed(samples, rate), rate, WHISTLED) > 0.9


@pytest.mark.needs("baresip", "chromium")
def test_a_page_connects_again_in_the_same_call(server, page, phone):
    """Nothing gets through for a while; then both hear each other again, in one call."""
    host, _, port = server.listeners["webrtc"].rpartition(":")
    with lossy_relay((host, int(port)), loss=0.0, delay=0.0) as link:
        page.run(BY_RELAY.replace("PORT", str(link.port)))
        page.fill("Number or address", f"bob@{server.sip}")
        phone.wait_event("CALL_ESTABLISHED")
        hears(page, 900)
        link.loss = 1.0
        says(page, "is lost; trying again")
        link.loss = 0.0
        says(page, "connected again")
        page.run("window.heard = null; window.tone.frequency.value = 710")
        hears(page, 900)
        says(page, "In a call")
        records(phone, more=True)
        page.press("Hang up")
        phone.wait_event("CALL_CLOSED")
        server.wait_status({"calls": 0, "browsers": 0})
    assert page.faults() == []
    samples, rate = phone.heard()
    assert tone_fraction(samples[-rate:], rate, 710) > 0.8  # the old tone is gone


@pytest.mark.needs("baresip", "chromium")
def test_a_page_answers_a_phone_and_transfers_it(start, server, page, phone):
    """The user declines, then answers and holds; the phone calls whom the user names, or stays."""
    desk = start(Baresip, "carol", registrar=server.sip, password=PASSWORD, hz=1200)
    phone.dial(f"sip:alice@{server.sip}")
    says(page, "bob calls")
    page.press("Decline")
    phone.wait_event("CALL_CLOSED")
    phone.dial(f"sip:alice@{server.sip}")
    says(page, "bob calls")
    page.press("Answer")
    phone.wait_event("CALL_ESTABLISHED")
    hears(page, 900)
    page.press("Hold")
    says(page, "On hold")
    page.press("Hold")
    says(page, "In a call")
    page.fill("Transfer to", "nobody")
    says(page, "Not transferred: 480")
    page.fill("Transfer to", "carol")
    desk.wait_event("CALL_ESTABLISHED")
    says(page, "Transferred")
    server.wait_status({"calls": 0, "browsers": 0, "proxied_dialogs": 1})
    records(desk)
    desk.hangup()
    desk.wait_event("CALL_CLOSED")
    samples, rate = desk.heard()
    assert tone_fraction(trimmed(samples, rate), rate, 900) > 0.9


@pytest.mark.needs("chromium")
def test_a_page_calls_a_page_and_shows_its_screen(server, page):
    """They see that the other is there, and then hear and see it."""
    other = sign_in(page.tab(address(server)), "carol")
    page.until("document.querySelector('people-view').textContent.includes('carol')", "carol")
    page.run("location.hash = '#people'")
    page.press("Call carol@127.0.0.1")
    says(other, "alice calls")
    other.press("Answer")
    for each in (page, other):
        says(each, "In a call")
        hears(each, WHISTLED)
        sees(each, "blue")
    page.press("Share screen")
    sees(other, "green")
    page.press("Share screen")
    sees(other, "blue")
    other.press("Hang up")
    says(page, "Ended: they hung up")
    server.wait_status({"calls": 0, "browsers": 0})
    other.close()
    page.until("!document.querySelector('people-view').textContent.includes('carol')", "alone")


def enter(browser, room="team"):
    browser.run("location.hash = '#watch'")
    browser.fill("Name of the room", room)


@pytest.mark.needs("chromium")
def test_pages_meet_in_a_room(server, page):
    """Each sees a tile of the other and hears it; it goes when the other leaves, or is gone."""
    other = sign_in(page.tab(address(server)), "carol", 710)
    enter(page, "nowhere")
    says(page, "Refused: 480 No Such User")
    enter(page)
    says(page, "In a call")
    page.until("document.querySelectorAll('active-calls figure').length === 1", "its own tile")
    enter(other)
    for each, name, tone in ((page, "carol", 710), (other, "alice", WHISTLED)):
        hears(each, tone)
        sees(each, "blue", f"[aria-label='Picture of {name}']")
    page.press("Share screen")
    sees(other, "green", "[aria-label='Picture of alice']")
    other.fill("Message", "<b>good</b> evening")
    for each in (page, other):
        says(each, "carol: <b>good</b> evening")
    assert page.faults() == []
    other.press("Hang up")
    page.until(f"!{TILE}", "no tile")
    enter(other)
    page.until(TILE, "a tile")
    sees(page, "blue", "[aria-label='Picture of carol']")
    other.close()
    page.until(f"!{TILE}", "no tile")
    server.wait_status({"room_members": 1})


@pytest.mark.needs("baresip", "chromium", "firefox-esr")
def test_firefox_calls_a_phone_and_a_page(start, server, page, phone):
    """It has VP8 and no H.264: each hears the other, and pages see each other, whoever calls."""
    fox = sign_in(start(DrivenBrowser, address(server), "firefox"), "carol", 710)
    fox.fill("Number or address", f"bob@{server.sip}")
    phone.wait_event("CALL_ESTABLISHED")
    hears(fox, 900)
    records(phone)
    fox.press("Hang up")
    phone.wait_event("CALL_CLOSED")
    samples, rate = phone.heard()
    assert tone_fraction(trimmed(samples, rate), rate, 710) > 0.9
    fox.run("window.heard = null")
    fox.fill("Number or address", "alice")
    says(page, "carol calls")
    page.press("Answer")
    for each, tone in ((page, 710), (fox, WHISTLED)):
        says(each, "In a call")
        hears(each, tone)
        sees(each, "blue")
    assert fox.faults() == []
    fox.press("Hang up")
    says(page, "Ended: they hung up")
    page.fill("Number or address", "carol")
    says(fox, "alice calls")
    fox.press("Answer")
    for each in (page, fox):
        says(each, "In a call")
        sees(each, "blue")
    page.press("Hang up")
    says(fox, "Ended: they hung up")
    server.wait_status({"calls": 0, "browsers": 0})


@pytest.mark.needs("chromium")
def test_the_demo_s_page_has_its_fields_filled_in(start, tmp_path, monkeypatch):
    """Two buttons lead to a tone; no link calls by itself."""
    monkeypatch.setenv("BROWSER", "true")  # which opens nothing
    argv = [sys.executable, "-m", "siprtmp", "demo", "--browser", "--seconds", "60"]
    demo = start(Process, argv)
    shown = lambda: re.search(r"http://\S+", demo.output)  # noqa: E731
    url = demo.wait_until(shown, what="the address of the page")
    assert url is not None
    browser = start(DrivenBrowser, url[0])
    browser.press("Sign in")
    says(browser, "Signed in as guest")
    assert "answered" not in demo.output
    browser.press("Call")
    says(browser, "In a call")
    hears(browser, 660)
    browser.press("Hang up")
    assert demo.finish() == 0
    assert "verdict  the call held" in demo.output
