"""Fixtures that start real peers and show their logs when a test fails."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeVar

import pytest
from support.attacks.stalls import Watch
from support.gateway.gateway import Gateway
from support.peers.process import Process, require

P = TypeVar("P", bound=Process)

PACKAGES = {  # of Debian, where they are not called as their programs are
    "sipp": "sip-tester",
    "baresip": "baresip-core",
    "linphonec": "linphone-cli",
    "turnserver": "coturn",
    "nginx": "nginx libnginx-mod-rtmp",
    "gst-launch-1.0": "gstreamer1.0-tools gstreamer1.0-plugins-bad",
}
LOGS = pytest.StashKey[list[Process]]()


@pytest.fixture
def start(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """`start(Kamailio, users={...})`, `start(Ffmpeg.publish, url)`: a running, ready peer.

    Its folder is tmp_path/NAME-N, or tmp_path/`name` when that is given. All peers stop in reverse
    order at the end of the test.
    """
    processes: list[Process] = request.node.stash.setdefault(LOGS, [])
    with ExitStack() as stack:

        def run(make: Callable[..., P], *args: Any, name: str = "", **options: Any) -> P:
            title = name or f"{make.__qualname__.replace('.', '-').lower()}-{len(processes)}"
            peer = make(tmp_path / title, *args, **options)
            processes.append(peer)
            return stack.enter_context(peer)

        yield run


@pytest.fixture
def gateway(start: Callable[..., Gateway]) -> Callable[..., Gateway]:
    """`gateway("--domain", "example.net")`: a running gateway with these options."""

    def run(*options: str) -> Gateway:
        return start(Gateway, *options)

    return run


@pytest.fixture
def watch() -> Iterator[Watch]:
    """For how long a core was withheld at worst from what the test has started."""
    with Watch() as watch:
        yield watch


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test before it starts a gateway for peers that are not there: marker `needs`."""
    for marker in item.iter_markers("needs"):
        for program in marker.args:
            require(program, PACKAGES.get(program, program))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Append the end of each peer's log to the report of a failed test."""
    outcome = yield
    report = outcome.get_result()
    if report.failed:
        for process in item.stash.get(LOGS, []):
            report.sections.append((f"log of {process.folder.name}", process.tail(60)))
