"""Every kind of call that a gateway carries, each as a function that makes one and ends it.

Phones are agents of p2psip, clients those of rtmplite, all in this process; one phone with pictures
is written here, as agents have none. Sound and pictures are made once and sent again and again.
"""

from array import array
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import av
import gevent
from gevent import socket

from p2psip import (
    Account,
    Agent,
    Call,
    CallSettings,
    NetworkSettings,
    Request,
    RtpPacket,
    SessionDescription,
    pack_vp8,
    parse_message,
    response_to,
)
from rtmplite import RemoteError, connect
from rtmplite.net.client.client import Client, ClientStream
from rtmplite.net.client.rtmp_client import RtmpClient
from siprtmp.media.transcode.to_flv import AacTags
from siprtmp.media.transcode.to_rtp import encoder
from siprtmp.media.transcode.video_encoder import H264, VP8, VideoEncoder
from siprtmp.media.translate.audio_formats import OPUS

AUDIO, VIDEO, ULAW_TAG = 8, 9, b"\x82"
FRAME, PICTURE = 20, 100  # ms
SIZE, RATE, BITS = (320, 180), 10.0, 200_000
LOOPBACK = "127.0.0.1"
TIMEOUT = 60.0  # s, for an answer, also of a machine that is busy with other work

Tags = list[tuple[int, int, bytes]]  # time (ms), type, body
Film = list[list[bytes]]  # the tags of each picture


def tone(samples: int) -> "array[int]":
    """A sawtooth."""
    return array("h", (600 * (at % 40) - 12_000 for at in range(samples)))


def film(codec: str, pictures: int = 50) -> Film:
    """A grey that becomes lighter; a key frame at its beginning."""
    made, out = VideoEncoder(codec, SIZE, RATE, BITS), Film()
    for number in range(pictures):
        frame = av.VideoFrame(*SIZE, "yuv420p")
        for plane in frame.planes:
            plane.update(bytes((40 + 4 * number,)) * plane.buffer_size)
        frame.pts = number * PICTURE
        out.append([body for _, body in made.encode(frame, number == 0)])
    return out


class Material:
    """What is said and shown, for ever."""

    def __init__(self, seconds: float) -> None:
        frames = int(seconds * 1000) // FRAME
        self.ulaw = [(n * FRAME, AUDIO, ULAW_TAG + bytes(range(160))) for n in range(frames)]
        aac = AacTags().encode(tone(frames * 960), 48_000, 0)
        self.aac: Tags = [(time, AUDIO, body) for time, body in aac]
        made = encoder(OPUS, FRAME, "")
        self.opus = [made.encode(tone(made.samples))[0] for _ in range(50)]
        shown = film(H264, int(seconds * RATE))
        self.film: Tags = sorted(
            [(n * PICTURE, VIDEO, body) for n, bodies in enumerate(shown) for body in bodies]
            + self.ulaw,
            key=lambda tag: tag[0],
        )
        self.vp8 = [body[5:] for [body] in film(VP8)]


