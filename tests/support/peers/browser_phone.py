"""A phone in a browser as a test peer: JsSIP, pinned in browser/package.json, in Chromium."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from support.peers.browser_peer import FOLDER, Chromium, Page, page
from support.peers.process import Process

MODULES = FOLDER / "node_modules"
REQUIRE = re.compile(r"""require\(['"]([^'"]+)['"]\)""")
LOADER = """\
const table = %s, loaded = {};
const load = (name) => {
  if (!loaded[name]) {
    const module = (loaded[name] = { exports: {} });
    const [needs, run] = table[name];
    run(module, module.exports, (text) => load(needs[text]));
  }
  return loaded[name].exports;
};
window.JsSIP = load("%s");
"""


def bundle(start: str = "jssip") -> str:
    """JsSIP and all it needs as one script; its package has modules of Node.js alone."""
    first, table, rest = _module(MODULES / start), {}, list[Path]()
    rest.append(first)
    while rest:
        path = rest.pop()
        if str(path) in table:
            continue
        if path.suffix == ".json":
            table[str(path)] = f"[{{}}, (module) => {{ module.exports = {path.read_text()}; }}]"
            continue
        needs = {text: _found(path, text) for text in REQUIRE.findall(path.read_text())}
        rest += needs.values()
        names = json.dumps({text: str(found) for text, found in needs.items()})
        body = f"(module, exports, require) => {{\n{path.read_text()}\n}}"
        table[str(path)] = f"[{names}, {body}]"
    entries = ",\n".join(f"{json.dumps(name)}: {text}" for name, text in table.items())
    return LOADER % (f"{{{entries}}}", first)


def _found(path: Path, text: str) -> Path:
    return _module((path.parent / text).resolve() if text.startswith(".") else MODULES / text)


def _module(path: Path) -> Path:
    """The file that a name stands for, as Node.js looks for it."""
    if (path / "package.json").is_file():
        described = json.loads((path / "package.json").read_text())
        main = described.get("browser") if isinstance(described.get("browser"), str) else None
        return _module(path / (main or described.get("main", "index")))
    tries = (path, path.with_name(path.name + ".js"), path / "index.js")
    return next(each for each in tries if each.is_file())


class PhonePage(Page):
    """Serves the phone and its script; `results` are the phone's events."""

    def __init__(self) -> None:
        """On a free loopback port."""
        super().__init__()
        self.files = {
            "/": ((FOLDER / "phone.html").read_bytes(), "text/html"),
            "/jssip.js": (bundle().encode(), "text/javascript"),
        }

    def phone(self, server: str, user: str, password: str, **more: Any) -> str:
        """The page of `user`, who registers at the WebSocket `server`."""
        query = {"server": server, "uri": f"sip:{user}@127.0.0.1", "password": password, **more}
        return f"http://127.0.0.1:{self.server_address[1]}/?{urlencode(query)}"

    def event(self, name: str) -> dict[str, Any] | None:
        """The first event of that name, None if there was none so far."""
        return next((each for each in self.results if each["event"] == name), None)


@contextmanager
def phone_page() -> Iterator[PhonePage]:
    """A running server of one phone's page; skips, or fails in CI, where JsSIP is absent."""
    with page(PhonePage, MODULES / "jssip" / "package.json") as server:
        yield server


def wait_event(browser: Process, shown: PhonePage, name: str) -> dict[str, Any]:
    """Wait for an event of the phone, and give it."""
    found = browser.wait_until(lambda: shown.event(name), what=f"{name} of a phone", timeout=30)
    assert found is not None
    return found


__all__ = ["Chromium", "PhonePage", "bundle", "phone_page", "wait_event"]
