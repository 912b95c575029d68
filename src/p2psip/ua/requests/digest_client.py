"""The client's side of Digest: it answers the challenges of its own server.

Implements RFC 3261 §22.2 and §22.3, with the choice of algorithms of RFC 8760 §2.4.

Own design: a callee could challenge as well, and try passwords on the answer at leisure (RFC 7616
§5.9).  So a password belongs to one server, and only requests whose next hop is that server carry
a proof of it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from p2psip.errors import RemoteError
from p2psip.sip.auth import Challenge, answer, challenges, strongest
from p2psip.sip.authentication_info import AuthenticationInfo
from p2psip.sip.message import Request, Response
from p2psip.sip.uri import Uri
from p2psip.transaction.flow import LOCAL, Flow, HostPort
from p2psip.transaction.key import default_port

PROOF, INFO = "Authorization", "Authentication-Info"
# The header that answers each kind of challenge (§22.2, §22.3).
ANSWERS: Final = {
    "WWW-Authenticate": PROOF,
    "Proxy-Authenticate": "Proxy-Authorization",
}
MAX_REALMS: Final = 8  # remembered at once, more than on any honest path
HERE: Final[HostPort] = ("", 0)  # this very process, whichever of its names was used


@dataclass(frozen=True, slots=True)
class Login:
    """A user name and password, and the server that they belong to (RFC 3261 §22.1).

    `server` is the registrar or trunk as it was named, and `addresses` are those where it was
    reached by that name; without any of them no challenge is answered.  `realms` are those that it
    may challenge in, None while it has not challenged.
    """

    user: str
    password: str
    server: Uri | None = None
    addresses: frozenset[HostPort] = frozenset()
    realms: frozenset[str] | None = None

    def __repr__(self) -> str:
        """Leave the password out of logs and tracebacks.  Own design."""
        return f"Login({self.user}, {self.server})"

    def belongs_to(self, uri: Uri) -> bool:
        """Whether a next hop is that server, by name or address (RFC 3263 §4)."""
        if uri.param("maddr") is not None:
            return False
        place = _place(uri)
        return place in self.addresses or (self.server is not None and place == _place(self.server))


def hop_of(flow: Flow) -> HostPort:
    """The address of the server at the other end, `HERE` for this process (own design)."""
    return HERE if flow.transport == LOCAL else flow.remote


class DigestClient:
    """The credentials of one user, and the nonces in use (§22.2, RFC 7616 §3.4)."""

    def __init__(self, login: Login, random: Callable[[int], bytes]) -> None:
        self._login, self._random = login, random
        self._known: dict[tuple[str, str], Challenge] = {}  # by answering header and realm
        self._uses: dict[tuple[str, str], int] = {}

    @property
    def realms(self) -> frozenset[str]:
        """The realms whose challenges were answered (§22.1)."""
        return frozenset(realm for _, realm in self._known)

    def is_for(self, request: Request, flow: Flow | None) -> bool:
        """Whether to answer a challenge to a request that was sent over `flow`: see `Login`."""
        if flow is not None and hop_of(flow) in self._login.addresses:
            return not _is_behind_a_route(request)
        return self.may_sign(request)

    def may_sign(self, request: Request) -> bool:
        """Whether credentials may go along: the next hop is their server (§8.1.2)."""
        first = request.routes[0].uri if request.routes else request.uri
        return self._login.belongs_to(first) and not _is_behind_a_route(request)

    def asked(self, response: Response) -> dict[tuple[str, str], Challenge]:
        """The challenges of a 401 or 407 that we can answer, by header and realm (§22.2)."""
        realms = self._login.realms
        return {
            (answering, challenge.realm): challenge
            for asking, answering in ANSWERS.items()
            for challenge in strongest(challenges(response.headers, asking))
            if realms is None or challenge.realm in realms
        }

    def learn(self, asked: Mapping[tuple[str, str], Challenge]) -> None:
        """Remember the challenges that are to be answered (§22.2)."""
        for key, challenge in asked.items():
            if key in self._known and self._known[key].nonce == challenge.nonce:
                continue  # the count of a nonce never starts again
            if key in self._known or len(self._known) < MAX_REALMS:
                # RFC 7616 §3.6 [remembers], RFC 3261 §22.3 [credentials-kept]
                self._known[key], self._uses[key] = challenge, 0

    def informed(self, response: Response) -> None:
        """Take the next nonce that a server names with its 2xx: RFC 7616 §3.5."""
        value, keys = response.headers.get(INFO), [key for key in self._known if key[0] == PROOF]
        if value is None or len(keys) != 1:
            return  # which of several realms it is for is not said
        try:
            nonce = AuthenticationInfo.parse(value).nextnonce
        except RemoteError:
            return
        challenge = self._known[keys[0]]
        if nonce is not None and nonce != challenge.nonce:
            # RFC 7616 §3.5 [takes-next-nonce]
            self._known[keys[0]], self._uses[keys[0]] = challenge.with_nonce(nonce), 0

    def sign(self, request: Request, *, is_asked: bool = False) -> Request:
        """The request with credentials (§22.2, §22.3), unasked only if it goes to their server."""
        headers = request.headers.without(*ANSWERS.values())
        if not (is_asked or self.may_sign(request)):
            return request.replace(headers=headers)
        for key, challenge in self._known.items():
            self._uses[key] += 1
            # RFC 3261 §22.3 [same-credentials]
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
            # RFC 7616 §3.8 [answers-the-proxy], RFC 3261 §22.3 [by-realm]
            # RFC 3261 §20.7 [never-combined], §20.28 [never-combined]
            headers = headers.append(key[0], credentials)
        return request.replace(headers=headers)


def _is_behind_a_route(request: Request) -> bool:
    """Whether a request is in a dialog with a route, where any server may have challenged it."""
    return request.to.tag is not None and bool(request.routes)


def _place(uri: Uri) -> HostPort:
    return uri.host, uri.port or default_port((uri.param("transport") or "UDP").upper())


def copy_credentials(
    source: Request, target: Request, digest_client: DigestClient | None
) -> Request:
    """The target with the credentials of the source: an ACK with its INVITE's (§13.2.2.4).

    Departs from RFC 3261 §13.2.2.4: not if the ACK does not pass their server, or goes on from
    there to the callee, who could try passwords on them.
    """
    headers = target.headers
    for name in (
        ANSWERS.values() if digest_client is not None and digest_client.may_sign(target) else ()
    ):
        for value in source.headers.values(name):
            headers = headers.append(name, value)
    return target.replace(headers=headers)
