"""HOST:PORT, as every listener's option has it."""

from rtmplite.errors import LocalError
from rtmplite.rtmp.wire.url import check_host


def parse(text: str) -> tuple[str, int]:
    """Host and port; an IPv6 address stands in brackets.  Raises LocalError."""
    host, _, port = text.rpartition(":")
    host = host.strip("[]")
    if not host or not (port.isdecimal() and len(port) < 6) or int(port) > 0xFFFF:
        raise LocalError(f"{text} is not HOST:PORT")
    try:
        check_host(host)
    except ValueError:
        raise LocalError(f"{text} is not HOST:PORT: no name of a host") from None
    return host, int(port)


def written(host: str, port: int) -> str:
    """What `parse` reads: an IPv6 address in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
