"""The conference of examples/: pages in Chromium and Firefox and a phone meet in a room."""

import pytest
from support.gateway.accounts import PASSWORD, users_file
from support.gateway.gateway import REPO
from support.peers.baresip import Baresip
from support.peers.browser_peer import Page, page
from support.peers.driven_browser import DrivenBrowser
from support.peers.tones import levels, trimmed

EXAMPLE = REPO / "examples" / "conference.html"
TONES = {"alice": 440, "bob": 590, "carol": 710, "dave": 900}  # Hz, what each says
LEAST = 20  # dB over everything else

# The microphone has a tone, which no suppression of noise takes away; the camera is a small one.
WHISTLE = """
  const media = navigator.mediaDevices, ask = media.getUserMedia.bind(media);
  media.getUserMedia = async (wanted) => {
    const small = { ...wanted, video: { width: 160, height: 120, frameRate: 5 } };
    const stream = await ask(small), sound = new AudioContext();
    const out = sound.createMediaStreamDestination(), tone = new OscillatorNode(sound);
    tone.frequency.value = HZ;
    tone.connect(new GainNode(sound, { gain: 0.2 })).connect(out);
    tone.start();
    stream.getAudioTracks().forEach((track) => stream.removeTrack(track));
    stream.addTrack(out.stream.getTracks()[0]);
    return stream;
  };
"""
# The level of each tone in what the page plays, as the analyser of Web Audio has it.
LEVELS = """
  if (!window.ear) {
    const sound = new AudioContext();
    await sound.resume();
    window.ear = new AnalyserNode(sound, { fftSize: 8192 });
    sound.createMediaStreamSource(document.querySelector("audio").srcObject).connect(window.ear);
  }
  const bins = new Float32Array(window.ear.frequencyBinCount);
  window.ear.getFloatFrequencyData(bins);
  const floor = [...bins].sort((a, b) => a - b)[bins.length >> 1];
  return TONES.map((hz) => {
    const at = Math.round(hz * window.ear.fftSize / window.ear.context.sampleRate);
    return Math.max(...bins.slice(at - 1, at + 2), -90) - Math.max(floor, -90);
  });
"""
SEEN = "[...document.querySelectorAll('figure')].map((each) => each.textContent).sort().join(' ')"
SHOWN = "[...document.querySelectorAll('video')].every((each) => each.videoWidth > 0)"


class Site(Page):
    """Another web server, with the example."""

    def __init__(self) -> None:
        super().__init__()
        self.files = {"/": (EXAMPLE.read_bytes(), "text/html")}

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


def enter(there, name):
    there.run(WHISTLE.replace("HZ", str(TONES[name])))
    there.fill("Password", PASSWORD, submits=False)
    there.fill("Name", name)


def sees(there, *names):
    expected = " ".join(sorted(names))
    there.wait_until(lambda: there.run(f"return {SEEN}") == expected, what=expected, timeout=60)
    there.until(SHOWN, "all pictures")


def hears(there, *names):
    """All of these, far more than the others."""
    script = LEVELS.replace("TONES", str([*TONES.values()]))

    def heard():
        loud = dict(zip(TONES, there.run(script), strict=True))
        rest = max(loud[name] for name in loud.keys() - names)
        return min(loud[name] for name in names) > max(LEAST, rest + 10)

    there.wait_until(heard, what=f"{names}", timeout=60)


@pytest.fixture
def world(gateway, tmp_path):
    """A gateway with a room, and the address of the page at another site."""
    with page(Site, needs=EXAMPLE) as site:
        server = gateway(
            "--users", users_file(tmp_path, *TONES), "--webrtc", "127.0.0.1:0", "--room", "conf1",
            "--tree-origin", site.origin,
        )  # fmt: skip
        yield server, f"{site.origin}/?gateway={server.listeners['http']}"


@pytest.mark.needs("baresip", "chromium")
def test_pages_and_a_phone_meet_in_a_room(start, world):
    """They see each other come and go, chat, and hear all others and not themselves."""
    server, url = world
    alice = start(DrivenBrowser, url)
    bob = alice.tab(url)
    enter(alice, "alice")
    enter(bob, "bob")
    phone = start(Baresip, "dave", registrar=server.sip, password=PASSWORD, hz=900, level=0.2)
    phone.dial(f"sip:conf1@{server.sip}")
    phone.wait_event("CALL_ESTABLISHED")
    sees(alice, "alice", "bob")
    sees(bob, "alice", "bob")
    server.wait_status({"room_members": 3})
    hears(alice, "bob", "dave")
    hears(bob, "alice", "dave")
    bob.fill("Message", "<b>good</b> evening")
    for there in (alice, bob):
        there.until("document.body.innerText.includes('bob: <b>good</b> evening')", "text")
    bob.close()
    sees(alice, "alice")
    hears(alice, "dave")
    phone.hangup()
    phone.wait_event("CALL_CLOSED")
    server.wait_status({"room_members": 1})
    samples, rate = phone.heard()
    loud = levels(trimmed(samples, rate), rate, TONES.values())
    assert loud[TONES["alice"]] > LEAST > loud[TONES["dave"]], loud


@pytest.mark.needs("chromium", "firefox-esr")
def test_firefox_and_chromium_meet_in_a_room(start, world):
    """Each has a codec for the other's picture."""
    _, url = world
    alice, carol = start(DrivenBrowser, url), start(DrivenBrowser, url, "firefox")
    enter(alice, "alice")
    enter(carol, "carol")
    sees(alice, "alice", "carol")
    sees(carol, "alice", "carol")
    hears(alice, "carol")
    hears(carol, "alice")
