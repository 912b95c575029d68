"""The proof of its user that a client presents, and the answer of a web service to it.

Implements Resources §14.

Own design: the machine knows no HTTP.  An answer is kept under a code of the proof, so that no
password or token stays in memory.  The key of that code ends with the process.
"""

import hmac
from collections import Counter, OrderedDict
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from p2psip.errors import RemoteError
from p2psip.sip import strict_json
from siprtmp.web.resources.entity import JsonValue, read_json

MAX_CONTENT: Final = 32 << 10  # octets of an answer
MAX_SECONDS: Final = 3600.0  # for which an answer is kept at most
REFUSED_SECONDS: Final = 5.0  # for which a refusal is
MAX_KNOWN: Final = 5_000  # answers that are kept
MAX_GROUPS: Final = 32
QUESTIONS: Final = 32  # at once
QUESTIONS_OF_ONE: Final = 8  # host, at once
_MAX_NAME: Final = 128  # letters of a user or a group
_REFUSALS: Final = (401, 403)
UNKNOWN: Final = "Nobody is known by that"


@dataclass(frozen=True, slots=True)
class Proof:
    """A token, or a user and a password, of a client at `host`."""

    host: str
    token: str = field(default="", repr=False)
    user: str = ""
    password: str = field(default="", repr=False)

    @property
    def question(self) -> bytes:
        """The question to the service."""
        # Resources §14.1 [proof-is-posted]
        by_name = {"user": self.user, "password": self.password}
        said = {"token": self.token} if self.token else by_name
        return strict_json.dumps({"address": self.host, **said}).encode()

    def code(self, key: bytes) -> bytes:
        """The code that stands for this proof from this host."""
        return hmac.digest(key, self.question, "sha256")


class Identity(NamedTuple):
    """The user and the groups of a client, and for how many seconds they may be kept."""

    user: str
    groups: frozenset[str]
    seconds: float = 0.0


class Refusal(NamedTuple):
    """A service knows nobody by that proof."""

    seconds: float = REFUSED_SECONDS


def identity_of(status: int, content: bytes) -> Identity | Refusal:
    """Read the answer of a service.  Raises RemoteError if it decides nothing.

    >>> identity_of(200, b'{"user": "bob", "roles": ["operator"]}')
    Identity(user='bob', groups=frozenset({'operator'}), seconds=0.0)
    """
    if status in _REFUSALS:  # Resources §14.2 [unknown-is-401]
        return Refusal()
    if status != 200:  # Resources §14.2 [else-503]
        raise RemoteError(f"status {status}")
    said = read_json(content)
    if not isinstance(said, dict):
        raise RemoteError("the answer is no object")
    user, seconds = said.get("user"), said.get("seconds", 0)
    if not isinstance(user, str) or not _is_name(user):
        raise RemoteError("the answer has no user")
    # Resources §14.2 [roles-are-groups]
    groups = _names(said, "groups") | _names(said, "roles")
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not seconds >= 0:
        raise RemoteError("the answer has seconds that are no time")
    # Resources §14.3 [kept-an-hour-at-most]
    return Identity(user, groups, float(min(seconds, MAX_SECONDS)))


def _names(said: dict[str, JsonValue], member: str) -> frozenset[str]:
    names = said.get(member, [])
    if not isinstance(names, list) or len(names) > MAX_GROUPS or not all(map(_is_name, names)):
        raise RemoteError(f"the answer has {member} that are no list of names")
    return frozenset(names)


def _is_name(name: object) -> bool:
    return isinstance(name, str) and 0 < len(name) <= _MAX_NAME and name.isprintable()


class KnownProofs:
    """The answers of a service, by the codes of proofs, while they may be kept."""

    def __init__(self) -> None:
        self._answers: OrderedDict[bytes, tuple[float, Identity | Refusal]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._answers)

    def find(self, code: bytes, now: float) -> Identity | Refusal | None:
        """The answer that is kept, None if the service has to be asked."""
        until, answer = self._answers.get(code, (now, None))
        if now >= until:
            self._answers.pop(code, None)
            return None
        return answer

    def keep(self, code: bytes, answer: Identity | Refusal, now: float) -> None:
        """Keep an answer; the oldest makes room."""
        self._answers.pop(code, None)
        if answer.seconds > 0:
            self._answers[code] = now + answer.seconds, answer
        if len(self._answers) > MAX_KNOWN:
            self._answers.popitem(last=False)


class Questions:
    """The questions under way, all together and of each host."""

    def __init__(self) -> None:
        self._of_host = Counter[str]()

    def begin(self, host: str) -> None:
        """Count a question.  Raises RemoteError, 503, if there are too many."""
        # Resources §14.4 [questions-are-bounded]
        if self._of_host.total() >= QUESTIONS or self._of_host[host] >= QUESTIONS_OF_ONE:
            raise RemoteError("Too many clients want to be known at once: try again", 503)
        self._of_host[host] += 1

    def end(self, host: str) -> None:
        """Count a question no longer: it has its answer."""
        self._of_host[host] -= 1
        if not self._of_host[host]:
            del self._of_host[host]
