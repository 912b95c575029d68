"""The other side of a SIP target: it sends whatever a case wants, and reads the replies.

Own design: a peer has a UDP socket of its own, so that whatever arrives there answers its case.  It
has no transactions, for cases are about what happens without them; it does not send again.
"""

import os
from collections.abc import Iterator
from contextlib import closing, suppress
from typing import Final

from gevent import socket

from p2psip.errors import RemoteError
from p2psip.sip.address import Address
from p2psip.sip.build import ack_for, cancel_for
from p2psip.sip.grammar import bracketed
from p2psip.sip.headers import Headers
from p2psip.sip.message import Message, Request, Response, parse_message
from p2psip.sip.uri import Uri
from rtclab.conform.case import NotApplicable, Unmet, Unreachable
from rtclab.conform.checks import at_most

QUIET: Final = 0.3  # s without a word from the target: it has nothing to say
REACH: Final = 1  # s for a reply to a first request
_LARGEST: Final = 65535
_FAREWELL: Final = 0.5  # s for the answer to a BYE

OFFER: Final = (
    "v=0\r\no=- 1 1 IN IP4 {host}\r\ns=-\r\nc=IN IP4 {host}\r\nt=0 0\r\n"
    "m=audio {port} RTP/AVP 8 0\r\na=rtpmap:8 PCMA/8000\r\na=rtpmap:0 PCMU/8000\r\n"
)


def connect(target: str) -> closing["SipPeer"]:
    """Open a peer of a target, `sip:USER@HOST:PORT`; raises Unreachable or ValueError."""
    return closing(SipPeer(target))


def reach(target: str) -> None:
    """Raise Unreachable unless there is a reply of whatever kind to one of some requests.

    A registrar answers a REGISTER itself, which asks for the bindings and changes nothing; most
    phones refuse it.  A proxy may have nothing but a 100 to say to an INVITE, when it waits for a
    phone that is gone.
    """
    with closing(SipPeer(target)) as peer:
        query, options = changed(peer.register(), "Contact"), peer.request("OPTIONS")
        for request in (query, options, options, peer.invite()):
            with at_most(REACH), suppress(Unmet):
                peer.send(request)
                first = next(peer.responses())
                if request.method == "INVITE":
                    peer.end(request, first)
                return
    raise Unreachable("no reply to REGISTER, OPTIONS or INVITE")


def alive(target: str) -> None:
    """Raise Unreachable unless there is still a reply: most answer an OPTIONS at once.

    Own design: a reply that makes no sense is a sign of life as well.
    """
    with closing(SipPeer(target)) as peer, at_most(REACH), suppress(Unmet, OSError):
        peer.send(peer.request("OPTIONS"))
        peer.socket.recv(_LARGEST)
        return
    reach(target)


