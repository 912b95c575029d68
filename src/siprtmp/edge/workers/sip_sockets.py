"""Opens the sockets of SIP, and names the option of one that cannot be had."""

from collections.abc import Iterator
from contextlib import contextmanager

from p2psip.errors import RemoteError
from p2psip.net import websocket
from p2psip.net.driver import SipPorts
from rtmplite.net.addresses import not_had, written
from siprtmp.operation.arguments import ConfigError, needs_extra
from siprtmp.settings.table import ListenerSettings


def sip_ports(at: ListenerSettings) -> SipPorts:
    """The sockets of all SIP listeners.  Raises ConfigError for an address that can't be had."""
    if at.ws and not websocket.AVAILABLE:
        raise ConfigError(needs_extra("--ws", "web"))
    first, *also = at.sip
    with naming("--sip", *at.sip):
        return SipPorts(*first, also=also, sips=at.sips, ws=at.ws)


@contextmanager
def naming(option: str, *listening: tuple[str, int]) -> Iterator[None]:
    """Name the listener that could not be opened."""
    try:
        yield
    except (OSError, RemoteError) as error:
        port = listening[0][1]
        reason = not_had(error, port) if isinstance(error, OSError) else str(error)
        tried = " ".join(written(*address) for address in listening)
        raise ConfigError(f"{option} {tried}: {reason}") from None
