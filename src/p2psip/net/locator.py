"""Finds the servers of a URI in the DNS.

Implements RFC 3263 §4 at the edge: the resolver waits for answers, the locator decides.
"""

import os
from collections.abc import Sequence
from typing import Final

from p2psip.errors import LocalError, RemoteError
from p2psip.net.dns import Resolver
from p2psip.sip.address import Address
from p2psip.sip.uri import Uri
from p2psip.stack.locate import Locator
from p2psip.stack.stack import Flow

TRANSPORTS: Final = ("UDP", "TCP")
# Both are tried: an address of a family that a socket of ours does not have fails at once, and the
# next one has its turn (RFC 3263 §4.3).
FAMILIES: Final = ("A", "AAAA")


class ServerLocator:
    """Finds the servers of a URI; those of `outbound_proxy`, a SIP URI, if DNS has none.

    RFC 3263 §4; RFC 3261 §8.1.2 allows a default outbound proxy.  `transports` are ours, the
    preferred first.  Raises RemoteError unless `outbound_proxy` is a SIP URI.

    Departs from RFC 3261 §8.1.2 [no-other-place-for-a-proxy]: as a last resort for domains that
    cannot be found.  A Route header would send the requests of all other domains through it too.
    """

    def __init__(
        self, outbound_proxy: str | None = None, transports: Sequence[str] = TRANSPORTS
    ) -> None:
        self._transports = transports
        self._proxy = None if outbound_proxy is None else Uri.parse(outbound_proxy)
        self._resolver = Resolver()

    @property
    def transport(self) -> str | None:
        """The transport of the outbound proxy, at which it is to reach us; None for the usual one.

        RFC 3261 §8.1.1.8: a Contact that leads around TLS would undo it.
        """
        if self._proxy is None:
            return None
        return "TLS" if self._proxy.scheme == "sips" else (self._proxy.param("transport") or None)

    def flows(self, uri: Uri) -> Sequence[Flow]:
        """The servers in the order to try; empty when there are none.  May wait."""
        found = self._ask(uri)
        if not found and self._proxy is not None and uri != self._proxy:
            found = self._ask(self._proxy)
        return found

    def _ask(self, uri: Uri) -> list[Flow]:
        locator = Locator.of_uri(
            uri, random=os.urandom, transports=self._transports, families=FAMILIES
        )
        return [hop.flow for hop in self._resolver.locate(locator)]


def server_uri(text: str) -> Uri:
    """Read "host", "host:port" or a SIP URI without a user: RFC 3261 §19.1.1.  LocalError."""
    try:
        # RFC 3261 §10.2 [aor-is-sip]
        uri = Uri.parse(text if text.lower().startswith(("sip:", "sips:")) else f"sip:{text}")
    except RemoteError as error:
        raise LocalError(f"{text!r} is not a SIP server: {error.reason}") from None
    if not uri.host or uri.user is not None or uri.scheme not in ("sip", "sips"):
        raise LocalError(f"{text!r} is not a SIP server, such as example.com or 192.0.2.7:5060")
    return uri


def proxies(servers: str | Sequence[str] | None) -> tuple[Uri, ...]:
    """Read the servers that requests go to first, as loose routes: RFC 3261 §8.1.2.  LocalError."""
    listed = [servers] if isinstance(servers, str) else servers or ()
    return tuple(server_uri(each).with_params(lr=None) for each in listed)


def destination(text: str, home: Uri) -> Address:
    """Read whom to call: a URI, an address in brackets, or a user of `home`'s domain or another.

    RFC 3261 §8.1.1.2.  Raises LocalError.
    """
    text = text.strip()
    if "<" not in text and ":" not in text.partition("@")[0]:
        scheme, _, place = str(home).partition(":")
        text = f"sip:{text}" if "@" in text else f"{scheme}:{text}@{place}"
    try:
        # in a header the parameters of a bare URI are not its own: RFC 3261 §20.10
        address = Address.parse(text if "<" in text else f"<{text}>")
    except RemoteError as error:
        raise LocalError(f"{text!r} is not an address: {error.reason}") from None
    is_sip = address.uri.scheme in ("sip", "sips")
    if not is_sip or not address.uri.host or address.uri.user == "":
        # RFC 3261 §19.1.5 [invalid-is-not-sent], RFC 3428 §5 [sip-uris]
        raise LocalError(f"{text!r} is not a SIP URI")
    return Address(address.uri, address.display)
