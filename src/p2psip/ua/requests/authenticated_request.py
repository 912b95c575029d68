"""A request of a user agent, sent again with credentials when it is challenged, or redirected.

Implements RFC 3261 §8.1.3.4, §8.1.3.5 and §22.2: the repetition has the next CSeq number, and its
user receives the last answer only.
"""

from collections.abc import Callable, Sequence
from typing import Final, Protocol

from p2psip.sip.build import response_to
from p2psip.sip.message import Request, Response
from p2psip.stack.clients import ClientHandle
from p2psip.stack.stack import Stack
from p2psip.transaction.flow import Flow
from p2psip.ua.requests.digest_client import ANSWERS, DigestClient
from p2psip.ua.requests.redirection import Redirection

# The flows for a request at a time, None to look them up as usual: RFC 3261 §12.2.1.1.
FlowChooser = Callable[[Request, float], Sequence[Flow] | None]

MAX_ROUNDS: Final = 4  # challenges to one request: by several proxies, or for stale nonces


class AuthenticatedRequestUser(Protocol):
    """The user of a request, which receives its responses (RFC 3261 §8.1.3)."""

    def on_response(self, exchange: "AuthenticatedRequest", response: Response, now: float) -> None:
        """Take a response, a 408 for silence, a 503 for no way (§8.1.3, §8.1.3.1)."""


class AuthenticatedRequest:
    """A request with its answer, after the challenges on the way (§8.1.3.5).

    `next_cseq` gives the number of a repetition.  `request` is the one last sent; `done` is True
    once there is a final answer; `answered_by` is the flow of the last answer, None if there was
    none.  `choose_flows` finds the flows within a dialog.  Of the servers that a look-up finds
    `preferred` is tried first: the one that knows us.  Redirections are followed to `max_redirects`
    addresses, for a request outside of a dialog; an INVITE has legs to drop, and follows them
    itself.

    Not done: RFC 3261 §8.1.3.5 [smaller-body] [another-type]: the bodies are session descriptions
    and texts for people, and nothing shorter or of another type says the same.
    """

    def __init__(
        self,
        stack: Stack,
        user: AuthenticatedRequestUser,
        next_cseq: Callable[[], int],
        digest_client: DigestClient | None = None,
        choose_flows: FlowChooser = lambda request, now: None,
        max_redirects: int = 0,
    ) -> None:
        self.done = False
        self.preferred: Flow | None = None
        self.answered_by: Flow | None = None
        self.request: Request
        self._stack, self._user, self._next_cseq = stack, user, next_cseq
        self._digest_client, self._choose_flows = digest_client, choose_flows
        self._handle: ClientHandle
        self._cancelled = False
        self._answered: set[str] = set()  # realms: each gets one proof for one request
        self._rounds, self._max_redirects = 0, max_redirects
        self._others: Redirection | None = None

    def send(self, request: Request, now: float) -> None:
        """Send the request (§8.1.2); the user is never called before this returns."""
        # §22.2 [credentials-kept], §22.3 [same-call-signs]
        self._send(
            request if self._digest_client is None else self._digest_client.sign(request), now
        )

    def _send(self, request: Request, now: float) -> None:
        self.request = request
        flows = self._choose_flows(request, now)
        self._handle = self._stack.request(request, self, now, flows=flows)
        self._handle.preferred = self.preferred

    @property
    def sent_to(self) -> Flow | None:
        """The flow it was last sent by; None while its server is being located (RFC 3263 §4)."""
        return self._handle.flow

    def cancel(self, now: float) -> None:
        """Give up an INVITE (§9.1); its final answer still comes."""
        self._cancelled = True
        self._handle.cancel(now)

    def on_response(self, handle: ClientHandle, response: Response, now: float) -> None:
        """Take a response of the stack (§8.1.3); pass it on unless it can be answered (§22.2)."""
        self.answered_by = handle.flow
        # §8.1.3.5 [answers-challenges], §21.4 [not-the-same-again], §21.4.4 [403-is-final]
        if response.status in (401, 407) and self._try_again(response, now):
            return
        if response.status >= 300 and self._max_redirects and self._try_elsewhere(response, now):
            return
        digest_client, is_good = self._digest_client, 200 <= response.status < 300
        if (
            digest_client is not None
            and is_good
            and digest_client.is_for(self.request, self.sent_to)
        ):
            digest_client.informed(response)
        self.done = self.done or response.status >= 200
        self._user.on_response(self, response, now)

    def on_failure(self, handle: ClientHandle, status: int, now: float) -> None:
        """Take the end without an answer as the response that stands for it (§8.1.3.1)."""
        self.done, self.answered_by = True, None
        # §8.1.3.1 [silence-is-408] [no-way-is-503]
        response = response_to(self.request, status, handle.cause)
        self._user.on_response(self, response, now)

    def _try_again(self, response: Response, now: float) -> bool:
        """Send the request again with credentials; False if that cannot help (§22.2)."""
        if self._digest_client is None or self._cancelled or self._rounds == MAX_ROUNDS:
            return False
        if not self._digest_client.is_for(self.request, self.sent_to):
            return False
        asked = self._digest_client.asked(response)
        realms = {realm for _, realm in asked}
        if not realms or realms & self._answered:
            # RFC 8760 §2.4 [gives-up], RFC 7616 §3.3 [refused-is-final]
            # RFC 3261 §22.1 [refused-is-final]
            return False  # the proof was refused, or a server behind asks too
        self._rounds += 1
        self.preferred = self.sent_to  # its challenge may mean nothing to another server
        self._answered |= realms
        self._digest_client.learn(asked)
        signed = self._digest_client.sign(self._repeated(), is_asked=True)
        self._send(signed, now)  # §22.2 [answers-401], §22.3 [answers-407]
        return True

    def _try_elsewhere(self, response: Response, now: float) -> bool:
        """Send the request to another address of its target; False if none is left (§8.1.3.4)."""
        if self._others is None:
            self._others = Redirection(self.request.uri, self._max_redirects)
        target = self._others.next(response)
        if target is None:
            return False
        self._rounds, self._answered = 0, set()
        request = self._repeated()
        # RFC 3261 §8.1.3.4 [recurses] [same-call] [same-in-all-else]
        request = request.replace(uri=target, headers=request.headers.without(*ANSWERS.values()))
        self.send(request, now)
        return True

    def _repeated(self) -> Request:
        """The request once more, with the next CSeq number (§8.1.3.4, §8.1.3.5)."""
        cseq = f"{self._next_cseq()} {self.request.method}"  # §22.2 [next-cseq]
        # §8.1.3.5 [again-within-the-call]
        return self.request.replace(headers=self.request.headers.with_("CSeq", cseq))
