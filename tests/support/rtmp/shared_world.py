"""Shared objects without connections: clients, a disk that takes its time, and little room."""

from collections import deque

from rtmplite.rtmp.wire.shared_object import SharedObject
from rtmplite.shared_objects.server import SharedLimits

LIMITS = SharedLimits(slots=3, value=400, size=1000, total=3000, uses=2, objects=2, waiting=3)


class Client:
    """A client as `SharedObjects` sees it: keeps the messages sent to it, parsed from bytes."""

    def __init__(self, amf3=False):
        self.amf3, self.output_size, self.queued = amf3, 0, 0
        self.down, self.ended = deque(), ""

    def send_shared(self, message):
        assert message.type_id == (16 if self.amf3 else 19)
        self.down.append(SharedObject.parse(message))

    def abort(self, reason, now):
        self.ended = reason

    def events(self):
        """All that has come since the last time."""
        found = [event for message in self.down for event in message.events]
        self.down.clear()
        return found


class SlowStore:
    """A store whose disk answers when it is told to, on a clock of its own."""

    def __init__(self):
        self.saved, self.loading, self.now = {}, deque(), 0.0
        self._unsaved = {}

    def load(self, key, then):
        content = self._unsaved.get(key)
        self.loading.append((then, content() if content else self.saved.get(key)))

    def save(self, key, content):
        self._unsaved[key] = content

    def answer(self):
        then, content = self.loading.popleft()
        self.now += 1.0
        then(content, self.now)

    def flush(self):
        for key, content in self._unsaved.items():
            self.saved[key] = content()
        self._unsaved.clear()
