"""The proxies that a registrar wants later requests to pass.

Implements RFC 3608 §6.1.
"""

from collections.abc import Sequence

from p2psip.sip.address import Address
from p2psip.sip.grammar import readable
from p2psip.sip.message import Response
from p2psip.sip.uri import Uri, equivalent


class ServiceRoute:
    """The service route of one registration: §6.1."""

    def __init__(self) -> None:
        self._proxies: tuple[Uri, ...] = ()

    def learn(self, response: Response) -> None:
        """Take that of a 200, without values that cannot be read: §6.1."""
        lines = response.headers.values("Service-Route")
        route = [each.uri for line in lines for each in readable(line, Address.parse)]
        # §6.1 [route-is-replaced] [order-is-kept]
        self._proxies = tuple(uri for uri in route if uri.scheme in ("sip", "sips"))

    def clear(self) -> None:
        """Forget it, since a registration was refused: §6.1."""
        self._proxies = ()  # §6.1 [refused-clears-it]

    def after(self, first: Sequence[Uri]) -> list[Uri]:
        """The route of later requests: our own proxies, then those of the registrar: §6.1.

        The registrar may name ours again, which is then passed once.
        """
        service = self._proxies
        if service and first and equivalent(service[0], first[-1]):
            service = service[1:]
        return [*first, *service]  # §6.1 [route-is-used]
