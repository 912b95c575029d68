"""Finds the session or opening that makes another one with the same far end needless.

Implements RFC 7016 §3.5.1.1.1 and §3.5.1.3: between two endpoints there is one session, even if
both of them open one at the same time.
"""

from typing import TYPE_CHECKING

from rtmplite.rtmfp.endpoint.initiator import Openings
from rtmplite.rtmfp.endpoint.session_table import Table
from rtmplite.rtmfp.wire.address import Address
from rtmplite.rtmfp.wire.control_chunks import Ping

if TYPE_CHECKING:
    from rtmplite.rtmfp.crypto.profile import CryptoProfile
    from rtmplite.rtmfp.endpoint.initiator import Opening
    from rtmplite.rtmfp.session.session import Session


class Duplicates:
    """Looks for a duplicate when an RHello has told the far end's identity: §3.5.1.1.1."""

    def __init__(self, profile: "CryptoProfile", table: Table, openings: Openings) -> None:
        self._profile, self._table, self._openings = profile, table, openings

    def find(self, certificate: bytes, epd: bytes) -> "Session | Opening | None":
        """Give the session or opening that an opening duplicates: §3.5.1.1.1 [duplicate-aborted].

        Own design: an unproven session does not count, as anybody may know a certificate; but see
        `awaited`.
        """
        canonical = self._profile.canonical_epd(certificate)
        for entry in self._table.canonical(canonical):
            if entry.is_open and entry.is_proven and self._is_wanted(entry.session, epd):
                return entry.session
        return self._openings.keying_with(canonical, epd)

    def awaited(self, opening: "Opening", certificate: bytes, source: Address) -> bool:
        """Tell whether a session that the far end has begun from `source` serves `opening` too.

        To be called when `find` has found nothing, so that no such session is proven.  If there is
        one, it is for both: §3.5.1.1.1.  Our keying would override it at the
        far end, which may use it by now, though no packet of it has come here.

        Own design: a Ping asks for such a packet, which fulfils `opening`; without one `opening`
        fails when the session's time is over, 120 seconds after it began.  A stranger cannot block
        us from a peer in this way: the initiator of that session has had a cookie at that address.
        """
        canonical = self._profile.canonical_epd(certificate)
        for entry in self._table.at(source):
            if not entry.is_open or not self._is_wanted(entry.session, opening.epd):
                continue
            # §3.5.1.1.1 [duplicate-aborted]
            if self._profile.canonical_epd(entry.session.far_certificate) != canonical:
                continue
            if entry.opening is None or not entry.opening.is_wanted:
                entry.opening = opening
            else:
                opening.instead = entry.opening
            entry.session.queue_chunk(Ping())
            return True
        return False

    def _is_wanted(self, session: "Session", epd: bytes) -> bool:
        return self._profile.is_selected(session.far_certificate, epd)
