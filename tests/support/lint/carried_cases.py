"""SIP in WebSockets, RTP by TURN and RTMP in HTTP, and what can be wrong with how each is carried.

Each case is (rule, scene, number of the packet).
"""

from support.lint.media_cases import sdp, sound
from support.lint.rtmp_cases import C1, CONNECT, CONNECTED, S1, written
from support.lint.scene import Scene
from support.lint.sip_cases import PARTS, call, request

from p2psip.nat.stun import StunClass, StunMessage, write_address
from p2psip.nat.turn import TurnMethod, TurnType, channel_data

BROWSER, GATEWAY = "192.0.2.1:50000", "192.0.2.2:80"
KEY, ACCEPT = "dGhlIHNhbXBsZSBub25jZQ==", "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="  # Source: RFC 6455 §1.3
TEXT, BINARY, CLOSE, PING = 1, 2, 8, 9
SHAKEN = 4  # packets of TCP and of the handshake


# -- WebSockets --------------------------------------------------------------------------


def head(start, *lines, body=b""):
    """A message of HTTP."""
    return "\r\n".join((start, *lines, "", "")).encode() + body


def frame(data, *, opcode=TEXT, masked=True, final=True, bits=0, key=b"\1\2\3\4"):
    """One frame; `bits` are the reserved ones."""
    size = len(data)
    second = 0x80 if masked else 0
    length = bytes((second | size,)) if size < 126 else bytes((second | 126, *size.to_bytes(2)))
    hidden = bytes(each ^ key[at % 4] for at, each in enumerate(data)) if masked else data
    return bytes((final << 7 | bits << 4 | opcode,)) + length + (key if masked else b"") + hidden


def shaken(*, key=KEY, version="13", asked="sip", accept=ACCEPT, said="sip", more=()):
    """A WebSocket that both ends have agreed on."""
    scene = Scene()
    common = "Upgrade: websocket", "Connection: Upgrade"
    wanted = (f"Sec-WebSocket-Protocol: {asked}",) if asked else ()
    given = (f"Sec-WebSocket-Protocol: {said}",) if said else ()
    keys = f"Sec-WebSocket-Key: {key}", f"Sec-WebSocket-Version: {version}"
    scene.tcp(BROWSER, GATEWAY, head("GET / HTTP/1.1", "Host: a", *common, *keys, *wanted))
    start = "HTTP/1.1 101 Switching Protocols"
    answer = head(start, *common, f"Sec-WebSocket-Accept: {accept}", *given, *more)
    return scene.tcp(GATEWAY, BROWSER, answer)


def framed(*frames, **changes):
    """What the client sends when the handshake is over."""
    return shaken(**changes).tcp(BROWSER, GATEWAY, *frames)


def web_call(carry=None):
    """A call by WebSocket; `carry` makes the octets of a message."""
    scene = shaken()
    for is_ours, make in PARTS.values():
        ends = (BROWSER, GATEWAY) if is_ours else (GATEWAY, BROWSER)
        data = make(via="WS a.invalid")
        carried = carry(data, is_ours) if carry else (frame(data, masked=is_ours),)
        scene.tcp(*ends, *carried)
    return scene


def in_parts(data, is_ours):
    """Fragments with a ping among them, in pieces of a few octets."""
    one = frame(data[:100], opcode=BINARY, masked=is_ours, final=False)
    three = frame(data[100:], opcode=0, masked=is_ours)
    whole = one + frame(b"?", opcode=PING, masked=is_ours) + three
    return [whole[at : at + 7] for at in range(0, len(whole), 7)]


OPTIONS = request("OPTIONS", 1, 1, to_tag="", via="WS a.invalid")
LONG = bytes((0x82, 0xFE, 0, 4)) + bytes(4) + b"\r\n\r\n"  # 4 octets, counted by two

