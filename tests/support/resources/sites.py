"""A listener with a tree, for the tests of its WebSockets and its clients."""

import os
from base64 import b64encode
from itertools import count

from gevent import socket

from rtmplite.auth.credentials import Users, user_lines
from rtmplite.live.streams import Registry
from rtmplite.net.http.flv_http import FlvHttp
from siprtmp.calls.access.admission import Admission
from siprtmp.edge.branches.url_posters import UrlPosters
from siprtmp.edge.status import StatusServer
from siprtmp.edge.web.status_access import StatusAccess
from siprtmp.edge.web.tree_access import TreeAccess
from siprtmp.edge.web.tree_side import TreeSide
from siprtmp.operation.logs import Log
from siprtmp.web.branches.roles import Roles
from siprtmp.web.branches.subscription_branch import SubscriptionBranch
from siprtmp.web.resources.told_hosts import ToldHosts
from siprtmp.web.resources.tree import Tree

USERS = Users.parse("\n".join(user_lines("ann", "example.org", "se:cret")))
BASIC = "Basic " + b64encode(b"ann:se:cret").decode()


class Site:
    """A listener with a tree; `told` are the hosts that notifications may be posted to."""

    def __init__(self, tokens=None, *, is_open=True, told=(), admission=None, service=None):
        admission = admission or Admission(False, None, USERS)
        status = StatusAccess(["gw.example"], is_open=is_open, admission=admission)
        origins = ["https://friends.example"]
        access = TreeAccess(
            status, admission, origins, tokens, allows_anonymous=False, service=service
        )
        numbers = count(1)
        self.posters = UrlPosters(ToldHosts(told), os.urandom, Log("t")) if told else None
        urls = None if self.posters is None else self.posters.urls
        self.tree = Tree(lambda size: next(numbers).to_bytes(size), urls=urls)
        if urls is not None:
            roles = Roles((), is_local=False)
            self.tree.mount("subscription", SubscriptionBranch(roles, urls))
        self.side = TreeSide(self.tree, access, lambda size: next(numbers).to_bytes(size), Log("t"))
        live = FlvHttp(Registry(), neighbours=(self.side,))
        self.server = StatusServer(("127.0.0.1", 0), dict, live, status, Log("t"))

    def stop(self):
        if self.posters is not None:
            self.posters.stop()
        self.side.stop()
        self.server.stop()

    def http(self, method, path, body=b"", **headers):
        """The status, the headers and the body of an answer."""
        with socket.create_connection(self.server.address, 20) as connected:
            named = {"Host": "localhost", "Content-Length": len(body)} | {
                name.replace("_", "-"): text for name, text in headers.items()
            }
            lines = [f"{method} {path} HTTP/1.1", *(f"{k}: {v}" for k, v in named.items())]
            connected.sendall("\r\n".join([*lines, "", ""]).encode() + body)
            answer = b""
            while piece := connected.recv(65536):
                answer += piece
        head, _, rest = answer.partition(b"\r\n\r\n")
        first, *fields = head.decode().split("\r\n")
        return int(first.split()[1]), dict(each.split(": ", 1) for each in fields), rest
