"""Settings of the gateway: one dataclass, filled from defaults, then a TOML file, then options.

Own design: the command line and the file use the same names, so that an option of `--help` can be
written into the file unchanged.  Every check that needs no socket is made here, before one is
opened, and its message is one line that says what to change.
"""

import argparse
import importlib.util
import ipaddress
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Final, TypeVar

from p2psip.errors import LocalError, RemoteError
from p2psip.server.users import UserStore
from p2psip.sip.address import Address as SipAddress
from p2psip.sip.uri import Uri
from rtmplite.auth.credentials import Users
from rtmplite.errors import LocalError as RtmpError
from rtmplite.net.addresses import listener
from siprtmp.operation import arguments as values
from siprtmp.operation import rtmp_options
from siprtmp.operation.arguments import ConfigError, did_you_mean, needs_extra
from siprtmp.operation.options import LOG_FORMATS, LOG_LEVELS, build_parser, stun_server, usual_port
from siprtmp.operation.route_settings import RouteSettings, pushes, read_routes
from siprtmp.operation.rtmp_options import RtmpSettings
from siprtmp.operation.trunk_settings import TrunkSettings, read_trunks

Address = tuple[str, int]
S = TypeVar("S")

_LISTENERS: Final = (*rtmp_options.LISTENERS, "sip", "sips", "ws", "http")
SIP_LISTENERS: Final = ("sip", "sips", "ws")
_LISTS: Final = ("domain", "allow_targets", "stun", "room")
_WHOLE: Final = {
    "sip_t1": values.milliseconds,
    "merge_ms": values.merge,
    "video_packet_size": values.packet_size,
    "max_user_calls": values.count,
    "max_user_calls_per_hour": values.count,
    "max_user_messages_per_hour": values.count,
}
_PATHS: Final = ("users", "record", "vod", "state", "call_records", "capture", *rtmp_options.PATHS)


@dataclass(frozen=True, slots=True)
class Settings(RtmpSettings):
    """Everything an operator may set; addresses are (host, port), port 0 takes a free one.

    `None` for a listener means that it is off, and so does an empty `sip`, `sips` or `ws`.
    Times are in seconds unless the option's name says otherwise (`sip_t1` and `merge_ms` are
    milliseconds).
    """

    rtmp: Address | None = ("127.0.0.1", 1935)
    sip: tuple[Address, ...] = (("127.0.0.1", 5060),)
    sips: tuple[Address, ...] = ()
    ws: tuple[Address, ...] = ()
    http: Address | None = ("127.0.0.1", 8080)
    rtmfp: Address | None = ("127.0.0.1", 1935)
    rtmps: Address | None = None
    domain: tuple[str, ...] = ()
    users: Path | None = None
    outbound_proxy: str | None = None
    allow_anonymous: bool = False
    external_ip: str | None = None
    stun: tuple[Address, ...] = ()
    turn: str | None = None
    rtp_ports: tuple[int, int] = (0, 0)
    nat: bool = False
    sip_t1: int = 500
    answer_timeout: float = 60.0
    media_timeout: float = 60.0
    merge_ms: int = 0
    video_packet_size: int = 1200
    transcode_video: values.VideoLimits | None = None
    record: Path | None = None
    vod: Path | None = None
    state: Path | None = None
    location: str | None = None
    call_records: Path | None = None
    capture: Path | None = None
    max_user_calls: int | None = None
    max_user_calls_per_hour: int | None = None
    max_user_messages_per_hour: int | None = None
    allow_targets: tuple[str, ...] = ()
    log_level: str = "info"
    log_format: str = "text"
    keep_first_line: bool = False
    call_from: str | None = None
    room: tuple[str, ...] = ()
    mix_calls: bool = False
    trunk: tuple[TrunkSettings, ...] = ()
    route: tuple[RouteSettings, ...] = ()
    source: Path | None = field(default=None, compare=False)

    @property
    def domains(self) -> tuple[str, ...]:
        """The SIP domains served here: those named, else loopback's and the listeners' hosts.

        A gateway started without options serves calls on its own machine.
        """
        if self.domain:
            return self.domain
        hosts = [host for _, (host, _) in self.listening(SIP_LISTENERS)]
        names = ("localhost", "127.0.0.1", *hosts, self.external_ip)
        return tuple(dict.fromkeys(n for n in names if n and not is_wildcard(n)))

    @property
    def is_local(self) -> bool:
        """Whether every listener is on loopback."""
        return all(is_loopback(host) for _, (host, _) in self.listening(_LISTENERS))

    def listening(self, names: Iterable[str]) -> Iterator[tuple[str, Address]]:
        """The addresses of these listeners that are not off, each with its option's name."""
        for name in names:
            value = getattr(self, name)
            for address in value if name in SIP_LISTENERS else filter(None, [value]):
                yield name, address


