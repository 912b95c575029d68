"""A phone's audio on its way to players, all of it real but the clock and what is sent."""

import socket

from support.gateway.audio_rig import AUDIO, plan
from support.pump.built import built
from support.sip.elements import random_source

from p2psip.net.media.port_pool import MediaPair
from p2psip.net.media.rtp_ports import MediaPort
from rtmplite.live.streams import Registry
from rtmplite.rtmp.wire.chunk_writer import ChunkFraming
from siprtmp.calls.stream_user import StreamUser
from siprtmp.media.audio_stream import AudioStream
from siprtmp.media.sink import MediaSink
from siprtmp.media.stream import Signalled, StreamContext, StreamSettings

PEER = ("192.0.2.9", 5004)
EVENTS = 101  # the payload type of keys


class Pool:
    """Sockets on any free ports of loopback, so that no two tests meet."""

    def open(self, ip):
        pair = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2)]
        for each in pair:
            each.bind((ip, 0))
            each.setblocking(False)
        return MediaPair(*pair)

    def release(self, port):
        pass


class Pumps:
    """A pump of both directions, as `PacketPump` is, without the event loop."""

    def __init__(self):
        self._pump = built().Pump()
        self.open, self.outlets = self._pump.open, []

    def outlet(self, fd, take):
        self.outlets.append(built("_to_phone").ToPhone(fd, take))
        return self.outlets[-1]

    @property
    def passed(self):
        return self._pump.passed

    @property
    def handed(self):
        return self._pump.handed


class Port(MediaPort):
    """A port that keeps what it would send, and what the pump sends, which goes to `_phone`."""

    def __init__(self, **options):
        self._phone = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._phone.bind(("127.0.0.1", 0))
        self._phone.settimeout(10)
        self.sent, self._read = [], 0
        super().__init__("127.0.0.1", Pool(), None, None, **options)

    def _send_to(self, remote):
        super()._send_to(remote)
        if self._outlet is not None:
            self._outlet.aim(self._phone.getsockname() if remote else None)

    def collect(self):
        while self._outlet is not None and self._read < self._outlet.passed - self.unsent:
            self.sent.append(self._phone.recv(65535))
            self._read += 1

    def send_rtp(self, data):
        self.collect()
        self.sent.append(data)

    send_rtcp = send_rtp


class Outlet:
    """A player's connection."""

    def __init__(self):
        self.output, self.output_size, self.reason = [], 0, None

    def put(self, data):
        self.output.append(data)

    def abort(self, reason, now):
        self.reason = reason

    def wait(self, size):
        """Have so many bytes that the network has not taken."""
        self.output_size = size
        self.player.go_by(None if size else self.put)


class Recorder:
    """Keeps a stream."""

    def __init__(self):
        self.kept = []

    def write(self, type_id, timestamp, payload, now):
        self.kept.append((type_id, timestamp, payload))

    def end(self, now):
        self.kept.append("end")


class Side(MediaSink):
    """A call from its socket to its players, with a pump or without."""

    takes_opus = True

    def __init__(self, *codecs, pump=None, nat=False, wideband=True):
        super().__init__()
        self.told, self.outlets, self.players, self.recorders = [], [], [], []
        self.now = 0.0
        self.port = Port(latch=nat, pump=pump)
        settings = StreamSettings(random_source(1), "c", 60.0, has_pump=pump is not None)
        self.stream = stream = AudioStream(
            self.port, StreamContext(self, settings, 0.0, lambda: None)
        )
        self.port.on_rtp, self.port.on_rtcp = stream.on_rtp, stream.on_rtcp
        self.live = Registry().open("sip", "remote")
        self.offload = StreamUser(None, self.live).offload
        stream.give_to(self)
        self.start(*codecs)
        self.join(1)

    def start(self, *codecs, **options):
        """Take an answer with these codecs, and keys."""
        agreed = plan(*codecs, **options)
        object.__setattr__(agreed.media, "receive_telephone_events", (EVENTS,))
        object.__setattr__(agreed.media, "telephone_event", EVENTS)
        object.__setattr__(agreed.media, "rtcp_mux", 72 in agreed.receiving)
        self.stream.start(agreed, self.now, Signalled((PEER[0],)))

    def on_tag(self, type_id, timestamp, payload, now):
        self.live.write(type_id, timestamp, payload, now)

    def take(self, data, source=PEER):
        """A datagram comes, by the pump if there is one."""
        if self.port._flow is None:
            self.port._take(data, source, self.now)
        else:
            self.port._flow.feed(data, source, self.now)

    def publish(self, type_id, timestamp, payload):
        """A published message comes."""
        self.stream.take(type_id, timestamp, payload, self.now)
        self.port.collect()

    # what happens to the stream and its players
    def join(self, stream_id):
        outlet = Outlet()
        outlet.player = self.live.join(outlet, ChunkFraming(stream_id), None, self.now)
        outlet.player.go_by(outlet.put)
        self.outlets.append(outlet)
        self.players.append(outlet.player)

    def leave(self):
        if self.players:
            self.players.pop().leave(self.now)

    def tap(self):
        self.recorders.append(Recorder())
        self.live.tap(self.recorders[-1])

    def wait(self, seconds):
        until = self.now + seconds
        while (at := self.stream.deadline) is not None and at <= until:
            self.now = max(self.now, at)
            self.stream.tick(self.now)
        self.now = until

    def state(self):
        """All that anybody can see."""
        stream, order = self.stream, self.stream._order
        return {
            "statistics": stream.statistics,
            "received": (stream.received, self.port.received, self.port.strangers),
            "failures": (self.port.failures, self.port.unsent),
            "sent": (stream.sent, stream.left_out, stream.unsuitable, stream._session.sequence),
            "pace": vars(stream._pacer),
            "position": getattr(getattr(stream._to_phone, "_clock", None), "position", None),
            "remote": (self.port.remote, self.port._source),
            "order": (order.next, order.late, order.skipped, sorted(order.early)),
            "deadline": stream.deadline,
            "heard": stream._watch.heard,
            "ssrc": stream._session.reception.ssrc,
            "candidate": stream._session.reception.candidate_ssrc,
            "told": self.told,
            "live": (self.live.timestamp, self.live.publishing, self.live.kinds),
        }

    def output(self):
        """All that left."""
        kept = [each.kept for each in self.recorders]
        self.port.collect()
        return [each.output for each in self.outlets], kept, self.port.sent

    def close(self):
        self.stream.close(self.now)
        self.port._phone.close()

    # StreamListener
    def on_hold_back(self, asker, hold):
        self.told.append(hold)

    def on_unsuitable(self, sound_format):
        self.told.append(sound_format)

    def on_digit(self, digit, now):
        self.told.append((digit, now))

    def on_quiet(self, now):
        self.told.append(("quiet", now))

    def on_silence(self, now):
        self.told.append(("silence", now))

    def on_drained(self, now):
        self.told.append(("drained", now))


__all__ = ["AUDIO", "EVENTS", "PEER", "Pumps", "Side"]
