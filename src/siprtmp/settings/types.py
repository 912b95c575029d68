"""The types of the gateway's settings: each reads the command line and the file, and has a schema.

Own design: a mistake raises argparse.ArgumentTypeError or ValueError with one line for the
operator, so that the command line and the file show the same text.
"""

import argparse
import ipaddress
import re
from collections.abc import Iterable
from typing import Any, Final, NamedTuple, cast

from p2psip.errors import RemoteError
from p2psip.sip.address import Address as SipAddress
from p2psip.sip.uri import Uri
from rtmplite.errors import LocalError
from rtmplite.net.addresses import parse
from rtmplite.net.server.hooks import service
from rtmplite.net.server.settings import Address, Listener
from rtmplite.net.settings import Many, Number, SettingType
from siprtmp.web.resources.mode import Mode
from siprtmp.web.resources.told_hosts import ToldHost

OFF: Final = "off"
STUN_PORT: Final = 3478
KILOBITS: Final = Number(int, low=16, high=100_000)  # of video, a second
SECONDS: Final = Number(float, "S", 0.001, 1e7)

_SIZE_AND_RATE: Final = re.compile(r"(?:([0-9]{2,4})x([0-9]{2,4}))?(?:@([1-9][0-9]?))?")


class VideoLimits(NamedTuple):
    """The limits of video for phones; 0 leaves a limit to the phone; see `video_limits`."""

    width: int = 0
    height: int = 0
    rate: int = 0
    kilobits: int = 0
    baseline: bool = False


class Listeners(Many[Address]):
    """An address of IPv4, of IPv6, or of each; `off` takes back those before it."""

    def __init__(self, usual: int) -> None:
        super().__init__(cast(SettingType[Address], Listener(usual)))  # `gather` drops None

    def gather(self, parsed: Iterable[Address | None]) -> tuple[Address, ...]:
        kept: list[Address] = []
        for address in parsed:
            kept = [] if address is None else [*kept, address]
        return tuple(kept)

    def write(self, value: tuple[Address, ...]) -> Any:
        return super().write(value) or OFF


class Servers(Many[Address]):
    """Addresses of servers to ask."""

    def __init__(self) -> None:
        super().__init__(SettingType(stun_server, "HOST:PORT"))


class PortRange(SettingType[tuple[int, int]]):
    """`LOW-HIGH`; the default, (0, 0), leaves the choice to the system."""

    def __init__(self) -> None:
        super().__init__(port_range, "LOW-HIGH", {"type": "string", "pattern": "^[0-9]+-[0-9]+$"})

    def write(self, value: tuple[int, int]) -> str | None:
        return f"{value[0]}-{value[1]}" if any(value) else None


class VideoTranscoding(SettingType[VideoLimits | None]):
    """`on`, `off`, or limits; the option without a value means `on`."""

    def __init__(self) -> None:
        super().__init__(video_limits, "WIDTHxHEIGHT@RATE,KBITS")

    @property
    def argument(self) -> dict[str, Any]:
        return {**super().argument, "nargs": "?", "const": VideoLimits()}

    def write(self, value: VideoLimits | None) -> str | None:
        return OFF if value is None else None


def stun_server(text: str) -> Address:
    """Read the address of a server to ask.  Raises ArgumentTypeError."""
    try:
        host, port = parse(text, STUN_PORT)
    except LocalError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    if port == 0:
        raise argparse.ArgumentTypeError(f"{text!r}: a server has a port of 1 to 65535")
    return host, port


def port_range(text: str) -> tuple[int, int]:
    """Read `LOW-HIGH`, two ports with room for one pair of RTP and RTCP: RFC 3550 §11."""
    low_text, dash, high_text = text.partition("-")
    if not (dash and text.isascii() and low_text.isdigit() and high_text.isdigit()):
        raise argparse.ArgumentTypeError(f"{text!r} is not LOW-HIGH")
    low, high = int(low_text), int(high_text)
    if not 1024 <= low < high <= 65535 or high < low + low % 2 + 1:
        raise argparse.ArgumentTypeError(
            f"{text!r}: ports must lie in 1024-65535 and hold an even-odd pair"
        )
    return low, high


def video_limits(text: str) -> VideoLimits | None:
    """Read `on`, `off`, or limits such as `640x360@15,500,baseline`, each of which may be left out.

    Size in pixels, frames a second, and kilobits a second.
    """
    if text == OFF:
        return None
    limits = VideoLimits()
    for part in () if text == "on" else text.split(","):
        size = _SIZE_AND_RATE.fullmatch(part)
        if part == "baseline":
            limits = limits._replace(baseline=True)
        elif part.isascii() and part.isdigit():
            limits = limits._replace(kilobits=KILOBITS.parse(part))
        elif part and size is not None:
            width, height, rate = (int(each or 0) for each in size.groups())
            if width and min(width, height) < 16:
                raise argparse.ArgumentTypeError(f"{part!r}: frames have 16x16 pixels at least")
            limits = limits._replace(width=width, height=height, rate=rate)
        else:
            raise argparse.ArgumentTypeError(
                f"{text!r} is not on, off, or limits such as 640x360@15,500,baseline"
            )
    return limits


def check_address(text: str) -> None:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        raise ValueError(f"{text}: not an address") from None


def check_domain(name: str) -> None:
    if not name or any(letter in "@:/;<>" or letter.isspace() for letter in name):
        raise ValueError(f"{name!r}: a host name without a port is wanted")


def check_room(name: str) -> None:
    """Raise ValueError for a name that no call could have."""
    if not name or any(letter in "@:/;<>?" or letter.isspace() for letter in name):
        raise ValueError(f"{name!r}: a name without @, / and : is wanted")


def check_pattern(pattern: str) -> None:
    """Raise ValueError for a pattern that matches no address."""
    if "@" not in pattern and pattern != "*":
        raise ValueError(f"{pattern!r}: USER@HOST is wanted, * matches")


def check_mode(mode: str) -> None:
    """Raise ValueError for a text that is no mode of a tree of resources."""
    try:
        if mode != OFF:
            Mode.parse(mode)
    except RemoteError as error:
        raise ValueError(f"{mode!r}: {error.reason}") from None


def check_origin(origin: str) -> None:
    """Raise ValueError for a text that is no origin of pages."""
    if not re.fullmatch(r"https?://[^\s/?#@]+", origin):
        raise ValueError(f"{origin!r}: https://HOST or http://HOST:PORT is wanted")


def check_told_host(text: str) -> None:
    """Raise ValueError for a text that is no entry of the hosts that may be told."""
    ToldHost.parse(text)


def check_service(url: str) -> None:
    """Raise ValueError unless a text is the URL of a web service."""
    try:
        service(url)
    except (LocalError, ValueError, UnicodeError):
        raise ValueError(f"{url!r} is not http://HOST[:PORT]/PATH") from None


def check_sip(text: str) -> None:
    """Raise ValueError for text other than a SIP address: RFC 3261 §20.10."""
    try:
        uri = SipAddress.parse(text).uri if "<" in text else Uri.parse(text)
    except RemoteError:
        uri = Uri("")
    if uri.scheme not in ("sip", "sips") or not uri.host:
        raise ValueError(f"{text}: not a SIP URI")
