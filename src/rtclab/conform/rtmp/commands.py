"""Commands of a NetConnection: connect, createStream, and calls.

Implements RTMP 1.0 §7.2.1, from the client's side, with RTMP Errata §8.
"""

from functools import partial
from typing import Final

from rtclab.conform.case import Cases, NotApplicable, Unmet
from rtclab.conform.checks import expect_equal
from rtclab.conform.rtmp.line import RtmpLine, information, said
from rtclab.conform.rtmp.peer import RtmpPeer, token
from rtmplite.amf import amf0
from rtmplite.amf.values import UNDEFINED, Date, EcmaArray, TypedObject, XmlDocument
from rtmplite.rtmp.wire import control
from rtmplite.rtmp.wire.command import Command
from rtmplite.rtmp.wire.message import Message, MessageType

cases: Cases[RtmpPeer] = Cases()
must = partial(cases.case, role="server")
should = partial(cases.case, role="server", level="SHOULD")
may = partial(cases.case, role="server", level="MAY")
SUCCESS: Final = "NetConnection.Connect.Success"
NOBODYS: Final = "nothingLikeIt"  # a call that no server has


@must("RTMP 1.0 §7.2.1.1", "then-result")
def connect_has_a_result(peer: RtmpPeer) -> None:
    """connect is answered by _result with NetConnection.Connect.Success (§7.2.1.1)."""
    answer = peer.shaken().connect()
    found = answer.args[0] if answer.args else None
    code = found.get("code") if isinstance(found, dict) else found
    expect_equal("answer", ("_result", SUCCESS), (answer.name, code))


@must("RTMP 1.0 §7.2", "same-id")
def answer_to_connect_has_number_1(peer: RtmpPeer) -> None:
    """The transaction id of connect, and so of its answer, is 1 (§7.2.1.1)."""
    expect_equal("transaction id", 1.0, peer.shaken().connect().transaction_id)


@must("RTMP 1.0 §7.2.1.1", "then-result")
def answer_to_connect_has_properties(peer: RtmpPeer) -> None:
    """The first object of the answer has the server's properties, such as fmsVer (§7.2.1.1)."""
    answer = peer.shaken().connect()
    if not isinstance(answer.object, dict) or not isinstance(answer.object.get("fmsVer"), str):
        raise Unmet("an object with fmsVer", str(answer.object))


@must("RTMP 1.0 §7.2.1.1", "then-result")
def answer_to_connect_has_information(peer: RtmpPeer) -> None:
    """The second object of the answer has level, code and description (§7.2.1.1)."""
    found = information(peer.shaken().connect())
    missing = {"level", "code", "description"} - found.keys()
    if missing or found["level"] != "status":
        raise Unmet("level status, code and description", str(dict(found)))


@must("RTMP 1.0 §7.2.1.1", "window-first")
def connect_is_answered_by_a_window_first(peer: RtmpPeer) -> None:
    """Window Acknowledgement Size comes before the result (§7.2.1.1)."""
    _expect_before_result(peer, control.WindowAcknowledgementSize)


@must("RTMP 1.0 §7.2.1.1", "then-bandwidth")
def bandwidth_comes_before_the_result(peer: RtmpPeer) -> None:
    """Set Peer Bandwidth comes before the result (§7.2.1.1)."""
    _expect_before_result(peer, control.SetPeerBandwidth)


@must("RTMP 1.0 §7.2.1.1", "then-begin")
def stream_0_begins_before_the_result(peer: RtmpPeer) -> None:
    """StreamBegin of stream 0 comes before the result (§7.2.1.1)."""
    expect_equal("stream", control.StreamBegin(0), _expect_before_result(peer, control.StreamBegin))


@must("RTMP Errata §8.1.1", "never-more-than-asked")
def encoding_0_is_not_answered_by_3(peer: RtmpPeer) -> None:
    """A client with objectEncoding 0, or without, is never told 3 (RTMP Errata §8.1.1)."""
    for more in ({}, {"objectEncoding": 0.0}):
        found = information(peer.shaken().connect(**more)).get("objectEncoding", 0.0)
        expect_equal("objectEncoding", 0.0, found)


@should("RTMP Errata §8.1.1", "server-says")
def answer_says_the_encoding(peer: RtmpPeer) -> None:
    """The answer has an objectEncoding, which is 0 or 3 if 3 was offered (RTMP Errata §8.1.1)."""
    found = information(peer.shaken().connect(objectEncoding=3.0)).get("objectEncoding")
    if found not in (0.0, 3.0):
        raise Unmet("0 or 3", str(found))


