"""Wire traces of five calls, and whether two gateways say the same, message for message.

    PYTHONPATH=src python tests/traces.py record TREE FOLDER    runs the gateway of a checkout
    PYTHONPATH=src python tests/traces.py compare BEFORE AFTER  prints what differs; exit code 1

The other ends are those of this checkout, so that only the gateway differs. Compared are the SIP
messages with their descriptions, the commands and data messages of RTMP, and the payload types,
markers and payloads of RTP that the gateway sends. What is drawn by chance, and what depends on the
clock, is masked: ports, tags, branches, Call-IDs, keys, and times.

Media is sent at the pace of its times.  All other steps wait for what the step before brings.
"""

import os
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import dpkt
import gevent
from gevent import socket
from gevent.event import Event
from support.sockets import PATIENCE, UdpClient, until

from p2psip.agent import Agent
from p2psip.errors import RemoteError as SipRefusal
from p2psip.nat.stun import StunClass, StunMessage, is_stun
from p2psip.net.driver import SipDriver, SipPorts
from p2psip.net.phone.call import Call
from p2psip.net.phone.settings import Account
from p2psip.sip.message import parse_message
from p2psip.stack.stack import Recipient, Stack
from p2psip.ua.call import CallHandler
from p2psip.ua.ua import UserAgent
from rtmplite.errors import RtmpError
from rtmplite.flv.file import read_flv
from rtmplite.flv.metadata import wrapped
from rtmplite.flv.tag import TagType
from rtmplite.net.client.client import Client
from rtmplite.net.client.reconnecting import Publisher
from rtmplite.net.client.rtmp_client import RtmpClient
from rtmplite.rtmp.wire.chunk_reader import ChunkReader
from rtmplite.rtmp.wire.command import Command

HANDSHAKE = 1 + 2 * 1536
MEDIA = (8, 9)
SILENCE = "ff" * 80  # of G.711, sent while nothing comes in time
FRAMES, FRAME = 50, 0.02  # of the calls: a second
CORPUS = Path(os.environ.get("TEST_CORPUS", "../shared/corpus"))
BARRIER = StunMessage.write(StunClass.REQUEST, 1, bytes(12)).data
FILM = CORPUS / "flv/seed_320x240_12fps_h264_speex16k_10s.flv"
MASKS = (
    (re.compile(r"z9hG4bK[^\s;>,]+|(?<=tag=)[^\s;>,]+|(?<=Call-ID: )\S+"), "*"),
    (re.compile(r"(?m)(?<=^o=)\S+ \d+ \d+|(?<=^m=audio |^m=video )[1-9]\d*"), "*"),
    (re.compile(r"(?<=rport=)\d+|(?<=[\d\]]:)\d{4,5}\b|(?<=a=rtcp:)\d+"), "*"),
    (re.compile(r"(?<=urn:uuid:)[-\w]+|\b[0-9a-f]{8,}\b|(?<=nonce=\")[^\"]+"), "*"),
    (re.compile(r"(?<=temp-gruu=\"sip:)[^@]+|(?<=Content-Length: )[1-9]\d*"), "*"),
    (re.compile(r"(?m)(?<=^Date: ).*$|(?<=^RSeq: )\d+|(?<=^CSeq: )\d+|(?<=RAck: )\d+ \d+"), "*"),
)


def masked(text: str) -> str:
    """The same text without what is drawn by chance."""
    for pattern, word in MASKS:
        text = pattern.sub(word, text)
    return text


# -- reading ------------------------------------------------------------------------------------


def lines(capture: Path, sip: int, rtmp: int) -> dict[str, list[str]]:
    """What a capture has by kind: SIP, RTMP of each way, RTP that the gateway sends."""
    found: dict[str, list[str]] = defaultdict(list)
    streams: dict[tuple[int, int], bytearray] = defaultdict(bytearray)
    media: dict[tuple[int, int], list[str]] = defaultdict(list)
    with capture.open("rb") as file:
        for _, frame in dpkt.pcap.Reader(file):
            packet = dpkt.ip.IP(frame)
            payload = packet.data
            if isinstance(payload, dpkt.tcp.TCP):
                streams[payload.sport, payload.dport] += payload.data
            elif sip in (payload.sport, payload.dport):
                way = "sent" if payload.sport == sip else "heard"
                found[f"sip {way}"] += sip_lines(bytes(payload.data))
            elif payload.sport % 2 == 0 and len(payload.data) >= 12:
                media[payload.sport, payload.dport].append(rtp_line(bytes(payload.data)))
    for (source, target), data in streams.items():
        if rtmp in (source, target):
            found[f"rtmp {'sent' if source == rtmp else 'heard'}"] += rtmp_lines(bytes(data))
    kept = [[line for line in each if SILENCE not in line] for each in media.values()]
    found["rtp"] = [line for stream in sorted(kept) for line in (*stream, "--")]
    return found