class SipPeer:
    """A user agent at `host`:`port` that talks to one target by UDP."""

    def __init__(self, target: str) -> None:
        try:
            self.target = Uri.parse(target)
        except RemoteError as error:
            raise ValueError(f"{error.reason}: sip:USER@HOST:PORT is expected") from None
        try:
            where = socket.getaddrinfo(
                self.target.host.strip("[]"), self.target.port or 5060, type=socket.SOCK_DGRAM
            )[0]
            self.place = (str(where[4][0]), int(where[4][1]))
            self.socket = socket.socket(where[0], socket.SOCK_DGRAM)
            self.socket.connect(self.place)
            self.media = socket.socket(where[0], socket.SOCK_DGRAM)
            self.host, self.port = self.socket.getsockname()[:2]
            self.media.bind((self.host, 0))
        except OSError as error:
            raise Unreachable(error.strerror or str(error)) from None
        self._invite: Request | None = None
        self._response: Response | None = None

    def close(self) -> None:
        """Hang up what a case has left, and close."""
        if self._invite is not None:
            with at_most(_FAREWELL), suppress(Unmet, OSError):
                self.hang_up()
        self.socket.close()
        self.media.close()

    @property
    def offer(self) -> bytes:
        """A session description with PCMU and PCMA at the media socket (RFC 4566)."""
        port = self.media.getsockname()[1]
        return OFFER.format(host=self.host, port=port).encode()

    @property
    def contact(self) -> str:
        """The Contact of this peer (RFC 3261 §8.1.1.8)."""
        return f"<sip:conform@{bracketed(self.host)}:{self.port}>"

    def request(self, method: str, *more: tuple[str, str], body: bytes = b"") -> Request:
        """A request outside of a dialog, fit to be sent (RFC 3261 §8.1.1).

        `more` are headers; one that stands there already is replaced.
        """
        via = f"SIP/2.0/UDP {bracketed(self.host)}:{self.port};rport;branch={branch()}"
        sender = f"<sip:conform@{bracketed(self.host)}>;tag={token()}"
        headers = Headers(
            [
                ("Via", via),
                ("Max-Forwards", "70"),
                ("From", sender),
                ("To", f"<{self.target}>"),
                ("Call-ID", token()),
                ("CSeq", f"1 {method}"),
                ("Contact", self.contact),
            ]
        )
        for name, value in more:
            headers = headers.with_(name, value)
        return Request(method, self.target.without_params("transport"), headers, body)

    def request_of(self, first: Request, cseq: int, *more: tuple[str, str]) -> Request:
        """A later request of the same method to the same place (RFC 3261 §8.1.1.5)."""
        request = self.request(first.method, *more, ("CSeq", f"{cseq} {first.method}"))
        return request.replace(uri=first.uri)

    def register(self, *more: tuple[str, str]) -> Request:
        """A REGISTER of the target's user for this peer, for an hour (RFC 3261 §10.2)."""
        own = f"<{self.target.replace(port=None).without_params('transport')}>"
        sender = f"{own};tag={token()}"
        request = self.request(
            "REGISTER", ("To", own), ("From", sender), ("Expires", "3600"), *more
        )
        return request.replace(uri=request.uri.replace(user=None))

    def invite(self, *more: tuple[str, str]) -> Request:
        """An INVITE with an offer (RFC 3261 §13.2.1)."""
        return self.request("INVITE", ("Content-Type", "application/sdp"), *more, body=self.offer)

    def send(self, message: Message | bytes) -> None:
        """Send octets, or a message; Unmet if the target's host refuses them."""
        try:
            self.socket.send(bytes(message))
        except OSError as error:
            raise Unmet("a listener", error.strerror or str(error)) from None

    def receive(self) -> Message:
        """Wait for a message; raises Unmet if it makes no sense."""
        try:
            data = self.socket.recv(_LARGEST)
        except OSError as error:
            raise Unmet("a reply", error.strerror or str(error)) from None
        try:
            return parse_message(data)
        except RemoteError as error:
            raise Unmet("a SIP message", f"{error}: {data[:60]!r}") from None

    def responses(self) -> Iterator[Response]:
        """Wait for one response after another; requests of the target are left out."""
        while True:
            message = self.receive()
            if isinstance(message, Response):
                yield message

    def ask(self, request: Request | bytes) -> Response:
        """Send a request and wait for its final response, which is acknowledged if need be."""
        self.send(request)
        for response in self.responses():
            if response.status >= 200:
                break
        if isinstance(request, Request) and request.method == "INVITE":
            self.settle(request, response)
        return response

    def call(self, *more: tuple[str, str]) -> tuple[Request, Response]:
        """Set up a call; it ends with the case.  NotApplicable if the target takes none."""
        invite = self.invite(*more)
        response = self.ask(invite)
        if response.status >= 300:
            raise NotApplicable(f"the target takes no call: {said(response)}")
        return invite, response

    def within(self, invite: Request, response: Response, method: str, cseq: int) -> Request:
        """A request within the dialog of a 2xx (RFC 3261 §12.2.1.1)."""
        uri = response.contacts[0].uri if response.contacts else invite.uri
        routes = [("Route", str(route)) for route in reversed(response.record_routes)]
        request = self.request(
            method,
            ("From", invite.headers["From"]),
            ("To", response.headers["To"]),
            ("Call-ID", invite.call_id),
            ("CSeq", f"{cseq} {method}"),
        )
        headers = Headers([*request.headers, *routes])
        return request.replace(uri=uri, headers=headers)

    def unfit(self) -> Request:
        """An INVITE that is refused by its transaction: it offers what nobody has (RFC 3264 §6)."""
        invite = self.invite()
        session = invite.body.partition(b"m=audio")[0]
        return invite.replace(body=session + b"m=x-none 9 RTP/AVP 0\r\n")

    def introduce(self) -> None:
        """Show the target that this address hears it, by an ACK with its tag.

        Own design: against forged sources a target may send little to an address before.
        """
        self.ask(self.unfit())

    def hang_up(self) -> None:
        """Send the BYE of the call, and wait for its answer."""
        if self._invite is not None and self._response is not None:
            bye = self.within(self._invite, self._response, "BYE", 9000)
            self._invite = None
            self.ask(bye)

    def end(self, invite: Request, response: Response) -> None:
        """End a call that has this response by now (RFC 3261 §9.1, §15)."""
        if response.status < 200:
            self.send(cancel_for(invite))
        else:
            self.settle(invite, response)

    def forget(self) -> None:
        """The call has ended already."""
        self._invite = None

    def expect_quiet(self, about: str) -> None:
        """Unmet if anything but a request arrives within a moment."""
        with at_most(QUIET):
            for response in self.responses():
                raise Unmet(about, said(response))

    def settle(self, invite: Request, response: Response) -> None:
        """Acknowledge a final response to an INVITE; a call that it began ends with the case."""
        self.acknowledge(invite, response)
        if response.status < 300:
            self._invite, self._response = invite, response

    def acknowledge(self, invite: Request, response: Response) -> None:
        """Send the ACK that a final response needs (RFC 3261 §17.1.1.3, §13.2.2.4)."""
        if response.status >= 300:
            self.send(ack_for(invite, response))
        else:
            self.send(self.within(invite, response, "ACK", invite.cseq.number))


def branch() -> str:
    """A branch with the magic cookie (RFC 3261 §8.1.1.7)."""
    return f"z9hG4bK{token()}"


def token() -> str:
    """A word that nobody else has: a tag or a Call-ID (RFC 3261 §19.3)."""
    return os.urandom(8).hex()


def said(response: Response) -> str:
    """The status line's end, for a report."""
    return f"{response.status} {response.reason}"


def expect(response: Response, *statuses: int) -> None:
    """Unmet unless the status is one of these; below 10 any of that class will do."""
    if response.status not in statuses and response.status // 100 not in statuses:
        wanted = " or ".join(f"{each}xx" if each < 10 else str(each) for each in statuses)
        raise Unmet(wanted, said(response))


def expect_header(response: Response, name: str) -> str:
    """The value of a header that must be there."""
    if name not in response.headers:
        raise Unmet(f"a header {name}", f"{said(response)} without it")
    return response.headers[name]


def changed(request: Request, name: str, *values: str) -> Request:
    """The request with other values of a header; without any, the header is left out."""
    return request.replace(headers=request.headers.with_(name, *values))


def address(text: str) -> Address:
    """Read a name-addr of the target; raises Unmet if it is none (RFC 3261 §20.10)."""
    try:
        return Address.parse(text)
    except RemoteError as error:
        raise Unmet("an address", f"{error}: {text}") from None
