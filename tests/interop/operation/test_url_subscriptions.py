"""A URL of a user at a real gateway: a service of its own hears of a call with a real phone."""

import asyncio

import pytest
from support.gateway.gateway import Gateway
from support.peers.baresip import Baresip
from support.peers.hook_service import JsonService
from support.resources.control import Control

from p2psip.errors import RemoteError
from rtmplite.auth.credentials import user_lines
from siprtmp.edge.web.tree_asyncio import AsyncTreeClient

SECRET = "the key of this service"
# A service refuses its first post, and prints what it has taken, with what it thinks of the code.
SERVICE = """
import hmac, json, sys
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, HTTPServer

class Handler(BaseHTTPRequestHandler):
    refused = None

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        said = dict(part.split("=", 1) for part in self.headers["X-Siprtmp-Signature"].split(","))
        signed = said["t"].encode() + b"." + body
        code = hmac.new(sys.argv[1].encode(), signed, sha256).hexdigest()
        is_first = Handler.refused is None
        if is_first:
            Handler.refused = body
        else:
            row = {"genuine": hmac.compare_digest(code, said["v1"]), **json.loads(body)}
            print(json.dumps({"again": body == Handler.refused, **row}), flush=True)
        self.send_response(503 if is_first else 204)
        self.end_headers()

    def log_message(self, *args):
        pass

server = HTTPServer(("127.0.0.1", 0), Handler)
print("ready", server.server_address[1], flush=True)
server.serve_forever()
"""


class CallService(JsonService):
    """One that prints its posts."""

    def __init__(self, folder):
        super().__init__(folder, SERVICE, SECRET)

    def events(self):
        """What has happened, in the order of the posts."""
        words = ("create", "delete")
        return [
            post["data"]["event"]
            if "data" in post
            else next(each for each in words if each in post)
            for post in self.said
            if "data" in post or "update" not in post
        ]


@pytest.mark.needs("baresip")
def test_a_service_hears_of_a_call_by_a_users_url_also_after_a_restart(start, tmp_path):
    users = tmp_path / "users"
    users.write_text("\n".join(user_lines("ann", "127.0.0.1", "secret")) + "\n")
    users.chmod(0o600)
    service = start(CallService)
    told = ("--tree-webhook", f"127.0.0.1:{service.port}")
    options = ("--users", str(users), "--state", str(tmp_path / "state"), *told)
    url = f"http://127.0.0.1:{service.port}/calls"
    with Gateway(tmp_path / "first", *options) as running:
        ann = Control(running, "ann:secret")
        order = {"url": url, "secret": SECRET}
        assert Control(running).ask("SUBSCRIBE", "call?persistent=true", order)[0] == 401
        for other in ("http://127.0.0.1:1/", "http://localhost:22/", "http://169.254.169.254/"):
            refused = ann.ask("SUBSCRIBE", "call?persistent=true", {"url": other})
            assert refused[0] == 403, refused
        status, made = ann.ask("SUBSCRIBE", "call?persistent=true", order)
        assert status == 201 and "secret" not in made
        with Baresip(tmp_path / "phone", "bob", answer="manual") as phone:
            status, said = ann.ask("POST", "call", {"from": "ann", "to": phone.uri})
            assert status == 201, said
            phone.wait_event("CALL_INCOMING")
            phone.accept()
            service.wait_until(lambda: "answered" in service.events(), what="the answer")
            [name] = ann.calls()
            assert ann.ask("DELETE", f"call/{name}")[0] in (200, 204)
            service.wait_until(lambda: "delete" in service.events(), what="the end")
        events = service.events()
        assert [each for each in events if each in ("create", "ringing", "answered", "delete")] == [
            "create",
            "ringing",
            "answered",
            "delete",
        ]
        posts = service.said
        assert all(post["genuine"] and post["subscription"] == made["id"] for post in posts)
        numbers = [post["seq"] for post in posts]
        assert numbers == sorted(set(numbers))
        assert [post["again"] for post in posts].index(True) == 0
        assert posts[-1]["entity"]["reason"] == "user"
    before = len(posts)
    with Gateway(tmp_path / "second", *options) as running:
        ann = Control(running, "ann:secret")
        assert ann.ask("GET", "subscription?view=children") == (200, [made["id"]])
        assert Control(running).ask("GET", "subscription?view=children")[0] in (200, 401)
        order = {"from": "ann", "to": "sip:bob@127.0.0.1:9"}
        assert ann.ask("POST", "call", order)[0] == 201
        service.wait_until(lambda: len(service.said) > before, what="a post after the restart")
        post = service.said[before]
        assert post["genuine"] and post["epoch"] != posts[0]["epoch"] and "create" in post
        asyncio.run(end(f"ws://ann:secret@{running.listeners['http']}/tree", url))
        assert ann.ask("GET", "subscription?view=children") == (200, [])


async def end(at, url):
    """End it, and have another one for a moment, by the client for asyncio."""
    async with AsyncTreeClient(at) as tree:
        await tree.unsubscribe_url("/call", url)
        made = await tree.subscribe_url("/call", url, persistent=False)
        assert len(made["secret"]) == 64
        await tree.unsubscribe_url("/call", url)
        with pytest.raises(RemoteError) as caught:
            await tree.unsubscribe_url("/call", url)
        assert caught.value.status == 404