def sip_lines(data: bytes) -> list[str]:
    """One message, masked; nothing of a keep-alive, nor of a barrier."""
    if len(data) <= 4 or is_stun(data):
        return []
    parse_message(data)
    return [*masked(data.decode().replace("\r\n", "\n")).splitlines(), "--"]


def rtmp_lines(data: bytes) -> list[str]:
    """The messages of one way of one connection, media behind the others."""
    told, media = list[str](), list[str]()
    for message in ChunkReader().feed(data[HANDSHAKE:]):
        type_id, _, stream_id, payload = message
        if type_id in MEDIA:
            media.append(f"{stream_id} {TagType(type_id).name} {payload.hex()}")
        elif type_id == 20:
            told.append(masked(f"{stream_id} {Command.parse(message)}"))
        else:
            told.append(f"{stream_id} {type_id} {masked(repr(payload))}")
    return [*told, "--", *media, "--"]


def rtp_line(data: bytes) -> str:
    """Payload type with marker, and payload."""
    return f"{data[1]:3} {data[12:].hex()}"


# -- the calls ----------------------------------------------------------------------------------


class Gateway:
    """The gateway of a checkout, with a capture."""

    def __init__(self, tree: Path, capture: Path, *options: str) -> None:
        words = ["--rtmp", "127.0.0.1:0", "--rtmfp", "off", "--http", "off"]
        words += ["--sip", "127.0.0.1:0", "--log-level", "error", "--capture", str(capture)]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "siprtmp", *words, *options],
            env={**os.environ, "PYTHONPATH": str(tree / "src")},
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        ready = dict(word.split("=") for word in self.process.stdout.readline().split()[1:])
        self.rtmp, self.sip = ready["rtmp"], ready["sip"]
        self.ports = int(self.sip.split(":")[1]), int(self.rtmp.split(":")[1])

    def rich(self, name: str) -> tuple[Client, "gevent.queue.Queue"]:
        """A rich client, and what is called on it."""
        calls: gevent.queue.Queue = gevent.queue.Queue()
        url = f"rtmp://{self.rtmp}/sip/{name}@127.0.0.1"
        return RtmpClient.connect(url, on_call=lambda *call: calls.put(call)), calls

    def phone(self, name: str) -> Agent:
        """A phone that is registered."""
        phone = Agent(Account(name, self.sip))
        phone.register()
        return phone

    def read_all(self) -> None:
        """Wait until it has read what was sent to its SIP port: it answers one after the other."""
        UdpClient(("127.0.0.1", self.ports[0])).ask(BARRIER)


def wait(calls: "gevent.queue.Queue", name: str) -> tuple:
    """The arguments of the next call of that name."""
    while True:
        got, args = calls.get(timeout=10)
        if got == name:
            return args


def streams(client: Client) -> tuple:
    """The two streams of a rich client's call."""
    local, remote = client.create_stream(), client.create_stream()
    local.publish("local")
    remote.play("remote")
    return local, remote


def say(local, code: int = 0x82) -> None:
    """A second of audio."""
    for number in range(FRAMES):
        local.write(8, 20 * number, bytes([code]) + bytes([number]) * 160)
        gevent.sleep(FRAME)


def hear(remote) -> None:
    """Wait until the last of that has come back."""
    while (message := remote.read()) is not None and message.payload[-1] != FRAMES - 1:
        pass


