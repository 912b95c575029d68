"""A user agent that answers every call at once: `python perf/sip_uas.py PORT`."""

import os
import sys

import gevent

from p2psip.net.driver import SipDriver, SipPorts
from p2psip.sip.message import Request
from p2psip.stack.servers import ServerHandle
from p2psip.stack.stack import Recipient, Stack
from p2psip.transaction.flow import Flow
from p2psip.ua.call import CallHandler, UserAgentCall
from p2psip.ua.ua import UserAgent

SDP = "v=0 o=-_1_1_IN_IP4_127.0.0.1 s=- c=IN_IP4_127.0.0.1 t=0_0 m=audio_9_RTP/AVP_0"
ANSWER = "".join(f"{line.replace('_', ' ')}\r\n" for line in SDP.split()).encode()


class Silent(CallHandler):
    """Hears of a call and does nothing."""

    def on_offer(self, call: UserAgentCall, sdp: bytes | None, now: float) -> bytes:
        """The same answer again."""
        return ANSWER


class Core:
    """Gives new calls to the user agent, which answers them, and all else too."""

    def __init__(self, stack: Stack, ua: UserAgent) -> None:
        self._stack, self._ua = stack, ua

    def recipient(self, request: Request, flow: Flow, now: float) -> Recipient:
        """Give a call to us, and what belongs to one to the user agent."""
        is_new = request.method == "INVITE" and request.to.tag is None
        other = self._answer if is_new else self._ua.on_stray
        return self._ua.recipient(request) or Recipient(other)

    def _answer(self, server: ServerHandle, request: Request, now: float) -> None:
        contact = self._stack.contact()
        self._ua.incoming(server, contact, Silent(), now).accept(ANSWER, now)

    def on_ack(self, request: Request, flow: Flow, now: float) -> None:
        """Take the ACK of a 2xx."""
        self._ua.on_ack(request, flow, now)


ports = SipPorts("127.0.0.1", int(sys.argv[1]))
stack = Stack(random=os.urandom, listeners=ports.listeners)
ua = UserAgent(stack, random=os.urandom)
stack.core = Core(stack, ua)
driver = SipDriver(stack, ports)
driver.machines.append(ua)
print(f"ready 127.0.0.1:{ports.address[1]}", flush=True)
gevent.wait()
