"""What a line says of ICE, and whether its candidates fit its address."""

from dataclasses import replace

import pytest

from p2psip.sdp.ice_line import IceLine
from p2psip.sdp.line import Attribute, Connection, Origin
from p2psip.sdp.session import MediaDescription, SessionDescription

HOST = "1 1 UDP 2130706431 192.0.2.1 4000 typ host"
LINE = IceLine("8hhY", "asd88fgpdd777uzjYhagZg", (HOST,))


def described(ice, *, host="192.0.2.1", port=4000, session=()):
    """A description of one line with these attributes, and that line."""
    line = MediaDescription("audio", port, "RTP/AVP", ("0",), attributes=ice)
    place = Connection.to(host)
    whole = SessionDescription(Origin(), connection=place, attributes=session, media=(line,))
    return line, SessionDescription.parse(bytes(whole))


def test_what_is_written_is_read():
    """Covers RFC 8839 §4.2.1.5 [says-ice2], §4.2.5 [says-ice2], §4.4.1.1.1 [options-stay].

    Covers RFC 8839 §4.4.2.1 [answer-options-stay].
    """
    written = LINE.attributes()
    assert Attribute("ice-options", "ice2") in written
    assert IceLine.read(*described(written)) == LINE
    later = replace(LINE, remote_candidates=(("192.0.2.7", 9), ("192.0.2.7", 10)))
    said = later.attributes()
    assert said[-1] == Attribute("remote-candidates", "1 192.0.2.7 9 2 192.0.2.7 10")
    assert said[:-1] == written
    assert IceLine.read(*described(said)) == later
    old = tuple(each for each in written if each.name != "ice-options")
    assert IceLine.read(*described(old)) == replace(LINE, is_modern=False)
    lite = IceLine.read(*described(written, session=(Attribute("ice-lite"),)))
    assert lite == replace(LINE, is_lite=True)


def test_credentials_of_the_session_are_those_of_its_lines():
    """Covers RFC 8839 §4.4.1.1.1 [place-is-no-restart]."""
    written = LINE.attributes()
    session, line = written[:3], written[3:]
    assert IceLine.read(*described(line, session=session)) == LINE
    other = Attribute("ice-pwd", "another")
    assert IceLine.read(*described((*line, other), session=session)).password == "another"


@pytest.mark.parametrize("missing", ["ice-ufrag", "ice-pwd"])
def test_a_line_without_credentials_has_no_ice(missing):
    written = tuple(each for each in LINE.attributes() if each.name != missing)
    assert IceLine.read(*described(written)) is None
    assert IceLine.read(*described((*written, Attribute("ice-mismatch")))).is_mismatched


@pytest.mark.parametrize(
    ("host", "port", "is_mismatched"),
    [
        ("192.0.2.1", 4000, False),
        ("192.0.2.1", 4002, True),
        ("192.0.2.9", 4000, True),
        ("0.0.0.0", 9, False),
        ("::", 9, False),
        ("phone.example.com", 4000, False),
    ],
)
def test_a_default_that_is_no_candidate_is_a_mismatch(host, port, is_mismatched):
    """Covers RFC 8839 §4.2.5 [nowhere-is-no-mismatch] [names-are-no-mismatch]."""
    found = IceLine.read(*described(LINE.attributes(), host=host, port=port))
    assert found.is_mismatched is is_mismatched


def test_a_candidate_of_another_form_fits_nothing():
    odd = ("1 1 UDP 1 192.0.2.1 port typ host", "1 1 UDP 1 name 4000 typ host", "1 1 UDP", "")
    found = IceLine.read(*described(replace(LINE, candidates=odd).attributes()))
    assert found.candidates == odd and found.is_mismatched
    said = (*LINE.attributes(), Attribute("remote-candidates", "1 192.0.2.7 port 2 h"))
    assert IceLine.read(*described(said)).remote_candidates == ()
