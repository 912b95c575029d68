"""The captures of single calls, which admins begin and end, as tasks of the tree.

Own design: a capture begins with the SIP messages that are kept of the call, and has its media from
now on.  It ends `LINGER` after the call, so that it has the answer to the BYE.  The gateway names
the files, and only their owner can read them.  The keys of SRTP are in a second file.
"""

import time
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Final, Protocol

from p2psip.errors import RemoteError
from p2psip.sdp.crypto import SrtpKey
from p2psip.transaction.flow import LOCAL, Flow
from rtmplite.vod.recorder import file_name
from siprtmp.calls.call import Call
from siprtmp.edge.branches.stream_tasks import CALL, NamedStreams, Row
from siprtmp.media.browser_transport import BrowserLeg
from siprtmp.media.sdp_map import keys_of
from siprtmp.media.session import MediaSession
from siprtmp.operation.arguments import ConfigError
from siprtmp.web.branches.call_stories import CallStories
from siprtmp.web.branches.sip_step import MAX_OCTETS, call_id_in

LIMIT: Final = 64 << 20  # octets of one
MAX_CAPTURES: Final = 4
LINGER: Final = 3.0  # s
NO_FOLDER: Final = "There is no folder for captures: --capture-calls names one"
_LETTERS: Final = 40  # of a call's name in that of its file

Address = tuple[str, int]
Watch = Callable[[Address, Address, bytes], object]


class PacketFile(Protocol):
    """The file of a capture, see `PacketCapture`."""

    keys_path: Path

    @property
    def size(self) -> int:
        """The octets of the capture."""

    @property
    def is_over(self) -> bool:
        """Whether nothing is written any more."""

    def message(self, data: bytes, flow: Flow, at: float, *, is_sent: bool) -> None:
        """Write a SIP message."""

    def watched(self, source: Address, target: Address, data: bytes) -> None:
        """Write a datagram."""

    def secret(self, line: bytes) -> None:
        """Write a line of the file of keys."""

    def close(self) -> None:
        """Complete the files."""


class CapturedCall:
    """The capture of one call, by the name of its resource."""

    def __init__(self, name: str, call: Call, call_id: str, path: Path, file: PacketFile) -> None:
        self.name, self.call, self.call_id = name, call, call_id
        self.path, self.file = path, file
        self.keys: set[str] = set()  # that are written
        self.ends_at: float | None = None  # once the call has ended


class CaptureTasks:
    """The captures that run, in a folder; None where none is configured.

    `open_file(path)` begins the file of one, and raises ConfigError; `watch(session, told)` has its
    datagrams told.
    """

    words: Collection[str] = (CALL,)

    def __init__(
        self,
        streams: NamedStreams,
        stories: CallStories,
        folder: Path | None,
        open_file: Callable[[Path], PacketFile],
        watch: Callable[[MediaSession, Watch | None], object],
        clock: Callable[[], float],
    ) -> None:
        self._streams, self._stories, self._folder = streams, stories, folder
        self._open_file, self._watch, self._clock = open_file, watch, clock
        self._running: list[CapturedCall] = []
        self.on_change: Callable[[CapturedCall, bool], object] = lambda task, is_over: None

    def running(self) -> Iterable[CapturedCall]:
        return [*self._running]

    def row(self, task: CapturedCall) -> Row:
        """The call, the files in the folder, and the octets."""
        keys = task.file.keys_path.name
        return {CALL: task.name, "file": task.path.name, "keys": keys, "octets": task.file.size}

    def begin(self, said: dict[str, str]) -> CapturedCall:
        if self._folder is None:
            raise RemoteError(NO_FOLDER, 409)
        call = self._streams.call(said)
        assert call.call is not None
        if any(each.call is call for each in self._running):
            raise RemoteError("That call is captured already", 409)
        if len(self._running) >= MAX_CAPTURES:
            raise RemoteError("Too many calls are captured already", 507)
        name, path = said[CALL], self._path(self._folder, said[CALL])
        try:
            file = self._open_file(path)
        except ConfigError as error:
            raise RemoteError(str(error), 507) from None
        task = CapturedCall(name, call, call.call.id, path, file)
        for at, is_sent, flow, data in self._stories.messages(name):
            if len(data) < MAX_OCTETS and flow.transport != LOCAL:
                file.message(data, flow, at, is_sent=is_sent)
        _write_keys(task)
        self._running.append(task)
        self._watch(call.media, file.watched)
        self.on_change(task, False)
        return task

    def end(self, task: CapturedCall) -> None:
        """Complete the files; the call goes on."""
        _write_keys(task)
        self._running.remove(task)
        self._watch(task.call.media, None)
        task.file.close()
        self.on_change(task, True)

    def message(self, data: bytes, flow: Flow, now: float, *, is_sent: bool) -> None:
        """Take a SIP message of any call."""
        if not self._running or flow.transport == LOCAL:
            return
        call_id = call_id_in(data)
        for task in self._running:
            if task.call_id == call_id:
                task.file.message(data, flow, now, is_sent=is_sent)

    def follow(self, event: Row) -> None:
        """Hear what happens to calls: see `CallBranch.followers`."""
        row = event["call"]
        if event["event"] == "ended" and isinstance(row, dict):
            for task in self._running:
                if task.name == row["id"]:
                    _write_keys(task)
                    task.ends_at = self._clock() + LINGER

    def tick(self, now: float) -> None:
        """End captures whose call has ended or whose file is full; call this once a second."""
        for task in [*self._running]:
            _write_keys(task)
            if task.file.is_over or (task.ends_at is not None and now >= task.ends_at):
                self.end(task)

    def stop(self) -> None:
        """End all."""
        for task in [*self._running]:
            self.end(task)

    def _path(self, folder: Path, name: str) -> Path:
        """A file that is not there yet; a name never leads out of the folder."""
        when = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        stem, number = f"{file_name(name)[:_LETTERS]}-{when}", 1
        path = folder / f"{stem}.pcap"
        while path.exists() or path.is_symlink():
            number += 1
            path = folder / f"{stem}-{number}.pcap"
        return path


def _write_keys(task: CapturedCall) -> None:
    """Write the keys that have been agreed on since: RFC 3264 §8, RFC 5764 §5.1."""
    for line in srtp_keys(task.call.media):
        if line not in task.keys:
            task.keys.add(line)
            task.file.secret(line.encode())


def srtp_keys(session: MediaSession) -> list[str]:
    """The keys of a session as `rtclab explain --keys` reads them: RFC 4568 §9.2, RFC 5764 §4.2."""
    lines = []
    for keys in keys_of(session.terms.plan).values():
        lines += [f"{keys.suite.name} inline:{each.keys[0]}" for each in (keys.ours, keys.theirs)]
    leg = session.envelope
    if isinstance(leg, BrowserLeg) and leg.keys is not None:
        lines += [f"{leg.suite} inline:{SrtpKey(*each)}" for each in leg.keys]
    return lines
