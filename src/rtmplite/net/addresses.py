"""HOST:PORT, as the options of listeners have it; an IPv6 address stands in brackets."""

import argparse
from typing import Final

from rtmplite.errors import LocalError
from rtmplite.rtmp.wire.url import check_host

OFF: Final = "off"


def parse(text: str) -> tuple[str, int]:
    """Host and port.  Raises LocalError with an example of the right form."""
    try:
        return _parse(text)
    except ValueError as error:
        raise LocalError(f"{error}; {_example(text)}") from None


def listener(text: str) -> tuple[str, int] | None:
    """The value of a listener's option: HOST:PORT, or `off`, which gives None.

    Raises ArgumentTypeError.
    """
    if text == OFF:
        return None
    try:
        return parse(text)
    except LocalError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def written(host: str, port: int) -> str:
    """Write an address in the form that `parse` reads."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


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


def _example(text: str) -> str:
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
    return "write for example 127.0.0.1:1935 or [::1]:1935"
