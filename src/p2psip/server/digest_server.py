"""The server's side of Digest: it challenges a request, and verifies the answer.

Implements RFC 3261 §22.2 and §22.3 with RFC 7616 §3.3 and RFC 8760 §2.3.

No state is kept for a challenge: the nonce carries its time and a proof that it is ours.
For a bounded number of nonces the highest count is kept, so that a request overheard on the way
cannot be sent again: RFC 7616 §5.4.  Guesses have to wait: see `guess_limit`.
"""

import hashlib
import hmac
import math
from collections import OrderedDict
from collections.abc import Callable, Collection, Sequence
from typing import Final

from p2psip.errors import RemoteError
from p2psip.server.domains import Aor, Domains
from p2psip.server.guess_limit import GuessLimit
from p2psip.server.users import UserStore
from p2psip.sip.auth import Challenge, Credentials, verify
from p2psip.sip.message import Request
from p2psip.sip.uri import Uri
from p2psip.stack.request_origin import origin
from p2psip.transaction.flow import LOCAL, Flow, rate_limit_key
from p2psip.ua.requests.request_validation import RefusalError

NONCE_SECONDS: Final = 300.0  # RFC 7616 §5.4: a nonce is good for a while
NONCES: Final = 10_000  # how many counts are remembered

Challenges = Sequence[tuple[str, object]]
"""Headers for a 401 or 407; none when there is nothing to ask."""

_NOBODYS_SECRET: Final = "0" * 64


class DigestServer:
    """Judges requests by their credentials: RFC 3261 §22.1.  `random(n)` gives n octets.

    `client_host(request)` tells the host of the client for whom this process has made a request.
    """

    def __init__(self, users: UserStore, random: Callable[[int], bytes]) -> None:
        self.client_host: Callable[[Request], str | None] = lambda request: None
        self.users, self.guesses = users, GuessLimit()
        self._random, self._secret = random, random(32)
        self._counts: OrderedDict[str, int] = OrderedDict()

    def knows(self, aor: Aor) -> bool:
        """Whether there is such a user to ask for a password: RFC 3261 §22.1."""
        return self.users.has(aor[0], self.users.realm_for(aor[1]))

    def demand(
        self,
        request: Request,
        aor: Aor,
        domains: Domains,
        now: float,
        *,
        proxy: bool,
        source: Flow,
    ) -> Challenges:
        """The challenges to a request in the name of `aor`; empty once the password is proven.

        `proxy` chooses between the headers of a 401 (RFC 3261 §22.2) and a 407 (§22.3).  They never
        tell whether the name or the password was wrong.  Raises RemoteError: 400 for the proof of
        another request, 403 for that of another user, 503 with Retry-After to a `source` that
        guesses too fast.
        """
        realm = self.users.realm_for(aor[1])
        host = self._host(request, source)
        stale = False
        for credentials in _credentials(request, realm, proxy=proxy):
            user = f"{credentials.username}@{realm}"
            if wait := self.guesses.wait(host, user, now):
                retry = [("Retry-After", math.ceil(wait))]
                raise RefusalError(503, "Too Many Wrong Passwords", retry)
            if not self._proves(credentials, request):
                self.guesses.failed(host, user, now)
            elif not _suits(credentials, request, domains):  # RFC 8760 §2.6 [uri-is-checked]
                raise RemoteError("Digest URI Differs", 400)  # RFC 7616 §3.4.6
            elif not self._is_fresh(credentials, host, now):
                stale = True  # RFC 7616 §3.3 [stale-for-the-nonce]
            # RFC 3261 §10.3 [authorizes], §22 [authorizes]
            elif credentials.username != aor[0]:
                raise RemoteError("Forbidden", 403)  # RFC 3261 §10.3 [403-for-anothers]
            else:
                self.guesses.succeeded(host, user, now)
                return ()
        algorithms = self.users.algorithms(aor[0], realm)
        if "MD5" in algorithms and _chokes_on_choice(request):
            algorithms = ("MD5",)
        # RFC 7616 §3.8 [proxy-asks-by-407]
        # RFC 3261 §22.2 [401-has-challenge], §22.3 [407-has-challenge]
        name = "Proxy-Authenticate" if proxy else "WWW-Authenticate"
        nonce = self._nonce(host, now)
        return [
            # RFC 8760 §2.6 [never-basic]
            # RFC 3261 §22 [no-basic-asked], §22.3 [digest-has-realm]
            (name, Challenge.digest(realm, nonce=nonce, algorithm=algorithm, stale=stale))
            for algorithm in algorithms
        ]

    def _host(self, request: Request, source: Flow) -> str:
        """The host that waits after a wrong password: for a client of this process, its own."""
        place = origin(request, source)
        known = self.client_host(request) if place == LOCAL else None
        return place if known is None else rate_limit_key(known)

    def _proves(self, credentials: Credentials, request: Request) -> bool:
        secret = self.users.lookup(credentials.username, credentials.realm, credentials.algorithm)
        # an unknown user takes as long as a known one
        proof = verify(credentials, request.method, secret or _NOBODYS_SECRET, request.body)
        return proof and secret is not None

    def _is_fresh(self, credentials: Credentials, host: str, now: float) -> bool:
        """Whether the nonce is ours, not too old, and its count went up: RFC 7616 §3.4.

        A client that counts nothing, as of RFC 2069, may use a nonce once.

        Own design: a nonce is good for the host that was challenged, so that a forged source
        address cannot register.  RFC 7616 §3.3 warns that proxies on the way may change: a client
        that comes by another proxy is challenged again, as stale, and needs no new password.
        """
        nonce = credentials.nonce
        at, _, rest = nonce.partition(".")
        salt, _, proof = rest.partition(".")
        if not hmac.compare_digest(proof.encode(errors="replace"), self._proof(at, salt, host)):
            return False
        age = now - int(at, 16) / 1000  # our own proof vouches for the digits
        count = credentials.nc or 0
        if not credentials.qop:  # RFC 3261 §22.4 [2069-is-served]
            count = 1
        if age > NONCE_SECONDS or count <= self._counts.get(nonce, 0):
            return False
        self._counts[nonce] = count
        self._counts.move_to_end(nonce)
        if len(self._counts) > NONCES:
            self._counts.popitem(last=False)
        return True

    def _nonce(self, host: str, now: float) -> str:
        at, salt = f"{int(now * 1000):x}", self._random(6).hex()
        return f"{at}.{salt}.{self._proof(at, salt, host).decode()}"

    def _proof(self, at: str, salt: str, host: str) -> bytes:
        text = f"{at}.{salt}.{host}".encode(errors="replace")
        return hmac.digest(self._secret, text, hashlib.sha256).hex()[:24].encode()


