"""Finds the user behind a request for a resource, and the site of its page.

Implements Resources §9.

Own design: a client proves its user by HTTP Basic, by `?user=NAME&pass=PASSWORD`, or by a token
(a JWT), as a Bearer, as `?token=` or, from a page, as the second subprotocol of its
WebSocket.  Without any it is anonymous, where the listener serves such clients.  A browser adds
Basic by itself, so a request that a page of another site has made counts for nothing.  A web
service may decide where the gateway cannot: about tokens without a key, and unknown names.
"""

from base64 import b64decode
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlsplit

from p2psip.errors import RemoteError
from p2psip.stack.routing import is_loopback
from siprtmp.calls.access.admission import Admission, Admitted
from siprtmp.edge.web.status_access import MAX_PROOF, StatusAccess
from siprtmp.operation.arguments import ConfigError, needs_extra
from siprtmp.web.asking_host import source_of
from siprtmp.web.resources.asker import Asker
from siprtmp.web.resources.proofs import MAX_GROUPS, Identity, Proof

BEARER: Final = "bearer."  # how the subprotocol begins that is a token
MAX_TOKEN: Final = 4096  # letters
_SYMMETRIC: Final = ("HS256", "HS384", "HS512")
_PUBLIC: Final = ("RS256", "ES256", "EdDSA")
_LEAST_SECRET: Final = 32  # octets of a secret, as many as the hash has

Proves = Callable[[str], tuple[str, frozenset[str]]]
"""Gives the user and the groups of a token.  Raises RemoteError, 401."""

Identifies = Callable[[Proof], Identity]
"""Has a web service decide; may wait.  Raises RemoteError, 401 or 503."""


class TreeAccess:
    """Judges requests; `origins` are the other sites whose pages may ask.

    `service` decides about tokens if there are no `tokens`, and about names of no user of ours.
    """

    def __init__(
        self,
        status: StatusAccess,
        admission: Admission,
        origins: Iterable[str],
        tokens: Proves | None,
        *,
        allows_anonymous: bool,
        service: Identifies | None = None,
    ) -> None:
        self._status, self._admission, self._tokens = status, admission, tokens
        self._service = service
        self._origins = frozenset(each.lower().rstrip("/") for each in origins)
        self._allows_anonymous = allows_anonymous

    def check_page(self, environ: Mapping[str, Any]) -> str:
        """Return the Origin if it is another site's that may ask, "" for our own pages.

        Raises RemoteError for other sites, and for a Host that is no name of the gateway.
        """
        if not self._status.is_ours(environ):
            raise RemoteError("That is no name of this gateway", 421)
        origin = environ.get("HTTP_ORIGIN")
        if origin is None:
            return ""
        text = str(origin).lower()
        if text in self._origins:
            return text
        # Resources §9 [other-sites-are-refused]
        if not _is_same(text, str(environ.get("HTTP_HOST", "")).lower()):
            raise RemoteError("A page of another site may not ask", 403)
        return ""

    def judge(self, environ: Mapping[str, Any], connection: str, now: float) -> Asker:
        """Return the client of a request.  Raises RemoteError: 401, 503 after too many guesses."""
        source = source_of(environ)
        if token := _token(environ):
            user, groups = self._of_token(token, source)
            return Asker(user, groups, connection, source, by_token=True)
        if query := _proof(environ):
            # Resources §14.1 [own-users-are-judged-here]
            stranger = self._admission.stranger(query) if self._service is not None else None
            if self._service is not None and stranger is not None:
                return self._stranger(Proof(source, "", *stranger), self._service, connection, now)
            return self._user(source, query, connection, now)
        is_ours = self._status.is_open and is_loopback(source)
        if not (self._allows_anonymous or is_ours):
            raise RemoteError("User and password, please", 401)
        return Asker(None, frozenset(), connection, source)

    def _of_token(self, token: str, source: str) -> tuple[str, frozenset[str]]:
        if self._tokens is not None:  # Resources §14.1 [key-comes-first]
            return self._tokens(token)
        if self._service is None:
            raise RemoteError("The gateway takes no tokens", 401)
        found = self._service(Proof(source, token))
        return found.user, found.groups

    def _stranger(self, proof: Proof, service: Identifies, connection: str, now: float) -> Asker:
        """Ask the service, unless there were too many wrong passwords; waits."""
        found: list[Identity] = []

        def proves() -> bool:
            try:
                found.append(service(proof))
            except RemoteError as error:
                if error.status != 401:  # it was no wrong password then
                    raise
            return bool(found)

        _check(self._admission.guarded(proof.host, proof.user, proves, now))
        return Asker(found[0].user, found[0].groups, connection, proof.host, by_token=True)

    def _user(self, host: str, query: str, connection: str, now: float) -> Asker:
        _check(self._admission.prove(host, now, query))
        users = self._admission.holder(host, "", query, now)
        return Asker(min(users), frozenset(), connection, host)


