"""The surroundings of subscriptions with a URL, and a service that takes what is posted."""

import json
from itertools import count

from support.resources.trees import new_tree

from p2psip.errors import RemoteError
from siprtmp.web.resources.url_subscriptions import UrlSubscriptions

URL = "https://crm.example/calls"


class Postings:
    """A `PostingSide` whose services are `taken` from by the test; `said` is the log."""

    def __init__(self, store=None):
        self.said, self.woken = [], []
        numbers = count()
        self.urls = UrlSubscriptions(lambda size: bytes([next(numbers)]) * size, self, store)
        self.tree = new_tree(store=store, urls=self.urls)

    def check(self, url):
        if "crm.example" not in url:
            raise RemoteError("Not listed", 403)

    def stamp(self):
        return "2026-01-02T03:04:05.678+00:00"

    def say(self, subscription, what, reason):
        self.said.append((what, reason))

    def wake(self, subscription):
        self.woken.append(subscription.id)

    def taken(self, subscription, reason="", now=0.0):
        """What the service is posted until nothing is due, answered with this reason."""
        found = []
        while (delivery := subscription.deliveries.due(now, 1000.0)) is not None:
            found.append(json.loads(delivery.body))
            self.urls.answered(subscription, reason, now)
        return found