class Site:
    """The gateway, the server that it pushes to, and the phones, for all calls."""

    def __init__(self, rtmp: str, sip: str, sink: str, seconds: float) -> None:
        self.rtmp, self.sip, self.sink, self.seconds = rtmp, sip, sink, seconds
        self.material = Material(seconds)
        self.heard = 0  # messages and packets of any end
        self.camera = VideoPhone(self)
        self._phones: dict[str, Agent] = {}

    def close(self) -> None:
        """Close the phones."""
        for agent in self._phones.values():
            agent.close()
        self.camera.close()

    def phone(self, user: str, codec: str = "PCMU") -> Agent:
        """The phone of this user, which answers every call."""
        if user not in self._phones:
            self._phones[user] = agent = Agent(
                Account(user), NetworkSettings(listen=(LOOPBACK, 0)), CallSettings(codecs=[codec])
            )
            agent.on_call = self._answer
        return self._phones[user]

    def _answer(self, call: Call) -> None:
        call.on_transfer = lambda target: True
        call.on_transferred = lambda moved: gevent.spawn(self._talk_and_end, moved)
        call.answer()
        self.talk(call, 2 * self.seconds)
        call.wait_ended(TIMEOUT)

    def _talk_and_end(self, call: Call) -> None:
        self.talk(call, self.seconds / 2)
        call.hangup()

    def talk(self, call: Call, seconds: float) -> None:
        """Say something until the call ends, or for so many seconds."""
        call.on_audio = self._heard
        is_opus = call.codec is not None and call.codec.name == "opus"
        payloads = self.material.opus if is_opus else [bytes(range(160))]
        for number in range(int(seconds * 1000) // FRAME):
            if call.is_over:
                return
            call.send_audio(payloads[number % len(payloads)])
            gevent.sleep(FRAME / 1000)

    def _heard(self, payload: bytes, timestamp: int) -> None:
        self.heard += 1

    @contextmanager
    def client(self, path: str) -> Iterator[Client]:
        """A connection to the gateway."""
        with connect(f"rtmp://{self.rtmp}/{path}", timeout=TIMEOUT) as client:
            yield client

    def listen(self, stream: ClientStream) -> None:
        """Count what comes, until the stream ends."""
        for _ in stream:
            self.heard += 1

    @contextmanager
    def player(self, url: str, name: str) -> Iterator[None]:
        """Somebody who plays a stream, and is there before it."""
        with connect(url, timeout=TIMEOUT) as client:
            stream = client.create_stream(TIMEOUT)
            stream.play(name, timeout=TIMEOUT)
            greenlet = gevent.spawn(self.listen, stream)
            try:
                yield
            finally:
                greenlet.kill()


def begin(stream: ClientStream, name: str) -> None:
    """Publish under a name, which a call before may have until its last sound is heard."""
    for _ in range(40):
        try:
            stream.publish(name, timeout=TIMEOUT)
            return
        except RemoteError as error:
            if "BadName" not in str(error):
                raise
            gevent.sleep(0.5)
    stream.publish(name, timeout=TIMEOUT)


def publish(stream: ClientStream, tags: Tags) -> None:
    """Publish in real time."""
    start = gevent.get_hub().loop.now()
    for time, kind, body in tags:
        gevent.sleep(max(0.0, start + time / 1000 - gevent.get_hub().loop.now()))
        stream.write(kind, time, body)


def _by_url(site: Site, name: str, tags: Tags, *plays: str) -> None:
    """Publish to `call`, which dials a phone, while others play."""
    with ExitStack() as players:
        for url in plays:
            players.enter_context(site.player(url, name))
        with site.client("call") as client:
            stream = client.create_stream(TIMEOUT)
            begin(stream, name)
            publish(stream, tags)


def plain(site: Site, worker: int) -> None:
    """G.711 that passes, and is heard."""
    name = _name(site.phone(f"plain{worker}"))
    _by_url(site, name, site.material.ulaw, f"rtmp://{site.rtmp}/call")


def transcoded(site: Site, worker: int) -> None:
    """AAC to a phone of Opus, and back."""
    name = _name(site.phone(f"opus{worker}", "opus/48000/2"))
    _by_url(site, name, site.material.aac, f"rtmp://{site.rtmp}/call")


def video(site: Site, worker: int) -> None:
    """H.264 to a phone of VP8, and back."""
    name = f"video{worker}@{LOOPBACK}:{site.camera.port}"
    _by_url(site, name, site.material.film, f"rtmp://{site.rtmp}/call")


def mixed(site: Site, worker: int) -> None:
    """Both sides as one stream, side by side."""
    name = f"mixed{worker}@{LOOPBACK}:{site.camera.port}"
    _by_url(site, name, site.material.film, f"rtmp://{site.rtmp}/mixed")


def push(site: Site, worker: int) -> None:
    """What the phone says, at another server too."""
    name = _name(site.phone(f"push{worker}"))
    _by_url(site, name, site.material.aac, f"rtmp://{site.sink}/live")


def room(site: Site, worker: int) -> None:
    """Two phones and a publisher in a room, with a player."""
    phones = [site.phone(f"{name}{worker}") for name in ("ann", "bob")]
    with site.player(f"rtmp://{site.rtmp}/room", "team"), site.client("room") as client:
        calls = [phone.call(f"sip:team@{site.sip}", timeout=TIMEOUT) for phone in phones]
        talking = [gevent.spawn(site.talk, call, site.seconds) for call in calls]
        stream = client.create_stream(TIMEOUT)
        begin(stream, "team")
        publish(stream, site.material.aac)
        gevent.joinall(talking)
        for call in calls:
            call.hangup()


def hold(site: Site, worker: int) -> None:
    """A phone calls a stream, holds it and comes back, twice."""
    name, phone = f"waiting{worker}", site.phone(f"hold{worker}")
    with site.client("call") as client:
        stream = client.create_stream(TIMEOUT)
        begin(stream, name)
        publishing = gevent.spawn(publish, stream, site.material.ulaw)
        call = phone.call(f"sip:{name}@{site.sip}", timeout=TIMEOUT)
        for _ in range(2):
            site.talk(call, site.seconds / 6)
            call.hold(timeout=TIMEOUT)
            gevent.sleep(site.seconds / 6)
            call.resume(timeout=TIMEOUT)
        call.hangup()
        publishing.join()


def transfer(site: Site, worker: int) -> None:
    """A rich client calls a phone, and sends it to another one."""
    first, second = (site.phone(f"{name}{worker}") for name in ("first", "second"))
    answered, ended = gevent.event.Event(), gevent.event.Event()
    events = {"accepted": answered.set, "byed": ended.set}
    with RtmpClient.connect(
        f"rtmp://{site.rtmp}/sip/desk{worker}@{LOOPBACK}",
        timeout=TIMEOUT,
        on_call=lambda name, args: events.get(name, lambda: None)(),
    ) as client:
        client.call("invite", f"sip:{_name(first)}", "pcmu", timeout=TIMEOUT)
        if not answered.wait(TIMEOUT):
            raise TimeoutError("no answer to a rich client")
        local, remote = (client.create_stream(TIMEOUT) for _ in range(2))
        local.publish("local", timeout=TIMEOUT)
        remote.play("remote", timeout=TIMEOUT)
        listening = gevent.spawn(site.listen, remote)
        publish(local, site.material.ulaw[: len(site.material.ulaw) // 2])
        client.call("transfer", f"sip:{_name(second)}", timeout=TIMEOUT)
        ended.wait(TIMEOUT)
        listening.kill()


def _name(phone: Agent) -> str:
    return f"{phone.user}@{phone.address[0]}:{phone.address[1]}"


class VideoPhone:
    """A phone of G.711 and VP8 that answers every call, by UDP and without a retransmission."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind((LOOPBACK, 0))
        self.port: int = self._socket.getsockname()[1]
        self._calls: dict[str, gevent.Greenlet] = {}
        self._serving = gevent.spawn(self._serve)

    def close(self) -> None:
        """End."""
        gevent.killall([self._serving, *self._calls.values()])
        self._socket.close()

    def _serve(self) -> None:
        while True:
            data, source = self._socket.recvfrom(65_535)
            message = parse_message(data)
            if isinstance(message, Request) and message.method != "ACK":
                self._socket.sendto(self._answer(message), source)

    def _answer(self, request: Request) -> bytes:
        call = str(request.headers["Call-ID"])
        contact, body = ("Contact", f"<sip:camera@{LOOPBACK}:{self.port}>"), b""
        if request.method == "INVITE" and call not in self._calls:
            ports = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2)]
            for port in ports:
                port.bind((LOOPBACK, 0))
            lines = SessionDescription.parse(request.body).media
            there = {line.kind: (LOOPBACK, line.port) for line in lines}
            self._calls[call] = gevent.spawn(self._talk, ports, there["audio"], there["video"])
            body = _description(*(port.getsockname()[1] for port in ports))
        elif request.method in ("BYE", "CANCEL") and call in self._calls:
            self._calls.pop(call).kill()
        kind = "application/sdp" if body else None
        return bytes(
            response_to(
                request, 200, to_tag="camera", headers=[contact], body=body, content_type=kind
            )
        )

    def _talk(
        self, ports: list[socket.socket], audio: tuple[str, int], video: tuple[str, int]
    ) -> None:
        """Send sound and pictures until the call ends."""
        sound, picture, sequence, number = *ports, 0, 0
        readers = [gevent.spawn(self._hear, port) for port in ports]
        try:
            while True:
                sound.sendto(_rtp(0, number, 160 * number, bytes(160)), audio)
                if number % (PICTURE // FRAME) == 0:
                    shown = number // (PICTURE // FRAME) % len(self._site.material.vp8)
                    for payload, marker in pack_vp8(self._site.material.vp8[shown], 1200):
                        sequence += 1
                        packet = _rtp(102, sequence, 1800 * number, payload, marker)
                        picture.sendto(packet, video)
                number += 1
                gevent.sleep(FRAME / 1000)
        finally:
            gevent.killall(readers)
            for port in ports:
                port.close()

    def _hear(self, port: socket.socket) -> None:
        while True:
            port.recvfrom(65_535)
            self._site.heard += 1


def _rtp(kind: int, sequence: int, time: int, payload: bytes, marker: bool = False) -> bytes:
    return bytes(RtpPacket(kind, sequence & 0xFFFF, time & 0xFFFFFFFF, 7 + kind, payload, marker))


def _description(audio: int, video: int) -> bytes:
    return (
        f"v=0\r\no=- 1 1 IN IP4 {LOOPBACK}\r\ns=-\r\nc=IN IP4 {LOOPBACK}\r\nt=0 0\r\n"
        f"m=audio {audio} RTP/AVP 0\r\nm=video {video} RTP/AVP 102\r\na=rtpmap:102 VP8/90000\r\n"
    ).encode()


KINDS: dict[str, Callable[[Site, int], None]] = {
    each.__name__: each for each in (plain, transcoded, video, mixed, room, hold, transfer, push)
}
