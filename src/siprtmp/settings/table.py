"""The table of settings: one dataclass for each part of the gateway, one field for each option.

Own design: a field is the row of an option.  The command line, the configuration file, its schema,
the commented example and the page of the manual are made from it.  So a new option is a row here,
and its use.  The options of RTMP are rows of `rtmplite.net.server.settings`, which `rtmplite serve`
has as well.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from rtmplite.net.server.access import is_loopback
from rtmplite.net.server.settings import (
    AccessSettings,
    Address,
    ClientLimits,
    EndSettings,
    Listener,
    PlayerSettings,
    RelaySettings,
    RtmfpSettings,
    RtmpListeners,
    TlsSettings,
    TransportSettings,
    TrustSettings,
)
from rtmplite.net.settings import (
    FILE,
    FLAG,
    FOLDER,
    Choice,
    Many,
    Number,
    changed,
    composed,
    groups,
    section,
    setting,
    text,
)
from siprtmp.operation.logs import LEVELS
from siprtmp.settings.folders import FolderSettings
from siprtmp.settings.resources import ResourceSettings
from siprtmp.settings.routes import RouteSettings
from siprtmp.settings.trunks import TrunkSettings
from siprtmp.settings.types import (
    OFF,
    SECONDS,
    Listeners,
    PortRange,
    Servers,
    VideoLimits,
    VideoTranscoding,
    check_address,
    check_domain,
    check_pattern,
    check_room,
    check_sip,
)
from siprtmp.settings.webhooks import WebhookSettings

COUNT: Final = Number(int, "N", 0, 1_000_000)
LOG_FORMATS: Final = ("text", "json")


@dataclass(frozen=True, slots=True)
class ListenerSettings(RtmpListeners):
    """Where clients, phones and browsers connect; None or () is off, port 0 a free one."""

    rtmfp: Address | None = changed(
        RtmpListeners,
        "rtmfp",
        default=("127.0.0.1", 1935),
        note="Publishers, players and rich clients of the Flash kind.",
    )
    sip: tuple[Address, ...] = setting(
        Listeners(5060),
        (("127.0.0.1", 5060),),
        "Accept phones and SIP servers here, by UDP and TCP, at an address of IPv4, of IPv6, or at "
        "both ({default}).",
        note='UDP and TCP have the same port. Both is ["192.0.2.10:5060", "[2001:db8::10]:5060"].',
    )
    sips: tuple[Address, ...] = setting(
        Listeners(5061),
        (),
        "Accept phones and SIP servers here, by TLS with the certificate of --tls-cert, at one "
        "address or both as for --sip ({default}).",
    )
    ws: tuple[Address, ...] = setting(
        Listeners(8081),
        (),
        "Accept phones in browsers here, by WebSocket, and wss:// if there is a --tls-cert, at one "
        "address or both as for --sip ({default}).",
    )
    http: Address | None = setting(
        Listener(8080),
        ("127.0.0.1", 8080),
        "Accept requests for /status and /live/NAME.flv here ({default}).",
    )
    webrtc: Address | None = setting(
        Listener(8189),
        None,
        "Send and receive the media of browsers here, by UDP and TCP; they publish and play by "
        "/live/NAME/whip and /live/NAME/whep of --http ({default}).",
        note="It needs the extra `webrtc`. On every interface it needs --external-ip as well, the "
        "address that browsers are told. Each of several workers takes the next port.",
    )

    def of_rtmp(self) -> Iterator[tuple[str, Address]]:
        """Those for RTMP and RTMFP that are not off, each with the name of its option."""
        for name, at in (
            ("rtmp", self.rtmp),
            ("rtmps", self.rtmps),
            ("rtmpt", self.rtmpt),
            ("rtmfp", self.rtmfp),
        ):
            if at is not None:
                yield name, at

    def of_sip(self) -> Iterator[tuple[str, Address]]:
        for name, addresses in (("sip", self.sip), ("sips", self.sips), ("ws", self.ws)):
            for at in addresses:
                yield name, at

    def all(self) -> Iterator[tuple[str, Address]]:
        yield from self.of_rtmp()
        yield from self.of_sip()
        if self.http is not None:
            yield "http", self.http
        if self.webrtc is not None:
            yield "webrtc", self.webrtc

    @property
    def is_local(self) -> bool:
        return all(is_loopback(host) for _, (host, _) in self.all())

    @property
    def is_open(self) -> bool:
        """Whether other machines reach one for clients or phones."""
        return any(not is_loopback(host) for _, (host, _) in (*self.of_rtmp(), *self.of_sip()))


@dataclass(frozen=True, slots=True)
class NetworkSettings:
    """The address that peers outside the local network see."""

    external_ip: str | None = setting(
        text("IP"),
        None,
        "Write this address into SIP and SDP for peers outside the local network, where "
        "a router forwards it to this machine.",
        note="It is needed where the SIP listener is on every interface.",
        example="192.0.2.1",
        check=check_address,
    )
    stun: tuple[Address, ...] = setting(
        Servers(),
        (),
        "Ask these STUN servers for the address that --external-ip would name, and for that "
        "of each call's audio. The first that answers counts; --external-ip wins over all.",
        note="WHIP and WHEP name them to browsers.",
        example=["stun.example.net:3478"],
    )
    turn: str | None = setting(
        text("URI"),
        None,
        "Send and receive the audio of phones outside the local network through this TURN "
        "server, turn:USER@HOST:PORT. The environment variable TURN_PASSWORD has the password, or "
        "TURN_SECRET the secret of a server that takes passwords which end.",
        note="With the secret, WHIP and WHEP name it to clients that have proved a user, key or "
        "signature.",
        example="turn:gateway@turn.example.net:3478",
    )


@dataclass(frozen=True, slots=True)
class GatewayAccess(AccessSettings):
    """Which clients may connect, publish, play and call."""

    users: Path | None = changed(
        AccessSettings,
        "users",
        help="Let the users of this file log in and publish; `siprtmp users` makes its lines. "
        "SIGHUP reads it again.",
        note="Its lines are user:realm:HA1. Phones and rich clients have to prove a user then, and "
        "so have clients that publish to `live`, by rtmp://NAME:PASSWORD@HOST/live or "
        "rtmp://HOST/live?user=NAME&pass=PASSWORD; the latter, or the same behind the name of the "
        "stream, stock tools from other machines need for `call`, too.",
    )
    allow_anonymous: bool = changed(
        AccessSettings,
        "allow_anonymous",
        help="Serve everybody who reaches the listeners, also beyond loopback.",
    )
    viewer: tuple[str, ...] = setting(
        Many(text("NAME")),
        (),
        "Let these users see all calls, streams and registrations by HTTP, and change nothing.",
        example=["clerk"],
    )
    operator: tuple[str, ...] = setting(
        Many(text("NAME")),
        (),
        "Let these users see, place and end all calls by HTTP, and end streams and registrations.",
        example=["boss"],
    )
    admin: tuple[str, ...] = setting(
        Many(text("NAME")),
        (),
        "Let these users do the same, and change the level of the log.",
        note="On a listener that only this machine reaches, programs without a password may all "
        "that these may.",
        example=["root"],
    )
    keep_first_line: bool = setting(
        FLAG,
        False,
        "Refuse a second login of one identity; without this option the first login ends.",
    )


@dataclass(frozen=True, slots=True)
class CallSettings:
    """Whom calls are for, how long they may take, and how many a user may place."""

    domain: tuple[str, ...] = setting(
        Many(text("NAME")),
        (),
        "Serve the users of these SIP domains (localhost and the listener's address).",
        example=["example.org", "example.net"],
        check=check_domain,
    )
    call_from: str | None = setting(
        text("URI"),
        None,
        "Make this the caller of calls that are placed by publishing to `call` (sip:call@ "
        "and the first domain).",
        example='"Studio" <sip:studio@example.org>',
        check=check_sip,
    )
    outbound_proxy: str | None = setting(
        text("URI"),
        None,
        "Send requests here whose domain DNS does not resolve.",
        example="sip:proxy.example.org",
        check=check_sip,
    )
    answer_timeout: float = setting(
        SECONDS,
        60.0,
        "Give up a call that nobody has answered after S seconds ({default}).",
        unit="s",
    )
    media_timeout: float = setting(
        SECONDS,
        60.0,
        "End a call whose phone has sent no RTP, RTCP or SIP for S seconds ({default}).",
        unit="s",
        note="The phone is asked by SIP after half of them, or after 30.",
    )
    sip_t1: int = setting(
        Number(int, "MS", 1, 60_000),
        500,
        "Set timer T1 of RFC 3261, the round trip that retransmissions assume ({default}).",
        unit="ms",
    )
    max_user_calls: int | None = setting(
        COUNT,
        None,
        "Allow each user N calls at once (10 where other machines reach a listener); 0 is any "
        "number.",
        note="Users without a password share what their host has.",
        example=10,
    )
    max_user_calls_per_hour: int | None = setting(
        COUNT,
        None,
        "Allow each user N calls an hour (60 where other machines reach a listener); 0 is any "
        "number.",
        example=60,
    )
    max_user_messages_per_hour: int | None = setting(
        COUNT,
        None,
        "Allow each user N messages an hour (600 where other machines reach a listener); 0 is any "
        "number.",
        example=600,
    )
    allow_targets: tuple[str, ...] = setting(
        Many(text("PATTERN")),
        (),
        "Let users call these addresses outside the domains, as USER@HOST with * for any letters.",
        note="Without it they are all on loopback, and none where other machines reach a listener.",
        example=["+49*@trunk.example.net", "*@friends.example"],
        check=check_pattern,
    )
    room: tuple[str, ...] = setting(
        Many(text("NAME")),
        (),
        "Open these conference rooms: phones that call sip:NAME at a domain, and RTMP clients "
        "that publish or play room/NAME, hear each other.",
        example=["team", "studio"],
        check=check_room,
    )
    mix_calls: bool = setting(
        FLAG,
        False,
        "Publish both sides of each call as one stream too, mixed/NAME: their audio as AAC, "
        "and the phone's video, with --transcode-video that of both sides.",
        note="It needs the extra `transcode`. A route with `push` pushes this stream then.",
        example=True,
    )


@dataclass(frozen=True, slots=True)
class MediaSettings:
    """The ports of media, and what may be done to it."""

    rtp_ports: tuple[int, int] = setting(
        PortRange(),
        (0, 0),
        "Take the UDP ports for media from this range, two for each call (above 32768).",
        example="16384-32767",
    )
    nat: bool = setting(
        FLAG,
        False,
        "Send media to the address that a phone's media come from, for phones behind a NAT.",
    )
    transcode_video: VideoLimits | None = setting(
        VideoTranscoding(),
        None,
        "Decode and encode video that a phone or a browser cannot take as it is, with the extra "
        "transcode ({default}). Limits such as 640x360@15,500 hold for all of them; baseline among "
        "them allows Constrained Baseline alone.",
        note='"on" has no limits but the phone\'s. Those that may be given are the size in pixels, '
        "frames a second, kilobits a second, and baseline.",
    )
    video_packet_size: int = setting(
        Number(int, "N", 100, 9000),
        1200,
        "Send H.264 to phones in RTP packets whose payloads have at most N octets ({default}).",
        unit="octets",
        note="Fewer suit a tunnel, more a network of large frames.",
    )
    srtp: str = setting(
        Choice("auto", "any", "always", "never"),
        "auto",
        "Encrypt the media of calls by SRTP: auto where the keys, which are in the signalling, go "
        "by TLS or within this machine, any wherever the phone can, always in each call, or never "
        "({default}).",
        note="With auto, a phone that offers SRTP alone by UDP or TCP from elsewhere gets 488. "
        "The extra `srtp` takes less of the processor.",
    )
    anchor: str = setting(
        Choice("auto", "always", "never"),
        "auto",
        "Have the media of calls between phones pass through the gateway: auto where one is in a "
        "browser and the other is not, always, or never ({default}).",
        note="Browsers need --webrtc for that. Audio that only one side has is made for the other "
        "with the extra `transcode`.",
    )


@dataclass(frozen=True, slots=True)
class GatewayPlayers(PlayerSettings):
    """How streams are sent to players."""

    merge_ms: float = changed(
        PlayerSettings,
        "merge_ms",
        type=Number(int, "N", 0, 1000),
        default=0,
        help="Collect output to a player for N milliseconds before it is sent ({default}).",
        note="There are fewer system calls then.",
    )


@dataclass(frozen=True, slots=True)
class ProcessSettings:
    """How many processes serve, what outlives them, and what the operator sees of them."""

    workers: int = setting(
        Number(int, "N", 1, 64),
        1,
        "Serve by N processes, so that calls, streams and their players use several cores "
        "({default}).",
        note="More than one goes neither with `pull`, `shared`, `webrtc` and `capture` nor, with "
        "`sip`, with `stun`, `turn` and `room`.",
    )

    state: Path | None = setting(
        FOLDER,
        None,
        "Keep registrations and persistent resources over a restart in this folder, and the socket "
        "of `siprtmp calls`.",
        note="It is made with mode 0700 if it is missing, and never shared by two gateways.",
        example="state",
    )
    location: str | None = setting(
        text("URL"),
        None,
        "Share registrations with other gateways through this Redis (redis://HOST:PORT/0).",
        note="It needs the extra `redis`, and replaces the file of registrations in the folder "
        "`state`. Whoever can write there can have calls sent anywhere: give it a password, and no "
        "address that strangers can reach.",
        example="redis://:PASSWORD@192.0.2.7:6379/0",
    )
    call_records: Path | None = setting(
        FILE,
        None,
        "Append a line of JSON to this file at the end of each call: who, when, codecs, "
        "packets, loss, quality.",
        example="calls.jsonl",
    )
    capture: Path | None = setting(
        FILE,
        None,
        "Write what goes through the SIP, RTP, RTMP and RTMFP sockets to this file, a pcap, "
        "and the keys of RTMFP to FILE.keys, for `siprtmp lint` and Wireshark.",
        note="It has up to 256 MiB, and begins anew at each start. It has what users say and the "
        "passwords of stream clients: take it off when done. Of several workers each writes one: "
        "FILE, FILE.1 and so on.",
        example="gateway.pcap",
    )

    capture_calls: Path | None = setting(
        FOLDER,
        None,
        "Let admins capture a call that runs, by the console or by HTTP, as files in this folder.",
        note="It is made with mode 0700 if it is missing. The files have what users say.",
        example="captures",
    )


@dataclass(frozen=True, slots=True)
class LogSettings:
    """The log, which is written to standard error."""

    log_level: str = setting(
        Choice(*LEVELS), "info", "Write log lines of this level and above ({default})."
    )
    log_format: str = setting(
        Choice(*LOG_FORMATS),
        "text",
        "Write log lines as text, or as one JSON object a line ({default}).",
    )


@dataclass(frozen=True, slots=True)
class SipSettings:
    """What the SIP side needs."""

    listeners: ListenerSettings
    tls: TlsSettings
    network: NetworkSettings
    trust: TrustSettings
    calls: CallSettings
    media: MediaSettings
    process: ProcessSettings
    trunk: tuple[TrunkSettings, ...]
    route: tuple[RouteSettings, ...]
    keep_first_line: bool
    has_passwords: bool
    records: bool  # what is published, and calls
    may_mix: bool  # calls, when somebody asks

    @property
    def domains(self) -> tuple[str, ...]:
        """The SIP domains served here: those named, else loopback's and the listeners' hosts.

        A gateway started without options serves calls on its own machine.
        """
        if self.calls.domain:
            return self.calls.domain
        hosts = [host for _, (host, _) in self.listeners.of_sip()]
        names = ("localhost", "127.0.0.1", *hosts, self.network.external_ip)
        return tuple(dict.fromkeys(n for n in names if n and not is_wildcard(n)))


@dataclass(frozen=True, slots=True)
class RtmpSettings:
    """What the RTMP side needs; `is_local` says that only this machine reaches the gateway."""

    transports: TransportSettings
    access: GatewayAccess
    folders: FolderSettings
    is_local: bool


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything an operator may set, in the order and the groups of `--help`.

    Times are in seconds unless the option's name says otherwise (`sip_t1` and `merge_ms` are
    milliseconds).  `trunk`, `route` and `webhook` are tables of the file alone, `source` is its
    path.
    """

    listeners: ListenerSettings = section(ListenerSettings, "listeners")
    tls: TlsSettings = section(TlsSettings, "listeners")
    network: NetworkSettings = section(NetworkSettings, "listeners")
    access: GatewayAccess = section(GatewayAccess, "who may connect, publish, play and call")
    calls: CallSettings = section(CallSettings, "calls")
    media: MediaSettings = section(MediaSettings, "media")
    players: GatewayPlayers = section(GatewayPlayers, "media")
    folders: FolderSettings = section(FolderSettings, "media")
    limits: ClientLimits = section(ClientLimits, "limits of RTMP clients")
    relays: RelaySettings = section(RelaySettings, "relays")
    trust: TrustSettings = section(TrustSettings, "relays")
    resources: ResourceSettings = section(ResourceSettings, "resources")
    rtmfp: RtmfpSettings = section(RtmfpSettings, "clients that connect by RTMFP")
    process: ProcessSettings = section(ProcessSettings, "operation and logs")
    end: EndSettings = section(EndSettings, "operation and logs")
    logs: LogSettings = section(LogSettings, "operation and logs")
    trunk: tuple[TrunkSettings, ...] = ()
    route: tuple[RouteSettings, ...] = ()
    webhook: tuple[WebhookSettings, ...] = ()
    source: Path | None = field(default=None, compare=False)

    @classmethod
    def of(cls, **given: Any) -> "Settings":
        """Settings by the names of the options, with underscores; others have their defaults.

        Raises TypeError for a name that is not in the table.
        """
        known = {row.name for group in groups(cls).values() for row in group}
        if unknown := given.keys() - known - TABLES.keys():
            raise TypeError(f"no such settings: {', '.join(sorted(unknown))}")
        return cls().with_values(given)

    def with_values(self, given: Mapping[str, Any]) -> "Settings":
        """These settings with other values, by the names of the options and tables."""
        tables = {name: given[name] for name in TABLES if name in given}
        return replace(composed(Settings, given, self), **tables)

    @property
    def for_sip(self) -> SipSettings:
        return SipSettings(
            self.listeners,
            self.tls,
            self.network,
            self.trust,
            self.calls,
            self.media,
            self.process,
            self.trunk,
            self.route,
            keep_first_line=self.access.keep_first_line,
            has_passwords=self.access.users is not None,
            records=self.folders.record is not None,
            may_mix=self.process.state is not None or self._has_tree,
        )

    @property
    def _has_tree(self) -> bool:
        is_on = self.listeners.http is not None and self.resources.tree_mode != OFF
        return is_on and self.process.workers == 1

    @property
    def for_rtmp(self) -> RtmpSettings:
        is_local = self.listeners.is_local
        return RtmpSettings(TransportSettings.of(self), self.access, self.folders, is_local)

    @property
    def has_secret(self) -> bool:
        """Whether a file with these settings has passwords or keys itself."""
        relays, access = self.relays, self.access
        stores = self.process.location or "", self.resources.tree_redis or ""
        urls = (*relays.push, *relays.pull, *stores)
        return bool(
            access.publish_key
            or access.play_key
            or any("@" in url for url in urls)
            or "?" in (self.resources.tree_auth or "")  # with a key of the service
            or any(each.push for each in self.route)  # whose last part is the key of a stream
            or any(each.in_file for each in self.trunk)
            or any(each.in_file for each in self.webhook)
        )


TABLES: Final = {"trunk": TrunkSettings, "route": RouteSettings, "webhook": WebhookSettings}


def is_wildcard(host: str) -> bool:
    return host in ("", "0.0.0.0", "::")
