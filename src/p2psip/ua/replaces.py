"""The Replaces header: an INVITE that takes the place of a call.

Implements RFC 3891 §3 and §4.
"""

from typing import Final, NamedTuple, Self

from p2psip.dialog.dialog import Dialog
from p2psip.errors import RemoteError
from p2psip.sip.grammar import split
from p2psip.sip.message import Request
from p2psip.sip.params import find, parse_params
from p2psip.sip.uri import Uri

OPTION: Final = "replaces"  # Source: RFC 3891 §3


class Replaces(NamedTuple):
    """The dialog to replace, as the peer that is to replace it sees it (RFC 3891 §3).

    >>> print(Replaces.parse("98732@sip.example.com ;from-tag=r33th4x0r;to-tag=ff87ff"))
    98732@sip.example.com;to-tag=ff87ff;from-tag=r33th4x0r
    """

    call_id: str
    to_tag: str
    from_tag: str
    early_only: bool = False

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read the value of the header (§3).  Raises RemoteError."""
        if "\r" in text or "\n" in text:  # escaped in a Refer-To, and never part of a header
            raise RemoteError("Bad Replaces")
        call_id, *rest = split(text, ";")
        parameters = parse_params(rest)
        to_tag, from_tag = find(parameters, "to-tag"), find(parameters, "from-tag")
        # RFC 3891 §6.1 [one-of-each-tag]
        if not call_id or not to_tag or not from_tag:
            raise RemoteError("Bad Replaces")
        early = any(name.lower() == "early-only" for name, _ in parameters)
        return cls(call_id, to_tag, from_tag, early)

    @classmethod
    def of(cls, dialog: Dialog) -> Self:
        """Name our dialog, by the tags as its other side has them (§4)."""
        return cls(dialog.call_id, dialog.remote.tag or "", dialog.local.tag or "")

    def __str__(self) -> str:
        early = ";early-only" if self.early_only else ""
        # RFC 3891 §6.1 [one-of-each-tag]
        return f"{self.call_id};to-tag={self.to_tag};from-tag={self.from_tag}{early}"


def found_at(dialog: Dialog) -> Uri:
    """Where a third party finds the other side of a call of ours (RFC 3891 §4).

    Behind a proxy a Contact may be one end of a connection that only the proxy has.  The
    address-of-record leads there for everybody, and the Replaces tells the right phone.
    """
    return dialog.remote.uri if dialog.route_set else dialog.target


def wanted_by(invite: Request) -> Replaces | None:
    """The dialog that an INVITE asks to replace, None if it asks for none (RFC 3891 §3)."""
    values = invite.headers.values("Replaces")
    if len(values) > 1:
        raise RemoteError("Two Replaces Headers", 400)  # RFC 3891 §3 [400-for-two]
    return Replaces.parse(values[0]) if values else None
