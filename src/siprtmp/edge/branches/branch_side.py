"""The gateway's own state as branches of the tree, made of its parts; and its webhooks.

Own design: the rows are those of the operator's list, so that a call has the same names in the
tree, in `siprtmp calls` and in its record.
"""

import pathlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final, Protocol

from gevent import get_hub

from p2psip.net.clock import monotonic, wallclock
from p2psip.transaction.flow import Flow
from rtmplite.live.streams import Registry
from rtmplite.net.server.record import Recordings
from rtmplite.net.server.transports import Transports
from siprtmp import __version__
from siprtmp.calls.call import Call
from siprtmp.core.gateway_core import GatewayCore
from siprtmp.core.placing import Placing
from siprtmp.edge.branches.call_lines import CallLines
from siprtmp.edge.branches.capture_tasks import CaptureTasks, PacketFile, Watch
from siprtmp.edge.branches.process_load import ProcessLoad
from siprtmp.edge.branches.push_tasks import PORTS, PushTasks
from siprtmp.edge.branches.room_rows import RoomRows, told
from siprtmp.edge.branches.stream_tasks import MixTasks, NamedStreams, RecordingTasks
from siprtmp.edge.branches.webhook_sender import WebhookSender
from siprtmp.media.session import MediaSession
from siprtmp.operation.build import build
from siprtmp.operation.logs import Log, RunningLevel
from siprtmp.settings.routes import RouteSettings
from siprtmp.settings.webhooks import WebhookSettings
from siprtmp.web.branches import openapi
from siprtmp.web.branches.audit_trail import AuditTrail
from siprtmp.web.branches.call_branch import CallBranch
from siprtmp.web.branches.call_stories import CallStories
from siprtmp.web.branches.gateway_branch import GatewayBranch
from siprtmp.web.branches.listed_branch import ListedBranch
from siprtmp.web.branches.login_branch import LoginBranch
from siprtmp.web.branches.roles import Role, Roles
from siprtmp.web.branches.subscription_branch import SubscriptionBranch
from siprtmp.web.branches.task_branch import TaskBranch
from siprtmp.web.resources.asker import Asker
from siprtmp.web.resources.branch import Branch, Path
from siprtmp.web.resources.entity import JsonValue
from siprtmp.web.resources.told_hosts import ToldHosts
from siprtmp.web.resources.url_subscriptions import NAME, UrlSubscriptions

Row = dict[str, object]
TOLD_EVERY: Final = 1.0  # s between the figures of /gateway


class Listing(Protocol):
    """The operator's list: see `Overview`."""

    def of(self, kind: str, now: float) -> Iterable[Row]:
        """The rows of one kind."""

    def passing(self, now: float) -> Iterable[Row]:
        """The rows of calls between phones."""

    def end(self, text: str, now: float) -> list[str]:
        """End what has this id."""

    def wake(self) -> None:
        """Send what is to be sent."""


class Mountable(Protocol):
    """What branches are mounted in."""

    def mount(self, name: str, branch: Branch) -> None:
        """Have all below `/name` served by a branch."""


class _Passing:
    """The calls between phones, of the operator's list."""

    def __init__(self, listing: Listing) -> None:
        self._listing = listing

    def rows(self, now: float) -> Iterable[Row]:
        return self._listing.passing(now)

    def end(self, row: Row, now: float) -> object:
        return self._listing.end(str(row["id"]), now)


