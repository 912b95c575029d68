"""RTMFP handshakes and sessions, and what can be wrong with them.

Each case is (rule, scene, number of the packet, keys if there are some).
"""

from support.lint.scene import Scene

from rtclab.explain.fields.context import RtmfpKey
from rtmplite.rtmfp.crypto.cipher import Protection, Sealer, default_cipher
from rtmplite.rtmfp.wire.acks import DataAckRanges
from rtmplite.rtmfp.wire.address import Origin, SocketAddress
from rtmplite.rtmfp.wire.control_chunks import (
    ForwardedInitiatorHello,
    SessionClose,
    SessionCloseAck,
)
from rtmplite.rtmfp.wire.flow_chunks import UserData
from rtmplite.rtmfp.wire.packet import Mode, Packet, scramble
from rtmplite.rtmfp.wire.startup_chunks import (
    InitiatorHello,
    InitiatorInitialKeying,
    ResponderHello,
    ResponderInitialKeying,
    ResponderRedirect,
)

CLIENT, SERVER = "192.0.2.1:40000", "192.0.2.2:1935"
KEY = b"k" * 16
OTHER = b"o" * 16
KEYS = (RtmfpKey(KEY),)
NEAR, FAR = 11, 22  # the session IDs that client and server choose


def startup(chunk, session_id=0):
    return scramble(session_id, default_cipher().seal(Packet(Mode.STARTUP, (chunk,)).encode()))


def session(session_id, mode, *chunks, key=KEY):
    sealed = Sealer(Protection(key)).seal(Packet(mode, chunks).encode())
    return scramble(session_id, sealed)


def up(*chunks, mode=Mode.INITIATOR):
    return session(FAR, mode, *chunks)


def down(*chunks):
    return session(NEAR, Mode.RESPONDER, *chunks)


HELLO = startup(InitiatorHello(b"epd", b"tag"))
ANSWER = startup(ResponderHello(b"tag", b"cookie", b"certificate"))
KEYING = InitiatorInitialKeying(NEAR, b"cookie", b"certificate", b"half", b"signature")
KEYED = startup(ResponderInitialKeying(FAR, b"half", b"signature"), NEAR)


def scene(*steps):
    """Datagrams: those with True are the client's."""
    made = Scene()
    for is_clients, data in steps:
        made.udp(*((CLIENT, SERVER) if is_clients else (SERVER, CLIENT)), data)
    return made


HELLOS = ((True, HELLO), (False, ANSWER))
OPEN = (*HELLOS, (True, startup(KEYING)), (False, KEYED))


def flow(*numbers, final=0):
    """User Data of flow 2."""
    return [(True, up(UserData(2, each, each, b"x", final=each == final))) for each in numbers]


ASKER = "192.0.2.3:50000"
ASKED = startup(InitiatorHello(b"epd", b"asked"))
ELSEWHERE = startup(ResponderRedirect(b"asked", (SocketAddress("192.0.2.1", 40000),)))
FORWARDED = ForwardedInitiatorHello(
    b"epd", SocketAddress("192.0.2.3", 50000, Origin.OBSERVED), b"asked"
)
FOUND = startup(ResponderHello(b"asked", b"another", b"certificate"))


def redirected():
    """The server has a session with the client, and sends an asker to it."""
    return scene(*OPEN).udp(ASKER, SERVER, ASKED).udp(SERVER, ASKER, ELSEWHERE)


def forwarded():
    """The same, captured at the client: it answers what only the server has told it."""
    return scene(*OPEN, (False, down(FORWARDED))).udp(CLIENT, ASKER, FOUND)


def keyed_twice():
    """Two initiators that have chosen the same session ID; the second has no answer."""
    made = scene(*OPEN).udp(ASKER, SERVER, ASKED).udp(SERVER, ASKER, FOUND)
    chunk = InitiatorInitialKeying(NEAR, b"another", b"certificate", b"half", b"signature")
    return made.udp(ASKER, SERVER, startup(chunk)).end()


BROKEN = scramble(0, b"?" * 32)
CASES = [
    ("rtmfp-checksum", scene(*HELLOS, (True, BROKEN)), 3),
    ("rtmfp-tag", scene((True, HELLO), (False, startup(ResponderHello(b"t", b"c", b"d")))), 2),
    (
        "rtmfp-cookie",
        scene(*HELLOS, (True, startup(InitiatorInitialKeying(NEAR, b"?", b"c", b"h", b"s")))),
        3,
    ),
    ("rtmfp-hello-unanswered", scene(*[(True, HELLO)] * 3), 1),
    ("rtmfp-keying-unanswered", scene(*HELLOS, (True, startup(KEYING))).end(), 3),
    ("rtmfp-hello-unanswered", redirected().udp(ASKER, CLIENT, ASKED).end(), 7),
    ("rtmfp-tag", scene(*OPEN).udp(SERVER, ASKER, ELSEWHERE), 5),
    ("rtmfp-tag", scene(*OPEN).udp(CLIENT, ASKER, FOUND), 5),
    ("rtmfp-keying-unanswered", keyed_twice(), 7),
    (
        "rtmfp-keying-alone",
        scene(*HELLOS, (False, startup(ResponderInitialKeying(FAR, b"h", b"s")))),
        3,
    ),
    ("rtmfp-session", scene(*OPEN, (True, session(99, Mode.INITIATOR, SessionClose()))), 5),
    ("rtmfp-decrypt", scene(*OPEN, (True, scramble(FAR, b"?" * 32))), 5, KEYS),
    ("rtmfp-mode", scene(*OPEN, (True, up(SessionCloseAck(), mode=Mode.RESPONDER))), 5, KEYS),
    ("rtmfp-lost", scene(*OPEN, *flow(1, 2, 4)), 7, KEYS),
    ("rtmfp-after-final", scene(*OPEN, *flow(1, 2, final=1)), 6, KEYS),
    ("rtmfp-acknowledged", scene(*OPEN, *flow(1), (False, down(DataAckRanges(2, 9, 5)))), 6, KEYS),
    ("rtmfp-close", scene(*OPEN, (True, up(SessionClose()))).end(), 5, KEYS),
]
GOOD = {
    "a redirector": redirected().udp(ASKER, CLIENT, ASKED).udp(CLIENT, ASKER, FOUND).end(),
    "a hello that was forwarded": (forwarded(), KEYS),
    "a hello that was forwarded, without keys": forwarded(),
    "a session": (
        scene(
            *OPEN,
            *flow(1, 2, 3, final=3),
            (False, down(DataAckRanges(2, 9, 3))),
            (True, up(SessionClose())),
            (False, down(SessionCloseAck())),
        ).end(),
        KEYS,
    ),
    "a session without keys": scene(*OPEN, *flow(1, 5)).end(),
    "one session ID for both ends": (
        scene(
            *HELLOS,
            (True, startup(KEYING)),
            (False, startup(ResponderInitialKeying(NEAR, b"half", b"signature"), NEAR)),
            (True, session(NEAR, Mode.INITIATOR, SessionClose())),
            (False, session(NEAR, Mode.RESPONDER, SessionCloseAck(), key=OTHER)),
        ),
        (*KEYS, RtmfpKey(OTHER)),
    ),
    "data given up": (
        scene(*OPEN, (True, up(UserData(2, 1, 1, b"x"))), (True, up(UserData(2, 9, 1, b"x")))),
        KEYS,
    ),
}
