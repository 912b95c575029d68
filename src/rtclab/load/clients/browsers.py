"""A session of a client that acts as a browser, from its offer to its end.

Own design: viewers and publishers differ in their offers, and in their work once connected.
The clients of one process share a certificate and the rounds of reading.
"""

import ssl
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from typing import Protocol

from gevent import socket

from p2psip.errors import RemoteError as SipRemoteError
from p2psip.net.dtls import DtlsIdentity
from p2psip.sdp.jsep import BrowserAnswer
from p2psip.sdp.session import Attribute, SessionDescription
from rtclab.load.clients.browser_flow import BrowserFlow
from rtclab.load.clients.client import Work, note_failure, own_url
from rtclab.load.clients.datagrams import Batch, Rounds
from rtclab.load.clients.endpoint import Endpoint
from rtclab.load.figures.tally import Tally
from rtmplite.errors import RemoteError
from rtmplite.net.clock import now


class BrowserPart(Protocol):
    """The work of a client in its session."""

    def take(self, batch: Batch) -> None:
        """Take the datagrams that have come."""

    def act(self) -> None:
        """Do its part until the server ends the session."""


class BrowserCrowd:
    """The clients of one process, each of which makes this offer and then acts its part."""

    def __init__(
        self,
        url: str,
        tls: ssl.SSLContext | None,
        offer: bytes,
        part: Callable[[BrowserFlow, BrowserAnswer, Tally], BrowserPart],
    ) -> None:
        self._url, self._tls, self._part = url, tls, part
        self._plain = SessionDescription.parse(offer)
        # Names for the lines, and nothing about rates, which clients leave to the server.
        self._named = [
            replace(line, attributes=(Attribute("mid", str(number)),))
            for number, line in enumerate(self._plain.media)
        ]
        self._identity, self._rounds = DtlsIdentity(), Rounds()

    def client(self, number: int) -> Work:
        """One client; all have the same URL unless it has `{}`."""
        endpoint = Endpoint(own_url(self._url, number, each=False), self._tls)
        return lambda tally: self._meet(endpoint, tally)

    def close(self) -> None:
        """End the rounds."""
        self._rounds.close()

    def _meet(self, endpoint: Endpoint, tally: Tally) -> None:
        tally.begin(now())
        try:
            with closing(BrowserFlow(self._identity, self._rounds, own_address(endpoint))) as flow:
                session = endpoint.begin(bytes(flow.end().offer(self._plain, self._named)))
                try:
                    answer = BrowserAnswer.read(session.answer)
                    part = self._part(flow, answer, tally)
                    flow.connect(answer, part.take)
                    tally.connect(now())
                    part.act()
                    tally.fail(flow.reason, refused=flow.told)
                finally:
                    endpoint.end(session)
        except SipRemoteError as error:
            tally.fail(error.reason, refused=error.status == 488)
        except RemoteError as error:
            tally.fail(error.description, refused=True)
        except OSError as error:
            note_failure(tally, error)


def own_address(endpoint: Endpoint) -> str:
    """Our address on the way to a server."""
    family, kind, _, _, address = socket.getaddrinfo(*endpoint.host, 0, socket.SOCK_DGRAM)[0]
    with socket.socket(family, kind) as probe:
        probe.connect(address)
        return str(probe.getsockname()[0])
