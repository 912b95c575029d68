"""What we have already with somebody with whom another session is about to be opened.

Implements RFC 7016 §3.5.1.1.1 and §3.5.1.3: between two endpoints there is one session.
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
    """Looks for what makes an opening needless when an RHello tells who is there: §3.5.1.1.1."""

    def __init__(self, profile: "CryptoProfile", table: Table, openings: Openings) -> None:
        self._profile, self._table, self._openings = profile, table, openings

    def find(self, certificate: bytes, epd: bytes) -> "Session | Opening | None":
        """Give what makes an opening a duplicate: §3.5.1.1.1 [duplicate-aborted].

        Own design: a session of which only a certificate is known, which all may know, does not;
        but see `awaited`.
        """
        canonical = self._profile.canonical_epd(certificate)
        for held in self._table.canonical(canonical):
            if held.is_open and held.is_proven and self._is_wanted(held.session, epd):
                return held.session
        return self._openings.keying_with(canonical, epd)

    def awaited(self, opening: "Opening", certificate: bytes, source: Address) -> bool:
        """Whether the owner of a certificate opens a session from `source`, where we ask for one.

        To be asked when `find` has found nothing, so that no such session is proven.
        Then that one is for both: §3.5.1.1.1 [duplicate-aborted].  Our keying would override it at
        the far end, which may use it by now, though nothing of it has come here.  Own design:
        `opening` is fulfilled when something comes, so we ask for that; if nothing does it has
        failed when the session's time is over, 120 seconds after it began.  Nobody can be kept from
        us so, as whoever began that session has got a cookie at that very address.
        """
        canonical = self._profile.canonical_epd(certificate)
        for held in self._table.at(source):
            if not held.is_open or not self._is_wanted(held.session, opening.epd):
                continue
            if self._profile.canonical_epd(held.session.far_certificate) != canonical:
                continue
            if held.opening is None or not held.opening.is_wanted:
                held.opening = opening
            else:
                opening.instead = held.opening
            held.session.queue_chunk(Ping())
            return True
        return False

    def _is_wanted(self, session: "Session", epd: bytes) -> bool:
        return self._profile.is_selected(session.far_certificate, epd)
