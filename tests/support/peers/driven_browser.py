"""A browser that a test drives by puppeteer: it opens a page of the gateway, and acts in it."""

import itertools
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from support.peers.browser_peer import FOLDER, QUIET
from support.peers.process import Process, lack, require

PROGRAMS = {"chrome": ("chromium", "chromium"), "firefox": ("firefox-esr", "firefox-esr")}
T = TypeVar("T")
PATIENCE = 60.0  # s for a browser to begin beside all other tests


class Driven:
    """A page that a test acts in."""

    def wait_until(self, condition: Callable[[], T], *, what: str, timeout: float = PATIENCE) -> T:
        """See `Process.wait_until`."""
        raise NotImplementedError

    def _ask(self, **task: Any) -> Any:
        raise NotImplementedError

    def run(self, script: str) -> Any:
        """What a script of the page returns; it may wait."""
        return self._ask(run=script)

    def until(self, script: str, what: str, timeout: float = PATIENCE) -> Any:
        """Wait until an expression of the page is true, and give it."""
        return self.wait_until(lambda: self.run(f"return {script}"), what=what, timeout=timeout)

    def press(self, text: str) -> None:
        """Press the button with this text, or with this name, as soon as it can be pressed."""
        self.wait_until(lambda: self._ask(press=text), what=f"a button {text}", timeout=PATIENCE)

    def fill(self, label: str, text: str, *, submits: bool = True) -> None:
        """Write into the field with this label, and submit its form."""
        filled = lambda: self._ask(fill=label, text=text, submits=submits)  # noqa: E731
        self.wait_until(filled, what=f"a field {label}", timeout=PATIENCE)

    def faults(self) -> Any:
        """What axe finds: a list of rules, each with the elements that break it."""
        return self._ask(axe=True)

    def shot(self, file: Path, width: int, height: int, scheme: str) -> None:
        """Take a picture of the page."""
        self._ask(shot=str(file), width=width, height=height, scheme=scheme)


class DrivenBrowser(Process, Driven):
    """Chromium or Firefox without a screen, at `url`; used by `start` of the tests."""

    def __init__(self, folder: Path, url: str, kind: str = "chrome") -> None:
        """Its profile is in `folder`."""
        program = require(*PROGRAMS[kind])
        if not (FOLDER / "node_modules" / "puppeteer-core").is_dir():
            lack("puppeteer-core", "npm")
        super().__init__(
            folder, [require("node", "npm"), FOLDER / "drive.mjs", program, kind, folder, url]
        )
        prefs = {**QUIET, "media.navigator.streams.fake": True}  # a camera that shows a colour
        (folder / "prefs.json").write_text(json.dumps(prefs))
        self._numbers, self._read = itertools.count(1), 0

    def start(self, timeout: float = PATIENCE) -> "DrivenBrowser":
        self.launch(subprocess.PIPE)
        self.wait_until(lambda: self._said("ready"), what="a page", timeout=timeout)
        return self

    def tab(self, url: str) -> "DrivenTab":
        """Open another page in it."""
        return DrivenTab(self, self._ask(open=url))

    def _ask(self, **task: Any) -> Any:
        number = next(self._numbers)
        pipe = self.child.stdin
        assert pipe is not None
        pipe.write(json.dumps({"id": number, **task}).encode() + b"\n")
        pipe.flush()
        answer = self.wait_until(
            lambda: self._said("id", number), what=f"the answer to {task}", timeout=PATIENCE
        )
        assert "failed" not in answer, answer["failed"]
        return answer["value"]

    def _said(self, key: str, value: object = True) -> Any:
        """What it has said with this value; each is read once, and in order."""
        with self.log.open("rb") as log:
            log.seek(self._read)
            for line in log:
                if not line.endswith(b"\n"):
                    break
                self._read += len(line)
                if line.startswith(b"{") and (said := json.loads(line)).get(key) == value:
                    return said
        return None


class DrivenTab(Driven):
    """Another page of a browser, until it is closed."""

    def __init__(self, browser: DrivenBrowser, number: int) -> None:
        self._browser, self._number = browser, number

    def wait_until(self, condition: Callable[[], T], *, what: str, timeout: float = PATIENCE) -> T:
        return self._browser.wait_until(condition, what=what, timeout=timeout)

    def close(self) -> None:
        """Close the page, as its user would."""
        self._ask(close=True)

    def _ask(self, **task: Any) -> Any:
        return self._browser._ask(page=self._number, **task)
