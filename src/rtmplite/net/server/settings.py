"""The settings of a server for RTMP and RTMFP: one dataclass for each of its parts.

Own design: a field is the row of an option, which `rtmplite serve` and the gateway share.
"""

from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Final

from rtmplite.net.addresses import RTMP_PORT, listener, written
from rtmplite.net.connection_limit import CONNECTIONS, CONNECTIONS_OF_ONE
from rtmplite.net.server.hooks import REQUESTS, TIMEOUT
from rtmplite.net.settings import FILE, FLAG, Choice, Number, Repeated, SettingType, setting, text
from rtmplite.rtmfp.endpoint.endpoint import DEFAULT_LIMITS
from rtmplite.rtmp.message_transport import ConnectionLimits

Address = tuple[str, int]

SWITCH: Final = ("on", "off")
LONGEST: Final = 1e7  # s
MOST: Final = (1 << 31) - 1
PEER_MODES: Final = ("introduce", "relay", "both", "off")


class Listener(SettingType[Address | None]):
    """HOST:PORT, or `off`, which gives None; mistakes are answered with the `usual` port."""

    def __init__(self, usual: int = RTMP_PORT) -> None:
        schema = {"type": "string", "pattern": r"^(off|.+:[0-9]{1,5})$"}
        super().__init__(partial(listener, usual=usual), "HOST:PORT", schema)

    def write(self, value: Address | None) -> str:
        return "off" if value is None else written(*value)


RULES: Final = Repeated("APP/NAME=URL")
KEYS: Final = Repeated("NAME=KEY")


@dataclass(frozen=True, slots=True)
class RtmpListeners:
    """Where clients connect."""

    rtmp: Address | None = setting(
        Listener(),
        ("127.0.0.1", RTMP_PORT),
        "Accept RTMP clients here ({default}).",
        note="Publishers, players and rich clients.",
    )
    rtmps: Address | None = setting(
        Listener(),
        None,
        "Accept RTMP clients over TLS here, with the certificate of --tls-cert ({default}).",
    )
    rtmpt: Address | None = setting(
        Listener(), None, "Accept RTMP clients that come through HTTP here ({default})."
    )
    rtmfp: Address | None = setting(
        Listener(), None, "Accept RTMFP clients here, by UDP ({default})."
    )


LISTENERS: Final = tuple(RtmpListeners.__dataclass_fields__)


@dataclass(frozen=True, slots=True)
class TlsSettings:
    """The certificate of listeners with TLS."""

    tls_cert: Path | None = setting(
        FILE,
        None,
        "The certificate chain for listeners with TLS, in PEM. SIGHUP reads it again.",
        example="siprtmp.pem",
    )
    tls_key: Path | None = setting(
        FILE,
        None,
        "The private key of --tls-cert, if it is not in the same file.",
        example="siprtmp.key",
    )


@dataclass(frozen=True, slots=True)
class AccessSettings:
    """Which clients may connect, publish and play."""

    users: Path | None = setting(
        FILE,
        None,
        "Let only the users of this file publish; `rtmplite users` makes its lines. SIGHUP"
        " reads it again.",
        example="siprtmp.users",
    )
    users_only: bool = setting(
        FLAG, False, "Let only the users of --users connect, to play as well."
    )
    allow_anonymous: bool = setting(
        FLAG, False, "Let everybody publish who reaches the listeners, also beyond loopback."
    )
    publish_key: tuple[str, ...] = setting(
        KEYS,
        (),
        "Let clients publish the stream NAME as NAME?key=KEY only; * stands for every other name."
        " May be repeated.",
        note="All rules for publishing and playing that are given have to agree.",
        example=["demo=KEY1", "*=KEY2"],
    )
    play_key: tuple[str, ...] = setting(
        KEYS,
        (),
        "Let clients play the stream NAME as NAME?key=KEY only; * stands for every other name."
        " May be repeated.",
        example=["demo=KEY3"],
    )
    sign_key: Path | None = setting(
        FILE,
        None,
        "Let clients publish by a signed link only; FILE has the secret, and `rtmplite sign`"
        " makes links.",
        example="sign.key",
    )
    sign_play: bool = setting(FLAG, False, "Let them play by a signed link only as well.")
    on_connect: str | None = setting(
        text("URL"),
        None,
        "Ask this web service by HTTP whether a client may connect.",
        note="It gets a form, as of nginx-rtmp, for clients of all applications: 2xx allows, 3xx"
        " sends the client elsewhere, anything else denies.",
        example="http://127.0.0.1:9000/connect",
    )
    on_publish: str | None = setting(
        text("URL"),
        None,
        "Ask this web service whether a client may publish.",
        example="http://127.0.0.1:9000/publish",
    )
    on_play: str | None = setting(
        text("URL"),
        None,
        "Ask this web service whether a client may play.",
        example="http://127.0.0.1:9000/play",
    )
    on_done: str | None = setting(
        text("URL"),
        None,
        "Tell this web service when a client has stopped publishing or playing.",
        example="http://127.0.0.1:9000/done",
    )
    hook_timeout: float = setting(
        Number(float, "S", 0.01, LONGEST),
        TIMEOUT,
        "Refuse a client when the web service is silent for S seconds ({default}).",
        unit="s",
    )
    hook_requests: int = setting(
        Number(int, "N", 1, MOST),
        REQUESTS,
        "Ask the web service about at most N clients at once ({default}).",
    )


