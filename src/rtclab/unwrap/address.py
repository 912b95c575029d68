"""Addresses as texts, `host:port`.

Own design: texts, since nothing is ever sent to the addresses of a capture.
"""


def host_of(address: str) -> str:
    """Give the host alone: `[::1]:5060` is at `::1`.

    >>> host_of("[::1]:5060"), host_of("192.0.2.1:5060")
    ('::1', '192.0.2.1')
    """
    return address.rpartition(":")[0].strip("[]")


def written(host: str, port: int) -> str:
    """Write an address as packets have it."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
