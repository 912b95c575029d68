"""Refuses settings that are unsafe or can't work.

Own design: every check that needs no socket is made here, before one is opened, and its message is
one line that says what to change.  The check of a single value is a column of its row.
"""

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

from p2psip.errors import LocalError
from p2psip.server.users import UserStore
from rtmplite.auth.credentials import Users
from rtmplite.errors import LocalError as RtmpError
from rtmplite.net.server import rtmfp_listener, transports
from rtmplite.net.server.access import Access, is_loopback
from rtmplite.net.server.settings import AccessSettings
from rtmplite.net.settings import rows, sections
from siprtmp.operation.arguments import ConfigError, needs_extra
from siprtmp.settings.table import Settings, is_wildcard

S = TypeVar("S")

MAX_PORT: Final = 65535


def check(settings: Settings) -> Settings:
    """Return good settings unchanged.  Raises ConfigError.

    Secure by default: other machines are served if somebody has said which users they have.
    """
    listeners = settings.listeners
    if not listeners.sip and not any(listeners.of_rtmp()):
        raise ConfigError("nothing to serve: --rtmp, --rtmfp and --sip are off")
    _check_values(settings)
    _check_tls(settings)
    _check_films(settings)
    if settings.media.transcode_video is not None and importlib.util.find_spec("av") is None:
        raise ConfigError(needs_extra("--transcode-video", "transcode"))
    load_users(settings.access)
    for name, tables in (
        ("trunk", settings.trunk),
        ("route", settings.route),
        ("webhook", settings.webhook),
    ):
        if tables and not listeners.sip:
            raise ConfigError(f"[[{name}]] needs --sip")
    if settings.calls.mix_calls and not listeners.sip:
        raise ConfigError("--mix-calls needs --sip")
    if settings.folders.vod is None and any(each.needs_files for each in settings.route):
        raise ConfigError("[[route]] with file or announce needs --vod")
    _check_reach(settings, _doors(settings))
    _check_families(settings)
    _check_workers(settings)
    _check_browsers(settings)
    return settings


def load_users(access: AccessSettings) -> UserStore | None:
    """The users of the --users file, for SIP; None without the option.

    Raises ConfigError for a file that can't be read or has another format.
    """
    return _load(access.users, UserStore.parse)


def load_credentials(access: AccessSettings) -> Users | None:
    """The users of the --users file, for RTMP."""
    return _load(access.users, Users.parse)


def _load(users: Path | None, parse: Callable[[str], S]) -> S | None:
    if users is None:
        return None
    try:
        return parse(users.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"--users {users}: {error.strerror}") from None
    except (UnicodeDecodeError, LocalError, RtmpError) as error:
        raise ConfigError(f"--users {users}: {error}") from None


def _check_values(settings: Settings) -> None:
    for name, _, owner in sections(Settings):
        part = getattr(settings, name)
        for row in rows(owner):
            try:
                row.verify(getattr(part, row.name))
            except ValueError as error:
                raise ConfigError(str(error)) from None


def _check_tls(settings: Settings) -> None:
    """Refuse listeners of TLS without their files, which are read when the listeners open."""
    at, tls = settings.listeners, settings.tls
    for name, addresses in (("sips", at.sips), ("ws", at.ws)):
        if addresses and not at.sip:
            raise ConfigError(f"--{name} needs --sip: UDP and TCP are always served as well")
    if tls.tls_cert is None and at.rtmps is not None:
        raise ConfigError("--rtmps needs --tls-cert")
    if tls.tls_cert is None and at.sips:
        raise ConfigError("--sips needs --tls-cert")
    if at.rtmps is None and not at.sips and not at.ws:
        return
    for option, path in (("tls-cert", tls.tls_cert), ("tls-key", tls.tls_key)):
        if path is not None and not path.is_file():
            raise ConfigError(f"--{option} {path}: no such file")


def _check_films(settings: Settings) -> None:
    """Refuse a --vod folder that does not exist, unless recording makes it."""
    vod, record = settings.folders.vod, settings.folders.record
    if vod is None or vod.is_dir() or (record is not None and vod.resolve() == record.resolve()):
        return
    raise ConfigError(f"--vod {vod}: no such folder")


def _doors(settings: Settings) -> Access:
    """The guards of publishing and playing.

    Relays and the options of RTMFP are checked as well.
    """
    try:
        transports.rules(settings.relays, settings.end)
        transports.trust(settings.trust)
        rtmfp_listener.peer_connectivity(settings.rtmfp)
        rtmfp_listener.other_servers(settings.rtmfp)
        return Access(settings.access)
    except RtmpError as error:
        raise ConfigError(str(error)) from None


def _check_reach(settings: Settings, doors: Access) -> None:
    """Refuse listeners that other machines reach, unless somebody has said who may use them."""
    listeners, access = settings.listeners, settings.access
    of_sip = list(listeners.of_sip())
    if access.users is None and not access.allow_anonymous:
        for name, address in listeners.all():
            is_guarded = (name, address) not in of_sip and doors.guards_publishing
            if not is_loopback(address[0]) and not is_guarded:  # calls need a user
                raise ConfigError(
                    f"--{name} {address[0]}:{address[1]} can be reached from other machines: "
                    "give --users FILE, or --allow-anonymous to serve everybody"
                )
    for name, address in of_sip:
        if is_wildcard(address[0]) and settings.network.external_ip is None:
            text = f"--{name} on every interface needs --external-ip, the address phones see"
            raise ConfigError(text)


def _check_families(settings: Settings) -> None:
    """Refuse a second address of the first one's family, or one that nobody knows."""
    at, external = settings.listeners, settings.network.external_ip
    for name, addresses in (("sip", at.sip), ("sips", at.sips), ("ws", at.ws)):
        hosts = [host for host, _ in addresses]
        families = [":" in host for host in hosts]
        if len(families) > len(set(families)):
            raise ConfigError(f"--{name}: one address of IPv4 and one of IPv6 at most")
        if len(families) < 2 or external is None:
            continue
        for host in hosts:
            if is_wildcard(host) and (":" in host) != (":" in external):
                text = f"--{name} {host}: name the address, --external-ip is another kind"
                raise ConfigError(text)


def _check_browsers(settings: Settings) -> None:
    """Refuse a port of browsers that none of them could find."""
    at = settings.listeners
    if at.webrtc is None:
        return
    if at.http is None:
        raise ConfigError("--webrtc needs --http, where browsers begin")
    if is_wildcard(at.webrtc[0]) and settings.network.external_ip is None:
        raise ConfigError("--webrtc on every interface needs --external-ip, for browsers to know")
    if importlib.util.find_spec("OpenSSL") is None:
        raise ConfigError(needs_extra("--webrtc", "webrtc"))


def _check_workers(settings: Settings) -> None:
    """Refuse what several processes cannot serve together."""
    if settings.process.workers == 1:
        return
    has_sip = bool(settings.listeners.sip)
    if (at := settings.listeners.webrtc) is not None:
        last = at[1] + settings.process.workers - 1
        if at[1] and last > MAX_PORT:
            raise ConfigError(f"--webrtc: the last worker's port would be {last}: take a lower one")
    shuts = {
        "stun": has_sip and bool(settings.network.stun),
        "turn": has_sip and settings.network.turn is not None,
        "room": has_sip and bool(settings.calls.room),
        "shared": settings.folders.shared is not None,
    }
    for option, is_given in shuts.items():
        if is_given:
            raise ConfigError(
                f"--workers {settings.process.workers} does not go with --{option} yet: leave out "
                f"--{option}, or --workers 1"
            )
