"""The gateway's own phone in a browser: it calls a phone, is called by one, and is easy to use."""

import re
import sys

import pytest
from support.gateway.accounts import PASSWORD, users_file
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

WHISTLED = 440  # Hz, the usual of an oscillator
# The microphone has a tone, which no suppression of noise takes away.
WHISTLE = """
  const media = navigator.mediaDevices, ask = media.getUserMedia.bind(media);
  media.getUserMedia = async (wanted) => {
    const stream = await ask(wanted), sound = new AudioContext();
    const out = sound.createMediaStreamDestination(), tone = new OscillatorNode(sound);
    tone.connect(out);
    tone.start();
    stream.getAudioTracks().forEach((track) => stream.removeTrack(track));
    stream.addTrack(out.stream.getTracks()[0]);
    return stream;
  };
"""
HEARD = "/[1-9]\\d* kbit.s in/.test(document.querySelector('.quality').textContent)"
SHOWN = "document.querySelector('active-calls video')?.videoWidth > 0"


@pytest.fixture
def server(gateway, tmp_path):
    return gateway(
        "--users", users_file(tmp_path, "alice", "bob", "carol"), "--webrtc", "127.0.0.1:0"
    )


def sign_in(start, server, name):
    """The phone of a user, signed in."""
    browser = start(DrivenBrowser, f"http://{server.listeners['http']}/phone/")
    browser.fill("Password", PASSWORD, submits=False)
    browser.fill("Name", f"{name}@127.0.0.1")
    says(browser, f"Signed in as {name}")
    return browser


@pytest.fixture
def page(start, server):
    return sign_in(start, server, "alice")


@pytest.fixture
def phone(start, server):
    return start(Baresip, "bob", registrar=server.sip, password=PASSWORD, hz=900)


def hears(browser, tone):
    browser.wait_until(lambda: abs(browser.run(PITCH) - tone) < 10, what="the tone", timeout=60)


def says(browser, text):
    browser.until(f"document.body.textContent.includes({text!r})", text)


@pytest.mark.needs("baresip", "chromium")
def test_a_page_calls_a_phone(server, page, phone):
    """Both see and hear, keys and messages go both ways, and the page hangs up."""
    page.run(WHISTLE)
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
def test_a_phone_calls_a_page(server, page, phone):
    """It rings there; the user declines, and then answers, and holds; the phone hangs up."""
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
    phone.hangup()
    says(page, "Ended")
    server.wait_status({"calls": 0, "browsers": 0})


@pytest.mark.needs("chromium")
def test_a_page_calls_a_page(start, server, page):
    """They see that the other is there, and then hear and see it."""
    other = sign_in(start, server, "carol")
    page.until("document.querySelector('people-view').textContent.includes('carol')", "carol")
    page.run("location.hash = '#people'")
    page.press("Call carol@127.0.0.1")
    says(other, "alice calls")
    other.press("Answer")
    for each in (page, other):
        says(each, "In a call")
        each.until(HEARD, "bits")
        each.until(SHOWN, "the other's picture")
    other.press("Hang up")
    says(page, "Ended")
    server.wait_status({"calls": 0, "browsers": 0})
    other.stop()
    page.until("!document.querySelector('people-view').textContent.includes('carol')", "alone")


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
