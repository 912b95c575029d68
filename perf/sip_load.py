"""The least of a SIP phone: one socket that answers every INVITE with 200 and one RTP address."""

import re
import socket

from load import Phone

TIMEOUT = 5.0  # seconds, for the next request
_MEDIA = re.compile(r"^m=audio (\d+) ", re.MULTILINE)
_ADDRESS = re.compile(r"^c=IN IP4 (\S+)", re.MULTILINE)
_ENCODING = {96: "speex/16000", 98: "speex/8000"}


class SipPeer:
    """The user agents of all phones, which share a port."""

    def __init__(self) -> None:
        """Listen on a free loopback port."""
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self._socket.settimeout(TIMEOUT)
        self.port: int = self._socket.getsockname()[1]

    def answer(self, phone: Phone) -> None:
        """Take the next INVITE for `phone`, and let it send where the offer says."""
        request, source = self._next("INVITE")
        head, _, offer = request.partition("\r\n\r\n")
        address, port = _ADDRESS.search(offer), _MEDIA.search(offer)
        if address is None or port is None:
            raise RuntimeError(f"an INVITE without a place for sound:\n{request}")
        phone.aim((address[1], int(port[1])))
        kind, at = phone.payload_type, phone.socket.getsockname()[1]
        body = (
            "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\n"
            f"m=audio {at} RTP/AVP {kind}\r\na=rtpmap:{kind} {_ENCODING[kind]}\r\n"
        )
        self._socket.sendto(_ok(head, self.port, body).encode(), source)
        self._next("ACK")

    def end(self) -> None:
        """Take the next BYE, and agree."""
        request, source = self._next("BYE")
        head = request.partition("\r\n\r\n")[0]
        self._socket.sendto(_ok(head, self.port, "").encode(), source)

    def _next(self, method: str) -> tuple[str, tuple[str, int]]:
        """The next request of that method; others, and retransmissions, are let go by."""
        while True:
            data, source = self._socket.recvfrom(65536)
            if data.startswith(method.encode()):
                return data.decode(), source


def _ok(head: str, port: int, body: str) -> str:
    """A 200 to the request whose header fields are in `head`."""
    names = ("via:", "from:", "to:", "call-id:", "cseq:", "record-route:")
    same = [line for line in head.split("\r\n")[1:] if line.lower().startswith(names)]
    same = [f"{line};tag=phone" if line.lower().startswith("to:") else line for line in same]
    own = [
        f"Contact: <sip:phone@127.0.0.1:{port}>",
        "Content-Type: application/sdp",
        f"Content-Length: {len(body)}",
    ]
    return "\r\n".join(["SIP/2.0 200 OK", *same, *own, "", body])
