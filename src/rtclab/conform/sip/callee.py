"""Both ends of a call through a proxy: the phones of one user there, and who calls that user.

Own design: each case has a user of its own, so that cases can run at the same time.  Phones
register by the socket at which they are called, and unregister at the end.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Final

from gevent import select

from p2psip.sip.build import response_to
from p2psip.sip.grammar import bracketed
from p2psip.sip.message import Request, Response
from p2psip.sip.uri import Uri
from rtclab.conform.case import NotApplicable, Unmet
from rtclab.conform.checks import at_most
from rtclab.conform.sip.peer import QUIET, SipPeer, branch, changed, said, token

_REFUSED: Final = (401, 403, 404, 405, 407, 501)
SHORT: Final = 60  # s of a registration, in case that nobody takes it back


class CalledPhone(SipPeer):
    """A phone that is called: it answers only when it is told to (RFC 3261 §8.2)."""

    def __init__(self, target: str) -> None:
        super().__init__(target)
        self.tag = token()
        self._ringing: dict[str | None, Request] = {}

    def close(self) -> None:
        """Decline what still rings, so that the proxy is left without work."""
        for invite in self._ringing.values():
            self.socket.send(bytes(response_to(invite, 480, to_tag=self.tag)))
        super().close()

    def awaits(self, method: str) -> Request:
        """Wait for a request of this method; what else arrives is passed over."""
        while True:
            message = self.receive()
            if isinstance(message, Request) and message.method == method:
                if method == "INVITE":
                    self._ringing[message.via.branch] = message
                return message

    def answer(
        self, request: Request, status: int, *more: tuple[str, str], body: bytes = b""
    ) -> Response:
        """Send a response, and return it; `more` are headers (RFC 3261 §8.2.6)."""
        response = response_to(request, status, to_tag=self.tag, body=body)
        headers = response.headers
        for name, value in (("Contact", self.contact), *more):
            headers = headers.append(name, value)
        response = response.replace(headers=headers)
        if status >= 200:
            self._ringing.pop(request.via.branch, None)
        self.send(response)
        return response

    def accept(self, invite: Request, *more: tuple[str, str]) -> Response:
        """Answer a call with 200 and a session description (RFC 3261 §13.3.1.4)."""
        return self.answer(invite, 200, ("Content-Type", "application/sdp"), *more, body=self.offer)

    def send_on(self, arrived: Request, uri: Uri) -> None:
        """Forward a request to the proxy that it came from, as proxies do (RFC 3261 §16.6)."""
        via = f"SIP/2.0/UDP {bracketed(self.host)}:{self.port};branch={branch()}"
        onward = changed(arrived, "Via", via, *map(str, arrived.vias))
        hops = (arrived.max_forwards or 1) - 1
        self.send(changed(onward, "Max-Forwards", str(hops)).replace(uri=uri))

    def hears_no(self, method: str, about: str) -> None:
        """Unmet if a request of this method arrives within a moment."""
        with at_most(QUIET):
            self.awaits(method)
            raise Unmet(about, f"{method} at the phone")

    def hears(self, method: str) -> bool:
        """Tell whether a request of this method arrives within a moment."""
        with at_most(QUIET):
            self.awaits(method)
            return True
        return False


class CalledLine:
    """A user of the proxy whom `caller` calls, and the user's phones."""

    def __init__(self, caller: SipPeer, uri: Uri, phones: list[CalledPhone]) -> None:
        self.caller, self.uri, self.phones = caller, uri, phones

    @property
    def phone(self) -> CalledPhone:
        """The first phone."""
        return self.phones[0]

    def introduce(self) -> None:
        """Prove to the proxy that the caller receives its packets, by the ACK of a failure.

        Own design: before that, a proxy may limit what it sends to an address, against forged
        sources.
        """
        nobody = new_user(self.caller)
        invite = self.invite(("To", f"<{nobody}>")).replace(uri=nobody)
        self.caller.acknowledge(invite, self.caller.ask(invite))

    def request(self, method: str, *more: tuple[str, str], body: bytes = b"") -> Request:
        """A request of the caller for this user (RFC 3261 §8.1.1)."""
        to = ("To", f"<{self.uri}>")
        return self.caller.request(method, to, *more, body=body).replace(uri=self.uri)

    def invite(self, *more: tuple[str, str]) -> Request:
        """An INVITE of the caller with an offer (RFC 3261 §13.2.1)."""
        kind = ("Content-Type", "application/sdp")
        return self.request("INVITE", kind, *more, body=self.caller.offer)

    def send(self, request: Request) -> Request:
        """Send a request of the caller, and return it as the first phone has it.

        Raises Unmet if the caller has a final response instead, NotApplicable if that wants a
        password.
        """
        self.caller.send(request)
        ends = [self.caller.socket, self.phone.socket]
        while True:
            readable, _, _ = select.select(ends, [], [])
            if self.phone.socket in readable:
                return self.phone.awaits(request.method)
            message = self.caller.receive()
            if isinstance(message, Response) and message.status >= 200:
                if request.method == "INVITE":
                    self.caller.acknowledge(request, message)
                if message.status in (401, 407):
                    raise NotApplicable(f"the proxy wants a password: {said(message)}")
                raise Unmet(f"{request.method} at the phone", said(message))

    def ring(self, *more: tuple[str, str]) -> tuple[Request, list[Request]]:
        """Call: returns the INVITE, and as each phone has it; all of them ring."""
        invite = self.invite(*more)
        seen = [self.send(invite), *(phone.awaits("INVITE") for phone in self.phones[1:])]
        for phone, arrived in zip(self.phones, seen, strict=True):
            phone.answer(arrived, 180)
        return invite, seen

    def final(self, request: Request) -> Response:
        """Wait for the caller's final response to a request, which is acknowledged if need be."""
        for response in self.caller.responses():
            if response.status >= 200 and response.cseq.method == request.method:
                break
        if request.method == "INVITE":
            self.caller.acknowledge(request, response)
        return response

    def talk(self, *more: tuple[str, str]) -> tuple[Request, Request, Response]:
        """Set up a call: returns the INVITE, the one that arrived, and the 200 at the caller."""
        invite, (arrived,) = self.ring()
        self.phone.accept(arrived, *more)
        response = self.final(invite)
        if response.status >= 300:
            raise Unmet("200", said(response))
        self.phone.awaits("ACK")
        return invite, arrived, response


