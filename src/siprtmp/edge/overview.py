"""The calls, registrations and streams of a running gateway as rows, and how to end or mix one.

Own design: for the operator alone, since rows name both sides of a call.  A row has JSON values,
times in seconds.  A row's `id` is the one in the log, the Call-ID of a call or the number of a
publisher's RTMP connection, and ends what the row describes.
"""

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Final

from p2psip.errors import LocalError
from p2psip.server.domains import Aor
from p2psip.server.registrar import Binding, Registrar
from p2psip.transaction.flow import Flow
from rtmplite.flv.audio import SoundFormat
from rtmplite.flv.video import CODEC_NAMES
from rtmplite.live.probe import Probe
from rtmplite.live.streams import LiveStream, Registry
from rtmplite.rtmp.netconnection import NetConnection
from rtmplite.rtmp.netstream import ServerStream, State
from siprtmp.calls import quality
from siprtmp.calls.call import Call
from siprtmp.calls.mixed.mixed_call import MixedCalls
from siprtmp.calls.toll_guard import ThroughCall
from siprtmp.calls.trunks import Trunk
from siprtmp.operation.logs import Log

Row = dict[str, object]

OPERATOR: Final = "operator"  # the reason in the log
CLOSED: Final = "NetConnection.Connect.Closed"
_BY_NUMBER: Final[Mapping[str, tuple[str, Mapping[float, str]]]] = {
    "audio": ("audiocodecid", {float(each): each.name for each in SoundFormat}),
    "video": ("videocodecid", {float(each): name for each, name in CODEC_NAMES.items()}),
}
KINDS: Final = ("calls", "registrations", "streams", "trunks")


class Overview:
    """Lists calls, registrations and streams, ends one of them, and mixes a call.

    `connections` gives the RTMP clients there are.  The rest is of the SIP side, if there is one:
    `calls` are those that end here, `tolls` has those between phones; `hear` takes a datagram as
    if it had come, `wake` sends what is to be sent.
    """

    def __init__(
        self, registry: Registry, connections: Callable[[], Iterable[NetConnection]], log: Log
    ) -> None:
        self._registry, self._connections, self._log = registry, connections, log
        self.calls: Collection[Call] = ()
        self.tolls: Iterable[ThroughCall] = ()
        self.registrar: Registrar | None = None
        self.trunks: Iterable[Trunk] = ()
        self.mixes: MixedCalls | None = None
        self.hear: Callable[[bytes, Flow, float], None] = _nothing
        self.wake: Callable[[], None] = _nothing

    def rows(self, now: float) -> Iterator[tuple[str, Row]]:
        """All rows, each with its kind of `KINDS`; the oldest calls first.

        The caller may pause between two rows; what has ended meanwhile gets none.
        """
        for kind in KINDS:
            for row in self.of(kind, now):
                yield kind, row

    def of(self, kind: str, now: float) -> Iterable[Row]:
        """The rows of one kind."""
        if kind == "calls":
            return self._calls(now)
        if kind == "registrations":
            return (_registration(aor, binding, now) for aor, binding in self._bindings(now))
        if kind == "streams":
            return self._streams(now)
        return (_trunk(trunk, self.calls) for trunk in self.trunks)

    def _calls(self, now: float) -> Iterator[Row]:
        for call in sorted(self.calls, key=lambda each: each.origin.at):
            yield call_row(call, now)
        yield from self.passing(now)

    def passing(self, now: float) -> Iterator[Row]:
        """The rows of calls between phones, which the proxy passes on."""
        for through in self.tolls:
            yield _through(through, now)

    def _streams(self, now: float) -> Iterator[Row]:
        shown = set()
        for connection, stream in self._published():
            live = self._registry.get(connection.app.partition("/")[0], stream.path)
            shown.add(live)
            yield _stream(connection, stream, live, now)
        for live in self._registry:
            if live not in shown:
                yield _own_stream(live, now)

    def ids(self, now: float) -> set[str]:
        """The ids of all that `end` can end."""
        return {
            *(each.call.id for each in self.calls if each.call is not None),
            *(_binding_id(*each) for each in self._bindings(now)),
            *(connection.id for connection, _ in self._published()),
            *(each.id for each in self.tolls),
        }

    def end(self, text: str, now: float) -> list[str]:
        """End the call or stream with the id `text`, or the only one that begins so; its kinds.

        A call is hung up (RFC 3261 §15), a registration forgotten, a publisher disconnected.
        Raises LocalError where no id begins so, or several do.
        """
        wanted = only(text, self.ids(now))
        calls = [(each.call.id, each) for each in self.calls if each.call is not None]
        bindings = [(_binding_id(*each), each) for each in self._bindings(now)]
        clients = {connection.id: connection for connection, _ in self._published()}
        passing = list(self.tolls)
        ended = []
        for call in [each for name, each in calls if name == wanted]:
            call.drop(now, OPERATOR)
            ended.append("call")
        for through in [each for each in passing if each.id == wanted]:
            self._log.event("proxy-end", call=wanted, reason=OPERATOR)
            for data, flow in through.end(now):
                self.hear(data, flow, now)
            ended.append("call")
        for aor, binding in [each for name, each in bindings if name == wanted]:
            self._unregister(aor, binding, now)
            ended.append("registration")
        if client := clients.get(wanted):
            self._log.event("disconnected", rtmp=client.id, app=client.app, reason=OPERATOR)
            client.close(now, "ended by the operator", CLOSED)
            ended.append("publisher")
        return ended

    def mix(self, text: str, now: float) -> str:
        """Publish both sides of the call with this id, as `end` finds it; the stream's name.

        Raises LocalError if there is no such call, or it cannot be mixed.
        """
        if self.mixes is None:
            raise LocalError("nothing is mixed here")
        return self.mixes.start(self._call_of(text), now)

    def unmix(self, text: str, now: float) -> str:
        """End that; the stream's name.  Raises LocalError if there is no such call, or no mix."""
        name = self.mixes.stop(self._call_of(text), now) if self.mixes is not None else None
        if name is None:
            raise LocalError("that call is not mixed")
        return name

    def _call_of(self, text: str) -> Call:
        calls = {each.call.id: each for each in self.calls if each.call is not None}
        return calls[only(text, set(calls))]

    def _bindings(self, now: float) -> list[tuple[Aor, Binding]]:
        return self.registrar.everything(now) if self.registrar is not None else []

    def _published(self) -> Iterator[tuple[NetConnection, ServerStream]]:
        for connection in self._connections():
            for stream in list(connection.streams.values()):  # they may change: see `rows`
                if stream.state is State.PUBLISHING:
                    yield connection, stream

    def _unregister(self, aor: Aor, binding: Binding, now: float) -> None:
        assert self.registrar is not None
        self.registrar.remove(aor, binding, now)
        user, contact = f"sip:{aor[0]}@{aor[1]}", str(binding.contact.uri)
        self._log.event("unregistered", source=OPERATOR, user=user, contact=contact)


