"""The domains that this element answers for, and the addresses-of-record in them.

Implements RFC 3261 §16.5: a proxy or registrar is responsible for some domains.

Own design: without a configured name, all names of this machine are one domain, so that
bob@localhost and bob@127.0.0.1 are one user.  A URI with a port that is not one of our listeners'
belongs to another server on the same host.
"""

from collections.abc import Callable, Sequence

from p2psip.sip.uri import Uri

Aor = tuple[str, str]
"""An address-of-record: user and canonical domain."""


class Domains:
    """The domains served: a domain for each name if `distinct`, or one domain with many names."""

    def __init__(
        self,
        names: Sequence[str],
        is_own_address: Callable[[str, int | None], bool],
        *,
        distinct: bool,
    ) -> None:
        self.names = tuple(name.lower() for name in names)
        self._is_own_address, self._distinct = is_own_address, distinct

    def of(self, uri: Uri) -> str | None:
        """The domain of ours that a URI belongs to, in its canonical form, or None.

        Departs from RFC 3261 §16.5 [maddr-is-the-target]: the host counts, whatever `maddr` says,
        which may be an outside address of a router that we do not know to be ours.
        """
        if uri.scheme not in ("sip", "sips"):
            return None
        host = uri.host.lower()
        is_ours = self._is_own_address(host, uri.port)
        if host in self.names and (uri.port is None or is_ours):
            return host if self._distinct else self.names[0]
        return self.names[0] if is_ours else None

    def names_of(self, uri: Uri) -> tuple[str, ...]:
        """The names that the domain of a URI has, the canonical one first, and its host as written.

        Own design: where all names are one domain, whoever names an address by a pattern means it
        by any of them.
        """
        domain, host = self.of(uri), uri.host.lower()
        if domain is None:
            return (host,)
        known = (domain,) if self._distinct else self.names
        return tuple(dict.fromkeys((*known, host)))

    def address_of_record(self, uri: Uri) -> Aor | None:
        """(user, domain) of a URI of ours, its parameters dropped: RFC 3261 §10.3 step 5."""
        domain = self.of(uri)
        # RFC 3261 §16.5 [looked-up-in-canonical-form]
        # RFC 3261 §10.3 [canonical]
        # RFC 5630 §5.2 [one-user]
        return None if domain is None else (uri.user or "", domain)