WEBSOCKETS = [
    ("ws-handshake", shaken(key="short"), 3),
    ("ws-handshake", shaken(key="not base 64"), 3),
    ("ws-handshake", shaken(version="8"), 3),
    ("ws-handshake", shaken(accept="other"), 4),
    ("ws-handshake", shaken(said="msrp"), 4),
    ("ws-protocol", framed(frame(OPTIONS), said=""), SHAKEN + 1),
    ("ws-mask", framed(frame(OPTIONS, masked=False)), SHAKEN + 1),
    ("ws-mask", shaken().tcp(GATEWAY, BROWSER, frame(OPTIONS)), SHAKEN + 1),
    ("ws-frame", framed(frame(OPTIONS, bits=4)), SHAKEN + 1),
    ("ws-frame", framed(frame(b"", opcode=3)), SHAKEN + 1),
    ("ws-frame", framed(LONG), SHAKEN + 1),
    ("ws-frame", framed(frame(bytes(126), opcode=PING)), SHAKEN + 1),
    ("ws-frame", framed(frame(b"", opcode=PING, final=False)), SHAKEN + 1),
    ("ws-frame", framed(frame(OPTIONS + b"\xff")), SHAKEN + 1),
    ("ws-fragments", framed(frame(OPTIONS, opcode=0)), SHAKEN + 1),
    ("ws-fragments", framed(frame(b"OP", final=False), frame(OPTIONS)), SHAKEN + 2),
    ("ws-after-close", framed(frame(b"", opcode=CLOSE), frame(OPTIONS)), SHAKEN + 2),
    ("ws-message", framed(frame(b"hello")), SHAKEN + 1),
    ("ws-message", framed(frame(OPTIONS + OPTIONS)), SHAKEN + 1),
    ("ws-via", framed(frame(request("OPTIONS", 1, 1, to_tag=""))), SHAKEN + 1),
]


# -- TURN --------------------------------------------------------------------------------

CLIENT, SERVER = "192.0.2.1:40000", "192.0.2.7:3478"
RELAYED, PEER = ("192.0.2.7", 49152), ("192.0.2.2", 20000)
RANGE = 0x4000


def stun(kind, method, *attributes, number=1):
    return StunMessage.write(kind, method, bytes((*bytes(11), number)), attributes).data


def peer(address=PEER, number=1):
    return TurnType.XOR_PEER_ADDRESS, write_address(address, bytes((*bytes(11), number)))


def agreed(scene, method, *attributes, said=(), kind=StunClass.SUCCESS):
    """A transaction of the client's."""
    scene.udp(CLIENT, SERVER, stun(StunClass.REQUEST, method, *attributes))
    return scene.udp(SERVER, CLIENT, stun(kind, method, *said))


def allocated(scene=None):
    """2 packets."""
    relayed = TurnType.XOR_RELAYED_ADDRESS, peer(RELAYED)[1]
    return agreed(scene or Scene(), TurnMethod.ALLOCATE, said=(relayed,))


def bind(scene, channel=RANGE, address=PEER, **more):
    number = TurnType.CHANNEL_NUMBER, channel.to_bytes(2) + bytes(2)
    return agreed(scene, TurnMethod.CHANNEL_BIND, number, peer(address), **more)


def bound(scene=None):
    """4 packets."""
    return bind(allocated(scene))


def sent(scene, *packets, channel=RANGE):
    return scene.udp(CLIENT, SERVER, *(channel_data(channel, each) for each in packets), step=0.02)


def indicated(scene, method, *attributes):
    ends = (CLIENT, SERVER) if method == TurnMethod.SEND else (SERVER, CLIENT)
    return scene.udp(*ends, stun(StunClass.INDICATION, method, *attributes))


def relayed_call(scene=None):
    """A call whose caller names its relayed address."""
    offer = sdp(7, port=49152)
    changes = {"invite": {"body": offer}}
    return call(scene, only=("invite", "ringing", "ok", "ack"), **changes)


DATA = TurnType.DATA, b"?"
TURN = [
    ("turn-channel", bind(allocated(), 0x5001, kind=StunClass.ERROR), 3),
    ("turn-channel", bound().udp(CLIENT, SERVER, b"\x60\0\0\1x"), 5),
    ("turn-rebound", bind(bound(), RANGE + 1), 5),
    ("turn-rebound", bind(bound(), RANGE, ("192.0.2.3", 1)), 5),
    ("turn-unbound", sent(allocated(), b"x"), 3),
    ("turn-unbound", sent(bind(allocated(), kind=StunClass.ERROR), b"x"), 5),
    ("turn-permission", indicated(allocated(), TurnMethod.SEND, peer(), DATA), 3),
    ("turn-indication", indicated(bound(), TurnMethod.SEND, peer()), 5),
    ("turn-indication", indicated(bound(), TurnMethod.DATA, DATA), 5),
    ("turn-indication", bound().udp(CLIENT, SERVER, b"\x40\0\0\x09x"), 5),
    ("rtp-payload-type", sent(relayed_call(bound()), *sound(6, kind=96)), 9),
]


