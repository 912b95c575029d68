"""The other addresses that a callee may be called at: recursion on 3xx.

Implements RFC 3261 §8.1.3.4.

    >>> from p2psip.sip.message import parse_message
    >>> moved = parse_message(
    ...     b"SIP/2.0 302 Moved\\r\\n"
    ...     b"Contact: <sip:desk@b>;q=0.2, <sip:mobile@b;method=INVITE>, <tel:1>\\r\\n\\r\\n"
    ... )
    >>> targets = Redirection(Uri("sip", "bob", host="b"), most=5)
    >>> str(targets.next(moved)), str(targets.next(moved)), targets.next(moved)
    ('sip:mobile@b', 'sip:desk@b', None)
"""

from typing import Final

from p2psip.sip.message import Response
from p2psip.sip.uri import Uri

NOT_FOLLOWED: Final = frozenset({305, 380})  # they name no other address of the callee: §21.3
GLOBAL: Final = 600  # no address of the callee would answer otherwise: §21.6


class Redirection:
    """The target set of one call (§8.1.3.4).

    `first` is the address that was called, and `most` bounds how many others are tried, which also
    ends a circle of redirections.

    Not done: RFC 3261 §21.3.4 [305-by-its-proxy]: whoever is called could have us send the call
    with its audio through a server of its choice; a 305 is told as a refusal.
    """

    def __init__(self, first: Uri, most: int) -> None:
        self._seen = {str(first)}
        self._targets: list[tuple[float, Uri]] = []
        self._left = most

    def next(self, refusal: Response) -> Uri | None:
        """The address to try after a refusal, None if there is no other (§8.1.3.4)."""
        # RFC 3261 §8.1.3.2 [unknown-is-x00] [knows-x00], RFC 5630 §5.1.1 [refusal-is-no-leave]
        if 300 <= refusal.status < 400 and refusal.status not in NOT_FOLLOWED:
            self._add(refusal)
        if not self._targets or not self._left or refusal.status >= GLOBAL:
            return None
        self._left -= 1
        self._targets.sort(key=lambda target: -target[0])  # RFC 3261 §8.1.3.4 [tries-the-next]
        return self._targets.pop(0)[1]

    def _add(self, redirect: Response) -> None:
        """Take the Contacts of a 3xx (§8.1.3.4)."""
        for contact in redirect.contacts:
            # RFC 5630 §5.1.1 [sips-stays-sips]
            if contact.is_star or contact.uri.scheme != "sip":
                continue
            # RFC 3261 §8.1.3.4 [whole-uri]
            uri = contact.uri.replace(headers=()).without_params("method")
            if str(uri) not in self._seen:  # RFC 3261 §8.1.3.4 [never-twice]
                self._seen.add(str(uri))
                share = _share(contact.param("q"))
                # RFC 3261 §21.3.1 [tries-a-choice], §21.3.2 [301-is-followed]
                # RFC 3261 §21.3.3 [302-is-followed]
                self._targets.append((share, uri))


def _share(text: str | None) -> float:
    """A q-value, 1 for none and 0 for one that is malformed (§20.10)."""
    try:
        value = 1.0 if text is None else float(text)
    except ValueError:
        return 0.0
    return value if 0 <= value <= 1 else 0.0
