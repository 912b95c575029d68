"""The fields of a finding in a report: the one in question, and what is around it."""

import pytest

from rtclab.oracle import catalogue, pieces
from rtclab.oracle.search import draws

REQUEST = (
    b"OPTIONS sip:bob@example.com SIP/2.0\r\n"
    b"v: SIP/2.0/UDP 192.0.2.1;branch=z9hG4bK1\r\n"
    b"From: <sip:alice@example.com>;tag=1\r\n"
    b"To: <sip:bob@example.com>\r\n"
    b"i: 1@192.0.2.1\r\n"
    b"CSeq: 7 OPTIONS\r\n\r\n"
)
SESSION = b"v=0\r\no=- 1 1 IN IP4 0\r\ns=-\r\nt=0 0\r\nm=audio 5004/2 RTP/AVP 0\r\n"


def shown(codec, octets, *place):
    """The names, values and meanings that a report has, without positions and octets."""
    lines = [line[33:].partition("  -- ")[0] for line in pieces.lines(codec, octets, place)]
    return [line.partition("  (")[0] for line in lines]


def test_a_small_packet_is_shown_whole_with_the_field_marked():
    said = shown("rtp", bytes.fromhex("a0000000000000000000000001"), "payload")
    assert said[0] == "RTP" and "  > payload" in said and "  padding" in said


def test_of_a_long_message_the_field_is_left_with_those_around_it():
    said = shown("sip", REQUEST, "request", "via", "host")
    assert said == [
        "OPTIONS",
        "  Via = SIP/2.0/UDP 192.0.2.1;branch=z9hG4bK1",
        "    > host = 192.0.2.1",
    ]


def test_members_without_a_field_of_their_own_mark_what_they_are_in():
    said = shown("sdp", SESSION, "media", "port_count")
    assert said[:2] == ["SDP", "  > media audio"] and "      port = 5004/2" in said


def test_without_a_place_a_long_message_has_what_is_wrong():
    said = shown("sip", REQUEST.replace(b"7 OPTIONS", b"x OPTIONS"))
    assert said[1:3] == ["  CSeq = x OPTIONS", "    number = x"]
    assert said[3].strip() == "^ error: Bad Number"


def test_a_message_with_nothing_to_point_at_ends_early():
    said = list(pieces.lines("sip", REQUEST, ()))
    assert len(said) == pieces.MAX_LINES + 1 and "... and 17 more" in said[-1]


def test_one_line_more_is_printed_rather_than_counted():
    said = list(pieces.lines("rtp", bytes.fromhex("a0000000000000000000000002"), ()))
    assert len(said) == pieces.MAX_LINES + 1 and "padding" in said[-1]


def test_a_marked_line_and_an_error_behind_the_dozen_are_printed():
    wrong, right = bytes.fromhex("80c80000"), bytes.fromhex("81cb000100000002")
    for octets, place in ((wrong * 20 + right, "bye"), (right * 20 + wrong, "version")):
        said = list(pieces.lines("rtcp", octets, (place,)))
        assert len(said) <= pieces.MAX_LINES + 3
        assert any(f"> {place}" in line for line in said)
        assert any("^ error" in line for line in said)


def test_a_candidate_is_shown_word_by_word():
    said = shown("ice-candidate", b"1 1 UDP 7 192.0.2.1 70000 typ host", "port")
    assert said[0] == "candidate" and "  > port = 70000" in said, said
    assert any(line.strip().startswith("^ error") for line in said)


@pytest.mark.parametrize("name", catalogue.CODECS)
def test_every_codec_has_its_fields(name):
    codec = catalogue.find(name)
    for strategy in catalogue.cases_of(codec).values():
        for case in draws(strategy, 3, seed=1):
            assert (
                1 <= len(list(pieces.lines(name, case.octets, ()))) <= pieces.MAX_LINES + 3
            )  # gaps