# -- RTMP in HTTP ------------------------------------------------------------------------

PLAYER, WEB = "192.0.2.1:50001", "192.0.2.2:8080"
OPENED = 4  # packets of TCP and of the opening
MEDIA_TYPE = "Content-Type: application/x-fcs"


def post(path, body=b"\0"):
    return head(f"POST {path} HTTP/1.1", MEDIA_TYPE, f"Content-Length: {len(body)}", body=body)


def answer(body, status="200 OK"):
    return head(f"HTTP/1.1 {status}", MEDIA_TYPE, f"Content-Length: {len(body)}", body=body)


class Tunnel(Scene):
    """A tunnel from its opening on; each request has the next number and is answered."""

    def __init__(self):
        super().__init__()
        self.tcp(PLAYER, WEB, post("/open/1")).tcp(WEB, PLAYER, answer(b"7f\n"))
        self.number = 0

    def ask(self, command="idle", up=b"\0", down=b"", *, first=b"\1", skip=0, source=PLAYER):
        """A request and its answer."""
        self.number += skip
        self.tcp(source, WEB, post(f"/{command}/7f/{self.number}", up))
        self.number += 1
        return self.tcp(WEB, source, answer(first + down))


def tunnelled(up=CONNECT):
    """A tunnel in which a client has connected; 4 + 8 packets."""
    scene = Tunnel().ask("send", b"\x03" + C1, b"\x03" + S1 + C1).ask("send", S1)
    return scene.ask("send", written(up)).ask(down=written(CONNECTED))


def asking(scene, times):
    """More requests than a server lets wait."""
    for _ in range(times):
        scene.ask()
    return scene


RTMPT = [
    ("rtmpt-sequence", tunnelled().ask(skip=1), OPENED + 9),
    ("rtmpt-sequence", tunnelled().ask(skip=-3), OPENED + 9),
    ("rtmpt-sequence", asking(tunnelled().ask(skip=1), 9), OPENED + 9),
    ("rtmpt-sequence", tunnelled().ask("close").ask(), OPENED + 11),
    ("rtmpt-interval", tunnelled().ask(first=b""), OPENED + 10),
    ("rtmpt-interval", tunnelled().ask(first=b"\x80"), OPENED + 10),
    ("rtmp-connect-twice", tunnelled().ask("send", written(CONNECT)), OPENED + 9),
    ("rtmp-result-alone", tunnelled().ask(down=written(CONNECTED)), OPENED + 10),
]

CASES = [*WEBSOCKETS, *TURN, *RTMPT]
GOOD = {
    "a web call": web_call(),
    "a web call in parts": web_call(in_parts),
    "a web client that keeps alive": framed(frame(b"\r\n\r\n"), frame(OPTIONS)),
    "another web page": framed(frame(b"hello"), asked="chat", said="chat"),
    "a refused upgrade": Scene()
    .tcp(
        BROWSER,
        GATEWAY,
        head(
            "GET / HTTP/1.1",
            "Upgrade: websocket",
            f"Sec-WebSocket-Key: {KEY}",
            "Sec-WebSocket-Version: 13",
        ),
    )
    .tcp(GATEWAY, BROWSER, head("HTTP/1.1 401 No", "Content-Length: 0"))
    .tcp(BROWSER, GATEWAY, head("GET /other HTTP/1.1")),
    "sound by channels": sent(relayed_call(bound()), *sound(20)),
    "sound by indications": indicated(
        agreed(relayed_call(allocated()), TurnMethod.CREATE_PERMISSION, peer()),
        *(TurnMethod.SEND, peer(), (TurnType.DATA, sound(1)[0])),
    ),
    "both ways by channels": sent(relayed_call(bound()), *sound(60)).udp(
        SERVER, CLIENT, *(channel_data(RANGE, each) for each in sound(60, ssrc=9)), step=0.02
    ),
    "a tunnel": tunnelled().ask("close"),
    "a tunnel of two connections": tunnelled().ask(source="192.0.2.1:50009").ask(),
    "a request again": tunnelled().ask(skip=-1),
    "the last request again": tunnelled().ask("close").ask("close", skip=-1),
    "a ping behind Close": framed(frame(b"", opcode=CLOSE), frame(b"", opcode=PING)),
}