def only(text: str, known: set[str]) -> str:
    """The id that is `text`, or the only one that begins so."""
    found = {text} & known or {each for each in known if text and each.startswith(text)}
    if len(found) != 1:
        raise LocalError(f"{'several ids begin' if found else 'no id begins'} with {text!r}")
    [wanted] = found
    return wanted


def _nothing(*what: object) -> None:
    """Do nothing, where there is no SIP side."""


def call_row(call: Call, now: float) -> Row:
    """The row of a call that ends here."""
    row = _any_call(call.call.id if call.call is not None else "", call, now)
    facts = {"rtmp": call.user.log_id, "trunk": call.trunk_name}
    return {**row, **facts, **quality.figures_of(call)}


def _through(call: ThroughCall, now: float) -> Row:
    return {**_any_call(call.id, call, now), "rtmp": None, "codec": None}


def _any_call(id_: str, call: Call | ThroughCall, now: float) -> Row:
    state, since = ("ringing", call.origin.at) if call.up_at is None else ("up", call.up_at)
    return {"id": id_, "state": state, "seconds": round(now - since, 1), **call.origin.facts}


def _trunk(trunk: Trunk, calls: Iterable[Call]) -> Row:
    return {
        "id": "",
        "name": trunk.settings.name,
        "address": str(trunk.settings.address),
        "state": trunk.state,
        "reason": trunk.reason,
        "calls": sum(call.dialling is not None and call.dialling.trunk is trunk for call in calls),
    }


def _registration(aor: Aor, binding: Binding, now: float) -> Row:
    return {
        "id": _binding_id(aor, binding),
        "user": f"sip:{aor[0]}@{aor[1]}",
        "contact": str(binding.contact.uri),
        "source": f"{binding.flow.transport}:{binding.flow.remote[0]}",
        "expires": round(binding.expires_at - now),
    }


def _binding_id(aor: Aor, binding: Binding) -> str:
    text = f"{aor[0]}@{aor[1]} {binding.contact.uri}"
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()[:8]


def _stream(
    connection: NetConnection, stream: ServerStream, live: LiveStream | None, now: float
) -> Row:
    row = {} if live is None else _own_stream(live, now)
    name = f"{connection.app.partition('/')[0]}/{stream.path}"
    source = f"RTMP:{connection.peer_address[0]}"
    return {"players": 0, "codecs": [], **row, "id": connection.id, "name": name, "source": source}


def _own_stream(live: LiveStream, now: float) -> Row:
    """A stream that no client publishes: a relay's, a phone's voice, or one that players await."""
    return {
        "id": "",
        "name": f"{live.app}/{live.name}",
        "source": "",
        "seconds": round(now - live.since, 1) if live.publishing else None,
        "codecs": _codecs(live),
        "players": live.players,
    }


def _codecs(live: LiveStream) -> list[str]:
    """The codecs by the stream's codec headers, or else by its metadata: FLV 10.1 §E.5."""
    probe = Probe(0.0)
    for type_id, payload in live.opening():
        probe.note(type_id, 0, payload, 0.0)
    found = {track.kind: track.codec for track in probe.tracks}
    for kind, (key, names) in _BY_NUMBER.items():
        number = probe.metadata.get(key)
        if kind not in found and isinstance(number, float) and number in names:
            found[kind] = names[number]
    return [codec.lower() for codec in found.values()]
