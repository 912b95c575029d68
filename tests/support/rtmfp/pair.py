"""Two ends of an RTMFP session without a handshake, and users that record their events."""

from random import Random

from support.rtmfp.link import Link, calm

from rtmplite.errors import RemoteError
from rtmplite.rtmfp.session.limits import SessionLimits
from rtmplite.rtmfp.session.recv_flow import FlowReceiver
from rtmplite.rtmfp.session.send_flow import FlowSender
from rtmplite.rtmfp.session.session import Session, SessionListener
from rtmplite.rtmfp.wire.packet import unscramble


class PlainCipher:
    """No secrets: four bytes that tell ours from rubbish, and a packet as it is."""

    def seal(self, packet):
        return b"ours" + packet

    def open(self, encrypted):
        if encrypted[:4] != b"ours":
            raise RemoteError("rubbish")
        return bytes(encrypted[4:])

    def room(self, size):
        return size - 4


class Receiver(FlowReceiver):
    def __init__(self):
        self.messages, self.gaps, self.times = [], [], []
        self.complete = self.exceptions = 0

    def on_message(self, flow, message, now):
        self.messages.append(message)
        self.times.append(now)

    def on_gap(self, flow, missing, now):
        self.gaps.append((len(self.messages), missing))

    def on_exception(self, flow, now):
        self.exceptions += 1

    def on_complete(self, flow, now):
        self.complete += 1


class Sender(FlowSender):
    def __init__(self):
        self.exceptions, self.complete, self.writable = [], 0, 0

    def on_exception(self, flow, code, now):
        self.exceptions.append(code)

    def on_complete(self, flow, now):
        self.complete += 1

    def on_writable(self, flow, now):
        self.writable += 1


class Listener(SessionListener):
    """Accepts every flow, unless `refuse` is set; `flows` and `receivers` are by metadata."""

    def __init__(self):
        self.refuse = False
        self.setup = lambda flow: None
        self.flows, self.receivers, self.closed, self.moves, self.hellos = {}, {}, [], [], []

    def on_flow(self, session, flow, now):
        if self.refuse:
            return None
        self.setup(flow)
        self.flows[flow.metadata] = flow
        self.receivers[flow.metadata] = Receiver()
        return self.receivers[flow.metadata]

    def on_closed(self, session, now):
        self.closed.append((now, session.reason))

    def on_forwarded_hello(self, session, hello, now):
        self.hellos.append(hello)

    def on_address_change(self, session, former, now):
        self.moves.append((former, session.address))


class Node:
    """A session as `Link` wants it; `aliases` are addresses that it sends from next."""

    def __init__(self, session, link):
        self.session, self.link = session, link

    @property
    def deadline(self):
        return self.session.deadline

    def tick(self, now):
        self.session.tick(now)

    def receive(self, data, source, now):
        session_id, encrypted = unscramble(data)
        assert session_id == self.session.near_id
        self.session.receive(encrypted, source, now)

    def take(self):
        return self.session.take(self.link.now)


NEAR, FAR = ("192.0.2.1", 1935), ("192.0.2.2", 40000)


class Pair:
    """Two open sessions, `near` (the initiator) and `far`, on one link."""

    def __init__(self, weather=None, *, limits=None, ciphers=None, seed=1, notices=None):
        self.link = Link(weather or calm(0.02))
        self.random = Random(seed)
        limits = limits or SessionLimits()
        near_cipher, far_cipher = ciphers or (PlainCipher(), PlainCipher())
        self.near_listener, self.far_listener = Listener(), Listener()
        self.woken = []
        common = {
            "far_certificate": b"certificate",
            "random": self.random.randbytes,
            "now": 0.0,
            "limits": limits,
        }
        self.near = Session(
            initiator=True,
            cipher=near_cipher,
            near_id=17,
            far_id=29,
            address=FAR,
            near_nonce=b"n",
            far_nonce=b"f",
            listener=self.near_listener,
            notices=notices,
            on_work=self.woken.append,
            **common,
        )
        self.far = Session(
            initiator=False,
            cipher=far_cipher,
            near_id=29,
            far_id=17,
            address=NEAR,
            near_nonce=b"f",
            far_nonce=b"n",
            listener=self.far_listener,
            **common,
        )
        self.near_node, self.far_node = Node(self.near, self.link), Node(self.far, self.link)
        self.link.join(NEAR, self.near_node)
        self.link.join(FAR, self.far_node)

    @property
    def now(self):
        return self.link.now

    def run(self, seconds):
        """Let so much time pass."""
        self.link.run(self.link.now + seconds)

    def flow(self, metadata=b"flow", **options):
        """A flow from near to far."""
        return self.near.open_flow(metadata, self.now, **options)

    def heard(self, metadata=b"flow"):
        """The messages that the far end received on a flow."""
        return self.far_listener.receivers[metadata]