@must("RTMP Errata §8.1.5", "more-arguments")
def connect_may_have_more_arguments(peer: RtmpPeer) -> None:
    """Any number of arguments may follow the object of connect (RTMP Errata §8.1.5)."""
    answer = peer.shaken().connect("a key", 7.0, {"user": "ann"}, None)
    expect_equal("answer", "_result", answer.name)


@must("AMF0 §2.8", "undefined-is-a-marker")
def connect_may_have_null_and_undefined(peer: RtmpPeer) -> None:
    """The object of connect may have unknown members that are null or undefined (AMF0 §2.8)."""
    peer.connected(xNull=None, xUndefined=UNDEFINED, xBoolean=True)


@must("AMF0 §2.5", "object-layout")
def connect_may_have_objects_within(peer: RtmpPeer) -> None:
    """The object of connect may have unknown members that are objects (AMF0 §2.5)."""
    peer.connected(xObject={"a": {"b": 1.0}}, xNumber=1.0)


@must("AMF0 §2.12", "strict-array-layout")
def connect_may_have_arrays_within(peer: RtmpPeer) -> None:
    """The object of connect may have unknown members that are arrays (AMF0 §2.12)."""
    peer.connected(xArray=EcmaArray(a="b"), xList=[1.0, "two", None], xNumber=1.0)


@must("AMF0 §2.13", "date-layout")
def connect_may_have_a_date(peer: RtmpPeer) -> None:
    """The object of connect may have an unknown member that is a date (AMF0 §2.13)."""
    peer.connected(xDate=Date(1.0e12), xNumber=1.0)


@must("AMF0 §2.17", "xml-is-long-string")
def connect_may_have_xml(peer: RtmpPeer) -> None:
    """The object of connect may have an unknown member that is XML (AMF0 §2.17)."""
    peer.connected(xXml=XmlDocument("<a/>"), xNumber=1.0)


@must("AMF0 §2.18", "typed-object-layout")
def connect_may_have_a_typed_object(peer: RtmpPeer) -> None:
    """The object of connect may have an unknown member of a class (AMF0 §2.18)."""
    peer.connected(xTyped=TypedObject("com.example.Thing", {"a": 1.0}), xNumber=1.0)


@must("AMF0 §2.14", "long-string-u32")
def connect_may_have_a_long_string(peer: RtmpPeer) -> None:
    """The object of connect may have an unknown member that is a long string (AMF0 §2.14)."""
    line = peer.shaken()
    whole = bytes(line.connect_command())
    long = b"\x00\x05xLong\x0c" + (4).to_bytes(4, "big") + b"long"  # as short as nobody sends it
    line.write(Message(MessageType.COMMAND, 0, 0, whole[:-3] + long + whole[-3:]))
    expect_equal("answer", "_result", line.answer(1).name)


@must("AMF0 §2.10", "ecma-array-layout")
def object_of_connect_may_be_an_array(peer: RtmpPeer) -> None:
    """An ECMA array serves as the object of connect, as it has the same members (AMF0 §2.10)."""
    line = peer.shaken()
    whole = line.connect_command()
    assert isinstance(whole.object, dict)
    line.write(Command("connect", 1.0, EcmaArray(whole.object)).message())
    expect_equal("answer", "_result", line.answer(1).name)


@may("RTMP 1.0 §7.2", "result-or-error")
def unknown_application_is_refused(peer: RtmpPeer) -> None:
    """connect to an application that is not there has _error, not silence (§7.2.1.1)."""
    answer = peer.shaken().connect(app=token(), tcUrl=f"rtmp://conform/{token()}")
    if answer.name == "_result":
        raise NotApplicable("any name is an application here")
    expect_equal("level", "error", information(answer).get("level"))


@must("RTMP 1.0 §7.2.1.3", "gives-the-stream")
def create_stream_gives_a_number(peer: RtmpPeer) -> None:
    """createStream is answered by the number of a stream (§7.2.1.3)."""
    peer.connected().create_stream()


@must("RTMP 1.0 §7.2.1.3", "gives-the-stream")
def each_stream_has_its_number(peer: RtmpPeer) -> None:
    """Two streams that a client has at once have different numbers (§7.2.1.3)."""
    line = peer.connected()
    first, second = line.create_stream(), line.create_stream()
    if first == second:
        raise Unmet("two numbers", f"twice {first}")


