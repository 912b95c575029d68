"""A user agent that answers every call at once: `python perf/sip_uas.py PORT`."""

import os
import sys

import gevent

import p2psip

SDP = "v=0 o=-_1_1_IN_IP4_127.0.0.1 s=- c=IN_IP4_127.0.0.1 t=0_0 m=audio_9_RTP/AVP_0"
ANSWER = "".join(f"{line.replace('_', ' ')}\r\n" for line in SDP.split()).encode()


class Silent(p2psip.CallHandler):
    """Hears of a call and does nothing."""

    def on_offer(self, call: p2psip.UserAgentCall, sdp: bytes | None, now: float) -> bytes:
        """The same answer again."""
        return ANSWER


class Core:
    """Gives new calls to the user agent, which answers them, and all else too."""

    def __init__(self, stack: p2psip.Stack, agents: p2psip.UserAgent) -> None:
        self._stack, self._agents = stack, agents

    def on_request(self, server: p2psip.ServerHandle, request: p2psip.Request, now: float) -> None:
        """Take a call, or what belongs to one."""
        if request.method == "INVITE" and request.to.tag is None:
            contact = self._stack.contact()
            self._agents.incoming(server, contact, Silent(), now).accept(ANSWER, now)
        else:
            self._agents.on_request(server, request, now)

    def on_ack(self, request: p2psip.Request, flow: p2psip.Flow, now: float) -> None:
        """Take the ACK of a 2xx."""
        self._agents.on_ack(request, flow, now)


ports = p2psip.SipPorts("127.0.0.1", int(sys.argv[1]))
stack = p2psip.Stack(random=os.urandom, listeners=ports.listeners)
agents = p2psip.UserAgent(stack, random=os.urandom)
stack.core = Core(stack, agents)
driver = p2psip.SipDriver(stack, ports)
driver.machines.append(agents)
print(f"ready 127.0.0.1:{ports.address[1]}", flush=True)
gevent.wait()