def is_wildcard(host: str) -> bool:
    """Whether `host` means every interface."""
    return host in ("", "0.0.0.0", "::")


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach `host`.

    A name other than localhost counts as reachable, since it may lead anywhere.
    """
    try:
        ip = ipaddress.ip_address(host)
    except ValueError:
        return host.lower() == "localhost"
    return (getattr(ip, "ipv4_mapped", None) or ip).is_loopback


def load(arguments: Sequence[str]) -> Settings:
    """Settings from the command line, then from the file that it names, then the defaults.

    Raises ConfigError for a bad option or file, or a combination that can't be served.
    """
    given = vars(build_parser().parse_args(arguments))
    path = given.pop("config", None)
    settings = load_file(path) if path else Settings()
    for name in {*_LISTS, *rtmp_options.LISTS} & given.keys():
        given[name] = tuple(given[name])
    for name in set(SIP_LISTENERS) & given.keys():
        given[name] = _after_off(given[name])
    settings = replace(settings, **given)
    pushed = pushes(settings.route, "mixed" if settings.mix_calls else "call")
    return check(replace(settings, push=(*settings.push, *pushed)))


def load_file(path: Path) -> Settings:
    """Settings from a TOML file, in which unknown names and wrong types are errors.

    A file that it names is looked for beside it, wherever the gateway is started.
    Raises ConfigError naming the file and the key.
    """
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{path}: {error}") from None
    settings = replace(Settings(source=path), **_from_document(document, path))
    named = {name: getattr(settings, name) for name in _PATHS}
    return replace(settings, **{k: path.parent / v for k, v in named.items() if v is not None})


def _from_document(document: Mapping[str, Any], path: Path) -> dict[str, Any]:
    known = {f.name: f for f in fields(Settings) if f.name != "source"}
    out: dict[str, Any] = {}
    for key, value in document.items():
        name = key.replace("-", "_")
        if name not in known:
            like = did_you_mean(key, (each.replace("_", "-") for each in known))
            raise ConfigError(f"{path}: unknown setting {key!r}{like}")
        try:
            out[name] = _convert(name, value)
        except (ValueError, TypeError, argparse.ArgumentTypeError) as error:
            raise ConfigError(f"{path}: {key}: {error}") from None
    return out


def _convert(name: str, value: Any) -> Any:
    default = getattr(Settings(), name)
    if name in SIP_LISTENERS:
        texts = value if isinstance(value, list) else [value]
        return _after_off([listener(_text(text), usual_port(name)) for text in texts])
    if name == "route":
        return read_routes(value)
    if name == "trunk":
        return read_trunks(value)
    if name in _LISTENERS:
        return listener(_text(value), usual_port(name))
    if name == "rtp_ports":
        return values.port_range(_text(value))
    if name == "transcode_video":
        return values.video_limits(_text(value))
    if name == "stun":
        return tuple(map(stun_server, map(_text, value if isinstance(value, list) else [value])))
    if name in _LISTS:
        return tuple(map(_text, value if isinstance(value, list) else [value]))
    if name in _PATHS:
        return Path(_text(value))
    if name in rtmp_options.CONVERTED:
        return rtmp_options.convert(name, value)
    if isinstance(default, bool):
        if not isinstance(value, bool):
            raise ValueError("must be true or false")
        return value
    if name in ("answer_timeout", "media_timeout", *_WHOLE):
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError("must be a number")
        convert: Callable[[str], float] = _WHOLE.get(name, values.seconds)
        return convert(str(value))
    choices = {
        "log_level": LOG_LEVELS,
        "log_format": LOG_FORMATS,
        "gop_cache": rtmp_options.SWITCH,
    }.get(name)
    if choices and value not in choices:
        raise ValueError(f"must be one of {', '.join(choices)}")
    return _text(value)


def _after_off(listed: Sequence[Address | None]) -> tuple[Address, ...]:
    """The addresses of a listener that has several; `off` takes back those before it."""
    kept: list[Address] = []
    for address in listed:
        kept = [] if address is None else [*kept, address]
    return tuple(kept)


def check(settings: Settings) -> Settings:
    """Refuse settings that are unsafe or can't work; returns good ones unchanged.

    Secure by default.  Raises ConfigError.
    """
    if not any(settings.listening((*rtmp_options.LISTENERS, "sip"))):
        raise ConfigError("nothing to serve: --rtmp, --rtmfp and --sip are off")
    _check_texts(settings)
    _check_tls(settings)
    _check_films(settings)
    if settings.transcode_video is not None and importlib.util.find_spec("av") is None:
        raise ConfigError(needs_extra("--transcode-video", "transcode"))
    load_users(settings)
    for name, tables in (("trunk", settings.trunk), ("route", settings.route)):
        if tables and not settings.sip:
            raise ConfigError(f"[[{name}]] needs --sip")
    if settings.mix_calls and not settings.sip:
        raise ConfigError("--mix-calls needs --sip")
    if settings.vod is None and any(each.needs_files for each in settings.route):
        raise ConfigError("[[route]] with file or announce needs --vod")
    try:
        doors = rtmp_options.doors(settings)
    except RtmpError as error:
        raise ConfigError(str(error)) from None
    if settings.users is None and not settings.allow_anonymous:
        for name, address in settings.listening(_LISTENERS):
            is_guarded = name not in SIP_LISTENERS and doors.guards_publishing  # calls need a user
            if not is_loopback(address[0]) and not is_guarded:
                raise ConfigError(
                    f"--{name} {address[0]}:{address[1]} can be reached from other machines: "
                    "give --users FILE, or --allow-anonymous to serve everybody"
                )
    for name, address in settings.listening(SIP_LISTENERS):
        if is_wildcard(address[0]) and settings.external_ip is None:
            text = f"--{name} on every interface needs --external-ip, the address phones see"
            raise ConfigError(text)
    _check_families(settings)
    return settings


def _check_families(settings: Settings) -> None:
    """Refuse a second address of the first one's family, or one that nobody knows."""
    for name in SIP_LISTENERS:
        hosts = [host for _, (host, _) in settings.listening([name])]
        families = [":" in host for host in hosts]
        if len(families) > len(set(families)):
            raise ConfigError(f"--{name}: one address of IPv4 and one of IPv6 at most")
        if len(families) < 2 or settings.external_ip is None:
            continue
        for host in hosts:
            if is_wildcard(host) and (":" in host) != (":" in settings.external_ip):
                text = f"--{name} {host}: name the address, --external-ip is another kind"
                raise ConfigError(text)