def without_credentials(request: Request, *realms: str) -> Request:
    """The request without its credentials for `realms`, which are ours: RFC 3261 §22.3.

    Credentials of other realms travel on to the proxies that asked for them.
    Departs from RFC 7616 §3.6 [transparent-proxies] [fields-untouched]: an Authorization for our
    realms is removed as well, or a callee could ask for one in our name and try passwords on it.
    """
    headers = request.headers
    for name in ("Proxy-Authorization", "Authorization"):
        if name in headers:
            texts = headers.values(name)
            # RFC 3261 §22.3 [adds-none] [others-stay]
            headers = headers.with_(name, *(text for text in texts if not _is_of(text, realms)))
    return request.replace(headers=headers)


def _is_of(text: str, realms: Collection[str]) -> bool:
    try:
        return Credentials.parse(text).realm in realms
    except RemoteError:
        return False


def _credentials(request: Request, realm: str, *, proxy: bool) -> list[Credentials]:
    found = []
    for text in request.headers.values("Proxy-Authorization" if proxy else "Authorization"):
        try:
            credentials = Credentials.parse(text)
        except RemoteError:
            continue
        # RFC 3261 §22.3 [others-stay]
        if credentials.is_digest and credentials.realm == realm:
            found.append(credentials)
    return found


def _suits(credentials: Credentials, request: Request, domains: Domains) -> bool:
    """Whether what was signed is what is asked: RFC 7616 §3.4.6, RFC 8760 §2.6.

    Both have to name the same user of the same domain, which phones write in more than one way; a
    REGISTER asks for a domain, whoever is named in it.  A proxy on the way, which a second Via
    tells of, may have changed the Request-URI to another one of ours.
    """
    try:
        signed = Uri.parse(credentials.uri)
    except RemoteError:
        return False
    uri = request.uri
    ours, domain = domains.of(signed), domains.of(uri)
    if ours is None or domain is None:
        return (signed.user, signed.host.lower()) == (uri.user, uri.host.lower())
    if len(request.vias) > 1:
        return True
    return ours == domain and (request.method == "REGISTER" or signed.user == uri.user)


def _chokes_on_choice(request: Request) -> bool:
    """Whether the phone gives up at a choice of algorithms: Field §"Digest choice in libre"."""
    agent = request.headers.get("User-Agent") or ""
    return agent.startswith(("baresip v0.", "baresip v1."))