class Phone:
    """What a phone does with its calls: answer, send back what is heard, follow transfers."""

    def __init__(self, agent: Agent) -> None:
        self.calls: list[Call] = []  # which are set up
        self.keys: list[tuple] = []
        agent.on_call = self.answer

    def answer(self, call: Call) -> None:
        """Answer a call."""
        call.on_audio = lambda payload, timestamp: call.send_audio(payload)
        call.on_info = lambda *info: self.keys.append(info)
        call.on_transfer = lambda target: True
        call.on_transferred = lambda other: None
        call.answer()
        self.calls.append(call)


def rich_call(tree: Path, capture: Path) -> Iterator[Gateway]:
    """A rich client calls a phone, presses a key, and hangs up."""
    gateway = Gateway(tree, capture)
    yield gateway
    with gateway.phone("bob") as bob:
        phone = Phone(bob)
        client, calls = gateway.rich("alice")
        client.call("invite", "sip:bob@127.0.0.1", "pcmu")
        wait(calls, "accepted")
        local, remote = streams(client)
        say(local)
        hear(remote)
        client.call("sendDTMF", "5")
        until(lambda: phone.keys)
        client.call("bye")
        phone.calls[0].wait_ended()
        client.close()


def transfer(tree: Path, capture: Path) -> Iterator[Gateway]:
    """A rich client calls a phone, and has it call another one."""
    gateway = Gateway(tree, capture)
    yield gateway
    with gateway.phone("bob") as bob, gateway.phone("carol") as carol:
        Phone(bob)
        other = Phone(carol)
        client, calls = gateway.rich("alice")
        client.call("invite", "sip:bob@127.0.0.1", "pcmu")
        wait(calls, "accepted")
        local, remote = streams(client)
        say(local)
        hear(remote)
        client.call("transfer", f"sip:carol@{gateway.sip}")
        while not str(wait(calls, "transferred")[0]).startswith("200"):
            pass
        wait(calls, "byed")
        until(lambda: other.calls)
        client.close()


ANSWER = (
    "v=0 o=-_1_1_IN_IP4_127.0.0.1 s=- c=IN_IP4_127.0.0.1 t=0_0 m=audio_{}_RTP/AVP_0"
    " a=rtpmap:0_PCMU/8000 m=video_{}_RTP/AVP_96 a=rtpmap:96_H264/90000"
    " a=fmtp:96_packetization-mode=1;profile-level-id=42e01f"
)


