"""The addresses that have shown that they hear us, and how much the others may be sent.

A datagram's source is easily forged, and our answers then go to a victim that asked for nothing.
So an address that has not shown that it hears us is sent less than three times what came from it,
in octets and in messages; QUIC has the same rule.  Own design: SIP has no such rule.

    >>> reach, victim = AddressValidator(b"secret"), Flow("UDP", ("192.0.2.7", 5060))
    >>> allowance = ReplyAllowance(600)
    >>> [allowance.admits(size, is_final=True) for size in (700, 700, 700)]
    [True, True, False]
    >>> tag = reach.tag("INVITE sip:bob@b.com", "call-id", victim)
    >>> reach.hears(victim), reach.shown(tag, "call-id", victim), reach.hears(victim)
    (False, True, True)

An address shows that it hears us by repeating a secret: the tag that we gave to a To, or the branch
of a request of ours.
"""

import hashlib
import hmac
from collections import OrderedDict
from typing import Final

from p2psip.transaction.flow import Flow, HostPort

FACTOR: Final = 3  # times what came; what is sent stays below
OFFER: Final = 800  # octets of the session description that a request without one may get ...
ANSWER: Final = 100  # ... and that an answer may have more than its offer
MAX_HEARERS: Final = 20_000  # addresses to remember


class AddressValidator:
    """The addresses that have shown that they hear us.

    Only datagrams are doubted: a connection is opened by an answer of its client.  `secret` is for
    the tags; with `trusting` every address counts, for networks without forgers.
    """

    def __init__(self, secret: bytes, *, trusting: bool = False) -> None:
        self._secret, self._trusting = secret, trusting
        self._hearers: OrderedDict[HostPort, None] = OrderedDict()

    def hears(self, flow: Flow) -> bool:
        """Whether the far end of `flow` has shown that it hears us."""
        return flow.reliable or self._trusting or flow.remote in self._hearers

    def heard_at(self, flow: Flow) -> None:
        """Note that the far end of `flow` has shown that it hears us."""
        if not flow.reliable:
            self._hearers[flow.remote] = None
            self._hearers.move_to_end(flow.remote)
            if len(self._hearers) > MAX_HEARERS:
                self._hearers.popitem(last=False)

    def tag(self, about: str, call_id: str, way: Flow) -> str:
        """The tag for a To, in answers that take the flow `way`: RFC 3261 §19.3.

        The same `about` gives the same tag, so that an answer without a transaction can be given
        again.
        """
        unique = self._hash(b"tag", about, call_id)  # RFC 3261 §19.3 [tags-are-random]
        return f"{unique}.{self._proof(unique, call_id, way)}"

    def shown(self, tag: str, call_id: str, way: Flow) -> bool:
        """Whether `tag` was made for answers that take `way`; its far end then hears us."""
        unique, _, proof = tag.partition(".")
        expected = self._proof(unique, call_id, way)
        is_ours = hmac.compare_digest(proof.encode(errors="replace"), expected.encode())
        if is_ours:
            self.heard_at(way)
        return is_ours

    def _proof(self, unique: str, call_id: str, way: Flow) -> str:
        return self._hash(b"proof", unique, call_id, *map(str, way.remote))

    def _hash(self, purpose: bytes, *parts: str) -> str:
        """A keyed hash of parts of a message, which have no line breaks themselves."""
        data = "\n".join(parts).encode(errors="surrogatepass")
        return hashlib.blake2b(data, key=self._secret, person=purpose, digest_size=6).hexdigest()


class ReplyAllowance:
    """How much may be sent in answer to one request whose source is doubtful.

    `size` is the request's, in octets, and `body` that of its session description.  A provisional
    response leaves room for the final one, which may have a description too: a client that has
    heard any repeats its INVITE no more, and so pays for nothing further.
    """

    __slots__ = ("_heard", "_octets_heard", "_octets_said", "_room", "_said")

    def __init__(self, size: int, body: int = 0) -> None:
        self._heard, self._octets_heard = 1, size
        self._room = body + ANSWER if body else OFFER
        self._said = self._octets_said = 0

    def repeated(self, size: int) -> None:
        """Take a repetition of the request, which allows more answers."""
        self._heard += 1
        self._octets_heard += size

    def admits(self, size: int, *, is_final: bool) -> bool:
        """Whether a response of `size` octets may be sent; counts it if so."""
        messages, octets = self._said + 1, self._octets_said + size
        if is_final:
            fits = messages < FACTOR * self._heard and octets < FACTOR * self._octets_heard
        else:
            is_one = messages < FACTOR / 2 * self._heard
            fits = is_one and octets + size + self._room < FACTOR * self._octets_heard
        if fits:
            self._said, self._octets_said = messages, octets
        return fits