@dataclass(frozen=True, slots=True)
class PlayerSettings:
    """How streams are sent to players."""

    gop_cache: str = setting(
        Choice(*SWITCH),
        SWITCH[0],
        "Start a player with the frames since the last key frame (on), or at the next key"
        " frame, later but with less delay from then on (off).",
    )
    merge_ms: float = setting(
        Number(float, "N"),
        0.0,
        "Merge output for N milliseconds into fewer and larger writes ({default}).",
        unit="ms",
    )


@dataclass(frozen=True, slots=True)
class ClientLimits:
    """What clients may take, all listeners together."""

    max_connections: int = setting(
        Number(int, "N", 1, MOST), CONNECTIONS, "Serve at most N connections ({default})."
    )
    max_per_address: int = setting(
        Number(int, "N", 1, MOST),
        CONNECTIONS_OF_ONE,
        "Serve at most N connections from one address ({default}).",
        note="Of IPv6, an address is a /64.",
    )
    max_message: int = setting(
        Number(int, "BYTES", 4096, MOST),
        ConnectionLimits().message,
        "Cut off a client that sends a longer message ({default}).",
        unit="bytes",
    )
    max_rtmfp_memory: int = setting(
        Number(int, "BYTES", 1 << 20, MOST),
        DEFAULT_LIMITS.buffered_bytes,
        "Keep at most so much for all sessions by RTMFP together ({default}).",
        unit="bytes",
    )
    idle: float = setting(
        Number(float, "S", 0, LONGEST),
        ConnectionLimits().idle,
        "Close a connection that does nothing for S seconds; 0 is never ({default}).",
        unit="s",
    )


@dataclass(frozen=True, slots=True)
class RelaySettings:
    """Streams that go to other servers, or come from them."""

    push: tuple[str, ...] = setting(
        RULES,
        (),
        "Publish this stream at URL as well; * matches any name. May be repeated.",
        note="{name} in the URL is the name of the stream.",
        example=["live/*=rtmp://example.net/live"],
    )
    pull: tuple[str, ...] = setting(
        RULES,
        (),
        "Play this stream from URL while somebody here plays it; * matches any name. May be"
        " repeated.",
        example=["live/far-*=rtmps://example.net/live/{name}"],
    )


@dataclass(frozen=True, slots=True)
class TrustSettings:
    """Which servers with TLS are trusted."""

    ca: Path | None = setting(
        FILE,
        None,
        "Trust the certificates in this PEM file for servers with TLS, instead of the system's.",
        example="trusted.pem",
    )
    insecure: bool = setting(FLAG, False, "Check no certificate of a server with TLS.")


@dataclass(frozen=True, slots=True)
class RtmfpSettings:
    """How clients by RTMFP reach each other, and other servers."""

    rtmfp_peers: str = setting(
        Choice(*PEER_MODES),
        PEER_MODES[0],
        "How clients of an application reach each other by RTMFP: the server introduces them"
        " and they talk directly (introduce), it stands between them (relay), it does that where"
        " an introduction fails (both), or they do not (off). The default is {default}.",
    )
    rtmfp_relay_host: str | None = setting(
        text("IP"),
        None,
        "The address at which clients reach the relay, if it is not that of --rtmfp.",
        example="198.51.100.20",
    )
    rtmfp_redirect_to: str | None = setting(
        text("HOST:PORT[,...]"),
        None,
        "Send all clients that come by RTMFP to these servers.",
        example="192.0.2.11:1935,192.0.2.12:1935",
    )
    rtmfp_overflow_to: str | None = setting(
        text("HOST:PORT[,...]"),
        None,
        "Send clients that come by RTMFP to these servers while there is no room here.",
        example="192.0.2.12:1935",
    )


@dataclass(frozen=True, slots=True)
class EndSettings:
    """What clients are told when the server stops."""

    drain: float = setting(
        Number(float, "S", 0, LONGEST),
        0.0,
        "When stopped, ask clients to reconnect and wait S seconds for them to leave ({default}).",
        unit="s",
    )
    reconnect_to: str | None = setting(
        text("URL"),
        None,
        "The server that --drain asks clients to go to.",
        example="rtmp://other.example.net/live",
    )


@dataclass(frozen=True, slots=True)
class TransportSettings:
    """What listeners and relays need."""

    listeners: RtmpListeners = RtmpListeners()
    tls: TlsSettings = TlsSettings()
    players: PlayerSettings = PlayerSettings()
    limits: ClientLimits = ClientLimits()
    relays: RelaySettings = RelaySettings()
    trust: TrustSettings = TrustSettings()
    rtmfp: RtmfpSettings = RtmfpSettings()
    end: EndSettings = EndSettings()

    @classmethod
    def of(cls, program: object) -> "TransportSettings":
        """Those of a program's settings, which have sections of these names."""
        return cls(**{each.name: getattr(program, each.name) for each in fields(cls)})
