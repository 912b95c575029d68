"""What a REGISTER says of the way to its phone: a flow of the instance, a path of proxies.

Implements RFC 5626 §6 and RFC 3327 §5.3.

An instance that asks for outbound has one binding for each reg-id, so that it can be reached by a
second flow when the first has failed.  A binding with a Path is reached through those proxies.

Own design: a Path is taken only where the REGISTER has proved a password, and only if its first
proxy is the host that the REGISTER came from.  The security section of RFC 3327
leaves it to signatures to keep a stranger's proxy out of it; nobody signs, and anybody could have
us send calls to any host.

A phone whose flow is a connection is told by Flow-Timer how often to send keep-alives.  Its silence
then tells of a connection that a router in between has forgotten, long before the system does.

Own design: there is none for WebSocket, since browsers give their pages no say in it: RFC 7118 §6.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from p2psip.errors import RemoteError
from p2psip.server.location import Binding, is_at_host
from p2psip.sip.address import Address
from p2psip.sip.grammar import number
from p2psip.sip.message import Request
from p2psip.sip.uri import Uri, equivalent
from p2psip.transaction.flow import LOCAL, Flow

TIMED: Final = ("TCP", "TLS")  # whose flows have a Flow-Timer
MAX_PATH: Final = 1024  # octets of all proxies of one Path
FLOW_TIMER: Final = 120  # s between keep-alives by a connection, what phones have by themselves
GRACE: Final = 30  # s beyond that before a silent flow is given up: RFC 5626 §5.4
MAX_REG_ID: Final = 2**31 - 1  # Source: RFC 5626 §10


@dataclass(frozen=True, slots=True)
class ReturnPath:
    """How the sender of a REGISTER wants to be reached: RFC 5626 §6, RFC 3327 §5.3."""

    has_flow: bool = False
    path: tuple[Address, ...] = ()

    def reg_id(self, contact: Address) -> int:
        """The reg-id that names a contact's flow, 0 if none does: RFC 5626 §6."""
        return _reg_id(contact) if self.has_flow else 0  # RFC 5626 §6 [reg-id-ignored]


def return_path(
    request: Request, flow: Flow, *, trusts: bool, is_ours: Callable[[Uri], bool]
) -> ReturnPath:
    """Read the flow and the path of a REGISTER; `trusts` tells that its sender is proved.

    RFC 5626 §6.  Raises RemoteError: 400 for several contacts of which one has a reg-id, 403 for a
    path that does not begin at the sender's host, 439 where the first hop has no outbound.
    """
    path = _path(request, flow, is_ours) if trusts and flow.transport != LOCAL else ()
    added = [each for each in request.contacts if not each.is_star and _is_added(each, request)]
    is_asked = any(map(_reg_id, request.contacts))
    if is_asked and len(added) > 1:
        raise RemoteError("One Contact With Reg-Id At A Time")  # RFC 5626 §6 [one-with-reg-id]
    # The first hop is the last in the list: each proxy puts itself on top.
    is_direct = len(request.vias) == 1  # RFC 5626 §6 [sees-first-hop]
    # RFC 5626 §6 [path-has-ob]
    has_flow = is_direct or bool(path and "ob" in dict(path[-1].uri.params))
    # RFC 5626 §11.6 [439-only-if-asked]
    if is_asked and not has_flow and supports(request, "outbound"):
        raise RemoteError("First Hop Lacks Outbound Support", 439)  # RFC 5626 §6 [439-without-ob]
    return ReturnPath(has_flow, path)


def supports(request: Request, tag: str) -> bool:
    """Whether the sender has an extension: RFC 3261 §19.2."""
    return tag in (each.lower() for each in request.headers.all("Supported"))


def answer_headers(request: Request, asked: ReturnPath, flow: Flow) -> list[tuple[str, object]]:
    """What a 200 says of outbound and path: RFC 5626 §6, RFC 3327 §5.3."""
    headers: list[tuple[str, object]] = []  # nor Require of GRUU: RFC 5627 §5.2 [no-gruu-in-200]
    # RFC 5626 §6 [require-in-200] [no-require-without]
    if supports(request, "outbound") and any(map(asked.reg_id, request.contacts)):
        headers.append(("Require", "outbound"))
        if flow.transport in TIMED and len(request.vias) == 1:
            headers.append(("Flow-Timer", FLOW_TIMER))  # RFC 5626 §6 [flow-timer]
    if supports(request, "path"):
        headers += [("Path", each) for each in asked.path]  # RFC 3327 §5.3 [path-in-200]
    return headers


def is_replaced(binding: Binding, contact: Address, reg_id: int, expires: int) -> bool:
    """Whether a contact takes a binding's place: RFC 5626 §6, RFC 3261 §19.1.4.

    A flow replaces the one of its name, whatever their Contacts are.  Own design: a device without
    outbound has one binding, the last; if it takes back an old contact, the others stay.
    """
    instance = contact.instance
    if reg_id and binding.reg_id:  # RFC 5626 §6 [with-and-without]
        # RFC 5626 §6 [named-by-flow]
        return (instance, reg_id) == (binding.instance, binding.reg_id)
    if equivalent(binding.contact.uri, contact.uri):  # RFC 3261 §16.5 [each-target-once]
        return True
    return bool(expires) and instance is not None and instance == binding.instance


def by_phone(bindings: Iterable[Binding]) -> list[list[Binding]]:
    """The bindings to call, each phone's together, its best and latest first: RFC 5626 §7."""
    groups, flows = list[list[Binding]](), dict[str, list[Binding]]()
    for binding in bindings:
        if not binding.reg_id or binding.instance is None:
            groups.append([binding])
        elif binding.instance in flows:
            flows[binding.instance].append(binding)  # RFC 5626 §7 [one-flow-at-a-time]
        else:
            groups.append(flows.setdefault(binding.instance, [binding]))
    return [sorted(reversed(group), key=lambda binding: -binding.q) for group in groups]


def _path(request: Request, flow: Flow, is_ours: Callable[[Uri], bool]) -> tuple[Address, ...]:
    path = tuple(Address.parse(each) for each in request.headers.all("Path"))
    if not path:
        return ()
    uris = [each.uri for each in path]
    if len(str(path)) > MAX_PATH or any(uri.scheme not in ("sip", "sips") for uri in uris):
        raise RemoteError("Bad Path")
    if is_ours(uris[0]) or not is_at_host(uris[0], flow):
        raise RemoteError("Path Begins At Another Host", 403)
    return path


def _reg_id(contact: Address) -> int:
    """The reg-id of a contact, 0 if it has none, or no instance to go with it."""
    if contact.is_star or contact.instance is None or (told := contact.param("reg-id")) is None:
        return 0
    try:
        return number(told, MAX_REG_ID)  # RFC 5626 §10 [reg-id-of-31-bits]
    except RemoteError:
        return 0


def _is_added(contact: Address, request: Request) -> bool:
    text = contact.param("expires")
    return text != "0" if text is not None else request.expires != 0
