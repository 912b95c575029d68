"""The sessions that an endpoint is opening, and how each is found.

Implements RFC 7016 §3.5.1.1.1: hellos are told apart by tag, keyings by session ID.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from rtmplite.rtmfp.endpoint.initiator import Opening
from rtmplite.rtmfp.endpoint.startup import TAG_BYTES

if TYPE_CHECKING:
    from rtmplite.rtmfp.crypto.profile import CryptoProfile


class Openings:
    """Every opening session by tag, and those in S_KEYING_SENT by session ID too: §3.5.1.1.1."""

    def __init__(self, profile: "CryptoProfile", random: Callable[[int], bytes]) -> None:
        self._profile, self._random = profile, random
        self.by_tag: dict[bytes, Opening] = {}
        self.by_id: dict[int, Opening] = {}

    @property
    def all(self) -> list[Opening]:
        """All of them, in the order they began.  Own design: a copy, as some may end meanwhile."""
        return list(self.by_tag.values())

    def new_tag(self) -> bytes:
        """Draw a tag that no opening has: §3.5.1.1.1 [unique-tag] [tag-unguessable]."""
        while (tag := self._random(TAG_BYTES)) in self.by_tag:
            continue
        return tag

    def add(self, opening: Opening) -> None:
        """Keep a new one: §3.5.1.1.1."""
        self.by_tag[opening.tag] = opening

    def discard(self, opening: Opening) -> None:
        """Forget one that is decided: §3.5, Figure 8."""
        self.by_tag.pop(opening.tag, None)
        self.by_id.pop(opening.near_id, None)

    def keying_with(self, canonical_epd: bytes, epd: bytes) -> Opening | None:
        """Find one that is keying with an identity which `epd` selects too: §3.5.1.1.1."""
        profile = self._profile
        for opening in self.by_id.values():
            far = opening.far_certificate
            if profile.canonical_epd(far) == canonical_epd and profile.is_selected(far, epd):
                return opening
        return None
