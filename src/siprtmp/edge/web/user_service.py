"""Asks the web service of `--tree-auth` who a client of the tree is, by HTTP.

Implements Resources §14.

Own design: each question has a connection of its own, in the greenlet of the client, so no other
client waits.  The same question is not asked twice at once.  A log line has neither the client's
proof nor the service's answer, except the reason of a failure.
"""

import io
from collections.abc import Callable
from http.client import HTTPException, HTTPResponse
from typing import Any, Final, cast

import gevent
from gevent import socket
from gevent import ssl as gevent_ssl
from gevent.event import AsyncResult
from gevent.lock import BoundedSemaphore

from p2psip.errors import RemoteError
from p2psip.net.clock import monotonic
from rtmplite.errors import LocalError
from rtmplite.limits.rate_limit_key import rate_limit_key
from rtmplite.net.redaction import public
from rtmplite.net.server.hooks import Service, request, service
from siprtmp import __version__
from siprtmp.operation.logs import Log
from siprtmp.web.resources.proofs import (
    MAX_CONTENT,
    UNKNOWN,
    Identity,
    KnownProofs,
    Proof,
    Questions,
    Refusal,
    identity_of,
)

TIMEOUT: Final = 4.0  # s for the whole of a question
MAX_ANSWER: Final = 64 << 10  # octets, with its head
MAX_REASON: Final = 200  # letters in the log
LOOK_UPS: Final = 2  # of the service's name at once: others wait for the resolver too
SILENT: Final = "The service that knows the users does not answer: try again"
_KEY: Final = 32  # octets


class UserService:
    """The service at `url`; `random` makes the key that answers are kept by."""

    def __init__(self, url: str, random: Callable[[int], bytes], log: Log) -> None:
        self._url, self._log, self._key = url, log, random(_KEY)
        self._known, self._questions = KnownProofs(), Questions()
        self._under_way: dict[bytes, AsyncResult[Identity | Refusal | None]] = {}
        self._looking_up = BoundedSemaphore(LOOK_UPS)
        self._is_failing = False

    def identity(self, proof: Proof) -> Identity:
        """The client with this proof.  Waits.  Raises RemoteError: 401, or 503 for no decision."""
        code = proof.code(self._key)
        answer = self._known.find(code, monotonic())
        if answer is None:
            answer = self._asked(code, proof)
        if isinstance(answer, Refusal):
            raise RemoteError(UNKNOWN, 401)
        if answer is None:
            raise RemoteError(SILENT, 503)
        return answer

    def _asked(self, code: bytes, proof: Proof) -> Identity | Refusal | None:
        other = self._under_way.get(code)
        if other is not None:
            found: Any = other.get()
            return cast(Identity | Refusal | None, found)
        host = rate_limit_key(proof.host)
        self._questions.begin(host)
        told = self._under_way[code] = AsyncResult()
        answer: Identity | Refusal | None = None
        try:
            answer = self._answer(proof.question)
            if answer is not None:
                self._known.keep(code, answer, monotonic())
        finally:
            self._questions.end(host)
            del self._under_way[code]
            told.set(answer)
        return answer

    def _answer(self, question: bytes) -> Identity | Refusal | None:
        """Ask; None if that decides nothing, which is logged once until it does again."""
        timeout = gevent.Timeout(TIMEOUT)
        try:
            with timeout:
                answer = identity_of(*self._post(question))
        except gevent.Timeout as error:
            if error is not timeout:
                raise
            self._fail("no answer in time")
            return None
        except (OSError, HTTPException, LocalError, RemoteError, ValueError) as error:
            words = error.reason if isinstance(error, RemoteError) else str(error)
            self._fail(words or type(error).__name__)
            return None
        if self._is_failing:
            self._is_failing = False
            self._log.event("user-service-back", url=public(self._url))
        return answer

    def _fail(self, reason: str) -> None:
        if not self._is_failing:
            self._is_failing = True
            reason = ascii(reason)[1:-1][:MAX_REASON]
            self._log.warning("user-service-failed", url=public(self._url), reason=reason)

    def _post(self, question: bytes) -> tuple[int, bytes]:
        """The status and the content of the answer; a redirection is not followed."""
        place = service(self._url)
        connected = self._connected(place)
        try:
            if place.is_secure:
                tls = gevent_ssl.create_default_context()
                connected = tls.wrap_socket(connected, server_hostname=place.host)
            fields = {"User-Agent": f"siprtmp/{__version__}", "Content-Type": "application/json"}
            connected.sendall(request(place, question, fields))
            answer = HTTPResponse(cast(Any, _Answer(connected)), method="POST")
            answer.begin()
            content = answer.read(MAX_CONTENT + 1) if answer.status == 200 else b""
        finally:
            connected.close()
        if len(content) > MAX_CONTENT:
            raise RemoteError("the answer is too long")
        if content and answer.length:  # less has come than was told
            raise RemoteError("the answer is cut short")
        return answer.status, content

    def _connected(self, place: Service) -> socket.socket:
        with self._looking_up:
            found = socket.getaddrinfo(place.host, place.port, type=socket.SOCK_STREAM)
        why = OSError("the host has no address")
        for *_, address in found:
            try:
                return socket.create_connection((str(address[0]), place.port))
            except OSError as error:
                why = error
        raise why


class _Answer(io.RawIOBase):
    """The octets of an answer, up to a limit; other greenlets run in between."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket, self._left = connected, MAX_ANSWER

    def makefile(self, mode: str) -> io.BufferedReader:
        """The file that HTTPResponse reads from."""
        return io.BufferedReader(self)

    def readable(self) -> bool:
        return True

    def readinto(self, into: Any) -> int:
        # Resources §14.4 [answers-are-bounded]
        if self._left <= 0:
            raise RemoteError("an answer without end")
        piece = self._socket.recv(min(len(into), self._left))
        self._left -= len(piece)
        into[: len(piece)] = piece
        gevent.sleep(0)
        return len(piece)
