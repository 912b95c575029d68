"""The client's side of a NetConnection: it calls the server, and gives its answers as events.

Implements RTMP 1.0 §7.2, read with RTMP Errata §8.1.  It keeps no NetStream states of its own:
every command that arrives on a stream is handed on, and the caller knows what it asked for.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from rtmplite.amf.values import Value
from rtmplite.errors import LocalError
from rtmplite.rtmp.connection import ChunkTransport
from rtmplite.rtmp.handshake import ClientHandshake
from rtmplite.rtmp.message_transport import ConnectionEnd, ConnectionLimits, MessageTransport
from rtmplite.rtmp.wire import control
from rtmplite.rtmp.wire.capabilities import RELAY, VideoFunction
from rtmplite.rtmp.wire.chunk_writer import CHUNK_SIZE
from rtmplite.rtmp.wire.command import Command
from rtmplite.rtmp.wire.message import Message
from rtmplite.rtmp.wire.shared_object import SharedObject
from rtmplite.rtmp.wire.url import split

DEFAULT_LIMITS: Final = ConnectionLimits()
DEFAULT_PORTS: Final = {
    "rtmp": 1935,  # Registered for RTMP: RTMP 1.0 §1 names TCP, the port is IANA's.
    "rtmps": 443,  # that of HTTPS, as in ffmpeg and librtmp
    "rtmpt": 80,  # that of HTTP, as in ffmpeg and librtmp
    "rtmfp": 1935,  # RFC 7425 §6.1 [default-port]
}
PLAYER: Final = "LNX 9,0,124,2"
# Whom servers ask for a user: Field §"authmod=adobe".
ENCODER: Final = "FMLE/3.0 (compatible; rtmplite)"
REDIRECT: Final = 302.0  # HTTP's word for it: Field §"Redirects"
ENCRYPTED: Final = ("rtmpe", "rtmpte")  # RTMPE: Field §"RTMPE version byte"

# What Flash Player 10 said it could play: every codec.  Adobe Media Server filters by these.
_AUDIO_CODECS: Final = 0x0FFF
_VIDEO_CODECS: Final = 0x00FF
# All that leaves the frames unchanged: E-RTMP v2 §"Metadata Frame" [video-function].
_VIDEO_FUNCTIONS: Final = VideoFunction.SEEK | VideoFunction.HDR | VideoFunction.METADATA


@dataclass(frozen=True, slots=True)
class Target:
    """The parts of an RTMP URL: RTMP Errata §8.1.2 and §8.1.3.

    `stream` is the last part of a path with more than one, else empty; `secure` is whether to use
    TLS.  `user` and `password` are for a server that asks for them; `proof` is the answer, which
    is sent behind the application's name: Field §"authmod=adobe".
    """

    host: str
    port: int
    app: str
    stream: str
    tc_url: str
    secure: bool = False
    user: str = field(default="", repr=False)
    password: str = field(default="", repr=False)
    proof: str = field(default="", repr=False)

    @property
    def by_datagrams(self) -> bool:
        """Whether the URL is one of RTMFP (RFC 7425 §6.1)."""
        return self.tc_url.startswith("rtmfp:")  # RFC 7425 §6.1 [uri-syntax]

    @property
    def by_http(self) -> bool:
        """Whether the URL is one of RTMPT: Field §"HTTP tunnel"."""
        return self.tc_url.startswith("rtmpt:")

    @classmethod
    def parse(cls, url: str, stream: bool = True) -> "Target":
        """Read `rtmp://[user:password@]host[:port]/app[/instance][/stream]`, or another scheme.

        The others are `rtmps`, `rtmpt` and `rtmfp`.  LocalError for anything else.  With `stream`
        false the whole path is the application's.  With a fragment, the stream is that, whatever
        the path.  A query goes with the application, and with the stream if it stands behind that:
        servers look for keys in either.
        See RTMP Errata §8.1.2 and RTMP Errata §8.1.3.

        Departs from RTMP Errata §8.1.2 [no-guessing] [path-preserved]: URLs in use end with the
        stream, and servers in use look for it in publish and play.
        """
        parts = split(url)
        if parts.scheme in ENCRYPTED:
            raise LocalError(f"{url}: RTMPE is not spoken here; use rtmp or rtmps")
        if parts.scheme not in DEFAULT_PORTS or not parts.host:
            raise LocalError(f"{url} is not rtmp://host[:port]/app/stream")
        path, name = parts.path.strip("/"), parts.fragment
        query = f"?{parts.query}" if parts.query else ""
        if stream and not name and "/" in path:
            path, _, name = path.rpartition("/")
            name += query if name else ""
        elif stream and not name:  # app?key=word/stream, as ffmpeg and OBS send it
            query, _, name = query.rpartition("/") if "/" in query else (query, "", "")
        # RTMP Errata §8.1.2 [stripped], RTMP Errata §10 [stripped]
        tc_url = f"{parts.scheme}://{parts.authority}/{path}{query}"
        return cls(
            parts.host,
            parts.port or DEFAULT_PORTS[parts.scheme],
            path + query,  # RTMP Errata §8.1.3 [app-is-the-path]
            name,
            tc_url,
            parts.scheme == "rtmps",
            parts.user,
            parts.password,
        )

    def as_user_of(self, other: "Target") -> "Target":
        """Take the user and password of `other` if there are none.  Own design: as ffmpeg does."""
        if self.user:
            return self
        return replace(self, user=other.user, password=other.password)


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer to a call: the `values` behind its transaction id: RTMP 1.0 §7.2.1.2."""

    transaction_id: float
    succeeded: bool
    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Called:
    """A call of the server; on a stream other than 0 mostly onStatus: RTMP 1.0 §7.2.2."""

    stream_id: int
    command: Command


