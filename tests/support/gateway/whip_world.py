"""An application of WHIP and WHEP, with a port that sends nothing."""

import io
from types import SimpleNamespace

from p2psip.nat.ice_lite import IceLite
from p2psip.rtp.payload.h264_access_units import IDR
from p2psip.sdp.jsep import BrowserEnd
from rtmplite.live.streams import Registry
from siprtmp.media.browser_transport import BrowserTransport
from siprtmp.media.stream import StreamSettings
from siprtmp.media.transport import MediaAddress
from siprtmp.web.browser_sessions import BrowserSessions
from siprtmp.web.ice_servers import NO_SERVERS
from siprtmp.web.whip import WhipApplication

H264_HEADER = bytes.fromhex("1700000000 0142e01fffe1000467640029 01000168")
LINES = {
    "audio": "m=audio 9 UDP/TLS/RTP/SAVPF 111 0\na=rtpmap:111 opus/48000/2\n",
    "h264": "m=video 9 UDP/TLS/RTP/SAVPF 98\na=rtpmap:98 H264/90000\n"
    "a=fmtp:98 packetization-mode=1;profile-level-id=42e01f\n",
    "vp8": "m=video 9 UDP/TLS/RTP/SAVPF 96\na=rtpmap:96 VP8/90000\na=rtcp-fb:96 nack pli\n",
    "av1": "m=video 9 UDP/TLS/RTP/SAVPF 45\na=rtpmap:45 AV1/90000\n",
    "g711": "m=audio 9 UDP/TLS/RTP/SAVPF 0\n",
}


RTP, STAP_A = 12, 24  # octets of a header; a type of packets


def offer(*kinds, flow="sendonly"):
    mids = " ".join(map(str, range(len(kinds))))
    head = f"v=0\no=page 3 4 IN IP4 192.0.2.7\ns=x\nt=0 0\na=group:BUNDLE {mids}\n"
    lines = [
        f"{LINES[kind]}c=IN IP4 0.0.0.0\na={flow}\na=setup:actpass\na=ice-ufrag:them\na=rtcp-mux\n"
        f"a=fingerprint:sha-256 AB:CD\na=mid:{mid}\na=ice-pwd:secret\n"
        for mid, kind in enumerate(kinds)
    ]
    return (head + "".join(lines)).encode()


def units(packets):
    """The NAL units in packets of H.264, without their parameter sets."""
    out = []
    for packet in packets:
        if packet[1] & 0x7F == 98:
            out += unaggregated(packet[RTP:]) if packet[RTP] & 0x1F == STAP_A else [packet[RTP:]]
    return [unit for unit in out if unit[0] & 0x1F in (1, IDR)]


def unaggregated(payload):
    """The units of an aggregation packet: RFC 6184 §5.7.1."""
    out, at = [], 1
    while at < len(payload):
        size = int.from_bytes(payload[at : at + 2], "big")
        out.append(payload[at + 2 : at + 2 + size])
        at += 2 + size
    return out


class World:
    """An application with its sessions, on a clock that the test sets."""

    transcoding = False
    transcoders = None
    servers = NO_SERVERS

    def __init__(self, gateway=None):
        """Alone, or with the applications of a gateway in memory, on its clock."""
        self.gateway = gateway
        self._now, self.drawn, self.events, self.sent = 0.0, 0, [], []
        self.asked, self.left, self.may = [], 0, True
        self.registry = Registry() if gateway is None else gateway.registry
        self.transports = []
        self.sessions = BrowserSessions(
            self.registry, self, self.random, lambda: self.now,
            SimpleNamespace(event=self.log, warning=self.log),
            (lambda name: None) if gateway is None else gateway.application_for,
            self.transcoders,
        )  # fmt: skip
        apps = ("live",) if gateway is None else ("live", "call", "room")
        self.application = WhipApplication(self.sessions, apps, self.admits, self.servers)

    @property
    def now(self):
        return self._now if self.gateway is None else self.gateway.now

    @now.setter
    def now(self, at):
        self._now = at

    def log(self, event, **values):
        self.events.append((event, values))

    def random(self, octets):
        self.drawn += 1
        return self.drawn.to_bytes(octets, "big")

    def admits(self, *asked):
        self.asked.append(asked)
        return self.leave if self.may else None

    def leave(self):
        self.left += 1

    # BrowserPort
    def attach(self, now):
        ice = IceLite(self.random, now)
        transport = BrowserTransport(
            MediaAddress("127.0.0.1", 8189, 8189), ice, lambda fingerprint: None,
            lambda data, to: self.sent.append((data, to)),
            lambda machine: SimpleNamespace(set=lambda: None, cancel=lambda: None),
            self.random, now,
        )  # fmt: skip
        self.transports.append(transport)
        return transport, self.end_of(ice)

    def restart(self, transport, theirs, now):
        transport.ice = transport.ice.restarted(theirs, self.random, now)
        return self.end_of(transport.ice)

    def end_of(self, ice):
        return BrowserEnd(ice.ufrag, ice.password, "AB", (("127.0.0.1", 8189),))

    def detach(self, transport):
        self.transports.remove(transport)

    def settings(self):
        return StreamSettings(self.random, "cname", 60.0, transcoding=self.transcoding)

    def ask(self, method, path, body=b"", kind="application/sdp", **more):
        environ = {
            "REQUEST_METHOD": method, "PATH_INFO": path, "QUERY_STRING": "",
            "CONTENT_TYPE": kind, "wsgi.input": io.BytesIO(body), "REMOTE_ADDR": "192.0.2.7",
            "REMOTE_PORT": "4000", **more,
        }  # fmt: skip
        answer = SimpleNamespace(path=path)

        def start(status, headers):
            answer.status, answer.headers = int(status.split()[0]), dict(headers)
            answer.links = [value for name, value in headers if name == "Link"]

        assert self.application.serves(environ)
        answer.body = b"".join(self.application(environ, start))
        return answer

    def publish(self, name="cam", sdp=None, **more):
        sdp = sdp or offer("audio", "h264")
        return self.ask("POST", f"/live/{name}/whip", sdp, **more)

    def live(self, name="obs"):
        """A stream of H.264 and AAC, as OBS publishes it."""
        live = self.registry.open("live", name)
        live.begin(self.now)
        live.write(9, 0, H264_HEADER, self.now)
        live.write(8, 0, b"\xaf\x00\x11\x90", self.now)
        return live

    def view(self, name, sdp):
        """Have a browser play that connects at once: the place of its session, and its RTP."""
        got = self.ask("POST", f"/live/{name}/whep", sdp)
        assert got.status == 201
        heard = []
        self.connect(self.transports[-1], heard)
        return got.headers["Location"], heard

    def connect(self, transport, heard):
        """Have a browser connect, and keep its RTP."""
        keep = lambda data: heard.append(data) or data  # noqa: E731
        transport._srtp = SimpleNamespace(is_on=True, protect_rtp=keep, protect_rtcp=bytes)
        transport.ice.remote = ("192.0.2.7", 5000)
        for line in transport._lines:
            line.on_ready()
        transport.on_connected(self.now)
