"""A web service in another process tells a real gateway who clients of the tree are."""

from support.peers.hook_service import JsonService
from support.resources.control import Control

from siprtmp.edge.web.tree_client import TreeClient

MODE = "cruws-r----r--------"  # others may read

# It knows two tokens, and a password; to some tokens it gives no answer that decides.
SERVICE = """
import json, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

USERS = {
    "of-bob": {"user": "bob", "groups": ["friends"], "seconds": 3600},
    "of-ada": {"user": "ada", "roles": ["admin"]},
}

class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        print(json.dumps(asked), flush=True)
        token = asked.get("token")
        if token == "hang":
            time.sleep(60)
        is_eve = (asked.get("user"), asked.get("password")) == ("eve", "se:cret")
        known = {"user": "eve", "seconds": 60} if is_eve else USERS.get(token)
        body = json.dumps(known).encode() if token != "flood" else b"x" * (10 << 20)
        self.send_response(401 if known is None and token not in ("flood", "away") else 200)
        if token == "away":
            self.send_response(307)
            self.send_header("Location", "/who")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        try:
            self.wfile.write(body)
        except OSError:
            pass

    def log_message(self, *args):
        pass

server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print("ready", server.server_address[1], flush=True)
server.serve_forever()
"""


def bearer(token):
    return {"Authorization": f"Bearer {token}"}


def test_a_service_of_the_operator_knows_the_users(start, gateway):
    service = start(JsonService, SERVICE)
    running = gateway("--tree-auth", f"http://127.0.0.1:{service.port}/who?key=of-the-gateway")
    client, eve, of_bob = Control(running), Control(running, "eve:se:cret"), bearer("of-bob")
    made = client.ask("PUT", f"note?persistent=true&mode={MODE}", 1, **of_bob)
    assert made[0] == 201, made
    assert client.ask("GET", "note?view=access", **of_bob)[1]["owner"] == "bob"
    assert eve.ask("GET", "note") == (200, 1)
    assert eve.ask("PUT", "note", 2)[0] == 403
    assert client.ask("GET", "gateway", **bearer("of-ada"))[1]["role"] == "admin"
    assert client.ask("GET", "note", **bearer("other"))[0] == 401
    assert Control(running, "eve:guess").ask("GET", "note")[0] == 401
    with TreeClient(f"ws://{running.listeners['http']}/tree", token="of-bob") as tree:
        tree.put("/note", 2)
        for unclear in ("flood", "away", "hang"):
            assert client.ask("GET", "note", **bearer(unclear))[0] == 503, unclear
        assert tree.get("/note") == 2
    assert [each.get("token") for each in service.said].count("of-bob") == 1  # then it is kept
    assert "user-service-failed" in running.output
    for secret in ("of-bob", "se:cret", "guess", "of-the-gateway"):
        assert secret not in running.output
