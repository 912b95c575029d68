"""A tree with clients whose messages are kept, for the tests of resources."""

import json
from itertools import count

from p2psip.errors import RemoteError
from siprtmp.web.resources.asker import Asker
from siprtmp.web.resources.entity import JSON, Entity
from siprtmp.web.resources.mode import DEFAULT_MODE
from siprtmp.web.resources.tree import Tree


class Box:
    """An outbox that keeps all."""

    def __init__(self):
        self.texts = []

    def put(self, text):
        self.texts.append(text)

    def take(self):
        """The messages since the last time, without their numbers."""
        texts, self.texts = self.texts, []
        messages = [json.loads(text) for text in texts]
        for message in messages:
            del message["seq"]
        return messages


def value(data):
    return Entity(JSON, data)


def new_tree(mode=DEFAULT_MODE, limits=None, store=None, urls=None, shared=None):
    numbers = count(1)
    return Tree(lambda size: next(numbers).to_bytes(size), mode, limits, store, urls, shared)


def client(tree, user=None, *groups, name=None, host="192.0.2.7"):
    """A client with a connection: who asks, and its box."""
    asker = Asker(user, frozenset(groups), name or f"c-{user}", host)
    box = Box()
    tree.connect(asker.connection, box)
    return asker, box


def refusal(action, *args, **options):
    """The status of what is refused, or 0."""
    try:
        action(*args, **options)
    except RemoteError as error:
        return error.status
    return 0