def new_user(caller: SipPeer) -> Uri:
    """The address of a user of the proxy whom nobody else has."""
    return caller.target.replace(user=f"conform-{token()}").without_params("transport")


@contextmanager
def registered(caller: SipPeer, phones: int = 1) -> Iterator[CalledLine]:
    """A new user with so many phones; NotApplicable if nobody may register without a password."""
    with ExitStack() as stack:
        line = CalledLine(caller, new_user(caller), [])
        for _ in range(phones):
            phone = CalledPhone(str(caller.target))
            stack.callback(phone.close)
            binding = _Binding(phone, line.uri)
            stack.callback(binding.remove)
            line.phones.append(phone)
        yield line


class _Binding:
    """A registration that lasts until it is taken back (RFC 3261 §10.2)."""

    def __init__(self, phone: CalledPhone, uri: Uri) -> None:
        self._phone = phone
        own = f"<{uri.replace(port=None)}>"
        request = phone.request(
            "REGISTER",
            *(("To", own), ("From", f"{own};tag={token()}"), ("Expires", str(SHORT))),
        )
        self._request = request.replace(uri=uri.replace(user=None))
        response = phone.ask(self._request)
        if response.status in _REFUSED:
            raise NotApplicable(f"no registration for us: {said(response)}")
        if response.status != 200:
            raise Unmet("200 for the registration of a phone", said(response))

    def remove(self) -> None:
        """Unregister, without waiting for the answer."""
        again = changed(self._request, "CSeq", "2 REGISTER")
        via = str(again.via).replace("z9hG4bK", "z9hG4bK2")
        self._phone.send(changed(changed(again, "Via", via), "Expires", "0"))
