"""Rules for the streams to push and to pull, and the links that they lead to.

Own design: no text knows relays.  A rule is one line, a pattern and a URL:

    >>> rule = Rule.parse("live/*=rtmp://example.net/app/{name}-copy")
    >>> rule.target("live", "demo").tc_url, rule.target("live", "demo").stream
    ('rtmp://example.net/app', 'demo-copy')
    >>> rule.target("vod", "demo") is None
    True
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from rtmplite.errors import LocalError
from rtmplite.live.streams import LiveStream, Registry
from rtmplite.relay.link import DEFAULT_BACKOFF, Dial, Link, ReconnectBackoff
from rtmplite.relay.pull import Pull
from rtmplite.relay.push import Push
from rtmplite.rtmp.client import Target


@dataclass(frozen=True, slots=True)
class Rule:
    """Relays the streams of a name to a server: `app/name=url`.

    `app` and `name` may have `*` for any letters.  In the URL, `{name}` is the stream's name; a
    URL that ends with the application gets it appended.
    """

    app: str
    name: str
    url: str

    @classmethod
    def parse(cls, rule: str) -> "Rule":
        """Read a rule; LocalError if it is none, or would send several streams to one name."""
        pattern, _, url = rule.partition("=")
        app, _, name = pattern.partition("/")
        if not app or not name or not url:
            raise LocalError(f"{rule} is not APP/NAME=URL")
        named = Target.parse(url.replace("{name}", "name"))
        if "*" in pattern and named.stream and "{name}" not in url:
            raise LocalError(f"{rule} would give every stream the same name; put {{name}} there")
        return cls(app, name, url)

    def target(self, app: str, name: str) -> Target | None:
        """The target of that stream, None if this rule does not match it."""
        if not fnmatchcase(app, self.app) or not fnmatchcase(name, self.name):
            return None
        try:
            return named(self.url, name)
        except LocalError:  # a player chose a name that makes no URL
            return None


def named(url: str, name: str) -> Target:
    """The target that a URL means for a stream of this name, see `Rule`.  Raises LocalError."""
    target = Target.parse(url.replace("{name}", name))
    query = target.tc_url.partition("?")[1:]
    return target if target.stream else replace(target, stream=name + "".join(query))


class Relays:
    """All links of a server, started and stopped as the registry tells.

    A stream is pushed from its beginning to its end, by every rule of `push` that matches it.  An
    operator may have it pushed elsewhere as well.  It is pulled by the first rule of `pull` that
    matches it, while it has players and no other publisher.
    `is_elsewhere` says whether another process of this server publishes it, or is to pull it.
    """

    def __init__(
        self,
        registry: Registry,
        dial: Dial,
        random: Callable[[int], bytes],
        *,
        push: Sequence[Rule] = (),
        pull: Sequence[Rule] = (),
        backoff: ReconnectBackoff = DEFAULT_BACKOFF,
        on_change: Callable[[Link, float], None] = lambda link, now: None,
    ) -> None:
        self._dial, self._random, self._backoff = dial, random, backoff
        self._push, self._pull, self._on_change = tuple(push), tuple(pull), on_change
        self.is_elsewhere: Callable[[str, str], bool] = lambda app, name: False
        self._pushes: dict[tuple[str, str], list[Push]] = {}
        self._pulls: dict[tuple[str, str], Pull] = {}
        registry.on_begin.append(self._begun)
        registry.on_end.append(self._over)
        registry.on_audience.append(self._watched)
        registry.fetchers.append(self.can_fetch)

    @property
    def links(self) -> list[Link]:
        """The links in use."""
        pushes = [push for group in self._pushes.values() for push in group]
        return [*pushes, *self._pulls.values()]

    @property
    def deadline(self) -> float | None:
        """When to call `tick`."""
        times = [link.deadline for link in self.links]
        return min((at for at in times if at is not None), default=None)

    def tick(self, now: float) -> None:
        """Pass the time on to every link."""
        for link in self.links:
            link.tick(now)

    def push(
        self,
        live: LiveStream,
        target: Target,
        dial: Dial,
        now: float,
        on_change: Callable[[Link, float], None],
    ) -> Push:
        """Push a stream from now on, without a rule, until it ends or `end_push`."""
        push = Push(live, target, dial, self._random, self._backoff)
        push.on_change = on_change
        self._pushes.setdefault((live.app, live.name), []).append(push)
        push.start(now)
        return push

    def end_push(self, push: Push, now: float) -> None:
        """End one, while the publication goes on."""
        key = push.live.app, push.live.name
        self._pushes[key] = [each for each in self._pushes.get(key, []) if each is not push]
        push.stop(now)

    def stop(self, now: float) -> None:
        """Stop all links."""
        links = self.links
        self._pushes, self._pulls = {}, {}
        self._push = self._pull = ()
        for link in links:
            link.stop(now)

    def _begun(self, live: LiveStream, now: float) -> None:
        key = live.app, live.name
        if key in self._pushes or live.is_copy:
            return  # another publisher has replaced the first one, or another process pushes it
        targets = [target for rule in self._push if (target := rule.target(*key))]
        pushes = [Push(live, each, self._dial, self._random, self._backoff) for each in targets]
        if pushes:
            self._pushes[key] = pushes
        for push in pushes:
            push.on_change = self._on_change
            push.start(now)

    def _over(self, live: LiveStream, now: float) -> None:
        for push in self._pushes.pop((live.app, live.name), []):
            push.stop(now)
        self._watched(live, now)

    def _watched(self, live: LiveStream, now: float) -> None:
        """Begin to pull for the first player, and stop after the last."""
        key = live.app, live.name
        pushes = self._pushes.get(key, [])
        watched = live.players > sum(push.players for push in pushes)
        pull = self._pulls.get(key)
        if pull is not None:
            if not watched:
                del self._pulls[key]
                pull.stop(now)
            elif not live.publishing:
                pull.start(now)  # it had stopped if a client published here
        elif not watched or live.publishing or self.is_elsewhere(*key):
            return
        elif (target := self._source(*key)) is not None:
            pull = Pull(live, target, self._dial, self._random, self._backoff)
            pull.on_change = self._on_change
            self._pulls[key] = pull
            pull.start(now)

    def _source(self, app: str, name: str) -> Target | None:
        return next((target for rule in self._pull if (target := rule.target(app, name))), None)

    def can_fetch(self, app: str, name: str) -> bool:
        """Whether a rule says where to pull that stream from."""
        return self._source(app, name) is not None
