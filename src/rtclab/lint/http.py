"""HTTP connections of a capture: SIP in WebSockets, and RTMP in tunnels.

Implements RFC 7118 §4 and §5 as a rule book; frames and handshakes are judged by `rtclab.unwrap`.
"""

from collections import deque
from collections.abc import Callable
from typing import Final

from rtclab.explain.sip import SIP_START
from rtclab.lint.findings.finding import Findings
from rtclab.lint.findings.packet import WEBSOCKET, SeenPacket
from rtclab.lint.rtmpt import RtmpTunnels, is_tunnelled
from rtclab.lint.sip_message import announced_length
from rtclab.unwrap import websocket
from rtclab.unwrap.breach import Breach
from rtclab.unwrap.http import STARTS, HttpMessage, HttpWay
from rtclab.unwrap.websocket import CLOSE, WebSocketMessage

SUBPROTOCOL: Final = "sip"  # Source: RFC 7118 §4.1
_PROVISIONAL: Final = "1"

Hear = Callable[[SeenPacket, bytes], None]
Note = Callable[[str], None]


def is_http(data: bytes) -> bool:
    """Whether a connection begins so: RFC 6455 §4.1."""
    return data.startswith(STARTS)


class HttpConnection:
    """One connection from its first request on; `hear` takes each SIP message: RFC 7118 §5."""

    def __init__(self, findings: Findings, tunnels: RtmpTunnels, hear: Hear, note: Note) -> None:
        self._findings, self._tunnels, self._hear, self._note = findings, tunnels, hear, note
        self._ways: dict[str, HttpWay] = {}
        self._asked: deque[HttpMessage] = deque()
        self._waiting: list[tuple[SeenPacket, WebSocketMessage | Breach]] = []
        self._agreed: str | None = None  # the subprotocol, once there is a WebSocket
        self._is_read = True

    def feed(self, packet: SeenPacket, data: bytes) -> None:
        """Take what one end has sent, in order: RFC 6455 §5.2, Field §"HTTP tunnel"."""
        way = self._ways.setdefault(packet.source, HttpWay())
        for each in way.feed(data) if self._is_read else ():
            if not isinstance(each, HttpMessage):
                self._framed(packet, each)
            elif each.is_request:
                self._request(packet, each)
            elif not each.words[1].startswith(_PROVISIONAL) or each.is_upgrade:
                self._answer(packet, each)
        if way.is_lost or (way.frames is not None and way.frames.is_lost):
            self._unread("an HTTP connection holds what cannot be read")

    def _unread(self, why: str) -> None:
        if self._is_read:
            self._note(why)
        self._is_read = False

    def _request(self, packet: SeenPacket, request: HttpMessage) -> None:
        self._asked.append(request)
        if request.is_upgrade:
            self._report(packet, *websocket.request_breaches(request.headers))
        elif is_tunnelled(request):
            self._tunnels.request(packet, request)
        else:
            self._unread("an HTTP connection carries nothing that is judged")

    def _answer(self, packet: SeenPacket, answer: HttpMessage) -> None:
        if not self._asked:
            self._unread("the beginning of an HTTP connection is not in the capture")
            return
        request = self._asked.popleft()
        if is_tunnelled(request):
            self._tunnels.answer(packet, request, answer)
        elif answer.is_upgrade:
            self._upgraded(packet, request, answer)
        elif request.is_upgrade:  # refused: what follows is HTTP
            self._ways[packet.target].frames = None

    def _upgraded(self, packet: SeenPacket, request: HttpMessage, answer: HttpMessage) -> None:
        """RFC 6455 §4.2.2: what frames are for is in the answer."""
        self._report(packet, *websocket.answer_breaches(request.headers, answer.headers))
        if "sec-websocket-extensions" in answer.headers:
            self._unread("a WebSocket with an extension is not read")
        self._agreed = answer.headers.get("sec-websocket-protocol", "")
        waiting, self._waiting = self._waiting, []
        for early, each in waiting:
            self._framed(early, each)

    def _framed(self, packet: SeenPacket, each: WebSocketMessage | Breach) -> None:
        if not self._is_read:
            return
        if self._agreed is None:  # the answer may come later in a capture
            self._waiting.append((packet, each))
        elif isinstance(each, Breach):
            self._report(packet, each)
        elif each.opcode < CLOSE:
            self._message(packet, each.data)

    def _message(self, packet: SeenPacket, data: bytes) -> None:
        """A message is SIP, one and whole: RFC 7118 §4.1, §5."""
        if not data.strip(b"\r\n"):
            return  # a keep-alive: §6
        is_sip = SIP_START.match(data) is not None
        if self._agreed != SUBPROTOCOL:
            if not is_sip:
                self._unread("a WebSocket speaks no protocol that is judged")
                return
            what = f"SIP, and the subprotocol is {self._agreed or 'none'}"
            self._findings.add("ws-protocol", packet, what)
        if not is_sip:
            what = f"{len(data)} octets that are no SIP"
            self._findings.add("ws-message", packet, what, citation="RFC 7118 §4.1", once="no SIP")
            return
        head, _, body = data.lstrip(b"\r\n").partition(b"\r\n\r\n")
        length = announced_length(head)
        if length is not None and length < len(body):
            what = f"{len(body) - length} octets behind a SIP message"
            self._findings.add("ws-message", packet, what)
        self._hear(packet._replace(carrier=WEBSOCKET), data)

    def _report(self, packet: SeenPacket, *breaches: Breach) -> None:
        for each in breaches:
            self._findings.add(each.rule, packet, each.what, citation=each.citation)
