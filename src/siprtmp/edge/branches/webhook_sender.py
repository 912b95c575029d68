"""Posts the events of a webhook: one request at a time, by a greenlet that sleeps in between.

Own design: the URL is the operator's, and no redirection is followed, so that no answer leads the
gateway to another address.  Of an answer the status counts; its content is not read.
"""

import http.client
import os
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

import gevent
from gevent import socket
from gevent import ssl as gevent_ssl
from gevent.event import Event

from p2psip.net.clock import monotonic, wallclock
from rtmplite.net.redaction import public
from rtmplite.net.server.hooks import Service, service
from siprtmp import __version__
from siprtmp.operation.logs import Log
from siprtmp.settings.webhooks import WebhookSettings
from siprtmp.web.branches.webhooks import SIGNATURE, Delivery, Row, Webhook

TIMEOUT: Final = 10.0  # s for the whole of a request
MAX_REASON: Final = 200  # letters in the log


class _Connection(http.client.HTTPConnection):
    """A connection by sockets that let others run."""

    def __init__(self, at: Service) -> None:
        super().__init__(at.host, at.port)
        self._at = at

    def connect(self) -> None:
        """Connect, and prove by TLS who is there if the URL is https."""
        self.sock = socket.create_connection((self._at.host, self._at.port))
        if self._at.is_secure:
            tls = gevent_ssl.create_default_context()
            self.sock = tls.wrap_socket(self.sock, server_hostname=self._at.host)


class WebhookSender:
    """One service, from the start to `stop`."""

    def __init__(
        self,
        settings: WebhookSettings,
        log: Log,
        post: Callable[[str, Delivery], str] | None = None,
    ) -> None:
        self._url, self._log = settings.url, log
        self._hook = Webhook(settings.secret, settings.events, os.urandom, self._say)
        self._post = post or post_to
        self._news = Event()
        self._greenlet = gevent.spawn(self._run)

    def follow(self, event: Row) -> None:
        """Have an event of a call posted."""
        self._hook.add(event, datetime.now(UTC).isoformat(timespec="milliseconds"))
        self._news.set()

    def stop(self) -> None:
        """Give up what has not been posted."""
        self._greenlet.kill()

    def _run(self) -> None:
        hook = self._hook
        while True:
            self._news.clear()
            now = monotonic()
            delivery = hook.due(now, wallclock() + now)
            if delivery is not None:
                hook.answered(self._post(self._url, delivery), monotonic())
                continue
            at = hook.deadline
            self._news.wait(None if at is None else max(0.0, at - now))

    def _say(self, what: str, reason: str) -> None:
        self._log.warning(f"webhook-{what}", url=public(self._url), reason=reason)


def post_to(url: str, delivery: Delivery) -> str:
    """Post a delivery; why it has not been taken, empty if it has."""
    at = service(url)
    connection = _Connection(at)
    headers = {
        "Host": at.authority,
        "User-Agent": f"siprtmp/{__version__}",
        "Content-Type": "application/json",
        SIGNATURE: delivery.signature,
        "Connection": "close",
    }
    try:
        with gevent.Timeout(TIMEOUT):
            connection.request("POST", at.path, delivery.body, headers)
            status = connection.getresponse().status
    except gevent.Timeout:
        return "no answer in time"
    except (OSError, http.client.HTTPException, ValueError) as error:
        return f"{ascii(str(error) or type(error).__name__)[1:-1]:.{MAX_REASON}}"
    finally:
        connection.close()
    return "" if 200 <= status < 300 else f"status {status}"
