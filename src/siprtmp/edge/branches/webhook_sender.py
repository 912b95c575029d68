"""Posts to one URL: one request at a time, by a greenlet that sleeps in between.

Own design: no redirection is followed, so that no answer leads the gateway to another address.  A
URL that a user has chosen is connected to at an address that the operator's list admits, and its
name is not asked for again in between.  Of an answer the status counts; its content is not read.
"""

import os
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

import gevent
from gevent import socket
from gevent import ssl as gevent_ssl
from gevent.event import Event

from p2psip.net.clock import monotonic, wallclock
from rtmplite.errors import LocalError, RemoteError
from rtmplite.net import admitted
from rtmplite.net.redaction import public
from rtmplite.net.server.hooks import Service, post, service
from siprtmp import __version__
from siprtmp.operation.logs import Log
from siprtmp.settings.webhooks import WebhookSettings
from siprtmp.web.branches.webhooks import Row, Webhook
from siprtmp.web.resources.deliveries import SIGNATURE, Deliveries, Delivery
from siprtmp.web.resources.told_hosts import ToldHosts

TIMEOUT: Final = 10.0  # s for the whole of a request
MAX_REASON: Final = 200  # letters in the log


class Poster:
    """Posts what is due of `deliveries`, from the start to `stop`.

    `post(delivery)` returns why it has not been taken, empty if it has, which `answered(reason,
    now)` is told.
    """

    def __init__(
        self,
        deliveries: Deliveries,
        post: Callable[[Delivery], str],
        answered: Callable[[str, float], object],
    ) -> None:
        self._deliveries, self._post, self._answered = deliveries, post, answered
        self._news, self._is_stopped = Event(), False
        self._greenlet = gevent.spawn(self._run)

    def wake(self) -> None:
        """There may be something to post."""
        self._news.set()

    def stop(self) -> None:
        """Give up what has not been posted."""
        self._is_stopped = True
        if gevent.getcurrent() is not self._greenlet:
            self._greenlet.kill(block=False)

    def _run(self) -> None:
        while not self._is_stopped:
            self._news.clear()
            now = monotonic()
            delivery = self._deliveries.due(now, wallclock() + now)
            if delivery is not None:
                self._answered(self._post(delivery), monotonic())
                continue
            at = self._deliveries.deadline
            self._news.wait(None if at is None else max(0.0, at - now))


class WebhookSender:
    """One service of the operator's, from the start to `stop`."""

    def __init__(
        self,
        settings: WebhookSettings,
        log: Log,
        post: Callable[[str, Delivery], str] | None = None,
    ) -> None:
        self._url, self._log = settings.url, log
        to_url, deliveries = post or post_to, Deliveries(settings.secret, self._say)
        self._hook = Webhook(deliveries, settings.events, os.urandom)
        self._poster = Poster(
            deliveries, lambda delivery: to_url(self._url, delivery), deliveries.answered
        )

    def follow(self, event: Row) -> None:
        """Have an event of a call posted."""
        self._hook.add(event, stamp())
        self._poster.wake()

    def stop(self) -> None:
        """Give up what has not been posted."""
        self._poster.stop()

    def _say(self, what: str, reason: str) -> None:
        self._log.warning(f"webhook-{what}", url=public(self._url), reason=reason)


def post_to(url: str, delivery: Delivery, hosts: ToldHosts | None = None) -> str:
    """Post a delivery, to one of these `hosts` if they are given.

    Return why it has not been taken, empty if it has.
    """
    fields = {
        "User-Agent": f"siprtmp/{__version__}",
        "Content-Type": "application/json",
        SIGNATURE: delivery.signature,
    }
    connected: socket.socket | None = None
    try:
        with gevent.Timeout(TIMEOUT):
            place = service(url)
            connected = _connected(place, hosts)
            if place.is_secure:
                tls = gevent_ssl.create_default_context()
                connected = tls.wrap_socket(connected, server_hostname=place.host)
            status, _ = post(connected, place, delivery.body, fields)
    except gevent.Timeout:
        return "no answer in time"
    except (OSError, LocalError, RemoteError, ValueError) as error:
        words = error.description if isinstance(error, RemoteError) else str(error)
        return f"{ascii(words or type(error).__name__)[1:-1]:.{MAX_REASON}}"
    finally:
        if connected is not None:
            connected.close()
    # Resources §13.2 [no-redirection]
    return "" if 200 <= status < 300 else f"status {status}"


def _connected(place: Service, hosts: ToldHosts | None) -> socket.socket:
    """Connect, and where `hosts` are given, to an address that they admit and to no other."""
    if hosts is None:
        return socket.create_connection((place.host, place.port))
    # Resources §13.2 [checked-address-is-connected]
    return admitted.connect(place.host, place.port, hosts.admits)


def stamp() -> str:
    """The time of day, as events have it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")
