"""What the subscribers of a resource hear of an event.

Implements Resources §6.2.

Own design: rights follow from what a client is with respect to a resource, such as its owner or a
user.  So each such kind of client is judged once for an event, and each text is written once.
"""

from collections.abc import Hashable
from typing import Protocol

from p2psip.sip import strict_json
from siprtmp.web.resources.asker import Asker
from siprtmp.web.resources.mode import Right
from siprtmp.web.resources.subscriptions import Event


class Judge(Protocol):
    """Tells who may what at one path."""

    def kind(self, asker: Asker) -> Hashable:
        """What a client is judged by here: two of the same kind have the same rights."""

    def allows(self, asker: Asker, right: Right) -> bool:
        """Whether this client has the right."""


class Hearing:
    """One event, whose resource and subject have these rights now."""

    def __init__(self, event: Event, resource: Judge, subject: Judge) -> None:
        self._event, self._resource, self._subject = event, resource, subject
        self._was = subject if event.access is None else event.access
        self._judges: list[Judge] = []
        for each in (resource, subject, self._was):
            if each not in self._judges:
                self._judges.append(each)
        self._known: dict[Hashable, str] = {}
        self._texts: dict[bool, str] = {}

    def text(self, asker: Asker) -> str:
        """Return the message to a subscriber, empty if it may not hear of the event."""
        kind = tuple([each.kind(asker) for each in self._judges])
        text = self._known.get(kind)
        if text is None:
            text = self._known[kind] = self._judge(asker)
        return text

    def _judge(self, asker: Asker) -> str:
        event = self._event
        # Resources §6.2 [judged-each-time]
        if not self._resource.allows(asker, Right.SUBSCRIBE):
            return ""
        reads = self._was.allows(asker, Right.READ) and self._subject.allows(asker, Right.READ)
        # Resources §6.2 [readers-alone-hear]
        if event.change is not None and not reads:
            return ""
        shows = reads or event.notify == "NOTIFY"
        if shows not in self._texts:
            self._texts[shows] = strict_json.dumps(event.message(with_entity=shows))
        return self._texts[shows]