@dataclass(frozen=True, slots=True)
class Ended:
    """Playback on a stream is over: StreamEOF, RTMP 1.0 §7.1.7."""

    stream_id: int


def redirection(information: Value) -> str | None:
    """The URL that a refusal redirects to, None if it has none: Field §"Redirects"."""
    more = information.get("ex") if isinstance(information, dict) else None
    if not isinstance(more, dict) or more.get("code") != REDIRECT:
        return None
    url = more.get("redirect")
    return url if isinstance(url, str) else None


Event: TypeAlias = Reply | Called | Ended | Message | SharedObject


class NetClient(ConnectionEnd):
    """A client's half of a NetConnection; `events` gives its events, media as `Message`.

    Own design: events are pulled, not pushed.  `connect` has the transaction id 1.
    """

    def __init__(
        self,
        transport: MessageTransport,
        target: Target,
        args: Sequence[Value] = (),
        properties: dict[str, Value] | None = None,
    ) -> None:
        super().__init__(transport)
        self.target = target
        self._args, self._properties = tuple(args), properties or {}
        self._events: list[Event] = []
        self._next_call = 2.0

    def events(self) -> list[Event]:
        """Give the events since the last call, in order."""
        events, self._events = self._events, []
        return events

    def call(self, name: str, *args: Value) -> float:
        """Call the server; gives the transaction id of the `Reply`: RTMP 1.0 §7.2.1.2."""
        number, self._next_call = self._next_call, self._next_call + 1
        self.send_command(Command(name, number, None, args))
        return number

    def send(self, name: str, *args: Value, stream_id: int = 0) -> None:
        """Send a command that wants no answer, as all NetStream commands: RTMP 1.0 §7.2.2."""
        self.send_command(Command(name, 0.0, None, args), stream_id)

    def set_buffer_length(self, stream_id: int, milliseconds: int) -> None:
        """Tell the length of the buffer, as players do before they play: RTMP 1.0 §7.1.7."""
        self.transport.send_control(control.SetBufferLength(stream_id, milliseconds))

    def on_ready(self) -> None:
        """Send connect (RTMP 1.0 §7.2.1.1) in AMF0, by type 20 (RTMP Errata §8.1.1)."""
        target = self.target
        proof = target.proof and ("&" if "?" in target.app else "?") + target.proof
        properties: dict[str, Value] = {
            "app": target.app + proof,  # RTMP Errata §8.1.3 [app-required]
            "flashVer": ENCODER if target.user else PLAYER,
            "tcUrl": target.tc_url + proof,  # RTMP Errata §8.1.2 [tc-url-required]
            "fpad": False,
            "capabilities": 15.0,
            "audioCodecs": float(_AUDIO_CODECS),  # RTMP Errata §8.1.4 [codecs-said]
            "videoCodecs": float(_VIDEO_CODECS),  # RTMP Errata §8.1.4 [codecs-said]
            "videoFunction": float(_VIDEO_FUNCTIONS),
            "objectEncoding": 0.0,
        }
        properties |= RELAY.properties()  # in both lists and maps, for servers old and new
        # RTMP Errata §8.1.1 [connect-is-20]
        self.send_command(Command("connect", 1.0, properties | self._properties, self._args))

    def on_media(self, message: Message, now: float) -> None:
        """Keep media for `events`."""
        self._events.append(message)

    def on_shared(self, message: SharedObject, now: float) -> None:
        """Keep a shared object message for `events`: RTMP 1.0 §7.1.3."""
        self._events.append(message)

    def on_stream_eof(self, stream_id: int, now: float) -> None:
        """Keep the end of playback for `events`: RTMP 1.0 §7.1.7."""
        self._events.append(Ended(stream_id))

    def on_command(self, command: Command, stream_id: int, now: float) -> None:
        """Keep an answer or a call for `events`: RTMP 1.0 §7.2.1.2."""
        if command.name in ("_result", "_error"):
            succeeded = command.name == "_result"
            if succeeded and command.transaction_id == 1.0:
                self.transport.on_accepted(command)
            values = (command.object, *command.args)
            self._events.append(Reply(command.transaction_id, succeeded, values))
        else:
            self._events.append(Called(stream_id, command))


class ClientChunkTransport(ChunkTransport):
    """Own design: connects as soon as the handshake allows: RTMP 1.0 §5.2."""

    def __init__(
        self, random: Callable[[int], bytes], now: float, limits: ConnectionLimits, *, digest: bool
    ) -> None:
        handshake = ClientHandshake(random, now, digest=digest)
        super().__init__(handshake, now, limits)
        self.put(handshake.start(now))

    def _handshaken(self, now: float) -> None:
        self.settle()
        self.send_chunk_size(CHUNK_SIZE)  # RTMP 1.0 §6.2 [fits-a-chunk], §5.4.1 [size-at-least-128]
        self.send_window(self.limits.window)
        self.user.on_ready()


class ClientConnection(NetClient):
    """One connection to a server over the chunk stream: RTMP 1.0 §7.2."""

    transport: ClientChunkTransport

    def __init__(
        self,
        target: Target,
        random: Callable[[int], bytes],
        now: float,
        *,
        args: Sequence[Value] = (),
        properties: dict[str, Value] | None = None,
        digest: bool = False,
        limits: ConnectionLimits = DEFAULT_LIMITS,
    ) -> None:
        transport = ClientChunkTransport(random, now, limits, digest=digest)
        super().__init__(transport, target, args, properties)
