"""Asks a contact at a foreign host with one OPTIONS, before anything else is sent there.

Implements RFC 3261 §11.1 for the question: an OPTIONS.

Own design: a REGISTER may name any host as its Contact, also one that does not want our calls.
So a contact at another host than the source of its REGISTER gets one datagram, without repetition;
its answer must have the branch, which only the contact was told (RFC 3261 §8.1.1.7).  The number of
open questions is limited in all, for each user and for each host asked; a REGISTER causes one.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias, TypeVar

from p2psip.server.domains import Aor
from p2psip.sip.address import Address
from p2psip.sip.build import MAX_FORWARDS
from p2psip.sip.headers import Headers
from p2psip.sip.message import Request, Response
from p2psip.sip.uri import Uri
from p2psip.stack.stack import ClientHandle, Flow, Stack
from p2psip.transaction.flow import LOCAL, rate_limit_key

T = TypeVar("T")
ProbeEnd: TypeAlias = Callable[[Aor, Uri, Flow | None, float], object]

MAX_QUESTIONS: Final = 1000  # without an answer yet, each for 64*T1 at most
MAX_OF_USER, MAX_OF_HOST = 3, 30
VOUCHED_OF_USER, VOUCHED_OF_HOST = 10, 250  # a whole office may have lost its connections


@dataclass(frozen=True, slots=True)
class _Probe:
    aor: Aor
    contact: Uri
    host: str


class ContactProbes:
    """All questions under way, see the module.  `random(n)` gives n octets.

    `on_end(aor, contact, flow, now)` is told that a contact has answered the OPTIONS that was sent
    to `flow`; without one it has not answered within 64*T1, or cannot be reached.
    """

    def __init__(self, stack: Stack, random: Callable[[int], bytes], on_end: ProbeEnd) -> None:
        self._stack, self._random, self._on_end = stack, random, on_end
        self._asked: dict[ClientHandle, _Probe] = {}
        self._contacts: set[tuple[Aor, Uri]] = set()
        self._of_user, self._of_host = Counter[Aor](), Counter[str]()

    def __len__(self) -> int:
        return len(self._asked)

    def is_asked(self, aor: Aor, contact: Uri) -> bool:
        """Whether the contact has been asked and has not answered yet."""
        return (aor, contact) in self._contacts

    def ask(self, aor: Aor, contact: Uri, now: float, *, vouched: bool = False) -> bool:
        """Ask a contact, by UDP unless its host is `vouched`; False without a way, or room."""
        host = host_of_contact(contact)
        if not self._has_room(aor, host, vouched=vouched) or self.is_asked(aor, contact):
            return False
        flows = self._stack.flows_to(contact)
        if flows is not None:
            flows = [flow for flow in flows[-1:] if vouched or flow.transport == "UDP"]
            if not flows:
                return False
        handle = self._stack.request(self._question(contact), self, now, flows=flows, once=True)
        self._asked[handle] = _Probe(aor, contact, host)
        self._contacts.add((aor, contact))
        self._of_user[aor] += 1
        self._of_host[host] += 1
        return True

    def _has_room(self, aor: Aor, host: str, *, vouched: bool) -> bool:
        of_user, of_host = MAX_OF_USER, MAX_OF_HOST
        if vouched:
            of_user, of_host = VOUCHED_OF_USER, VOUCHED_OF_HOST
        return (
            len(self._asked) < MAX_QUESTIONS
            and self._of_user[aor] < of_user
            and self._of_host[host] < of_host
        )

    # ClientUser

    def on_response(self, handle: ClientHandle, response: Response, now: float) -> None:
        """Take any answer of another process for a yes: RFC 3261 §11.2."""
        if response.status < 200:
            return
        asked, flow = self._forget(handle), handle.flow
        is_far = flow is not None and flow.transport != LOCAL
        self._on_end(asked.aor, asked.contact, flow if is_far else None, now)

    def on_failure(self, handle: ClientHandle, status: int, now: float) -> None:
        """Note that no answer came: RFC 3261 §8.1.3.1."""
        asked = self._forget(handle)
        self._on_end(asked.aor, asked.contact, None, now)

    def _forget(self, handle: ClientHandle) -> _Probe:
        asked = self._asked.pop(handle)
        self._contacts.discard((asked.aor, asked.contact))
        _take_one(self._of_user, asked.aor)
        _take_one(self._of_host, asked.host)
        return asked

    def _question(self, contact: Uri) -> Request:
        """An OPTIONS, outside of any dialog: RFC 3261 §11.1."""
        me = Address(self._stack.contact())
        headers = [
            ("Max-Forwards", MAX_FORWARDS),
            ("From", me.with_tag(self._random(6).hex())),
            ("To", Address(contact.replace(params=(), headers=()))),
            ("Call-ID", self._random(12).hex()),
            ("CSeq", "1 OPTIONS"),
        ]
        uri = contact.replace(headers=()).without_params("method")  # RFC 3261 §19.1.1
        return Request("OPTIONS", uri, Headers(headers))


def _take_one(counts: Counter[T], key: T) -> None:
    counts[key] -= 1
    if not counts[key]:
        del counts[key]


def host_of_contact(contact: Uri) -> str:
    """The host that would be asked, its /64 if that is an address of IPv6: RFC 3263 §4.2."""
    host = (contact.param("maddr") or contact.host).lower()
    try:
        return rate_limit_key(host)
    except ValueError:
        return host
