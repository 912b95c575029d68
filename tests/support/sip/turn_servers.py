"""The server side of TURN for one client, without a socket: enough to test a client against."""

from p2psip.nat.long_term import LongTermCredentials
from p2psip.nat.stun import (
    StunClass,
    StunMessage,
    StunType,
    read_address,
    write_address,
    write_error,
)
from p2psip.nat.turn import (
    TurnMethod,
    TurnType,
    channel_data,
    read_channel_data,
    read_lifetime,
    write_lifetime,
)

REALM, RELAYED, MAPPED = "example.org", ("198.51.100.1", 50000), ("203.0.113.7", 40000)


class TurnServer:
    """Answers datagrams of one client by `answer`; `sent` has (data, peer) that went to peers.

    `refusals` are codes that the next signed requests of a method get, by method.
    """

    def __init__(self, user="ann", password="secret", *, nonce=b"n1", algorithms=None):
        self.users, self.nonce, self.algorithms = {user: password}, nonce, algorithms
        self.lifetime, self.is_up = 600, False
        self.permitted, self.channels, self.sent, self.requests = set(), {}, [], []
        self.refusals = {}

    def answer(self, datagram):
        """The response to a datagram, None where there is none."""
        found = read_channel_data(datagram)
        if found is not None:
            self.sent.append((found[1], self.channels[found[0]]))
            return None
        message = StunMessage.parse(datagram)
        if message.kind is StunClass.INDICATION:
            peer = read_address(message.get(TurnType.XOR_PEER_ADDRESS), message.transaction_id)
            if peer.host in self.permitted:
                self.sent.append((message.get(TurnType.DATA), peer))
            return None
        self.requests.append(message)
        return self._guarded(message)

    def _guarded(self, request):
        user = request.text(StunType.USERNAME)
        if user is None:
            return self._challenge(request, 401)
        login = self.login(user)
        if not request.integrity_holds(login.key):
            return self._challenge(request, 401)
        if request.get(StunType.NONCE) != self.nonce:
            return self._challenge(request, 438)
        codes = self.refusals.get(request.method)
        code = codes.pop(0) if codes else 0
        if not code and request.method != TurnMethod.ALLOCATE and not self.is_up:
            code = 437
        if code:
            return self.reply(
                request, [(StunType.ERROR_CODE, write_error(code, "no"))], StunClass.ERROR
            )
        return self.reply(request, self._done(request))

    def login(self, user="ann"):
        """The user's password, wrapped as the server wants it."""
        algorithm = 1 if self.algorithms is None else int.from_bytes(self.algorithms[:2])
        password = self.users.get(user, "")
        return LongTermCredentials(user, password, REALM, self.nonce, self.algorithms, algorithm)

    def _challenge(self, request, code):
        listed = [(StunType.ERROR_CODE, write_error(code, "")), (StunType.REALM, REALM.encode())]
        listed.append((StunType.NONCE, self.nonce))
        if self.algorithms is not None:
            listed.append((StunType.PASSWORD_ALGORITHMS, self.algorithms))
        return StunMessage.write(
            StunClass.ERROR, request.method, request.transaction_id, listed
        ).data

    def reply(self, request, attributes=(), kind=StunClass.SUCCESS, key=None):
        """A signed response."""
        login = self.login(request.text(StunType.USERNAME) or "ann")
        identifier = request.transaction_id
        return StunMessage.write(
            kind,
            request.method,
            identifier,
            attributes,
            key=key or login.key,
            digest=login.digest,
        ).data

    def _done(self, request):
        identifier = request.transaction_id
        peers = [
            read_address(value, identifier)
            for kind, value in request.attributes
            if kind == TurnType.XOR_PEER_ADDRESS
        ]
        self.permitted |= {peer.host for peer in peers}
        match request.method:
            case TurnMethod.ALLOCATE:
                self.is_up = True
                return [
                    (TurnType.XOR_RELAYED_ADDRESS, write_address(RELAYED, identifier)),
                    (TurnType.LIFETIME, write_lifetime(self.lifetime)),
                    (StunType.XOR_MAPPED_ADDRESS, write_address(MAPPED, identifier)),
                ]
            case TurnMethod.REFRESH:
                wanted = request.get(TurnType.LIFETIME)
                self.is_up = wanted is None or read_lifetime(wanted) > 0
                left = self.lifetime if self.is_up else 0
                return [(TurnType.LIFETIME, write_lifetime(left))]
            case TurnMethod.CHANNEL_BIND:
                number = int.from_bytes(request.get(TurnType.CHANNEL_NUMBER)[:2])
                self.channels[number] = peers[0]
        return []

    def data_from(self, peer, data):
        """A packet of a peer, as the client gets it; None without a permission."""
        if peer[0] not in self.permitted:
            return None
        for number, bound in self.channels.items():
            if bound == peer:
                return channel_data(number, data)
        return indication(peer, data)


def indication(peer, data):
    """A Data indication."""
    value = write_address(peer, bytes(12))
    listed = [(TurnType.XOR_PEER_ADDRESS, value), (TurnType.DATA, data)]
    return StunMessage.write(StunClass.INDICATION, TurnMethod.DATA, bytes(12), listed).data
