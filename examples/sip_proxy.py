"""A registrar and proxy with a hook that decides which calls may go where.

python sip_proxy.py 127.0.0.1 5070    then register phones at 127.0.0.1:5070 and call

Anybody may register as anybody here: before it leaves loopback, give the registrar and the element
a DigestServer as their `verifier`.
"""

import os
import sys

import gevent

import p2psip


class Hook(p2psip.Lenient):
    """Asked about each request that begins something, before it goes anywhere."""

    def judge(self, server: p2psip.ServerHandle, request: p2psip.Request, now: float) -> None:
        """Let it pass, or raise the refusal; `server.flow.remote` is where it came from."""
        print(f"{request.method} from {request.from_.uri} to {request.uri}", flush=True)
        if (request.uri.user or "").startswith("900"):
            raise p2psip.RemoteError("Premium Numbers Are Barred", 403)


host, port = sys.argv[1:]
ports = p2psip.SipPorts(host, int(port))
stack = p2psip.Stack(random=os.urandom, listeners=ports.listeners, user_agent="example")
domains = p2psip.Domains([host], stack.is_own_address, distinct=False)
agents, proxy = p2psip.UserAgent(stack, random=os.urandom), p2psip.Proxy(stack)
registrar = p2psip.Registrar(domains, None, stack, os.urandom)
p2psip.SipElement(stack, agents, registrar, proxy, domains, judge=Hook())
driver = p2psip.SipDriver(stack, ports, locate=p2psip.Locations().flows)
driver.machines += [agents, proxy]
print(f"ready: {host}:{ports.address[1]}", flush=True)
gevent.wait()
