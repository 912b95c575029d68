"""`python -m rtclab oracle`: what it prints, and its exit codes."""

import base64
import io
import json
import re
import sys
from pathlib import Path

import pytest

from rtclab.__main__ import main
from rtclab.oracle import catalogue

REPO = Path(__file__).resolve().parents[3]
ADAPTER = str(REPO / "examples" / "oracle" / "rtp.py")
PACKET = bytes.fromhex("80000007000000a00000cafe736f")


@pytest.fixture
def oracle(monkeypatch, capsys):
    """Run a command with this input; give its exit code, and both outputs."""

    def run(*words, given=b""):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given)))
        code = main(["oracle", *words])
        return code, *capsys.readouterr()

    return run


def test_all_codecs_are_listed_with_their_section(oracle):
    code, out, _ = oracle("list")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()] == list(catalogue.CODECS)
    assert all(codec.citation in out for codec in catalogue.CODECS.values())


def test_the_fields_of_a_codec_are_listed(oracle):
    assert "extension: profile number, data octets" in oracle("list", "rtp")[1]


def test_the_page_of_the_protocol_has_the_fields_of_every_codec():
    page = (REPO / "docs" / "5-reference" / "oracle-protocol.md").read_text()
    for codec in catalogue.CODECS.values():
        assert "\n".join(codec.fields()) in page
        assert f"\n### {codec.name}" in page or f" and {codec.name}\n" in page


def test_octets_in_three_forms_are_decoded_and_encoded(oracle):
    forms = {"hex": PACKET.hex().encode(), "base64": base64.b64encode(PACKET), "raw": PACKET}
    for name, given in forms.items():
        code, out, _ = oracle("decode", "rtp", "--format", name, given=given)
        assert code == 0 and json.loads(out)["sequence"] == 7
        if name != "raw":
            assert oracle("encode", "rtp", "--format", name, given=out.encode())[1] == (
                given.decode() + "\n"
            )


def test_octets_are_written_raw(monkeypatch, capsysbinary):
    octets = bytes.fromhex("000100002112a442000000000000000000000000")
    codec = catalogue.find("stun")
    value = json.dumps(codec.to_neutral(codec.decode(octets))).encode()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(value)))
    assert main(["oracle", "encode", "stun", "--format", "raw"]) == 0
    assert capsysbinary.readouterr().out == octets


def test_an_error_has_a_status_in_sip_and_sdp_alone(oracle):
    assert oracle("decode", "rtp", given=b"80")[2].startswith("rtclab: refused: RTP packet")
    for name in ("sip", "sdp"):
        assert re.match("rtclab: refused: [45][0-9][0-9] ", oracle("decode", name, given=b"80")[2])
    assert oracle("decode", "rtp", given=b"")[0::2] == (2, "rtclab: no octets on standard input\n")


@pytest.mark.parametrize("form", ["0x{}\n", "{}:", " {}\n"])
def test_digits_may_have_a_mark_before_and_colons_between_them(oracle, form):
    digits = form.format(PACKET.hex(":" if ":" in form else " ")).encode()
    code, out, _ = oracle("decode", "rtp", given=digits)
    assert code == 0 and json.loads(out)["sequence"] == 7
    assert oracle("decode", "rtp", given=b"\n")[0::2] == (
        2,
        "rtclab: no octets on standard input\n",
    )


def test_an_interrupted_command_says_nothing(oracle, monkeypatch):
    def interrupted(name):
        raise KeyboardInterrupt

    monkeypatch.setattr(catalogue, "find", interrupted)
    assert oracle("vectors", "rtp") == (130, "", "")