class Packets:
    """A port that counts the frames that come to it, each of which ends in another time."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self.times: set[bytes] = set()
        gevent.spawn(self._run)

    def _run(self) -> None:
        while True:
            self.times.add(self._socket.recv(65536)[4:8])


class Watcher(CallHandler):
    """A phone with video that answers at once, and counts what comes."""

    def __init__(self) -> None:
        self.audio, self.video, self.ended = Packets(), Packets(), Event()
        answer = ANSWER.format(self.audio.port, self.video.port)
        self.sdp = "".join(f"{each.replace('_', ' ')}\r\n" for each in answer.split()).encode()

    def recipient(self, request, flow, now) -> Recipient:
        """Take a new call, or what belongs to one."""
        is_new = request.method == "INVITE" and request.to.tag is None
        other = self.on_invite if is_new else self.agents.on_stray
        return self.agents.recipient(request) or Recipient(other)

    def on_invite(self, server, request, now) -> None:
        """Answer a new call."""
        self.agents.incoming(server, self.stack.contact("bob"), self, now).accept(self.sdp, now)

    def on_ack(self, request, flow, now) -> None:
        """Take the ACK of a 2xx."""
        self.agents.on_ack(request, flow, now)

    def on_ended(self, call, reason, now) -> None:
        """Note it."""
        self.ended.set()


def film(tree: Path, capture: Path) -> Iterator[Gateway]:
    """A publisher of H.264 calls a phone with video by its address."""
    gateway = Gateway(tree, capture)
    yield gateway
    ports, watcher = SipPorts("127.0.0.1", 0), Watcher()
    watcher.stack = stack = Stack(random=os.urandom, listeners=ports.listeners)
    watcher.agents = UserAgent(stack, random=os.urandom)
    stack.core = watcher
    driver = SipDriver(stack, ports)
    driver.machines.append(watcher.agents)
    tags = [tag for tag in read_flv(FILM.read_bytes())[1] if tag.timestamp <= 1500]
    audio, video = (sum(tag.tag_type == each for tag in tags) for each in MEDIA)
    url = f"rtmp://{gateway.rtmp}/call/bob@127.0.0.1:{ports.address[1]}"
    with Publisher.open(url) as publisher:
        publish(publisher, tags)
        # One frame of audio waits for the next; the first tag of video is its configuration.
        until(lambda: len(watcher.audio.times) >= audio - 1)
        until(lambda: len(watcher.video.times) >= video - 1)
    watcher.ended.wait(PATIENCE)
    gateway.read_all()
    driver.close()


def publish(publisher: Publisher, tags: list) -> None:
    """Send tags at their times."""
    at = 0
    for tag in tags:
        gevent.sleep(max(0, tag.timestamp - at) / 1000)
        at = max(at, tag.timestamp)
        data = wrapped(tag.data) if tag.tag_type == TagType.SCRIPT else tag.data
        publisher.write(tag.tag_type, tag.timestamp, data)


def room(tree: Path, capture: Path) -> Iterator[Gateway]:
    """Two phones in a room, one of which speaks."""
    gateway = Gateway(tree, capture, "--room", "team")
    yield gateway
    alice, bob = (Agent(Account(name, gateway.sip)) for name in ("alice", "bob"))
    heard = list[int]()
    with alice, bob:
        there = [phone.call(f"sip:team@{gateway.sip}") for phone in (alice, bob)]
        there[1].on_audio = lambda payload, timestamp: heard.append(payload[-1])
        for number in range(FRAMES):
            there[0].send_audio(bytes([number]) * 160)
            gevent.sleep(FRAME)
        until(lambda: FRAMES - 1 in heard)
        for call in there:
            call.hangup()
    gateway.read_all()


def tunnel(tree: Path, capture: Path) -> Iterator[Gateway]:
    """Two gateways carry what a rich client publishes to another one, by x-flv."""
    gateway = Gateway(tree, capture)
    yield gateway
    far = Gateway(tree, capture.with_suffix(".far"))
    try:
        alice, calls = gateway.rich("alice")
        bob, rings = far.rich("bob")
        alice.call("invite", f"sip:bob@{far.sip}", "pcmu", "flv")
        wait(rings, "invited")
        bob.call("accept", "pcmu", "flv")
        wait(calls, "accepted")
        (local, _), (_, remote) = streams(alice), streams(bob)
        say(local, 0xAF)
        hear(remote)
        alice.call("bye")
        wait(rings, "byed")
        gateway.read_all()
        alice.close()
        bob.close()
    finally:
        far.process.terminate()
        far.process.wait(10)


CALLS: dict[str, Callable[[Path, Path], Iterator[Gateway]]] = {
    "rich-call": rich_call,
    "transfer": transfer,
    "film": film,
    "room": room,
    "tunnel": tunnel,
}


@contextmanager
def played(name: str, tree: Path, capture: Path) -> Iterator[Gateway]:
    """Play one of the calls to its end."""
    steps = CALLS[name](tree, capture)
    gateway = next(steps)
    try:
        next(steps, None)
        yield gateway
    except (SipRefusal, RtmpError, TimeoutError, gevent.queue.Empty) as error:
        raise SystemExit(f"{name}: {error!r}") from error
    finally:
        gateway.process.terminate()
        gateway.process.wait(10)


def record(tree: Path, folder: Path, names: list[str]) -> None:
    """Write one file of lines for each call."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        capture = folder / f"{name}.pcap"
        with played(name, tree, capture) as gateway:
            ports = gateway.ports
        kinds = lines(capture, *ports)
        text = "".join(f"== {kind}\n" + "\n".join(kinds[kind]) + "\n" for kind in sorted(kinds))
        (folder / f"{name}.txt").write_text(text)
        print(f"{name}: {sum(map(len, kinds.values()))} lines")


def compare(before: Path, after: Path) -> int:
    """Print what differs, as diff does."""
    done = subprocess.run(
        ["diff", "-r", "-u", "--exclude=*.pcap*", "--exclude=*.far*", str(before), str(after)]
    )
    return done.returncode


if __name__ == "__main__":
    word, one, other, *names = sys.argv[1:]
    if word == "record":
        record(Path(one).resolve(), Path(other), names or list(CALLS))
    else:
        sys.exit(compare(Path(one), Path(other)))
