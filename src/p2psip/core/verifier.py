"""The server's side of Digest: challenge, and judge the answer.

Implements RFC 3261 §22.2 and §22.3 with RFC 7616 §3.3 and RFC 8760 §2.3.

No state is kept for a challenge: the nonce carries its time and a proof that it is ours.
What is kept, for a bounded number of nonces, is the highest count seen, so that a request
overheard on the way can't be sent again.
"""

import hashlib
import hmac
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from p2psip.core.users import UserStore
from p2psip.errors import RemoteError
from p2psip.sip.auth import Challenge, Credentials, verify
from p2psip.sip.message import Request

NONCE_SECONDS: Final = 300.0  # RFC 7616 §5.4: a nonce is good for a while
NONCES: Final = 10_000  # how many counts are remembered

Answer = str | tuple[tuple[str, object], ...]
"""Either who asks, or the challenge headers to send back."""


class Verifier:
    """Judges requests by their credentials: RFC 3261 §22.1.  `random(n)` gives n octets."""

    def __init__(self, users: UserStore, random: Callable[[int], bytes]) -> None:
        self.users = users
        self._random, self._secret = random, random(32)
        self._counts: OrderedDict[str, int] = OrderedDict()

    def check(
        self, request: Request, claimed: str, realm: str, now: float, *, proxy: bool
    ) -> Answer:
        """The user who proved to be who they say, or the headers of a challenge.

        `claimed` is the user the request speaks for.  `proxy` chooses between 401's headers
        (RFC 3261 §22.2) and 407's (§22.3).  Never says whether it was the name or the
        password that was wrong.
        """
        name = "Proxy-Authorization" if proxy else "Authorization"
        stale = False
        for text in request.headers.values(name):
            try:
                credentials = Credentials.parse(text)
            except RemoteError:
                continue
            if not credentials.is_digest or credentials.realm != realm:
                continue
            if self._proves(credentials, request):
                if self._is_fresh(credentials, now):
                    return credentials.username
                stale = True
        algorithms = self.users.algorithms(claimed, realm)
        if "MD5" in algorithms and _chokes_on_choice(request):
            algorithms = ("MD5",)
        return self._challenge(algorithms, realm, now, stale=stale, proxy=proxy)

    def _proves(self, credentials: Credentials, request: Request) -> bool:
        user, realm = credentials.username, credentials.realm
        secret = self.users.lookup(user, realm, credentials.algorithm)
        # an unknown user costs as much as a known one: RFC 7616 §5.7
        proof = verify(credentials, request.method, secret or "0" * 64, request.body)
        return proof and secret is not None

    def _is_fresh(self, credentials: Credentials, now: float) -> bool:
        """RFC 7616 §3.4: ours, not too old, and counted upwards."""
        nonce = credentials.nonce
        at, _, rest = nonce.partition(".")
        salt, _, proof = rest.partition(".")
        if not hmac.compare_digest(proof.encode(errors="replace"), self._proof(at, salt)):
            return False
        age = now - int(at, 16) / 1000  # our own proof vouches for the digits
        if not -1.0 <= age <= NONCE_SECONDS:
            return False
        if credentials.qop is None:
            return True  # an RFC 2069 client counts nothing
        count = credentials.nc or 0
        if count <= self._counts.get(nonce, 0):
            return False
        self._counts[nonce] = count
        self._counts.move_to_end(nonce)
        if len(self._counts) > NONCES:
            self._counts.popitem(last=False)
        return True

    def _challenge(
        self,
        algorithms: tuple[str, ...],
        realm: str,
        now: float,
        *,
        stale: bool,
        proxy: bool,
    ) -> tuple[tuple[str, object], ...]:
        name = "Proxy-Authenticate" if proxy else "WWW-Authenticate"
        at, salt = f"{int(max(now, 0.0) * 1000):x}", self._random(6).hex()
        nonce = f"{at}.{salt}.{self._proof(at, salt).decode()}"
        return tuple(
            (name, Challenge.digest(realm, nonce=nonce, algorithm=algorithm, stale=stale))
            for algorithm in algorithms
        )

    def _proof(self, at: str, salt: str) -> bytes:
        text = f"{at}.{salt}".encode(errors="replace")
        return hmac.digest(self._secret, text, hashlib.sha256).hex()[:24].encode()


def _chokes_on_choice(request: Request) -> bool:
    """Whether the phone gives up when any challenge is not MD5, whatever stands beside it.

    Field §"Digest choice in libre": baresip 0 and 1 do.
    """
    agent = request.headers.get("User-Agent") or ""
    return agent.startswith(("baresip v0.", "baresip v1."))
