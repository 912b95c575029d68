"""The pushes of streams to other servers that operators ask for, as tasks of the tree.

Own design: only servers of the list `--tree-push` are connected to, also after a redirection.  The
last part of a URL is mostly a key, so neither answers nor the log have it.
"""

from collections.abc import Callable, Collection, Iterable
from functools import partial
from typing import Final

from p2psip.errors import RemoteError
from rtmplite.errors import LocalError
from rtmplite.net.redaction import public
from rtmplite.net.server.transports import Transports
from rtmplite.relay.link import Link, State
from rtmplite.relay.push import Push
from rtmplite.relay.rules import named
from rtmplite.rtmp.client import Target
from siprtmp.edge.branches.stream_tasks import CALL, STREAM, NamedStreams, Row
from siprtmp.operation.logs import Log
from siprtmp.web.resources.told_hosts import ToldHosts

URL: Final = "url"
PORTS: Final = (1935, 443)  # of an entry of the list without a port
MAX_PUSHES: Final = 50
NO_URL: Final = "url is rtmp://HOST[:PORT]/APP[/STREAM], or begins with rtmps"


class PushTasks:
    """The pushes that clients have begun, to servers of `hosts`; those of rules are elsewhere."""

    words: Collection[str] = (STREAM, CALL, URL)

    def __init__(
        self,
        streams: NamedStreams,
        transports: Transports,
        hosts: ToldHosts,
        log: Log,
        clock: Callable[[], float],
    ) -> None:
        self._streams, self._relays, self._hosts = streams, transports.relays, hosts
        self._dial, self._log, self._clock = transports.admitted_dial(hosts.admits), log, clock
        self._calls: dict[Link, str] = {}  # those that run, with the name of a call or none
        self.on_change: Callable[[Push, bool], object] = lambda task, is_over: None

    def running(self) -> Iterable[Push]:
        return [each for each in self._calls if isinstance(each, Push)]

    def row(self, task: Push) -> Row:
        """The server without the key, and the reason while it waits for the next attempt."""
        call = self._calls.get(task)
        live, is_waiting = task.live, task.state is State.WAITING
        return {
            STREAM: f"{live.app}/{live.name}",
            **({CALL: call} if call else {}),
            "server": _server(task.where),
            "state": str(task.state),
            "reason": public(task.reason) if is_waiting else "",
        }

    def begin(self, said: dict[str, str]) -> Push:
        live = self._streams.find({key: each for key, each in said.items() if key != URL})
        try:
            target = named(said.get(URL, ""), live.name)
        except LocalError:
            raise RemoteError(NO_URL, 422) from None
        if target.by_datagrams or target.by_http:
            raise RemoteError(NO_URL, 422)
        if not self._hosts.may_have(target.host, target.port):
            raise RemoteError("--tree-push does not list this host and port", 403)
        if any(each.live is live and each.target == target for each in self.running()):
            raise RemoteError("That is pushed there already", 409)
        if len(self._calls) >= MAX_PUSHES:
            raise RemoteError("Too much is pushed already", 507)
        changed = partial(self._changed, said.get(CALL, ""))
        return self._relays.push(live, target, self._dial, self._clock(), changed)

    def end(self, task: Push) -> None:
        self._relays.end_push(task, self._clock())

    def _changed(self, call: str, link: Link, now: float) -> None:
        assert isinstance(link, Push)
        is_over = link.state is State.IDLE
        if is_over:
            self._calls.pop(link, None)
        else:
            self._calls[link] = call
        reason = {"reason": public(link.reason)} if link.state is State.WAITING else {}
        self._log.event("relay", url=_server(link.where), state=str(link.state), **reason)
        self.on_change(link, is_over)


def _server(target: Target) -> str:
    return public(target.tc_url.partition("?")[0])
