"""The texts HOST:PORT and LOW-HIGH of options and of the ready line.

Own design: an IPv6 host is written in brackets, as URIs do (RFC 3986 §3.2.2).
"""


def parse_host_port(text: str) -> tuple[str, int]:
    """Split `HOST:PORT` (or `[IPv6]:PORT`); port 0 asks for a free one.

    RFC 3986 §3.2.  Raises ValueError with a message for the operator.
    """
    host, colon, port = text.rpartition(":")
    if not colon or not host or "//" in host:
        raise ValueError(f"{text!r} is not HOST:PORT")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise ValueError(f"{text!r}: write an IPv6 address in brackets")
    if not (port.isascii() and port.isdigit()) or len(port) > 5 or int(port) > 65535:
        raise ValueError(f"{text!r}: the port must be 0 to 65535")
    if not host.isprintable() or len(host) > 255 or not _is_name(host):
        raise ValueError(f"{text!r}: not a host name")
    return host, int(port)


def example_of(text: str) -> str:
    """Show the right form of a lone port, or of a URL of a listener."""
    bare = text.partition("://")[2].partition("/")[0] if "://" in text else text
    host, _, port = bare.rpartition(":")
    for guess in (f"127.0.0.1:{bare}", bare, f"[{host}]:{port}"):
        try:
            parse_host_port(guess)
        except ValueError:
            continue
        return f"write {guess}"
    return "write for example 127.0.0.1:1935 or [::1]:1935"


def _is_name(host: str) -> bool:
    """Whether a resolver accepts it as a host name or an IPv6 address."""
    try:
        return ":" in host or (" " not in host and bool(host.encode("idna")))
    except UnicodeError:
        return False


def format_host_port(host: str, port: int) -> str:
    """Write an address in the form that `parse_host_port` reads.  RFC 3986 §3.2."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def parse_port_range(text: str) -> tuple[int, int]:
    """Split `LOW-HIGH` into two ports with room for one RTP and RTCP pair (RFC 3550 §11).

    Raises ValueError with a message for the operator.
    """
    low_text, dash, high_text = text.partition("-")
    if not (dash and text.isascii() and low_text.isdigit() and high_text.isdigit()):
        raise ValueError(f"{text!r} is not LOW-HIGH")
    low, high = int(low_text), int(high_text)
    if not 1024 <= low < high <= 65535 or high < low + low % 2 + 1:
        raise ValueError(f"{text!r}: ports must lie in 1024-65535 and hold an even-odd pair")
    return low, high
