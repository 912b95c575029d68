"""The recordings of streams and the mixes of calls, as tasks of the tree.

Own design: a client names a stream or a call.  A call stands for the stream of both its sides if
there is one, else for that of the phone.  The gateway alone names files.
"""

from collections.abc import Callable, Collection, Iterable

from p2psip.errors import LocalError, RemoteError
from rtmplite.errors import LocalError as RtmpError
from rtmplite.live.streams import LiveStream, Registry
from rtmplite.net.server.record import Recordings, StreamRecording
from siprtmp.calls.call import Call
from siprtmp.calls.mixed.mixed_call import APP as MIXED
from siprtmp.calls.mixed.mixed_call import MixedCalls
from siprtmp.calls.stream_user import StreamUser
from siprtmp.web.branches.call_branch import CallBranch

Row = dict[str, object]
CALL, STREAM = "call", "stream"
NO_CALL = "There is no such call"
NO_FOLDER = "There is no folder for recordings: --record names one"


class NamedStreams:
    """Finds the stream that a client means, and the call; there are none without a SIP side."""

    def __init__(self, registry: Registry, calls: CallBranch | None) -> None:
        self._registry, self._calls = registry, calls

    def find(self, said: dict[str, str]) -> LiveStream:
        """The stream that is published as `stream`, or for a `call`.  Raises RemoteError."""
        if (STREAM in said) == (CALL in said):
            raise RemoteError("stream, please, or call: one of them", 422)
        if CALL in said:
            return self._of_call(self.call(said))
        app, _, name = said[STREAM].partition("/")
        live = self._registry.get(app, name)
        if live is None or not live.publishing:
            raise RemoteError("Nothing is published by that name", 404)
        return live

    def call(self, said: dict[str, str]) -> Call:
        """The call that a client means.  Raises RemoteError."""
        call = None if self._calls is None else self._calls.find(said.get(CALL, ""))
        if call is None:
            raise RemoteError(NO_CALL, 404)
        return call

    def name(self, call: Call) -> str:
        """The name of a call's resource."""
        return "" if self._calls is None else self._calls.name(call)

    def _of_call(self, call: Call) -> LiveStream:
        if not isinstance(call.user, StreamUser):
            raise RemoteError("That call has no stream", 409)
        remote = call.user.remote
        mixed = self._registry.get(MIXED, remote.name)
        if mixed is not None and mixed.publishing:
            return mixed
        if not remote.publishing:
            raise RemoteError("Nothing has come of the phone yet", 409)
        return remote


class RecordingTasks:
    """The recordings, of all streams or of some; None where no folder is configured."""

    words: Collection[str] = (STREAM, CALL)

    def __init__(
        self, streams: NamedStreams, recordings: Recordings | None, clock: Callable[[], float]
    ) -> None:
        self._streams, self._recordings, self._clock = streams, recordings, clock
        self._calls: dict[StreamRecording, str] = {}
        self.on_change: Callable[[StreamRecording, bool], object] = lambda task, is_over: None
        if recordings is not None:
            recordings.on_change = self._changed

    def running(self) -> Iterable[StreamRecording]:
        return [] if self._recordings is None else self._recordings.running

    def row(self, task: StreamRecording) -> Row:
        """The stream, its state and its file, which is written from the first key frame on."""
        assert self._recordings is not None
        path, live = task.path, task.live
        state = "waiting" if path is None else "recording"
        call = {CALL: self._calls[task]} if task in self._calls else {}
        return {
            STREAM: f"{live.app}/{live.name}",
            **call,
            "state": "interrupted" if task.is_interrupted else state,
            "file": None if path is None else str(path.relative_to(self._recordings.folder)),
            "seconds": round(task.seconds, 1),
            "octets": task.size,
        }

    def begin(self, said: dict[str, str]) -> StreamRecording:
        if self._recordings is None:
            raise RemoteError(NO_FOLDER, 409)
        live = self._streams.find(said)
        try:
            task = self._recordings.record(live, self._clock())
        except RtmpError as error:
            raise RemoteError(str(error), 409) from None
        if CALL in said:
            self._calls[task] = said[CALL]
            self._changed(task)
        return task

    def end(self, task: StreamRecording) -> None:
        task.stop(self._clock())

    def _changed(self, task: StreamRecording) -> None:
        self.on_change(task, task.is_over)
        if task.is_over:
            self._calls.pop(task, None)


class MixTasks:
    """The calls both sides of which are published as one stream."""

    words: Collection[str] = (CALL,)

    def __init__(
        self, streams: NamedStreams, mixes: MixedCalls | None, clock: Callable[[], float]
    ) -> None:
        self._streams, self._mixes, self._clock = streams, mixes, clock
        self._rows: dict[Call, Row] = {}
        self.on_change: Callable[[Call, bool], object] = lambda task, is_over: None
        if mixes is not None:
            mixes.on_change = self._changed

    def running(self) -> Iterable[Call]:
        return [] if self._mixes is None else self._mixes.running

    def row(self, task: Call) -> Row:
        """Its call, and the stream."""
        return self._rows[task]

    def begin(self, said: dict[str, str]) -> Call:
        call = self._streams.call(said)
        if self._mixes is None:
            raise RemoteError("Nothing is mixed here", 409)
        if call in self._mixes.running:
            raise RemoteError("That call is mixed already", 409)
        try:
            self._mixes.start(call, self._clock())
        except LocalError as error:
            raise RemoteError(f"That call cannot be mixed: {error}", 409) from None
        return call

    def end(self, task: Call) -> None:
        if self._mixes is not None:
            self._mixes.stop(task, self._clock())

    def _changed(self, call: Call, stream: str, is_over: bool) -> None:
        if not is_over:
            self._rows[call] = {CALL: self._streams.name(call), STREAM: stream}
        self.on_change(call, is_over)
        if is_over:
            self._rows.pop(call, None)
