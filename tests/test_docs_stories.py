"""The stories of docs/4-protocols: runs that give the same octets, and pages that fit them."""

import importlib
import itertools
import re
from pathlib import Path

import pytest
from story import STORIES, Step, story
from story_drawing import bits, chart
from story_rows import chosen, written

from p2psip.sip.message import parse_message
from rtclab.explain.fields.field import Field

REPO = Path(__file__).resolve().parent.parent
PAGES = sorted((REPO / "docs/4-protocols").glob("*.md"))
USE = re.compile(r"^```\{(explained|bits|chart)\} (\S+)(?: (\S+))?\n((?::.*\n)*)```$", re.MULTILINE)
USES = [(page.stem, *found) for page in PAGES for found in USE.findall(page.read_text())]


def page(name):
    return (REPO / f"docs/4-protocols/{name}.md").read_text()


def labels(name):
    return [(each.source, each.label) for each in story(name).steps]


@pytest.mark.parametrize("name", STORIES)
def test_a_story_is_the_same_in_every_run_and_on_a_page(name):
    module, _, function = STORIES[name].partition(":")
    again = getattr(importlib.import_module(module), function)()
    assert [(each.at, each.octets) for each in again.steps] == [
        (each.at, each.octets) for each in story(name).steps
    ]
    assert name in {each[2] for each in USES}


@pytest.mark.parametrize(("of", "kind", "name", "step", "lines"), USES)
def test_a_directive_shows_something(of, kind, name, step, lines):
    options = dict(re.findall(r"^:(\w+): (.*)$", lines, re.MULTILINE))
    told = story(name)
    if kind == "chart":
        assert told.between(options.get("first", ""), options.get("last", ""))
        return
    levels = {"depth": "1"} if kind == "bits" else {}
    found = chosen(told, told.step(step), options | levels)
    assert found, (of, step)
    if kind == "bits":  # one after the other, without a gap
        ends = [row.field.span for row in found]
        assert all(one[1] == two[0] for one, two in itertools.pairwise(ends))


def test_a_chart_has_an_arrow_for_each_step_and_a_cross_for_what_is_lost():
    field = Field("octets", 0, 1)
    steps = [Step(n, 0.5, "a", "b", f"<{n}>", field, b"?", n == "two") for n in ("one", "two")]
    svg = chart(steps, ["a", "b"], "two arrows")
    assert svg.count("<polygon") == 1 and svg.count("500 ms") == 2 and "&lt;two&gt;" in svg


def test_the_bits_of_a_header_fill_lines_of_32():
    fields = [
        Field("version", 0, 1, "2", bits=(0, 2)),
        Field("rest of it", 0, 4, "7", bits=(2, 30)),
        Field("payload", 4, 104),
    ]
    svg = bits(fields, "a header")
    assert svg.count("<rect") == 3 and ">V<" in svg and "100 bytes" in svg


def names(*args):
    told = story(args[0])
    return [row.field.name for row in chosen(told, told.step(args[1]), dict(args[2:]))]


def test_what_is_new_is_shown_alone():
    new = names("sip-call", "180", ("unlike", "invite"), ("depth", "1"))
    assert new == ["status line", "Via", "To", "Contact", "Content-Length"]
    assert names("rtp-clocks", "rtp-2", ("unlike", "rtp-1")) == ["marker", "sequence", "timestamp"]
    assert names("rtp-clocks", "rtp-2", ("only", "SSRC, marker")) == ["marker", "SSRC"]
    assert names("offer-answer", "offer-2", ("unlike", "offer-1"), ("depth", "2"))[1:3] == [
        "media audio",
        "a",
    ]


def test_octets_are_written_whole_or_as_bits_or_as_lines():
    def octets(*args):
        told = story(args[0])
        found = chosen(told, told.step(args[1]), dict(args[2:]))
        return [written(row, args[0] == "sip-call") for row in found]

    assert octets("amf0", "object")[:2] == ["03", "00 03 61 70 70"]  # its marker alone
    assert octets("rtp-clocks", "rtp-2", ("only", "marker, sequence")) == ["0... ....", "36 8b"]
    assert octets("rtp-clocks", "rtp-2")[-1] == " ".join(["7f"] * 14) + " .."
    assert octets("sip-call", "bye", ("depth", "1"))[-1] == "Content-Length: 0"


