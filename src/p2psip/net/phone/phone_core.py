"""The requests that reach a phone, each given to the part that it is for.

Implements RFC 3261 §8.2 for an element of one user.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from p2psip.sip.address import Address
from p2psip.sip.message import Request
from p2psip.stack.request_origin import origin
from p2psip.stack.stack import Flow, Recipient, ServerHandle, Stack
from p2psip.ua.messages import InstantMessage, answer
from p2psip.ua.requests.extensions import Extensions
from p2psip.ua.requests.request_validation import CALL_METHODS, RefusalError, refuse_method
from p2psip.ua.ua import UserAgent

# What a phone takes beyond calls.
EXTENSIONS: Final = Extensions(
    methods=(*CALL_METHODS, "MESSAGE", "REFER", "NOTIFY", "SUBSCRIBE"),
    # RFC 3261 §8.1.1.9 [standard-extensions], RFC 5627 §4.4 [says-gruu]
    # RFC 3891 §6.2 [says-replaces]
    options=("100rel", "timer", "replaces", "gruu"),
)
MAX_REDIRECTS: Final = 5  # other addresses of a callee that are called: §8.1.3.4


def user_agent_of(
    stack: Stack, answer_timeout: float, info_packages: Sequence[str] = ()
) -> UserAgent:
    """The calls of a phone, which ring for `answer_timeout` s (§13), with its Info Packages."""
    return UserAgent(
        stack,
        random=os.urandom,
        answer_timeout=answer_timeout,
        extensions=replace(EXTENSIONS, info_packages=tuple(info_packages)),
        max_redirects=MAX_REDIRECTS,
    )


class PhoneCore:
    """Takes the requests that the stack of a phone passes up: §8.2.

    `on_invite(server, now)` takes new calls, `on_message(message)` messages,
    `on_subscribe(server, now)` new subscriptions, and `on_refer(server, now)` wishes for a call.
    `sender_of(server)` is the sender of a message.
    """

    def __init__(
        self,
        ua: UserAgent,
        user: str,
        on_invite: Callable[[ServerHandle, float], object],
        on_message: Callable[[InstantMessage], object],
        on_subscribe: Callable[[ServerHandle, float], object],
        on_refer: Callable[[ServerHandle, float], object],
        sender_of: Callable[[ServerHandle], Address],
    ) -> None:
        self._sender_of = sender_of
        self._on_subscribe, self._on_refer = on_subscribe, on_refer
        self._ua, self._user = ua, user
        self._on_invite, self._on_message = on_invite, on_message

    def recipient(self, request: Request, flow: Flow, now: float) -> Recipient:
        found = self._ua.recipient(request)
        if found is None:
            return Recipient(self._on_new if request.to.tag is None else self._ua.on_stray)
        if found.peer is not None and origin(request, flow) not in found.peer.hosts:
            return found._replace(take=_forbid)
        return found

    def _on_new(self, server: ServerHandle, request: Request, now: float) -> None:
        """Take a request outside of any dialog: §8.2."""
        try:
            self._sort(server, request, now)
        except RefusalError as refusal:
            server.reply(refusal.status, now, refusal.reason, refusal.headers)

    def _sort(self, server: ServerHandle, request: Request, now: float) -> None:
        ua = self._ua
        if request.uri.user not in (None, self._user):
            server.reply(404, now)  # §8.2.2.1 [404-for-another-user]
        elif request.method == "INVITE":
            self._on_invite(server, now)
        elif request.method == "MESSAGE":
            answer(server, request, partial(self._heard, server), ua.extensions, now)
        elif request.method == "SUBSCRIBE":
            ua.extensions.refuse_unknown(request)
            self._on_subscribe(server, now)
        elif request.method == "REFER":
            ua.extensions.refuse_unknown(request)
            self._on_refer(server, now)
        elif request.method == "OPTIONS":
            # §11 [takes-options], §8.2.1 [looks-at-the-method]
            server.reply(200, now, headers=ua.extensions.abilities(request))
        else:
            refuse_method(request, ua.extensions.allow)

    def _heard(self, server: ServerHandle, message: InstantMessage) -> None:
        self._on_message(replace(message, sender=self._sender_of(server)))

    def on_ack(self, request: Request, flow: Flow, now: float) -> None:
        """Take the ACK of a 2xx, from its peer's place if it has a body: §13.3.1.4."""
        found = self._ua.recipient(request)
        peer = found.peer if found is not None else None
        if peer is None or not request.body or origin(request, flow) in peer.hosts:
            self._ua.on_ack(request, flow, now)


def _forbid(server: ServerHandle, request: Request, now: float) -> None:
    """Refuse a request of a dialog from a foreign place."""
    # §26.1.4: overheard tags end no call; RFC 3262 §9 [as-any-request]
    server.reply(403, now)
