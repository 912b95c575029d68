"""Events at a real web service, which refuses, redirects, or is not there."""

import json
import socket
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from support.gateway.richclient import wait_for
from support.resources.services import Service

from siprtmp.edge.branches import webhook_sender
from siprtmp.edge.branches.webhook_sender import WebhookSender, post_to
from siprtmp.operation.logs import Log
from siprtmp.settings.webhooks import WebhookSettings
from siprtmp.web.resources import deliveries
from siprtmp.web.resources.deliveries import Delivery
from siprtmp.web.resources.told_hosts import ToldHosts


@pytest.fixture
def service():
    service = Service()
    yield service
    service.stop()


@pytest.fixture
def sender(service, monkeypatch):
    monkeypatch.setattr(deliveries, "FIRST_WAIT", 0.01)
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


def test_a_users_url_is_posted_to_at_an_admitted_address_alone(service, monkeypatch):
    """Covers Resources §13.2 [checked-address-is-connected] [no-redirection]."""
    port = service.port
    by_name = service.url.replace("127.0.0.1", "crm.example")
    asked, address = [], "127.0.0.1"

    def look_up(host, port, **options):
        asked.append(host)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))]

    monkeypatch.setattr(webhook_sender.socket, "getaddrinfo", look_up)
    delivery = Delivery(b"{}", "t=0,v1=0")
    listed = ToldHosts([f"crm.example:{port}", f"127.0.0.2:{port}"])
    assert "no address" in post_to(by_name, delivery, listed)
    assert "no address" in post_to(service.url, delivery, listed)
    address = "127.0.0.2"  # which the list has, though nobody listens there
    assert "refused" in post_to(by_name, delivery, listed) and not service.heard
    address, asked[:] = "127.0.0.1", []
    service.statuses = [302, 300, 200]
    here = ToldHosts([f"127.0.0.1:{port}"])
    assert post_to(by_name, delivery, here) == "status 302"
    assert asked == ["crm.example"] and len(service.heard) == 1
    assert service.heard[0][1]["Host"] == f"crm.example:{port}"
    assert post_to(by_name, delivery, here) == "status 300"
    assert not post_to(by_name, delivery, here)  # 200


def test_an_answer_without_end_is_not_read_to_the_end(monkeypatch):
    """It would hold all others up: one that is always there lets no other greenlet run."""
    with socket.create_server(("127.0.0.1", 0)) as endless:

        def say():
            connected, _ = endless.accept()
            with connected, suppress(OSError):
                while True:
                    connected.sendall(b"HTTP/1.1 100 Continue\r\n\r\n" * 1000)

        threading.Thread(target=say, daemon=True).start()
        url = f"http://127.0.0.1:{endless.getsockname()[1]}/"
        assert "without end" in post_to(url, Delivery(b"{}", "t=0,v1=0"))
