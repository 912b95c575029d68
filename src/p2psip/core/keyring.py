"""Answering challenges: which password, which nonce, used how often.

Implements RFC 3261 §22.2 and §22.3, with the choice of algorithms of RFC 8760 §2.4.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from p2psip.sip.auth import Challenge, answer, challenges, strongest
from p2psip.sip.message import Request, Response
from p2psip.transaction.flow import Flow, HostPort

# The header that answers each kind of challenge (§22.2, §22.3).
ANSWERS: Final = {
    "WWW-Authenticate": "Authorization",
    "Proxy-Authenticate": "Proxy-Authorization",
}
MAX_REALMS: Final = 8  # remembered at once: no honest path has more


@dataclass(frozen=True, slots=True)
class Login:
    """A user name and password, for any realm that asks (RFC 3261 §22.1).

    `only_to` is the one address that gets an answer, if not all do.  Own design: whoever calls
    could ask as well, and try passwords on the answer for as long as it likes.
    """

    user: str
    password: str
    only_to: HostPort | None = None


class Keyring:
    """The credentials of one user, and the challenges it has met (§22.2).

    `random(n)` gives n random bytes.  A nonce is used again, with its count going up, until the
    server has had enough of it: RFC 7616 §3.4.
    """

    def __init__(self, login: Login, random: Callable[[int], bytes]) -> None:
        self._login, self._random = login, random
        self._known: dict[tuple[str, str], Challenge] = {}  # by answering header and realm
        self._uses: dict[tuple[str, str], int] = {}

    def is_for(self, request: Request, flow: Flow | None) -> bool:
        """Whether a challenge of what was sent over `flow` is to be met: see `Login`.

        Own design: behind a proxy of the route anybody may be.
        """
        only_to = self._login.only_to
        return only_to is None or (
            flow is not None and flow.remote == only_to and not request.routes
        )

    def learn(self, response: Response) -> dict[tuple[str, str], Challenge]:
        """Remember the challenges of a 401 or 407 that can be met, and return them (§22.2)."""
        found = {
            (answering, challenge.realm): challenge
            for asking, answering in ANSWERS.items()
            for challenge in strongest(challenges(response.headers, asking))
        }
        for key, challenge in found.items():
            if key in self._known and self._known[key].nonce == challenge.nonce:
                continue  # the count of a nonce never starts again
            if key in self._known or len(self._known) < MAX_REALMS:
                self._known[key], self._uses[key] = challenge, 0
        return {key: challenge for key, challenge in found.items() if key in self._known}

    def sign(self, request: Request) -> Request:
        """The request with credentials for every challenge met so far (§22.2, §22.3)."""
        headers = request.headers.without(*ANSWERS.values())
        for key, challenge in self._known.items():
            self._uses[key] += 1
            credentials = answer(
                challenge,
                request.method,
                request.uri,
                self._login.user,
                self._login.password,
                cnonce=self._random(8).hex(),
                nc=self._uses[key],
                body=request.body,
            )
            headers = headers.append(key[0], credentials)
        return request.replace(headers=headers)


def copy_credentials(source: Request, target: Request) -> Request:
    """The target with the credentials of the source, as an ACK has its INVITE's (§13.2.2.4)."""
    headers = target.headers
    for name in ANSWERS.values():
        for value in source.headers.values(name):
            headers = headers.append(name, value)
    return target.replace(headers=headers)
