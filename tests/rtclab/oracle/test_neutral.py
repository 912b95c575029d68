"""Neutral JSON: what stands for what, what is refused with which words, and what differs."""

import json
import math

import pytest

from p2psip.rtp.rtcp import SenderReport
from p2psip.sip.message import parse_message
from rtclab.oracle import amf_neutral, catalogue, sip_neutral
from rtclab.oracle.neutral import Members, NeutralError, difference, from_neutral, to_neutral
from rtmplite.amf.values import Date, EcmaArray, Externalizable, Vector, VectorKind
from rtmplite.strategies.amf import alike


def test_a_number_that_no_double_holds_is_text():
    report = SenderReport(1, 1 << 60, 0, 0, 0)
    assert to_neutral(report)["ntp"] == "1152921504606846976"
    assert from_neutral(to_neutral(report), SenderReport) == report
    assert difference(to_neutral(report), to_neutral(report) | {"ntp": 1 << 60}) is None


def test_text_in_an_unknown_encoding_is_octets():
    request = parse_message(
        b"OPTIONS sip:a@b SIP/2.0\r\nSubject: \xff\r\nVia: SIP/2.0/UDP a\r\nFrom: <sip:a@b>\r\n"
        b"To: <sip:a@b>\r\nCall-ID: 1\r\nCSeq: 1 OPTIONS\r\n\r\n"
    )
    written = sip_neutral.write(request)
    assert ["subject", {"octets": "ff"}] in written["header_lines"]
    assert sip_neutral.read(written).headers["Subject"] == "\udcff"


def test_amf_keeps_bits_identity_and_order():
    nothing = math.nan
    shared = EcmaArray({"b": nothing, "a": -0.0})
    shared["self"] = shared
    values = [shared, [shared, 5, b"\1"], Date(1.5, 60), Vector(VectorKind.UINT, [7], True)]
    values.append(Externalizable("flex.messaging.io.ArrayCollection", values[1]))
    written = json.loads(json.dumps(amf_neutral.write(values)))
    assert [name for name, _ in written[0]["members"]] == ["b", "a", "self"]
    assert written[0]["members"][1][1] == {"type": "double", "bits": "8000000000000000"}
    assert written[0]["members"][2][1] == {"type": "reference", "id": 1}
    assert alike(amf_neutral.read(written), values)


RTP = {"payload_type": 0, "sequence": 0, "timestamp": 0, "ssrc": 0, "payload": ""}


@pytest.mark.parametrize(
    ("name", "written", "reason"),
    [
        ("rtp", [], "value is no object"),
        ("rtp", {"payload_type": 0}, "missing sequence, timestamp, ssrc, payload$"),
        ("rtp", {"sequense": 0, "type": "rtp-packet"}, "value: unknown sequense$"),
        ("rtp", RTP | {"extension": {"profil": 0}}, "value.extension: unknown profil$"),
        ("sip", {"type": "request", "metod": "BYE"}, "value: unknown metod$"),
        ("rtp", {"payload_type": "x"}, "value.payload_type is no whole number"),
        ("rtp", {"payload": "0"}, "value.payload is no hexadecimal text"),
        ("rtp", {"marker": 1}, "value.marker is neither true nor false"),
        ("rtp", {"csrcs": 1}, "value.csrcs is no array"),
        ("sdp", {"name": 1}, "value.name is no text"),
        ("stun", {"kind": 9}, "value.kind: no meaning for 9"),
        ("ice-candidate", {"type": "tcp"}, "value.type: no meaning for tcp"),
        ("rtcp", [{"type": "letter"}], r"value\[0\]: unknown type 'letter'"),
        ("rtcp", [{"type": "fir", "requests": [[1]]}], r"requests\[0\] is not 2 items long"),
        ("sip", {"type": "request"}, "value: missing 'header_lines'"),
        ("sip", {"header_lines": [["a"]], "body": ""}, "a name and a value are a pair"),
        ("amf0", [{"type": "double", "bits": "00"}], "a double has 16 digits"),
        ("amf0", [{"type": "object"}], r"value\[0\]: no 'id' for the type 'object'"),
        ("amf0", [{"type": "reference", "id": 4}], "no 4 for the type 'reference'"),
        ("amf0", [{"type": "object", "id": 1, "members": [[1]]}], "a name and a value"),
        (
            "amf3",
            [{"type": "dictionary", "id": 1, "weak": False, "entries": [[True]]}],
            "a key and a value",
        ),
    ],
)
def test_json_that_is_no_value_is_refused_with_the_place(name, written, reason):
    with pytest.raises(NeutralError, match=reason):
        catalogue.find(name).from_neutral(written)


def test_a_member_that_is_left_out_is_noted_and_not_compared():
    seen = Members()
    expected = [{"type": "bye", "ssrcs": [1], "reason": "00"}]
    assert difference(expected, [{"type": "bye", "reasons": "", "ssrcs": [1]}], seen) is None
    assert (seen.missing, seen.unknown) == ({"bye.reason"}, {"bye.reasons"})


@pytest.mark.parametrize(
    ("one", "other"), [(True, 1), (None, 0), ("1", 2), ([1], [1, 1]), ({}, [])]
)
def test_what_differs(one, other):
    assert difference(one, other)


def test_a_whole_number_may_be_written_with_a_point():
    assert difference({"a": 1}, {"a": 1.0}) is None