@must("RTMP 1.0 §7.2", "same-id")
def answers_have_the_numbers_of_calls(peer: RtmpPeer) -> None:
    """Each of several calls is answered with its own transaction id (§7.2)."""
    line = peer.connected()
    numbers = [77.0, 5.0, 1000.0]
    for number in numbers:
        line.write(Command("createStream", number).message())
    got = [line.answer(number).transaction_id for number in numbers]
    expect_equal("transaction ids", numbers, got)


@must("RTMP 1.0 §7.2", "result-or-error")
def unknown_call_is_answered(peer: RtmpPeer) -> None:
    """A call of nobody's is answered by _error, or by a _result (§7.2)."""
    line = peer.connected()
    call = Command(NOBODYS, line.number(), None, ("x",))
    line.write(call.message())
    if not any(number == call.transaction_id for number in _answers(line)):
        raise Unmet("_error or _result", "an answer to the call after only")


@must("RTMP 1.0 §7.2.1.2", "zero-wants-none")
def call_with_number_0_has_no_answer(peer: RtmpPeer) -> None:
    """A call with transaction id 0 is not answered (§7.2.1.2)."""
    line = peer.connected()
    line.write(Command(NOBODYS, 0.0, None, ("x",)).message())
    if found := _answers(line):
        raise Unmet("no answer", f"one with the number {found[0]:g}")


@must("RTMP 1.0 §7.2.2.3", "no-answer")
def delete_stream_has_no_answer(peer: RtmpPeer) -> None:
    """deleteStream is not answered, whatever its number (§7.2.2.3)."""
    line = peer.connected()
    line.write(Command("deleteStream", 0.0, None, (float(line.create_stream()),)).message())
    if found := _answers(line):
        raise Unmet("no answer", f"one with the number {found[0]:g}")


@must("RTMP 1.0 §7.1.1", "parts")
def command_object_may_be_an_object(peer: RtmpPeer) -> None:
    """createStream with an object in place of null is obeyed (§7.1.1)."""
    expect_equal("answer", "_result", peer.connected().ask("createStream", object={"a": 1.0}).name)


@must("RTMP 1.0 §7.1.1", "types")
def command_of_type_17_is_obeyed(peer: RtmpPeer) -> None:
    """A command of type 17, with a zero before AMF0, is obeyed (RTMP Errata §7.2)."""
    _expect_extended(peer, amf0.encode("createStream", 9.0, None))


@must("RTMP Errata §7.2", "switch-by-marker")
def command_of_type_17_has_amf3_values(peer: RtmpPeer) -> None:
    """A command of type 17 may have values of AMF3 behind a marker (RTMP Errata §7.2)."""
    _expect_extended(peer, amf0.encode("createStream", 9.0, {"a": [1, "x"]}, avmplus=True))


def _expect_extended(peer: RtmpPeer, values: bytes) -> None:
    """Send a command of type 17 to a target that agrees to objectEncoding 3; it must answer."""
    line = peer.shaken()
    if information(line.connect(objectEncoding=3.0)).get("objectEncoding") != 3.0:
        raise NotApplicable("the target has no AMF3")
    line.write(Message(MessageType.COMMAND_AMF3, 0, 0, b"\x00" + values))
    expect_equal("answer", "_result", line.answer(9).name)


@should("RTMP 1.0 §7.2", "result-or-error")
def calls_of_obs_are_answered(peer: RtmpPeer) -> None:
    """releaseStream and FCPublish, which OBS sends with a number, have an answer (§7.2)."""
    line, name = peer.connected(), token()
    calls = [Command(each, line.number(), None, (name,)) for each in ("releaseStream", "FCPublish")]
    for call in calls:
        line.write(call.message())
    got = set(_answers(line))
    if missing := [each.name for each in calls if each.transaction_id not in got]:
        raise Unmet("answers to both", f"none to {' and '.join(missing)}")


def _answers(line: RtmpLine) -> list[float]:
    """The numbers of what is answered before the answer to a last call."""
    found: list[float] = []
    for message in line.between():
        if message.type_id in (MessageType.COMMAND, MessageType.COMMAND_AMF3):
            command = Command.parse(message)
            if command.name in ("_result", "_error"):
                found.append(command.transaction_id)
    return found


def _expect_before_result(peer: RtmpPeer, kind: type[control.Control]) -> control.Control:
    line = peer.shaken()
    line.write(line.connect_command().message())
    for message in line.messages():
        if message.type_id == MessageType.COMMAND:
            raise Unmet(f"{kind.__name__} first", said(Command.parse(message)))
        if isinstance(found := control.parse_control(message), kind):
            return found
    raise AssertionError("messages() has no end")
