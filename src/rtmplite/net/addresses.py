"""Reads HOST:PORT of listeners' options; an IPv6 address stands in brackets."""

import argparse
import errno
from typing import Final

from rtmplite.errors import LocalError
from rtmplite.rtmp.wire.url import check_host

OFF: Final = "off"
RTMP_PORT: Final = 1935
HOLDERS: Final = {  # the programs that most often have a port
    1935: "nginx, MediaMTX or SRS",
    5060: "Asterisk, Kamailio or FreeSWITCH",
    5061: "Asterisk, Kamailio or FreeSWITCH",
    8080: "a web server or a proxy",
}


def parse(text: str, usual: int = RTMP_PORT) -> tuple[str, int]:
    """Host and port.  Raises LocalError with an example of the right form."""
    try:
        return _parse(text)
    except ValueError as error:
        raise LocalError(f"{error}; {_example(text, usual)}") from None


def listener(text: str, usual: int = RTMP_PORT) -> tuple[str, int] | None:
    """The value HOST:PORT or `off` of an option; ArgumentTypeError names the `usual` port."""
    if text == OFF:
        return None
    try:
        return parse(text, usual)
    except LocalError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def written(host: str, port: int) -> str:
    """Write an address in the form that `parse` reads."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def not_had(error: OSError, port: int) -> str:
    """Say why an address could not be listened on, and who might have it."""
    reason = (error.strerror or str(error)).partition(": (")[0]  # gevent adds the address
    if error.errno == errno.EADDRINUSE:
        others = f", or {HOLDERS[port]}" if port in HOLDERS else ""
        return f"{reason}, perhaps by this program started twice{others}: see ss -lntup"
    if error.errno == errno.EACCES and port < 1024:
        return f"{reason}: a port below 1024 needs the capability CAP_NET_BIND_SERVICE"
    return reason


def _parse(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or not host or "//" in host:
        raise ValueError(f"{text!r} is not HOST:PORT")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise ValueError(f"{text!r}: write an IPv6 address in brackets")
    if not (port.isascii() and port.isdigit()) or len(port) > 5 or int(port) > 0xFFFF:
        raise ValueError(f"{text!r}: the port must be 0 to 65535")
    try:
        check_host(host)
    except ValueError:
        raise ValueError(f"{text!r}: not a host name") from None
    return host, int(port)


def _example(text: str, usual: int) -> str:
    """An example of the right form for a lone port, a URL, or IPv6 without brackets."""
    bare = text.partition("://")[2].partition("/")[0] if "://" in text else text
    host, _, port = bare.rpartition(":")
    guesses = f"127.0.0.1:{bare}", bare, f"[{host}]:{port}" if ":" in host else ""
    for guess in guesses:
        try:
            _parse(guess)
        except ValueError:
            continue
        return f"write {guess}"
    return f"write for example 127.0.0.1:{usual} or [::1]:{usual}"