def load_users(settings: Settings) -> UserStore | None:
    """The users of the --users file, for SIP; None without the option.

    Raises ConfigError for a file that can't be read or has another format.
    """
    return _load(settings, UserStore.parse)


def load_credentials(settings: Settings) -> Users | None:
    """The users of the --users file, for RTMP."""
    return _load(settings, Users.parse)


def _load(settings: Settings, parse: Callable[[str], S]) -> S | None:
    if settings.users is None:
        return None
    try:
        return parse(settings.users.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"--users {settings.users}: {error.strerror}") from None
    except (UnicodeDecodeError, LocalError, RtmpError) as error:
        raise ConfigError(f"--users {settings.users}: {error}") from None


def _check_tls(settings: Settings) -> None:
    """Refuse listeners of TLS without their files, which are read when the listeners open."""
    for name in ("sips", "ws"):
        if getattr(settings, name) and not settings.sip:
            raise ConfigError(f"--{name} needs --sip: UDP and TCP are always served as well")
    if settings.tls_cert is None and settings.rtmps is not None:
        raise ConfigError("--rtmps needs --tls-cert")
    if settings.tls_cert is None and settings.sips:
        raise ConfigError("--sips needs --tls-cert")
    if settings.rtmps is None and not settings.sips and not settings.ws:
        return
    for option, path in (("tls-cert", settings.tls_cert), ("tls-key", settings.tls_key)):
        if path is not None and not path.is_file():
            raise ConfigError(f"--{option} {path}: no such file")


def _check_films(settings: Settings) -> None:
    """Refuse a --vod folder that does not exist, unless recording makes it."""
    vod, record = settings.vod, settings.record
    if vod is None or vod.is_dir() or (record is not None and vod.resolve() == record.resolve()):
        return
    raise ConfigError(f"--vod {vod}: no such folder")


def _check_texts(settings: Settings) -> None:
    """Check the settings that are plain text for argparse and for the file alike."""
    if settings.external_ip is not None:
        try:
            ipaddress.ip_address(settings.external_ip)
        except ValueError:
            raise ConfigError(f"--external-ip {settings.external_ip}: not an address") from None
    for name in settings.domain:
        if not name or any(letter in "@:/;<>" or letter.isspace() for letter in name):
            raise ConfigError(f"--domain {name!r}: a host name without a port is wanted")
    for name in settings.room:
        if not name or any(letter in "@:/;<>?" or letter.isspace() for letter in name):
            raise ConfigError(f"--room {name!r}: a name without @, / and : is wanted")
    for pattern in settings.allow_targets:
        if "@" not in pattern and pattern != "*":
            raise ConfigError(f"--allow-targets {pattern!r}: USER@HOST is wanted, * matches")
    for option, text in (
        ("outbound-proxy", settings.outbound_proxy),
        ("call-from", settings.call_from),
    ):
        if text is not None and not _is_sip(text):
            raise ConfigError(f"--{option} {text}: not a SIP URI")


def _is_sip(text: str) -> bool:
    try:
        uri = SipAddress.parse(text).uri if "<" in text else Uri.parse(text)
    except RemoteError:
        return False
    return uri.scheme in ("sip", "sips") and bool(uri.host)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("must be a string")
    return value
