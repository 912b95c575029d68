"""Decides whether a hello is answered, and by which part of the endpoint.

Implements RFC 7016 §3.5.1.1.2, §3.5.1.4 and §3.5.1.5.
"""

from collections.abc import Callable
from typing import Final

from rtmplite.limits.rate_limit_key import rate_limit_key
from rtmplite.rtmfp.endpoint.addresses import is_sendable, told
from rtmplite.rtmfp.endpoint.endpoint_listener import Forwarded
from rtmplite.rtmfp.endpoint.rate_limiter import KEY_BYTES, Limiter
from rtmplite.rtmfp.endpoint.redirector import Redirector
from rtmplite.rtmfp.endpoint.responder import Responder, ResponderHost
from rtmplite.rtmfp.wire.address import Address
from rtmplite.rtmfp.wire.control_chunks import ForwardedInitiatorHello
from rtmplite.rtmfp.wire.startup_chunks import InitiatorHello, ResponderRedirect

_SECOND: Final = 1.0


class Hellos:
    """Answers hellos as responder, as redirector and forwarder, or not at all: §3.5.1.

    `refers` is called for each hello that asks for us, and says whether to send the asker to other
    servers: §3.5.1.7.  `forwarded` is how hellos are answered that a forwarder passes on.
    """

    def __init__(
        self,
        host: ResponderHost,
        responder: Responder,
        redirector: Redirector,
        random: Callable[[int], bytes],
        ignored: Callable[[str], None],
    ) -> None:
        self._host, self._responder, self._redirector = host, responder, redirector
        self._ignored = ignored
        self._limiter = Limiter(random(KEY_BYTES), host.limits.hellos_per_second, _SECOND)
        # All count together, as the forwarder chooses where the answers go.
        forwards = host.limits.forwards_per_second
        self._forwards = Limiter(bytes(KEY_BYTES), forwards, _SECOND, slots=1)
        self.refers: Callable[[], bool] = lambda: False
        self.forwarded = Forwarded.HELLO

    def on_hello(self, hello: InitiatorHello, source: Address, now: float) -> None:
        """Answer, refer, introduce, or be silent: §3.5.1.1.2, §3.5.1.4, §3.5.1.5."""
        if not self._may_answer(hello, source, now):
            return
        host = self._host
        if not host.profile.selects(hello.endpoint_discriminator):
            if not self._redirector.on_foreign_hello(hello, source, now):
                self._ignored("hello to somebody else")
        elif not self.refers() and host.has_room:
            self._responder.on_hello(hello.tag, source, now)
        elif not self._redirector.refer(hello.tag, source, now):
            self._ignored("load")

    def on_forwarded(self, hello: ForwardedInitiatorHello, is_asked: bool, now: float) -> None:
        """Answer a hello that a forwarder passes on: §3.5.1.1.2.

        Own design: only if we asked for the session (`is_asked`) in which it came, and not too
        often; else a stranger could make us send packets to a victim.
        """
        address = told(hello.reply_address)
        is_ours = self._host.profile.selects(hello.endpoint_discriminator)
        if not is_asked or not is_ours or not is_sendable(address):
            self._ignored("forwarded hello")
        elif not self._forwards.allows(b"", now):
            self._ignored("forwarded hellos")
        elif not self._may_answer(hello, address, now):
            return
        elif self.forwarded is Forwarded.HELLO:  # §3.5.1.1.2 [fihello-answered]
            self._responder.on_hello(hello.tag, address, now)
        elif self.forwarded is Forwarded.REDIRECT:  # §3.5.1.1.2 [fihello-answered]
            self._host.packets.send(ResponderRedirect(hello.tag), address, now)

    def _may_answer(
        self, hello: InitiatorHello | ForwardedInitiatorHello, address: Address, now: float
    ) -> bool:
        """Keep answers within limits: §5, `limits.StartupLimits`."""
        longest = max(len(hello.tag), len(hello.endpoint_discriminator))
        if longest > self._host.limits.field_bytes:  # §5 [resources-bounded]
            self._ignored("long field")
        # §5 [resources-bounded]
        elif self._limiter.allows(rate_limit_key(address[0]), now):
            return True
        else:
            self._ignored("hellos of a host")
        return False
