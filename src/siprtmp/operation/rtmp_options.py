"""Settings of the RTMP half: rights, limits, relays, and transports other than RTMP.

Own design: they are the options of `python -m rtmplite serve`, declared there once, under the same
names on the command line and in the file.
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final

from rtmplite.net.server import access, peer_options, transports
from rtmplite.net.server.access import NUMBERS

Address = tuple[str, int]

SWITCH: Final = transports.SWITCH
LISTENERS: Final = ("rtmp", "rtmps", "rtmpt", "rtmfp")
LISTS: Final = ("push", "pull", "publish_key", "play_key")
CONVERTED: Final = (*LISTS, *NUMBERS)  # what `convert` reads
PATHS: Final = ("tls_cert", "tls_key", "ca", "sign_key", "shared")


@dataclass(frozen=True, slots=True)
class RtmpSettings:
    """The settings of RTMP; `rtmplite serve --help` explains each."""

    rtmpt: Address | None = None
    tls_cert: Path | None = None
    tls_key: Path | None = None
    push: tuple[str, ...] = ()
    pull: tuple[str, ...] = ()
    ca: Path | None = None
    insecure: bool = False
    users_only: bool = False
    publish_key: tuple[str, ...] = ()
    play_key: tuple[str, ...] = ()
    sign_key: Path | None = None
    sign_play: bool = False
    on_connect: str | None = None
    on_publish: str | None = None
    on_play: str | None = None
    on_done: str | None = None
    hook_timeout: float = NUMBERS["hook_timeout"][1]
    hook_requests: float = NUMBERS["hook_requests"][1]
    idle: float = NUMBERS["idle"][1]
    max_connections: float = NUMBERS["max_connections"][1]
    max_per_address: float = NUMBERS["max_per_address"][1]
    max_message: float = NUMBERS["max_message"][1]
    max_rtmfp_memory: float = NUMBERS["max_rtmfp_memory"][1]
    drain: float = NUMBERS["drain"][1]
    reconnect_to: str | None = None
    rtmfp_peers: str = peer_options.WAYS[0]
    rtmfp_relay_host: str | None = None
    rtmfp_redirect_to: str | None = None
    rtmfp_overflow_to: str | None = None
    shared: Path | None = None
    gop_cache: str = SWITCH[0]

    def namespace(self) -> argparse.Namespace:
        """All settings as the modules of `rtmplite.net` read them."""
        return argparse.Namespace(**{each.name: getattr(self, each.name) for each in fields(self)})


def add_options(add: Callable[..., None]) -> None:
    """Declare them without their defaults; `add` is like a parser's `add_argument`."""

    def without_default(name: str, **details: Any) -> None:
        add(name, **details | {"default": argparse.SUPPRESS})

    transports.add_options(without_default)
    access.add_options(without_default)


def convert(name: str, value: Any) -> Any:
    """A value of the file as the command line has it; ValueError for a wrong one.

    `name` is one of `CONVERTED`.
    """
    if name in NUMBERS:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError("must be a number")
        return NUMBERS[name][0](str(value))
    texts = value if isinstance(value, list) else [value]
    if not all(isinstance(each, str) for each in texts):
        raise ValueError("must be a string, or a list of strings")
    return tuple(texts)


def doors(settings: RtmpSettings) -> access.Access:
    """The guards of publishing and playing.  Raises rtmplite's LocalError for a wrong setting.

    Relays and the options of RTMFP are checked as well, before a socket is opened.
    """
    options = settings.namespace()
    transports.rules(options)
    transports.trust(options)
    peer_options.meetings(options)
    peer_options.elsewhere(options)
    return access.Access(options)
