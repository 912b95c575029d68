"""The operator's console in a browser: it shows what runs, and ends it."""

import os
from pathlib import Path

import pytest
from support.gateway.accounts import PASSWORD, users_file
from support.peers.baresip import Baresip
from support.peers.driven_browser import DrivenBrowser
from support.peers.peers import LASTING, Ffmpeg

SHOTS = os.environ.get("CONSOLE_SHOTS", "")  # a folder for pictures that somebody looks at
LOOKS = [(1200, 900, "light"), (380, 800, "dark")]  # each width and each scheme
STREAM = '<img/src="x"/onerror="window.owned=1">'  # a browser reads it as the other one
USER = "<img src=x onerror=window.owned=1>"
LOG_IN = f"""
  const {{ Resources }} = await import("/tree.js");
  window.other = new Resources(`ws://${{location.host}}/tree`);
  await window.other.put("/login/eve@example.net", {{ name: "{USER}" }});
"""

LOSE = """
  window.other.addEventListener("open", () => { window.isBack = true; });
  window.other._wire.close();
"""
LADDER = "[...document.querySelectorAll('.ladder .words')].map((each) => each.textContent).join()"


@pytest.fixture
def server(gateway, tmp_path):
    folder = ("--record", str(tmp_path / "films"), "--record-when", "asked")
    return gateway("--domain", "example.net", *folder)


@pytest.fixture
def page(start, server):
    return start(DrivenBrowser, f"http://{server.listeners['http']}/console/")


@pytest.fixture
def phone(start, server):
    return start(Baresip, "bob", registrar=server.sip, domain="example.net", hz=900)


def says(page, text):
    page.until(f"document.querySelector('main').textContent.includes({text!r})", text)


def check(page, view):
    """Nothing is wrong for those who do not see, or do not see well, in any look."""
    for width, height, scheme in LOOKS:
        page.shot(
            Path(SHOTS or page.folder) / f"{view}-{width}-{scheme}.png", width, height, scheme
        )
        assert page.faults() == [], (view, width, scheme)
        too_wide = "return document.documentElement.scrollWidth - innerWidth"
        assert page.run(too_wide) <= 0, (view, width)


def opens_a_call(page):
    """What is drawn of one call as it happens."""
    page.run("document.querySelector('now-view td a').click()")
    says(page, "MOS from the phone")
    page.until(f"/INVITE.*200.*ACK.*first packets/.test({LADDER})", "the ladder")
    page.until("document.querySelector('.plot path') !== null", "quality over time")
    page.run("document.querySelector('details.card').open = true")
    page.until("document.querySelector('[role=log]').textContent.includes('call-answer')", "log")
    check(page, "call")


def looks_at_the_gateway(page):
    """Its log says more, and who has changed that is told."""
    page.run("location.hash = '#gateway'")
    says(page, "Level of the log")
    page.run("""
      const level = document.getElementById("log-level");
      level.value = "debug";
      level.dispatchEvent(new Event("change"));
    """)
    says(page, "The log has the level debug now.")
    says(page, '{"log_level":"debug"}')
    check(page, "gateway")


def records_and_pushes(page):
    """A stream, into a file; a server that nobody has listed is refused in words."""
    page.press(f"Record: live/{STREAM}")
    page.until("document.getElementById('title-recording')?.checkVisibility()", "the recordings")
    says(page, ".flv")
    page.press(f"Push: live/{STREAM}")
    page.fill("rtmp:// or rtmps:// address", "rtmp://127.0.0.1:9/live/key", submits=False)
    assert page.faults() == []
    page.run("document.querySelector('ask-first .stop').click()")
    says(page, "Refused: --tree-push does not list this host and port")


def learns_why_a_call_has_failed(start, server, page):
    start(Ffmpeg.publish, server.url("call", "carol@example.net"), hz=440, seconds=LASTING)
    says(page, "carol@example.net")
    page.until("document.querySelector('now-view').textContent.includes('480')", "the reason")
    page.run("document.querySelector('now-lists section:last-child td a').click()")
    page.until("document.querySelector('.advice').checkVisibility()", "advice")
    assert "register" in page.run("return document.querySelector('.advice').textContent")
    page.run("location.hash = '#now'")


@pytest.mark.needs("baresip", "chromium", "ffmpeg")
def test_an_operator_looks_into_a_call_and_hangs_up(start, server, page, phone):
    """Names of peers stay text; what is ended here ends at the phone."""
    learns_why_a_call_has_failed(start, server, page)
    start(Ffmpeg.publish, server.url("live", STREAM), hz=440, seconds=LASTING)
    start(Ffmpeg.publish, server.url("call", "bob@example.net"), hz=440, seconds=LASTING)
    phone.wait_event("CALL_ESTABLISHED")
    says(page, "bob@example.net")
    says(page, STREAM)
    assert page.run("return document.images.length") == 0
    records_and_pushes(page)
    page.until("document.querySelector('.spark .line').getAttribute('d').includes('L')", "a chart")
    check(page, "now")
    opens_a_call(page)
    page.run("location.hash = '#phones'")
    page.run(LOG_IN)
    says(page, USER)
    page.run(LOSE)
    page.until("window.isBack === true", "another connection")
    assert page.run("return document.images.length") == 0
    check(page, "phones")
    looks_at_the_gateway(page)
    page.run("location.hash = '#now'")
    page.press(f"Stop recording: live/{STREAM}")
    page.until("!document.getElementById('title-recording').checkVisibility()", "its end")
    page.press("Hold: call@example.net to bob@example.net")
    says(page, "on hold")
    page.press("Hang up: call@example.net to bob@example.net")
    page.press("Hang up")
    phone.wait_event("CALL_CLOSED")
    says(page, "Nobody is in a call.")
    page.press(f"Disconnect: live/{STREAM}")
    page.press("Disconnect")
    says(page, "Nothing is published.")
    page.run("document.querySelector('now-lists section:last-child td a').click()")
    page.until(f"{LADDER}.includes('BYE')", "the end in the ladder")
    assert page.run("return window.owned ?? 0") == 0


@pytest.mark.needs("chromium")
def test_a_viewer_signs_in_and_changes_nothing(start, gateway, tmp_path):
    server = gateway("--users", users_file(tmp_path, "bob"), "--viewer", "bob")
    page = start(DrivenBrowser, f"http://{server.listeners['http']}/console/")
    says(page, "Nothing is published.")
    page.run(LOG_IN)
    page.run("location.hash = '#phones'")
    page.until("document.querySelector('button[aria-label^=\"Log off\"]').checkVisibility()", "it")
    page.press("Sign out")
    assert USER not in page.run("return document.body.textContent")
    page.fill("Password", "wrong", submits=False)
    page.fill("Name", "bob")
    says(page, "wrong name or password")
    assert page.faults() == []
    page.fill("Password", PASSWORD, submits=False)
    page.fill("Name", "bob")
    says(page, USER)
    assert not page.run("return document.querySelector('.acts button').checkVisibility()")
    page.run("location.hash = '#gateway'")
    says(page, "Viewer")
    assert page.run("return document.getElementById('log-level').disabled")
    assert not page.run("return document.getElementById('title-audit').checkVisibility()")
