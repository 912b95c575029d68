"""The citations that are read out of the running code are those of the checker."""

import importlib
import inspect
import pkgutil
from pathlib import Path

import pytest

from p2psip.errors import LocalError, RemoteError
from p2psip.rtp.packet import RtpPacket
from p2psip.sip.grammar import number
from p2psip.sip.message import parse_message
from rfc_annotations.specs import load, read_index
from rtclab.explain.fields.source import fault_of, meaning_of, source_of

TOOL = Path(__file__).resolve().parents[3] / "rfc_annotations"
ROOMS = (
    *("p2psip.sip", "p2psip.sdp", "p2psip.rtp", "p2psip.rtp.payload", "p2psip.nat"),
    *("rtmplite.amf", "rtmplite.flv", "rtmplite.rtmp.wire", "rtmplite.rtmfp.wire"),
)


def described(room):
    """The public classes and functions of a room."""
    package = importlib.import_module(room)
    for info in pkgutil.iter_modules(package.__path__, f"{room}."):
        module = importlib.import_module(info.name)
        for name, each in vars(module).items():
            own = getattr(each, "__module__", "") == info.name and not name.startswith("_")
            if own and (inspect.isclass(each) or inspect.isfunction(each)):
                yield each


@pytest.mark.parametrize("room", ROOMS)
def test_each_citation_names_a_section_of_the_index(room):
    specs = load(TOOL / "specs.toml")
    index = read_index(specs, TOOL / "index")
    cited = {each: source_of(each).citation for each in described(room)}
    for each, citation in cited.items():
        if citation:
            spec, _, section = citation.partition(" §")
            assert section.strip('"') in index[spec], (each, citation)
    assert sum(map(bool, cited.values())) > 0.8 * len(cited)


def test_a_departure_is_no_source_and_a_function_has_no_meaning():
    def departed():
        pass

    departed.__doc__ = "Do otherwise.\n\n{} RFC 3261 §7.1: a reason.".format("Departs from")
    assert source_of(departed).citation == ""
    assert meaning_of(departed) == ""
    assert meaning_of(RtpPacket) == "One RTP data packet, field by field"


def test_an_attribute_without_a_text_is_told_by_its_class():
    """Own design: as are all properties of a class that mypyc has compiled."""
    assert source_of(RtpPacket.ssrc) == source_of(RtpPacket)


def refused(call, *arguments):
    with pytest.raises((RemoteError, LocalError)) as caught:
        call(*arguments)
    return fault_of(caught.value)


def test_a_fault_has_the_clause_of_its_line_and_the_text_in_question():
    fault = refused(parse_message, b"OPTIONS sip:a@b SIP/2.0\r\nnonsense\r\n\r\n")
    assert (fault.reason, fault.name) == (
        *("Bad Header Line", "p2psip.sip.headers.Headers.parse_lines"),
    )
    assert refused(parse_message, b"OPTIONS sip:a@b SIP/2.0\r\n").citation == (
        "RFC 3261 §7 [empty-line]"
    )
    assert b"4x" in refused(number, " 4x ", 9).given


def test_without_source_files_the_docstring_tells(monkeypatch):
    monkeypatch.setattr("linecache.getline", lambda file, line: "")
    assert refused(RtpPacket.parse, b"").citation == "RFC 3550 §A.1"
