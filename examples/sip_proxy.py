"""A registrar and proxy with a hook that decides which calls may go where.

python sip_proxy.py 127.0.0.1 5070    then register phones at 127.0.0.1:5070 and call

Anybody may register as anybody here: before it leaves loopback, give the server its `users`.
"""

import sys

import p2psip


class Hook(p2psip.Lenient):
    """Asked about each request that begins something, before it goes anywhere."""

    def judge(self, server: p2psip.ServerHandle, request: p2psip.Request, now: float) -> None:
        """Let it pass, or raise the refusal; `server.flow.remote` is where it came from."""
        print(f"{request.method} from {request.from_.uri} to {request.uri}", flush=True)
        if (request.uri.user or "").startswith("900"):
            raise p2psip.RemoteError("Premium Numbers Are Barred", 403)


host, port = sys.argv[1:]
with p2psip.SipServer([(host, int(port))], judge=Hook(), user_agent="example") as server:
    print(f"ready: {host}:{server.listeners[0].port}", flush=True)
    server.serve_forever()
