"""Posts the notifications of all subscriptions with a URL.

Implements Resources §13.2 and §13.3.
"""

from collections.abc import Callable
from functools import partial

from p2psip.errors import RemoteError
from rtmplite.errors import LocalError
from rtmplite.net.redaction import public
from rtmplite.net.server.hooks import service
from siprtmp.edge.branches.webhook_sender import Poster, post_to, stamp
from siprtmp.operation.logs import Log
from siprtmp.web.resources.deliveries import Delivery
from siprtmp.web.resources.nodes import Store
from siprtmp.web.resources.told_hosts import ToldHosts
from siprtmp.web.resources.url_subscriptions import UrlSubscription, UrlSubscriptions


class UrlPosters:
    """The `PostingSide` of the subscriptions, which are `urls`, from the start to `stop`."""

    def __init__(
        self,
        hosts: ToldHosts,
        random: Callable[[int], bytes],
        log: Log,
        store: Store | None = None,
    ) -> None:
        self._hosts, self._log = hosts, log
        self.urls = UrlSubscriptions(random, self, store)
        self._posters: dict[str, Poster] = {}

    def check(self, url: str) -> None:
        """Raise RemoteError for a URL that is none, or whose host is not on the list."""
        try:
            place = service(url)
        except (LocalError, ValueError):
            raise RemoteError("That is not http://HOST[:PORT]/PATH or https") from None
        if "@" in url.split("/")[2] or "#" in url:
            raise RemoteError("A URL to post to has neither a user nor a fragment")
        # Resources §13.2 [listed-hosts-alone]
        if not self._hosts.may_have(place.host, place.port):
            raise RemoteError("The operator lets nobody choose this host and port", 403)

    def stamp(self) -> str:
        return stamp()

    def say(self, subscription: UrlSubscription, what: str, reason: str) -> None:
        url, user = public(subscription.url), subscription.asker.user
        self._log.warning(f"webhook-{what}", url=url, reason=reason, user=user)

    def wake(self, subscription: UrlSubscription) -> None:
        if subscription.is_over:
            poster = self._posters.pop(subscription.id, None)
            if poster is not None:
                poster.stop()
            return
        if subscription.id not in self._posters:
            self._posters[subscription.id] = Poster(
                subscription.deliveries,
                partial(self._post, subscription),
                partial(self.urls.answered, subscription),
            )
        self._posters[subscription.id].wake()

    def stop(self) -> None:
        """Give up what has not been posted."""
        for each in self._posters.values():
            each.stop()
        self._posters.clear()

    def _post(self, subscription: UrlSubscription, delivery: Delivery) -> str:
        return post_to(subscription.url, delivery, self._hosts)