def test_the_call_is_as_its_page_tells():
    told = story("sip-call")
    assert labels("sip-call") == [
        ("alice", "INVITE"),
        ("bob", "180 Ringing to INVITE"),
        ("bob", "200 OK to INVITE"),
        ("alice", "ACK"),
        ("bob", "200 OK to INVITE"),
        ("alice", "ACK"),
        ("alice", "INVITE"),
        ("bob", "200 OK to INVITE"),
        ("alice", "ACK"),
        ("bob", "BYE"),
        ("alice", "200 OK to BYE"),
    ]
    assert [each.name for each in told.steps if each.lost] == ["ack"]
    assert told.step("200-2").at - told.step("200").at == 0.5
    assert told.step("200-2").octets == told.step("200").octets
    assert told.step("ack-2").octets == told.step("ack").octets
    assert 40 <= told.facts["rest"] < 41
    assert b"a=sendonly" in told.step("invite-2").octets
    assert b"a=recvonly" in told.step("200-3").octets


def test_every_header_of_the_call_has_a_row_and_every_row_is_of_the_call():
    messages = [parse_message(each.data) for each in story("sip-call").steps]
    used = {name for message in messages for name, _ in message.headers} | {"Content-Length"}
    assert used == set(re.findall(r"^\| `([^`]+)` \|", page("sip-call"), re.MULTILINE))


def test_the_ends_of_offer_and_answer_agree_as_their_page_tells():
    facts = story("offer-answer").facts
    alice, bob = ([sound for sound, *_ in facts[who]] for who in ("alice", "bob"))
    names = [[codec.name for codec in each.codecs] for each in alice]
    assert names == [[codec.name for codec in each.codecs] for each in bob]
    assert names == [["PCMU", "PCMA"]] * 3 + [["PCMA"]]
    assert [each.direction for each in alice] == ["sendrecv", "sendonly", "sendrecv", "sendrecv"]
    assert [each.held for each in bob] == [False, True, False, False]
    assert not any(more[0].accepted for _, *more in facts["alice"])


def test_the_streams_of_rtmp_are_as_their_page_tells():
    told = story("rtmp-steps")
    commands = [label.split()[0] for _, label in labels("rtmp-steps") if label[0] in "cp_|"]
    assert commands == [
        *("connect", "_result", "createStream", "_result", "publish"),
        *("connect", "_result", "createStream", "_result", "play", "|RtmpSampleAccess"),
    ]
    assert told.step("publisher-c2").at == told.step("publisher-connect").at == 0.04
    sent, passed = (told.step(name).octets for name in ("publisher-audio", "to-player-audio"))
    assert sent[12:] == passed[12:]


def test_the_chunks_have_the_types_that_their_page_tells():
    steps = story("rtmp-chunks").steps
    types = [[chunk.children[0].value for chunk in each.told.children] for each in steps]
    assert types == [["0"], ["2"], ["3"], ["3"], ["0", "3"], ["0"], ["0"]]
    assert [len(each.octets) for each in steps[:4]] == [45, 37, 34, 34]


def test_the_clocks_are_as_their_page_tells():
    facts = story("rtp-clocks").facts
    heads, arrivals = facts["arrivals"]
    column = {head: [int(row[place]) for row in arrivals] for place, head in enumerate(heads)}
    assert column["FLV time"] == [30, 50, 70, 90, 110, 130, 150, 190, 210]
    assert column["arrived"][4] - column["arrived"][3] == 48
    assert column["J (ticks)"][2] == 2  # a sixteenth of 4 ms
    _, pictures = facts["pictures"]
    assert [row[3:] for row in pictures] == [["3030", "3030"], ["3070", "3120"], ["3110", "3230"]]
    assert round(facts["rtt"], 2) == 0.06
    [lost] = [each for each in story("rtp-clocks").steps if each.lost]
    assert lost.label == "RTP 13969" and "13969" in page("rtp-clocks")


def test_the_call_crosses_as_its_pages_tell():
    told = story("crossing")

    def sound(name):
        return told.step(name).octets[-160:]

    def at(name):
        chunk = told.step(name).told.children[0]
        [time] = [each.value for each in chunk.children if each.name == "timestamp"]
        return int(time)

    assert sound("publisher-audio") == sound("rtp-audio") == bytes([0x60]) * 160
    assert sound("phone-rtp-audio") == sound("to-player-audio") == bytes([0x70]) * 160
    assert [at(f"to-player-audio{n}") for n in ("", "-2", "-3")] == [1060, 1080, 1100]
    assert [at(f"to-player-video{n}") for n in ("", "-2", "-3", "-4")] == [1060, 1060, 1080, 1100]
    left = [round(told.step(f"to-player-video-{n}").at, 3) for n in (2, 3, 4)]
    assert left == [1.08, 1.08, 1.1]
    came = [round(told.step(f"phone-rtp-video{n}").at, 3) for n in ("-3", "-4", "-5")]
    assert came == [1.06, 1.08, 1.1]
    fragments = [told.step(f"rtp-video-{n}").octets for n in (2, 3)]
    assert told.step("publisher-video-2").octets.endswith(b"".join(each[14:] for each in fragments))
    assert told.step("ack").at == told.step("to-publisher-onstatus-2").at
