"""Runs of our code that pages tell as stories: who sent which octets when, and what they mean.

A story is made by a function below, from machines under a clock and a source of randomness of the
run, so that every build has the same octets.  `rtclab.explain` says what they mean; no page and no
directive reads a protocol by itself.
"""

import functools
import importlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from rtclab.explain.fields.context import Context
from rtclab.explain.fields.field import Field, Span
from rtclab.explain.guess import PROTOCOLS

STORIES = {
    "sip-call": "story_sip:call",
    "offer-answer": "story_sip:offer_answer",
    "rtmp-steps": "story_rtmp:steps",
    "rtmp-chunks": "story_rtmp:chunks",
    "amf0": "story_media:in_amf0",
    "amf3": "story_media:in_amf3",
    "flv": "story_media:flv",
    "rtp-clocks": "story_rtp:clocks",
    "crossing": "story_gateway:crossing",
}


@dataclass(frozen=True, slots=True)
class Step:
    """Something that was sent at a time, in seconds: `told` is a piece of `data`."""

    name: str
    at: float
    source: str
    destination: str
    label: str
    told: Field
    data: bytes
    lost: bool = False

    @property
    def octets(self) -> bytes:
        """The octets of this step alone."""
        return self.data[self.told.start : self.told.end]


@dataclass(frozen=True, slots=True)
class Story:
    """Steps in the order of time, and between whom; `facts` are what else the run has shown."""

    lanes: tuple[str, ...]
    steps: tuple[Step, ...]
    facts: dict[str, Any] = field(default_factory=dict)

    def step(self, name: str) -> Step:
        """The step of this name."""
        [found] = [each for each in self.steps if each.name == name]
        return found

    def between(self, first: str, last: str) -> tuple[Step, ...]:
        """The steps from one to another, or all where no name is given."""
        names = [each.name for each in self.steps]
        start = names.index(first) if first else 0
        end = names.index(last) + 1 if last else len(names)
        return self.steps[start:end]


def told(protocol: str, data: bytes, context: Context | None = None) -> Field:
    """What the octets mean; anything wrong with them is an error here."""
    found = PROTOCOLS[protocol](Span.all(data), context or Context())
    assert not list(found.faults()), list(found.faults())
    return found


def named(names: Iterable[str]) -> list[str]:
    """Names that occur twice, told apart by numbers."""
    seen: dict[str, int] = {}
    out = []
    for each in names:
        seen[each] = seen.get(each, 0) + 1
        out.append(each if seen[each] == 1 else f"{each}-{seen[each]}")
    return out


@functools.cache
def story(name: str) -> Story:
    """The story of this name, run once a build."""
    module, _, function = STORIES[name].partition(":")
    made: Story = getattr(importlib.import_module(module), function)()
    return made
