"""One end of an RTMFP session alone, with chunks made and read by hand."""

from support.rtmfp.pair import FAR, NEAR, Pair

from rtmplite.rtmfp.wire.acks import DataAckRanges
from rtmplite.rtmfp.wire.chunks import expand_next_user_data
from rtmplite.rtmfp.wire.flow_chunks import BufferProbe, FragmentControl, UserData, flow_options
from rtmplite.rtmfp.wire.packet import Mode, Packet, unscramble

WHOLE, BEGIN, END, MIDDLE = FragmentControl
META = flow_options(b"m")


class Sending:
    """The sending end alone, its packets read, and answers made by hand."""

    def __init__(self, **options):
        self.pair = Pair(**options)
        self.session, self.now, self.sent = self.pair.near, 0.0, []

    def take(self):
        """The packets that leave now."""
        packets = []
        for datagram, destination in self.session.take(self.now):
            assert destination == FAR
            assert len(datagram) <= 1192
            packets.append(Packet.parse(unscramble(datagram)[1][4:]))
        self.sent += packets
        return packets

    def data(self):
        """The user data that leaves now, spelled out."""
        chunks = [chunk for packet in self.take() for chunk in expand_next_user_data(packet.chunks)]
        return [chunk for chunk in chunks if isinstance(chunk, UserData)]

    def numbers(self):
        return [chunk.sequence_number for chunk in self.data()]

    def probes(self):
        return sum(
            isinstance(chunk, BufferProbe) for packet in self.take() for chunk in packet.chunks
        )

    def answer(self, *chunks):
        packet = Packet(Mode.RESPONDER, chunks).encode()
        self.session.receive(b"ours" + packet, FAR, self.now)

    def ack(self, cumulative, *runs, blocks=100, flow=1):
        self.answer(DataAckRanges(flow, blocks, cumulative, runs))

    def wait(self, seconds):
        self.now += seconds
        self.session.tick(self.now)

    def flow(self, **options):
        return self.session.open_flow(b"meta", self.now, **options)


def send(flow, count, now, size=1000):
    return [flow.send(bytes([index % 256]) * size, now) for index in range(count)]


class Receiving:
    """The receiving end alone: chunks go in, acknowledgements come out."""

    def __init__(self, **options):
        self.pair = Pair(**options)
        self.session, self.now = self.pair.far, 0.0

    def put(self, *chunks):
        packet = Packet(Mode.INITIATOR, chunks).encode()
        self.session.receive(b"ours" + packet, NEAR, self.now)
        return self.take()

    def take(self):
        """The chunks that leave now."""
        datagrams = self.session.take(self.now)
        packets = [Packet.parse(unscramble(datagram)[1][4:]) for datagram, _ in datagrams]
        return [chunk for packet in packets for chunk in packet.chunks]

    def wait(self, seconds):
        self.now += seconds
        self.session.tick(self.now)
        return self.take()

    @property
    def flow(self):
        return self.session.recv_flows[1]

    @property
    def heard(self):
        return self.pair.heard(b"m")


def data(number, payload=b"x", fsn=0, control=WHOLE, options=None, flow=1, **flags):
    """User data of flow 1; the options that open it go with the first number."""
    if options is None and number == 1:
        options = META
    return UserData(flow, number, number - fsn, payload, control, options=options, **flags)


def acked(chunks):
    """The contents of the only acknowledgement."""
    (chunk,) = (chunk for chunk in chunks if isinstance(chunk, DataAckRanges))
    return list(chunk.ranges())
