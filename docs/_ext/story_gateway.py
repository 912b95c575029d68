"""The story of a call through the whole gateway: a publisher, a phone, and a player.

All that runs is real, connections, stacks, calls and media; only the network is made of memory, and
of what it carries SIP alone takes time, 10 ms.
"""

from collections.abc import Iterator
from dataclasses import replace
from operator import itemgetter
from unittest.mock import patch

from story import Step, Story, named, told
from story_rtmp import way
from support.gateway.gateway_world import BOB, PCMU, Desk, GatewayWorld, sdp
from support.gateway.video_rig import HEADER, PPS, SPS, VideoRig, idr, inter, tag

from p2psip.rtp.packet import RtpPacket
from p2psip.sdp.attributes import RtpMap
from p2psip.sip.message import Request, parse_message
from rtclab.explain.fields.context import Context
from rtmplite.rtmp.server import ServerConnection
from siprtmp.media.transcode import audio_decoder

AUDIO, VIDEO = 8, 9  # types of messages
ULAW = b"\x82"  # the first byte of a tag: PCMU
H264 = "m=video 6000 RTP/AVP 99\r\na=rtpmap:99 H264/90000\r\na=fmtp:99 packetization-mode=1\r\n"
LARGE = 1500  # octets of a key frame that fits into no packet
PHONE_SSRC = 0xBEEF


class Watched(GatewayWorld):  # type: ignore[misc]
    """A gateway whose connections are overheard: `flights` of (time, octets) by both ends."""

    def __init__(self) -> None:
        self.names = iter(("publisher", "player"))
        self.flights: dict[tuple[str, str], list[tuple[float, bytes]]] = {}
        super().__init__()

    def server(self) -> ServerConnection:
        """The server's end of the next client's connection."""
        connection: ServerConnection = super().server()
        name, transport = next(self.names), connection.transport
        up = self.flights[name, f"server/{name}"] = []
        down = self.flights[f"server/{name}", name] = []
        receive, take = transport.receive, transport.take_output

        def heard(data: bytes, now: float) -> None:
            if data:
                up.append((self.now, data))
            receive(data, now)

        def taken() -> list[bytes]:
            parts = list(take())
            if parts:
                down.append((self.now, b"".join(parts)))
            return parts

        transport.receive, transport.take_output = heard, taken  # type: ignore[method-assign]
        return connection


class Call:
    """The world, and what the phone sends: (time, datagram) pairs."""

    def __init__(self) -> None:
        self.world = Watched()
        self.desk = Desk(self.world.link, answers=b"")
        self.spoken: list[tuple[float, bytes]] = []
        self.rig = VideoRig()

    def answer(self) -> None:
        """The phone picks up, with audio and video."""
        self.desk.calls[0].accept(sdp(PCMU) + H264.encode(), self.world.now)
        self.world.wait(0.02)

    def say(self, number: int) -> None:
        """The phone sends a packet of audio."""
        packet = RtpPacket(0, 500 + number, 8000 + 160 * number, PHONE_SSRC, bytes([0x70]) * 160)
        self._hear(self.world.gateway.audio, bytes(packet))

    def show(self, number: int, *units: bytes) -> None:
        """The phone sends a frame of video."""
        [stream] = self.world.gateway.videos
        for datagram in self.rig.datagrams(90000 + 1800 * number, *units, octets=1200):
            self._hear(stream, datagram)

    def _hear(self, stream: object, datagram: bytes) -> None:
        self.spoken.append((self.world.now, datagram))
        stream.on_rtp(datagram, self.world.now)  # type: ignore[attr-defined]
        self.world.run()

    def steps(self) -> Iterator[Step]:
        """All that was sent once the clients were there, but for acknowledgements."""
        for (source, to), flights in self.world.flights.items():
            steps = list(way(flights, source, to))
            names = [each.name for each in steps]
            first = {"publisher": "publisher-publish", "player": "player-play"}.get(source)
            start = names.index(first) if first else names.index(f"to-{to}-result-2") + 1
            ends = (each.replace("server", "gateway") for each in (source, to))
            one, two = (each.partition("/")[0] for each in ends)
            for each in steps[start:]:
                yield replace(each, source=one, destination=two)
        yield from self._signals()
        yield from self._packets()

    def _signals(self) -> Iterator[Step]:
        sent = self.world.link.sent
        messages = [parse_message(data) for *_, (_, data) in sent]
        kinds = [m.method.lower() if isinstance(m, Request) else str(m.status) for m in messages]
        for place, name in enumerate(named(kinds)):
            at, source, _, (_, data) = sent[place]
            ends = ("phone", "gateway") if source == self.desk.address else ("gateway", "phone")
            message = messages[place]
            is_request = isinstance(message, Request)
            label = message.method if is_request else f"{message.status} {message.reason}"
            yield Step(name, at, *ends, label, told("sip", data), data)

    def _packets(self) -> Iterator[Step]:
        wires = [wire for streams in self._streams for wire in streams.values()]
        from_us = [each for wire in wires for each in wire.sent]
        for who, ends, sent in (
            ("rtp", ("gateway", "phone"), sorted(from_us, key=itemgetter(0))),
            ("phone-rtp", ("phone", "gateway"), self.spoken),
        ):
            kinds = ["audio" if data[1] & 0x7F == 0 else "video" for _, data in sent]
            names = named(f"{who}-{kind}" for kind in kinds)
            for name, kind, (at, data) in zip(names, kinds, sent, strict=True):
                context = Context()
                context.rtpmaps[99] = RtpMap.parse("99 H264/90000")
                yield Step(name, at, *ends, f"RTP, {kind}", told("rtp", data, context), data)

    @property
    def _streams(self) -> tuple[dict[object, object], ...]:
        return self.world.gateway.audios, self.world.gateway.videos


@patch.object(audio_decoder, "is_available", lambda: False)  # the same offer on every machine
def crossing() -> Story:
    """A publisher calls a phone, and both send audio and video; no codec is translated."""
    call = Call()
    world = call.world
    tool, player = world.tool(), world.tool()
    player.play(BOB)
    stream = tool.publish(BOB)
    world.wait(1.0)
    call.answer()
    tool.write(VIDEO, 0, stream, HEADER)
    for number, frame in enumerate((tag(idr(0, LARGE), key=True), tag(inter(1)))):
        tool.write(AUDIO, 20 * number, stream, ULAW + bytes([0x60 + number]) * 160)
        tool.write(VIDEO, 20 * number, stream, frame)
        world.wait(0.02)
    for number, units in enumerate(((SPS, PPS, idr(0, LARGE)), (inter(1),), (inter(2),))):
        call.say(number)
        call.show(number, *units)
        world.wait(0.02)
    steps = list(call.steps())
    steps.sort(key=lambda each: (round(each.at, 4), each.source == "gateway"))
    return Story(("player", "publisher", "gateway", "phone"), tuple(steps))