def test_octets_that_are_refused_are_exit_code_1(oracle):
    code, out, err = oracle("decode", "rtp", given=b"80")
    assert (code, out) == (1, "") and "shorter than its fixed header" in err


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        (
            "rtp",
            {"payload_type": 255, "sequence": 0, "timestamp": 0, "ssrc": 0, "payload": ""},
            "payload_type does not fit",
        ),
        ("rtcp", [{"type": "receiver-report", "ssrc": 1 << 40}], "refused"),
        ("flv-tag", {"tag_type": 8, "timestamp": 0, "data": "", "stream_id": -1}, "refused"),
    ],
)
def test_a_value_that_cannot_be_written_is_exit_code_1(oracle, name, value, reason):
    code, _, err = oracle("encode", name, given=json.dumps(value).encode())
    assert code == 1 and reason in err and err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "given", "reason"),
    [
        (["decode", "rpt"], b"", "did you mean rtp?"),
        (["decode", "rtp"], b"zz", "no hex"),
        (["decode", "rtp", "--format", "base64"], b"!", "no base64"),
        (["encode", "rtp"], b"{", "no JSON"),
        (["encode", "rtp"], b"{}", "missing payload_type"),
        (["encode", "h264-sps"], b"{}", "h264-sps is read only"),
        (["compare", "rtp"], b"", "behind --"),
        (["compare", "rtp", "--"], b"", "behind --"),
        (["compare", "h264-sps", "--encode", "--", "cat"], b"", "read only"),
        (["compare", "rtp", "--", "/nowhere/at-all"], b"", "cannot run /nowhere/at-all"),
        (["compare", "rtp", "--", "cat"], b"", "no answer of the protocol"),
        (["vectors", "rtp", "--count", "0"], b"", "not between 1 and"),
        (["list", "--", "cat"], b"", "only compare takes a command"),
        (["refer"], b"", "invalid choice"),
        (["referee"], b"", "TRACE"),
        (["referee", "/nowhere"], b"", "No such file"),
        ([], b"", "COMMAND"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(oracle, words, given, reason):
    code, out, err = oracle(*words, given=given)
    assert (code, out) == (2, "")
    assert err.startswith("rtclab: ") and reason in err and err.count("\n") == 1


def test_vectors_are_lines_of_json_by_class(oracle):
    code, out, _ = oracle("vectors", "rtp", "--odd", "--broken", "--count", "3")
    lines = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert [line["class"] for line in lines] == ["odd"] * 3 + ["broken"] * 3
    assert {(line["version"], line["codec"]) for line in lines} == {(1, "rtp")}
    assert all("value" in line for line in lines[:3])
    assert all(line["error"]["fault"] for line in lines[3:])


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["vectors", "h264-sps", "--valid"], "h264-sps has no valid cases"),
        (["compare", "h264-config", "--odd", "--", "cat"], "h264-config has no odd cases"),
    ],
)
def test_a_class_that_a_codec_lacks_is_named(oracle, words, what):
    assert oracle(*words)[2] == f"rtclab: {what}\n"


def test_a_program_that_agrees_is_exit_code_0(oracle):
    code, out, _ = oracle("compare", "rtp", "--count", "15", "--", sys.executable, ADAPTER)
    assert code == 0 and out.startswith("rtp: no disagreement in ") and out.count("\n") == 1


def test_a_program_that_disagrees_is_exit_code_1_and_a_report(oracle, tmp_path):
    spoilt = tmp_path / "spoilt.py"
    text = Path(ADAPTER).read_text().replace("second > 127", "False")
    spoilt.write_text(text.replace('"padding": 0', '"padding": 0, "added": 0'))
    words = ["compare", "rtp", "--valid", "--count", "20", "--", sys.executable, str(spoilt)]
    code, out, _ = oracle(*words)
    assert code == 1
    assert "RFC 3550 §5.1\n  valid input is read otherwise: marker" in out
    assert "expected  true\n    answered  false" in out
    assert "> marker = 1" in out
    assert "unknown, and not compared: added" in out


def test_a_missing_hypothesis_is_named(oracle, monkeypatch):
    catalogue.cases_of(catalogue.find("rtp"))  # it is there, and now it is gone
    monkeypatch.delitem(sys.modules, "rtclab.oracle.p2psip_cases")
    monkeypatch.delattr("rtclab.oracle.p2psip_cases")
    monkeypatch.setitem(sys.modules, "hypothesis", None)
    assert oracle("decode", "rtp", given=PACKET.hex().encode())[0] == 0
    code, _, err = oracle("vectors", "rtp")
    assert code == 2 and "pip install 'siprtmp[oracle]'" in err
