"""The lite half of ICE: it answers the checks of a peer that does all the work.

Implements RFC 8445 §7.3 and §8.2.

An agent with a public address needs no more: the peer checks the ways to it and nominates one.
Nothing is sent to an address that has not proved, by a password from the signalling, that the peer
is there; and a request without a user name that was given out is not answered at all, so that a
forged source address gains nothing.

Own design: a peer that moves is asked first.  A check can be seen on the way and played back from
elsewhere, and a peer can forge where its own come from.  So a pair in use gives way to another only
when the peer has signed the answer to a request of ours there.  RFC 7675 §1 would have a lite agent
ask nothing; browsers answer these requests as those of a full one.

    >>> from p2psip.nat.stun import BINDING, StunMessage, StunType
    >>> agent, browser = IceLite(bytes, now=0.0), ("192.0.2.7", 4000)
    >>> name = f"{agent.ufrag}:theirs".encode()
    >>> request = StunMessage.write(StunClass.REQUEST, BINDING, bytes(12),
    ...     [(StunType.USERNAME, name), (IceType.USE_CANDIDATE, b"")],
    ...     key=agent.password.encode(), fingerprint=True)
    >>> answer = agent.received(request, browser, now=0.1)
    >>> StunMessage.parse(answer).mapped_address(), agent.remote == browser
    (TransportAddress(host='192.0.2.7', port=4000), True)
"""

import struct
from collections.abc import Callable
from typing import Final

from p2psip.nat.ice_candidate import CandidateType, priority
from p2psip.nat.ice_credentials import ROLE_CONFLICT, HostPort, IceCredentials, IceType
from p2psip.nat.stun import StunClass, StunMessage

CONSENT_SECONDS: Final = 30.0  # of silence, after which the peer has gone. Source: RFC 7675 §5.1
SILENCE: Final = 8.0  # s without a check from where we send, as a NAT has forgotten; own design
MAX_SOURCES: Final = 8  # Own design: addresses that one peer may send from
MAX_SEEN: Final = 256  # Own design: checks remembered, so that none counts from a second address


class IceLite:
    """One peer's checks, from the answer that gave it `ufrag` and `password` to the end: §7.3.

    `remote` is where to send to: the pair that the peer has nominated, else the latest that it has
    checked until `settle`.  `sources` are the addresses from which a check has come, the latest
    last.  `theirs` are the user name and the password of the peer: without them it cannot move.
    """

    def __init__(self, random: Callable[[int], bytes], now: float) -> None:
        self._ours = IceCredentials.draw(random)
        self.ufrag, self.password = self._ours.ufrag, self._ours.password
        self.remote: HostPort | None = None
        self.sources: list[HostPort] = []
        self.theirs: tuple[str, str] | None = None
        self._random = random
        self._settled = False
        self._seen: dict[bytes, HostPort] = {}  # transactions, and where they came from at first
        self._asked: dict[HostPort, bytes] = {}  # our transactions
        self._heard = self._checked = now  # the last check, and the last one from `remote`

    def received(self, request: StunMessage, source: HostPort, now: float) -> bytes | None:
        """Answer a Binding request; None for one that deserves no answer: §7.3."""
        if not self._ours.names(request):
            return None
        refusal = self._ours.refusal(request)
        if refusal is not None:
            return refusal
        if request.get(IceType.ICE_CONTROLLED) is not None:
            # Departs from §7.3.1.1: whatever the tie-breakers say, since a lite agent cannot do
            # the work of a controlling one.  §6.1.1 [lite-is-controlled]
            return self._ours.refuse(request, ROLE_CONFLICT)
        is_taken = self._accept(request, source, now)
        return self._ours.answer(request, source) if is_taken else None

    def restarted(
        self, theirs: tuple[str, str], random: Callable[[int], bytes], now: float
    ) -> "IceLite":
        """The agent of a restarted ICE, whose peer has `CONSENT_SECONDS` to use it.

        Media goes on between the old addresses until a check of the new one has come.
        """
        new = IceLite(random, now)  # RFC 9725 §4.3.3 [restart-ends-with-consent]
        # WHEP §4.4.3 [restart-keeps-the-rest]
        # RFC 9725 §4.3.3 [restart-keeps-the-rest]
        new.remote, new.sources = self.remote, [*self.sources]
        new.theirs, new._settled = theirs, self._settled
        return new

    @property
    def deadline(self) -> float:
        """When the peer has been silent for so long that it counts as gone: RFC 7675 §5.1.

        Own design: a lite agent asks nothing, and takes the checks of its peer for its consent.
        """
        # RFC 7675 §5.1 [consent-ends-after-30-s]
        return self._heard + CONSENT_SECONDS

    def lost(self, source: HostPort) -> None:
        """Forget an address that nothing reaches any more, as its connection has ended: RFC 6544.

        Own design: the peer may come back by another, which its next check tells.
        """
        if source in self.sources:
            self.sources.remove(source)
        self._asked.pop(source, None)
        if self.remote == source:
            self.remote, self._settled = None, False

    def settle(self) -> None:
        """Stay with `remote`, where the peer is known to be, until it has answered elsewhere: §8.2.

        A handshake tells: its flights have arrived there.
        """
        self._settled = True

    def question(self, source: HostPort) -> bytes | None:
        """A request for a source that was nominated and is not yet believed: §8.2, or None."""
        transaction_id = self._asked.get(source)
        if transaction_id is None or self.theirs is None:
            return None
        attributes = (
            (IceType.PRIORITY, struct.pack("!I", priority(CandidateType.PEER_REFLEXIVE))),
            (IceType.ICE_CONTROLLED, self._random(8)),
        )
        return IceCredentials(*self.theirs).check(self.ufrag, transaction_id, attributes).data

    def answered(self, response: StunMessage, source: HostPort, now: float) -> None:
        """Take the answer to a `question`: the peer is there, and media may follow: §8.2."""
        is_ours = self._asked.get(source) == response.transaction_id
        if not is_ours or self.theirs is None or response.kind is not StunClass.SUCCESS:
            return
        if response.integrity_holds(self.theirs[1].encode()):
            self._asked.clear()
            # §8.2 [nomination-is-accepted]; the latest counts, as a peer that moves says it
            self.remote, self._heard, self._checked = source, now, now

    def _accept(self, request: StunMessage, source: HostPort, now: float) -> bool:
        """Note where the peer is, and whether it nominates this way: §8.2; False for a replay."""
        first = self._seen.get(request.transaction_id)
        if first is None:
            self._seen[request.transaction_id] = source
            if len(self._seen) > MAX_SEEN:
                del self._seen[next(iter(self._seen))]
            self._heard = now
        elif first != source:
            return False
        self._note(source)
        nominates = request.get(IceType.USE_CANDIDATE) is not None
        if source == self.remote or not self._settled:
            self.remote, self._checked = source, now
            self._settled = self._settled or nominates  # §8.2 [nomination-is-accepted]
        elif (nominates or now - self._checked > SILENCE) and source not in self._asked:
            self._asked[source] = self._random(12)
        return True

    def _note(self, source: HostPort) -> None:
        """Keep a source, and the latest others beside that in use."""
        if source in self.sources:
            self.sources.remove(source)
        self.sources.append(source)
        if len(self.sources) > MAX_SOURCES:
            gone = next(each for each in self.sources if each != self.remote)
            self.sources.remove(gone)
            self._asked.pop(gone, None)
