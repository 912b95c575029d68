"""Whatever a capture holds is judged without a crash."""

from hypothesis import given, settings
from hypothesis import strategies as st
from support.lint import carried_cases, dtls_cases, media_cases, rtmfp_cases, rtmp_cases, sip_cases
from support.lint.scene import Scene

from rtclab.command_line.arguments import ConfigError
from rtclab.explain.command import KeyFile
from rtclab.explain.fields.context import RtmfpKey
from rtclab.lint.command import lint
from rtclab.lint.judge import Judge
from rtclab.lint.packets import Capture, read_capture
from rtmplite.amf import amf0
from rtmplite.rtmp.wire.message import Message

TABLES = sip_cases, carried_cases, dtls_cases, media_cases, rtmp_cases, rtmfp_cases
SCENES = [case[1] for table in TABLES for case in table.CASES]
KEYS = (RtmfpKey(b"k" * 16), RtmfpKey(b"K" * 32, b"h" * 32))


def judge(packets):
    report = lint(Capture(packets), KeyFile(KEYS))
    assert "\n".join(report.lines(ladder=True)) and report.json()


@st.composite
def damaged(draw):
    """The packets of a case, some of them damaged, missing, twice, or at another time."""
    packets = list(draw(st.sampled_from(SCENES)).packets)
    for _ in range(draw(st.integers(1, 6))):
        at = draw(st.integers(0, len(packets) - 1))
        packet, data = packets[at], packets[at].data
        match draw(st.sampled_from(["octets", "cut", "lost", "twice", "moved", "turned"])):
            case "octets" if data:
                place = draw(st.integers(0, len(data) - 1))
                piece = draw(st.binary(min_size=1, max_size=8))
                data = data[:place] + piece + data[place + len(piece) :]
                packets[at] = packet._replace(data=data)
            case "cut":
                packets[at] = packet._replace(data=data[: draw(st.integers(0, len(data)))])
            case "lost" if len(packets) > 1:
                del packets[at]
            case "twice":
                packets.insert(at, packet)
            case "moved":
                packets.insert(draw(st.integers(0, len(packets))), packet)
            case _:
                packets[at] = packet._replace(source=packet.target, target=packet.source)
    return packets


@given(damaged())
@settings(max_examples=400, deadline=None)
def test_damaged_conversations_are_judged(packets):
    judge(packets)


@given(st.lists(st.binary(max_size=80), max_size=8), st.booleans())
@settings(max_examples=200, deadline=None)
def test_any_octets_are_judged(pieces, is_stream):
    scene = Scene()
    (scene.tcp if is_stream else scene.udp)("192.0.2.1:1", "192.0.2.2:2", *pieces)
    judge(scene.packets)


VALUES = st.one_of(st.floats(), st.none(), st.text(max_size=5), st.booleans())
NAMES = st.sampled_from(
    ["connect", "_result", "createStream", "publish", "deleteStream", "onStatus"]
)


@given(st.lists(st.tuples(st.booleans(), NAMES, st.floats(), st.lists(VALUES)), max_size=8))
@settings(max_examples=200, deadline=None)
def test_commands_with_any_numbers_are_judged(commands):
    scene = rtmp_cases.connected()
    for is_up, name, number, values in commands:
        message = Message(20, 0, 1, amf0.encode(name, number, None, *values))
        (scene.up if is_up else scene.down)(message)
    judge(scene.packets)


@given(st.binary(max_size=200), st.integers(0, 3))
@settings(max_examples=200, deadline=None)
def test_any_file_is_read_or_refused(data, kind):
    magic = ("d4c3b2a1", "a1b2c3d4", "0a0d0d0a", "4d3cb2a1")[kind]
    try:
        capture = read_capture(bytes.fromhex(magic) + data)
    except ConfigError:
        return
    for packet in capture.packets:
        Judge().hear(packet)
