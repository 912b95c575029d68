"""HOST:PORT in an option of a program; an IPv6 address stands in brackets.

Own design: the same rule as for the options of the RTMP family, so that one habit serves both.
"""

import errno

from p2psip.errors import LocalError, RemoteError
from p2psip.sip.grammar import host_port
from p2psip.transaction.flow import HostPort


def parse(text: str) -> HostPort:
    """Read a host and a port.  Raises LocalError, which shows the right form."""
    try:
        host, port = host_port(text)
        host.encode("idna")  # what the resolver would choke on
    except (RemoteError, UnicodeError):
        port = None
    if port is None or any(map(str.isspace, text)):
        raise LocalError(f"{text!r} is not HOST:PORT, such as 127.0.0.1:5060 or [::1]:5060")
    return host, port


def bind_failure(error: OSError) -> str:
    """Say why an address could not be listened on, and who might have it."""
    reason = error.strerror or str(error)
    if error.errno == errno.EADDRINUSE:
        reason += ", perhaps by another phone or server here: see ss -lntup"
    return reason
