"""HOST:PORT, as every listener's option has it."""

from rtmplite.errors import LocalError


def parse(text: str) -> tuple[str, int]:
    """Host and port; an IPv6 address stands in brackets.  Raises LocalError."""
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 0xFFFF:
        raise LocalError(f"{text} is not HOST:PORT")
    return host.strip("[]"), int(port)
