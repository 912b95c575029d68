"""Browsers as test peers, without a screen: Chromium and Firefox, each showing one page."""

import http.server
import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote, urlsplit

import pytest
from support.peers.process import Process, require

FOLDER = Path(__file__).resolve().parents[2] / "interop" / "browser"
SCRIPT = FOLDER / "node_modules" / "mpegts.js" / "dist" / "mpegts.js"


class Page(http.server.ThreadingHTTPServer):
    """Serves the page and the player; keeps what the page posts."""

    def __init__(self) -> None:
        """On a free loopback port."""
        super().__init__(("127.0.0.1", 0), _Handler)
        self.results: list[dict[str, Any]] = []
        self.files = {
            "/": ((FOLDER / "player.html").read_bytes(), "text/html"),
            "/mpegts.js": (SCRIPT.read_bytes() if SCRIPT.is_file() else b"", "text/javascript"),
        }

    def url(self, stream: str) -> str:
        """The page that plays `stream`."""
        return f"http://127.0.0.1:{self.server_address[1]}/?url={quote(stream, safe='')}"

    @property
    def last(self) -> dict[str, Any]:
        """What the page said last."""
        return self.results[-1] if self.results else {}


class _Handler(http.server.BaseHTTPRequestHandler):
    server: Page

    def do_GET(self) -> None:
        data, kind = self.server.files.get(urlsplit(self.path).path, (b"", ""))
        self.send_response(200 if kind else 404)
        self.send_header("Content-Type", kind or "text/plain")
        self.end_headers()
        self.wfile.write(data)

    def do_POST(self) -> None:
        self.server.results.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(204)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Keep quiet."""


P = TypeVar("P", bound=Page)


@contextmanager
def page(make: type[P], needs: Path = SCRIPT) -> Iterator[P]:
    """A running page server; skips, or fails in CI, where the file it `needs` was not installed."""
    if not needs.is_file():
        missing = f"{needs.name} is not installed: npm ci --prefix {FOLDER.name}, or make peers"
        if os.environ.get("CI"):
            pytest.fail(missing)
        pytest.skip(missing)
    with make() as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


class Chromium(Process):
    """Headless Chromium showing one page."""

    def __init__(self, folder: Path, url: str) -> None:
        """A profile of its own in `folder`; the sandbox needs a user that tests may not be."""
        program = require("chromium", "chromium")
        words = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--no-first-run",
            "--mute-audio",
        ]
        words += ["--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream"]
        words += ["--disable-dev-shm-usage", "--autoplay-policy=no-user-gesture-required"]
        super().__init__(folder, [program, *words, f"--user-data-dir={folder}/profile", url])


# Nothing is fetched or sent but what the page asks for, and nobody is asked about sound or camera.
QUIET = {
    "app.normandy.enabled": False,
    "app.update.enabled": False,
    "browser.aboutwelcome.enabled": False,
    "browser.newtabpage.enabled": False,
    "browser.region.update.enabled": False,
    "browser.safebrowsing.update.enabled": False,
    "browser.search.update": False,
    "browser.shell.checkDefaultBrowser": False,
    "browser.startup.homepage_override.mstone": "ignore",
    "datareporting.policy.dataSubmissionEnabled": False,
    "extensions.update.enabled": False,
    "media.autoplay.block-webaudio": False,
    "media.autoplay.blocking_policy": 0,
    "media.autoplay.default": 0,
    "media.cubeb.force_mock_context": True,  # a sound card that is not there, but keeps time
    "media.gmp-manager.updateEnabled": False,
    "media.navigator.permission.disabled": True,
    "media.peerconnection.ice.loopback": True,
    "media.peerconnection.ice.trickle_grace_period": 60_000,  # ms, where no core is free
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "network.dns.disabled": True,
    "permissions.default.camera": 1,  # without one it takes no address of loopback
    "services.settings.server": "data:,#remote-settings-dummy/v1",
    "toolkit.telemetry.server": "data:,",
}


class Firefox(Process):
    """Firefox of Debian, which has VP8 and no H.264 for WebRTC."""

    def __init__(self, folder: Path, url: str) -> None:
        """A profile of its own in `folder`."""
        program = require("firefox-esr", "firefox-esr")
        profile = folder / "profile"
        profile.mkdir(parents=True)
        lines = [f"user_pref({json.dumps(k)}, {json.dumps(v)});\n" for k, v in QUIET.items()]
        (profile / "user.js").write_text("".join(lines))
        words = ["--headless", "--no-remote", "--profile", profile, url]
        super().__init__(folder, ["env", f"HOME={folder}", program, *words])
