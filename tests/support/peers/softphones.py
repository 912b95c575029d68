"""Phones in one page of headless Chromium, by JsSIP or SIP.js, that a test commands."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from support.peers.browser_peer import FOLDER, Chromium, Page, page
from support.peers.browser_phone import MODULES, bundle

SIP_JS = MODULES / "sip.js" / "lib"
JSSIP, SIPJS = "jssip", "sip.js"  # the libraries
PATIENCE = 60  # s, on a busy machine


class PhonesPage(Page):
    """Serves the phones and their scripts; `commands` are what the page is to do, in order."""

    def __init__(self) -> None:
        """On a free loopback port."""
        super().__init__()
        self.commands: list[tuple[str, str, Any]] = []
        self.files = {
            "/": ((FOLDER / "softphones.html").read_bytes(), "text/html"),
            "/jssip.js": (bundle().encode(), "text/javascript"),
        }
        for path in SIP_JS.rglob("*.js"):
            served = f"/sip.js/{path.relative_to(SIP_JS)}"
            self.files[served] = (path.read_bytes(), "text/javascript")
        self.order()

    def order(self, *command: Any) -> None:
        """Give the page one command more."""
        if command:
            self.commands.append(command)
        self.files["/commands"] = (json.dumps(self.commands).encode(), "application/json")


class SoftPhone:
    """One phone of the page, registered as sip:`user`@127.0.0.1."""

    def __init__(
        self, browser: Chromium, shown: PhonesPage, ws: str, user: str, password: str = "",
        *, library: str = JSSIP, tone: int = 440, video: bool = False,
    ) -> None:  # fmt: skip
        """Ready when it is registered."""
        self._browser, self._shown, self.user, self._since = browser, shown, user, 0
        shown.order(user, "begin", {
            "server": f"ws://{ws}", "uri": f"sip:{user}@127.0.0.1", "password": password,
            "library": library, "tone": tone, "video": video,
        })  # fmt: skip
        self.wait("registered")

    def call(self, to: str) -> None:
        """Call a SIP URI."""
        self._order("call", to)

    def hold(self, on: bool) -> None:
        """Put the call on hold, or take it off."""
        self._order("hold", on)

    def end(self) -> None:
        """Hang up."""
        self._order("end")

    def end_all(self) -> None:
        """Hang up, or give up, what is left of its calls, if anything is."""
        self._order("endAll")

    def _order(self, verb: str, argument: Any = None) -> None:
        self.forget()
        self._shown.order(self.user, verb, argument)

    def forget(self) -> None:
        """Count only what comes from now on."""
        self._since = len(self._shown.results)

    def told(self, event: str) -> list[dict[str, Any]]:
        """What it has told of this event since the last command."""
        own = [each for each in self._shown.results[self._since :] if each["phone"] == self.user]
        return [each for each in own if each["event"] == event]

    def wait(self, event: str) -> dict[str, Any]:
        """Wait for an event, and give it."""
        found = self._browser.wait_until(
            lambda: self.told(event), what=self._what(event), timeout=PATIENCE
        )
        assert found
        return found[-1]

    def _what(self, event: str) -> str:
        return f"{event} of {self.user}'s phone"

    def wait_tone(self, hz: float) -> None:
        """Wait until it hears this tone."""

        def is_heard() -> bool:
            heard = [each["pitch"] for each in self.told("seen")]
            return bool(heard) and abs(heard[-1] - hz) < 10

        self._browser.wait_until(is_heard, what=self._what(f"{hz} Hz"), timeout=PATIENCE)

    @property
    def numbers(self) -> list[int]:
        """The numbers in the latest pictures that it has seen."""
        seen = self.told("seen")
        return seen[-1]["numbers"] if seen else []


@contextmanager
def softphones_page() -> Iterator[PhonesPage]:
    """A running server of the page; skips, or fails in CI, where SIP.js is absent."""
    with page(PhonesPage, SIP_JS / "index.js") as server:
        yield server
