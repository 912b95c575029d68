"""A client of the tree by plain HTTP, for a gateway in another process."""

import json
from base64 import b64encode
from http.client import HTTPConnection


class Control:
    """A client of the tree by plain HTTP."""

    def __init__(self, server, user=""):
        self.address = server.listeners["http"]
        proof = b64encode(user.encode()).decode()
        self.headers = {"Authorization": f"Basic {proof}"} if user else {}

    def ask(self, method, path, value=None, **headers):
        """The status, and the value or the text of the answer."""
        http = HTTPConnection(self.address, timeout=60)
        body = None if value is None else json.dumps(value)
        more = {} if value is None else {"Content-Type": "application/json"}
        http.request(method, f"/tree/{path}", body, {**self.headers, **more, **headers})
        answer = http.getresponse()
        said = answer.read()
        http.close()
        is_json = (answer.getheader("Content-Type") or "").startswith("application/json")
        return answer.status, json.loads(said) if is_json and said else said.decode()

    def calls(self):
        """The names of the calls that this client may see."""
        status, said = self.ask("GET", "call?view=children")
        assert status == 200
        return said