class BranchSide:
    """The branches of one gateway, by their names in the tree, and its webhooks.

    `describe(call, now)` is the row of a call.  `core` is None where there is no SIP side; then
    there are streams alone.  `process()` are the sockets and greenlets of this process.
    """

    def __init__(
        self,
        roles: Roles,
        listing: Listing,
        describe: Callable[[Call, float], Row],
        core: GatewayCore | None,
        registry: Registry,
        routes: Iterable[RouteSettings],
        log: Log,
        process: Callable[[], Row] = dict,
    ) -> None:
        self._roles, self._listing, self._describe = roles, listing, describe
        self._core, self._registry, self._process = core, registry, process
        self._load = ProcessLoad(monotonic())
        self._timer: Any = None
        self._started = datetime.now(UTC).isoformat(timespec="seconds")
        self.stories = stories = CallStories(wallclock())
        self._lines = CallLines(self._line)
        self.audit, level = AuditTrail(wallclock()), RunningLevel(log)
        self.gateway = GatewayBranch(roles, self._figures, level, self.audit, stories.ended)
        self._senders: list[WebhookSender] = []
        self._captures: CaptureTasks | None = None
        self.branches: dict[str, Branch] = {"stream": self._listed("streams", "name", end=True)}
        self.calls: CallBranch | None = None
        if core is not None:
            self._add_sip(core, registry)
        self._streams = NamedStreams(registry, self.calls)
        if core is not None:
            mixes = MixTasks(self._streams, core.mixes, monotonic)
            self.branches["mix"] = TaskBranch(roles, mixes)
        table = [(str(number), _shown(each)) for number, each in enumerate(routes)]
        rows = [((name,), row) for name, row in table]
        self.branches["route"] = ListedBranch(roles, lambda: rows)
        self.branches["gateway"] = self.gateway
        self.branches["openapi"] = ListedBranch(roles, self._described, is_public=True)

    def add_recordings(self, recordings: Recordings | None) -> None:
        """Have recordings begun and ended; None where there is no folder for them."""
        tasks = RecordingTasks(self._streams, recordings, monotonic)
        self.branches["recording"] = TaskBranch(self._roles, tasks)

    def add_pushes(self, transports: Transports, hosts: Iterable[str], log: Log) -> None:
        """Have streams pushed to servers on these hosts; none where the list is empty."""
        told = ToldHosts(hosts, PORTS)
        tasks = PushTasks(self._streams, transports, told, log, monotonic)
        self.branches["push"] = TaskBranch(self._roles, tasks)

    def add_captures(
        self,
        folder: pathlib.Path | None,
        open_file: Callable[[pathlib.Path], PacketFile],
        watch: Callable[[MediaSession, Watch | None], object],
    ) -> None:
        """Have single calls captured, in a folder; None where there is no folder for them."""
        if self.calls is None:
            return
        tasks = CaptureTasks(self._streams, self.stories, folder, open_file, watch, monotonic)
        self.calls.followers.append(tasks.follow)
        self.branches["capture"] = TaskBranch(self._roles, tasks, Role.ADMIN, Role.ADMIN)
        self._captures = tasks

    def add_urls(self, urls: UrlSubscriptions) -> None:
        """Have the subscriptions with a URL among the branches; before `mount`."""
        self.branches[NAME] = SubscriptionBranch(self._roles, urls)

    def mount(self, tree: Mountable) -> None:
        """Mount all branches."""
        if self.calls is not None and self._core is not None:
            self.calls.stories, self._core.stack.watch = self.stories, self._message
        for name, branch in self.branches.items():
            tree.mount(name, branch)

    def on_change(
        self, method: str, path: Path, said: JsonValue, asker: Asker, status: int
    ) -> None:
        """Note a request that has changed something, or was to; see `Tree`."""
        self.audit.note(method, path, said, asker, status, monotonic())

    def start(self) -> None:
        """Tell the figures of the gateway from now on, and note what happens to calls."""
        self._lines.start()
        self._timer = get_hub().loop.timer(TOLD_EVERY, TOLD_EVERY, ref=False)
        self._timer.start(self._tick)

    def call(self, webhooks: Iterable[WebhookSettings], log: Log) -> None:
        """Have web services hear of calls from now on."""
        for settings in webhooks:
            sender = WebhookSender(settings, log)
            self._senders.append(sender)
            if self.calls is not None:
                self.calls.followers.append(sender.follow)

    def stop(self) -> None:
        """End the webhooks, and what `start` has begun."""
        self._lines.stop()
        if self._timer is not None:
            self._timer.stop()
            self._timer.close()
        for sender in self._senders:
            sender.stop()
        if self._captures is not None:
            self._captures.stop()

    def _add_sip(self, core: GatewayCore, registry: Registry) -> None:
        """Add what is of SIP, and have it tell its changes."""
        roles, wake, branches = self._roles, self._listing.wake, self.branches
        placing = Placing(core, core.names, registry)
        passing = _Passing(self._listing)
        calls = CallBranch(roles, placing, self._describe, monotonic, wake, passing)
        core.context.on_event = calls.on_event
        phones = self._listed("registrations", "id", end=True)
        trunks = self._listed("trunks", "name")
        rooms = RoomRows(core.rooms.rooms, wake)
        listed = ListedBranch(roles, rooms.rows, rooms.end, change=rooms.change)
        core.on_phones = partial(phones.tell, ())
        core.on_trunk = lambda name: trunks.tell((name,))
        for room in core.rooms.rooms.values():
            room.on_members = partial(told, listed)
        owners = lambda name: placing.owners(f"sip:{name}")  # noqa: E731
        logins = LoginBranch(roles, lambda: core.lines.identities, owners, core.identity)
        core.names.has_page = lambda uri: logins.has_page(core.canonical(uri))
        self.calls = calls
        branches |= {"call": calls, "registration": phones, "trunk": trunks, "room": listed}
        branches["login"] = logins

    def _listed(self, kind: str, key: str, *, end: bool = False) -> ListedBranch:
        """The rows of one kind of the operator's list; a slash in `key` makes a path of it."""

        def rows() -> Iterator[tuple[Path, Row]]:
            for row in self._listing.of(kind, monotonic()):
                yield tuple(str(row[key]).split("/")), row

        return ListedBranch(self._roles, rows, self._end if end else None)

    def _described(self) -> list[tuple[Path, Row]]:
        return [((), openapi.document(self.branches, __version__))]

    def _tick(self) -> None:
        self.gateway.tick()
        self.stories.tick(monotonic())
        if self._captures is not None:
            self._captures.tick(monotonic())

    def _line(self, call_id: str, event: str, about: Row, write: Callable[[], str]) -> None:
        self.stories.line(call_id, event, about, write, monotonic())

    def _message(self, data: bytes, flow: Flow, is_sent: bool) -> None:
        now = monotonic()
        self.stories.message(data, flow, now, is_sent=is_sent)
        if self._captures is not None:
            self._captures.message(data, flow, now, is_sent=is_sent)

    def _figures(self) -> Row:
        """The figures of `/gateway`."""
        now, core = monotonic(), self._core
        counts: Row = {"calls": 0, "streams": self._registry.streams, "registrations": 0}
        if core is not None:
            counts["calls"] = len(core.context.calls)
            counts["registrations"] = core.registrar.count(now)
            counts["rooms"] = sum(bool(each.members) for each in core.rooms.rooms.values())
        return {
            "version": __version__,
            "build": build(),
            "started": self._started,
            "workers": 1,
            "counts": {"rooms": 0, **counts, **self._process()},
            **self._load.read(now),
        }

    def _end(self, row: Row) -> None:
        self._listing.end(str(row["id"]), monotonic())
        self._listing.wake()


def _shown(route: RouteSettings) -> Row:
    """A route without the URL that it pushes to, whose last part is a key."""
    row = asdict(route)
    return {**{name: value for name, value in row.items() if value}, "push": bool(row["push"])}
