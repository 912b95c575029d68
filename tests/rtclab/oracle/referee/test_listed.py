"""The referee takes SIP out of lines of JSON, and says what is wrong with a line."""

import io
import json
from types import SimpleNamespace

import pytest
from support.lint.sip_cases import request

from rtclab.__main__ import main


def line(cseq):
    """A line with a request outside of a dialog."""
    data = request("OPTIONS", 1, 1, to_tag="", cseq=cseq).decode()
    given = {"time": 0.0, "from": "a:5060", "to": "b:5060", "transport": "UDP", "data": data}
    return json.dumps(given).encode() + b"\n"


FIRST_LINE, UNREADABLE = line("1 OPTIONS"), line("x OPTIONS")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "trace.jsonl"


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"{", "this is neither a capture nor JSON lines"),
        (b"\xff\xfe", "this is neither a capture nor JSON lines"),
        (FIRST_LINE + b"# more", "line 2 is no JSON"),
        (b"[1]", "line 1: this is no JSON object"),
        (b'{"time": 1}', 'line 1: "from" is missing'),
        (FIRST_LINE.replace(b": 0.0", b': "soon"'), 'line 1: "time" is no number of seconds'),
        (
            FIRST_LINE.replace(b": 0.0", b": 1" + b"0" * 400),
            'line 1: "time" is no number of seconds',
        ),
        (FIRST_LINE.replace(b'"data": "', b'"data": ["').replace(b'"}', b'"]}'), "no text"),
    ],
)
def test_what_is_none_of_a_trace_is_named(path, capsys, data, said):
    path.write_bytes(data)
    assert main(["oracle", "referee", str(path)]) == 2
    err = capsys.readouterr().err
    assert err.startswith(f"rtclab: {path}: ") and said in err and err.count("\n") == 1


def test_standard_input_is_a_minus(monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(FIRST_LINE)))
    assert main(["oracle", "referee", "-"]) == 0
    assert capsys.readouterr().out == "no findings in 1 message\n"


def test_messages_that_cannot_be_read_are_counted(path, capsys):
    said = "2 messages of SIP cannot be read"
    path.write_bytes(2 * UNREADABLE)
    assert main(["oracle", "referee", str(path)]) == 2
    assert capsys.readouterr().err == f"rtclab: {path}: {said}\n"
    path.write_bytes(FIRST_LINE + 2 * UNREADABLE)
    assert main(["oracle", "referee", str(path)]) == 0
    assert capsys.readouterr().out == f"no findings in 1 message; {said}\n"


def test_a_trace_without_sip_is_named(path, capsys):
    path.write_bytes(b"")
    assert main(["oracle", "referee", str(path)]) == 2
    assert "there is no message of SIP" in capsys.readouterr().err