def _check(verdict: Admitted) -> None:
    if verdict is Admitted.LATER:
        raise RemoteError("Too many wrong passwords: try again later", 503)
    if verdict is Admitted.NO:
        raise RemoteError("Wrong user or password", 401)


def load_tokens(path: Path) -> Proves:
    """Read the key of tokens: a secret, or a public key in PEM.  Raises ConfigError."""
    try:
        import jwt
    except ImportError:
        raise ConfigError(needs_extra("--token-key", "web")) from None
    try:
        key = path.read_bytes().strip()
    except OSError as error:
        raise ConfigError(f"--token-key {path}: {error.strerror}") from None
    is_public = key.startswith(b"-----BEGIN PUBLIC KEY-----")
    if not is_public and (len(key) < _LEAST_SECRET or key.startswith(b"-----BEGIN")):
        raise ConfigError(
            f"--token-key {path}: a public key in PEM, or a secret of {_LEAST_SECRET} octets"
        )
    algorithms = _PUBLIC if is_public else _SYMMETRIC  # a public key is never taken for a secret

    def prove(token: str) -> tuple[str, frozenset[str]]:
        try:
            claims = jwt.decode(
                token, key, algorithms=list(algorithms), options={"require": ["exp", "sub"]}
            )
        except (jwt.PyJWTError, ValueError, TypeError):
            raise RemoteError("The token is not valid", 401) from None
        groups = claims.get("groups", [])
        if not isinstance(groups, list) or not all(isinstance(each, str) for each in groups):
            raise RemoteError("The groups of the token are no list of names", 401)
        return str(claims["sub"]), frozenset(groups[:MAX_GROUPS])

    return prove


def _is_same(origin: str, host: str) -> bool:
    """Whether a page is one of the host that it asks."""
    try:
        site = urlsplit(origin)
    except ValueError:
        return False
    default = {"http": ":80", "https": ":443"}.get(site.scheme, "")
    own, asked = (each.removesuffix(default) for each in (site.netloc, host))
    return bool(default and host) and own == asked


def _token(environ: Mapping[str, Any]) -> str:
    scheme, _, text = str(environ.get("HTTP_AUTHORIZATION", "")).partition(" ")
    found = text.strip() if scheme.lower() == "bearer" else ""
    for each in str(environ.get("HTTP_SEC_WEBSOCKET_PROTOCOL", "")).split(","):
        if each.strip().startswith(BEARER):
            found = found or each.strip().removeprefix(BEARER)
    for part in str(environ.get("QUERY_STRING", "")).split("&"):
        if part.startswith("token="):
            found = found or part.removeprefix("token=")
    if len(found) > MAX_TOKEN:
        raise RemoteError("The token is too long", 401)
    return found


def _proof(environ: Mapping[str, Any]) -> str:
    """User and password as a query, empty without."""
    scheme, _, text = str(environ.get("HTTP_AUTHORIZATION", "")).partition(" ")
    if scheme.lower() != "basic":
        query = str(environ.get("QUERY_STRING", ""))
        return query if "user=" in query else ""
    try:
        said = b64decode(text.strip(), validate=True).decode() if len(text) <= MAX_PROOF else ""
    except ValueError:
        said = ""
    name, _, password = said.partition(":")
    return f"user={quote(name, safe='')}&pass={quote(password, safe='')}"
