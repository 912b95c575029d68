"""Events at a real web service, which refuses, redirects, or is not there."""

import json
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from support.gateway.richclient import wait_for

from siprtmp.edge.branches import webhook_sender
from siprtmp.edge.branches.webhook_sender import WebhookSender, post_to
from siprtmp.operation.logs import Log
from siprtmp.settings.webhooks import WebhookSettings
from siprtmp.web.branches import webhooks
from siprtmp.web.branches.webhooks import Delivery


class Service:
    """Answers with `statuses` in turn, and then with 204; `heard` is the path, headers and body."""

    def __init__(self):
        self.heard, self.statuses = [], []
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                service.heard.append((self.path, dict(self.headers), body))
                self.send_response(service.statuses.pop(0) if service.statuses else 204)
                self.send_header("Location", "/elsewhere")
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *args):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/calls?key=k"
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()


@pytest.fixture
def service():
    service = Service()
    yield service
    service.server.shutdown()
    service.server.server_close()


@pytest.fixture
def sender(service, monkeypatch):
    monkeypatch.setattr(webhooks, "FIRST_WAIT", 0.01)
    sender = WebhookSender(WebhookSettings(service.url, secret="s"), Log("siprtmp"))
    yield sender
    sender.stop()


def test_an_event_is_posted_until_the_service_takes_it(service, sender, caplog):
    service.statuses = [500, 302]
    sender.follow({"event": "ringing", "call": {"id": "a"}})
    sender.follow({"event": "ended", "call": {"id": "a"}})
    wait_for(lambda: len(service.heard) == 4, "two events, one of them thrice")
    path, headers, body = service.heard[0]
    assert path == "/calls?key=k" and headers["Content-Type"] == "application/json"
    assert headers["X-Siprtmp-Signature"].startswith("t=")
    assert headers["Host"] == service.url.split("/")[2]
    assert [json.loads(each[2])["event"] for each in service.heard] == ["ringing"] * 3 + ["ended"]
    assert service.heard[1][2] == body  # it has the same identifier
    assert {each[0] for each in service.heard} == {path}  # no redirection is followed
    wait_for(lambda: "webhook-failed" in caplog.text, "a warning")
    assert "key=k" not in caplog.text


def test_a_service_that_is_not_there_is_a_reason():
    with socket.socket() as deaf:  # which has the port, and does not listen
        deaf.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{deaf.getsockname()[1]}/"
        assert "refused" in post_to(url, Delivery(b"{}", "t=0,v1=0"))


def test_a_service_that_does_not_answer_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(webhook_sender, "TIMEOUT", 0.05)
    with ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as silent:
        url = f"http://127.0.0.1:{silent.server_address[1]}/"
        assert post_to(url, Delivery(b"{}", "t=0,v1=0")) == "no answer in time"
