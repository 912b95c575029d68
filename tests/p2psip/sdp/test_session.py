"""Session descriptions come out as they went in, and nothing else gets in."""

import dpkt
import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from support.mutations import mutations, peak

from p2psip.errors import LocalError, RemoteError
from p2psip.sdp.attributes import direction, mid, ptime, rtcp_mux
from p2psip.sdp.local_media import feedback_of
from p2psip.sdp.session import (
    Attribute,
    Connection,
    MediaDescription,
    Origin,
    SessionDescription,
    Timing,
)
from p2psip.strategies import sdp, sdp_faults

MINIMAL = b"v=0\r\no=- 1 1 IN IP4 192.0.2.1\r\ns=-\r\nt=0 0\r\n"


def read(data, *, strict=False):
    """Parse, or None if the peer is to blame; anything else raised is a failure."""
    try:
        return SessionDescription.parse(data, strict=strict)
    except RemoteError as error:
        assert error.status == 400
        return None


@given(sdp.sessions())
def test_reading_undoes_writing(session):
    """Covers RFC 8866 §5 and §9.

    Covers RFC 8866 §5 [as-the-grammar].
    """
    assert SessionDescription.parse(bytes(session), strict=True) == session
    read = SessionDescription.parse(memoryview(bytes(session)))
    assert read == session and read.faults == ()


@given(sdp.odd_sessions())
def test_odd_descriptions_are_forgiven(data):
    """Covers RFC 8866 §5: single newlines; and lines that phones leave out.

    Covers RFC 8866 §5 [newline-alone].

    Covers Field §"Descriptions with something amiss".
    """
    session = SessionDescription.parse(data, strict=True)
    assert session.name and session.times
    assert SessionDescription.parse(data).faults == ()
    assert SessionDescription.parse(bytes(session)) == session


@given(sdp_faults.broken_sessions())
def test_broken_descriptions_are_refused(data):
    """Covers RFC 8866 §5 and §9: for those who judge; a call reads what it can."""
    with pytest.raises(RemoteError):
        SessionDescription.parse(data, strict=True)
    session = read(data)
    event("refused" if session is None else "forgiven")
    if session:
        assert session.faults
        assert SessionDescription.parse(bytes(session)) == session


@given(mutations(sdp.sessions().map(bytes) | sdp.odd_sessions()) | st.binary())
def test_no_input_does_harm(data):
    """Covers RFC 8866 §5: read it or refuse it."""
    event("version read" if data.startswith(b"v=0") else "garbage")
    session = read(data)
    event("accepted" if session else "refused")
    if session:
        assert SessionDescription.parse(bytes(session)) == session


def test_spoiled_corpus_does_no_harm(corpus):
    """Covers RFC 8866 §5, on what real programs sent."""
    files = [path.read_bytes() for path in sorted((corpus / "sdp").rglob("*.sdp"))]
    assert len(files) == 56

    @given(mutations(st.sampled_from(files)))
    def check(data):
        event("accepted" if read(data) else "refused")

    check()


@pytest.mark.parametrize(
    "unit",
    [b"a=b\n", b"a=bb\n", b"a=bb:cc\n", b"m=a 0 b c\n", b"b=AS:1\n", b"e=x\n", b"t=0 0\n", b"\n"],
)
def test_memory_stays_in_proportion(unit):
    """Own design: at most 32 bytes for each that came, and 64 KiB."""
    data = MINIMAL + unit * (60_000 // len(unit))
    assert peak(lambda: read(data)) <= 32 * len(data) + 65536
    formats = MINIMAL + b"m=audio 1 RTP/AVP" + b" 10" * 20_000
    assert peak(lambda: read(formats)) <= 32 * len(formats) + 65536


def test_corpus_reads_as_its_authors_meant(corpus):
    """Covers RFC 8866 §5: all of oSIP's and the sound ones of pjsip and Janus."""
    bad = {"unittest-3.sdp", "unittest-7.sdp", "input.6.sdp"}  # fragments; a mangled m= line
    for path in sorted((corpus / "sdp").rglob("*.sdp")):
        session = read(path.read_bytes(), strict=True)
        assert (session is None) == (path.name in bad), path.name
        if session:
            assert len(session.media) == path.read_bytes().count(b"\nm=")
            assert SessionDescription.parse(bytes(session)) == session


def test_a_rich_description_is_taken_apart(corpus):
    """Covers RFC 8866 §5.6 §5.7 §5.8 §5.9 §5.10 §5.11 §5.12.

    Covers RFC 8866 §5.8 [unknown-bandwidth-ignored].
    """
    session = SessionDescription.parse((corpus / "sdp/osip/sdp14.sdp").read_bytes())
    assert session.emails == ("amoizard@antisip.com (JacK)", "aymeric.moizard@wellx.com")
    assert session.phones == ("+33-1-00-00-00", "+33 1 00 00 00")
    assert [str(each) for each in session.bandwidths] == ["CT:256", "AS:128", "X-YZ:3"]
    assert session.times[0].start == 3034423619 and len(session.times[0].repeats) == 4
    assert session.times[0].zone == "2882844526 -1h 2898848070 0"
    assert session.media[0].connection == Connection("IN", "IP4", "110.111.112.114")
    assert [each.address for each in session.media[0].more_connections] == [
        "110.111.112.115", "110.111.112.116",
    ]  # fmt: skip
    assert b"\r\nk=" not in bytes(session)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("IN IP4 233.252.0.1/127", Connection("IN", "IP4", "233.252.0.1", 127)),
        ("IN IP4 233.252.0.1/127/3", Connection("IN", "IP4", "233.252.0.1", 127, 3)),
        ("IN IP6 ff00::db8:0:101/3", Connection("IN", "IP6", "ff00::db8:0:101", None, 3)),
        ("IN IP6 2001:db8::1", Connection.to("2001:db8::1")),
        ("IN IP4 a.example", Connection.to("a.example")),
    ],
)
def test_connection_addresses(text, value):
    """Covers RFC 8866 §5.7: what a number behind the slash means.

    Covers RFC 8866 §5.7 [no-ttl-for-ip6].
    """
    with pytest.raises(RemoteError):
        Connection.parse("IN IP6 ff00::db8:0:101/127/3")
    assert Connection.parse(text) == value and str(value) == text


@pytest.mark.parametrize(
    "text", ["", "IN", "IN IP4", "IN IP4 a b", "IN IP4 1/x", "IN IP4 1/1/1/1", "IN IP6 ::/1/1"]
)
def test_bad_connection_addresses(text):
    """Covers RFC 8866 §5.7."""
    with pytest.raises(RemoteError):
        Connection.parse(text)


def test_times_keep_their_repeats():
    """Covers RFC 8866 §5.9 §5.10: r= and z= belong to the t= before them."""
    data = MINIMAL + b"r=7d 1h 0\r\nt=1 2\r\nr=1 2 3\r\nr=4 5 6\r\nz=0 0\r\n"
    assert SessionDescription.parse(data).times == (
        Timing(0, 0, ("7d 1h 0",)), Timing(1, 2, ("1 2 3", "4 5 6"), "0 0"),
    )  # fmt: skip
    alone = MINIMAL.replace(b"t=0 0", b"r=7d 1h 0")
    assert read(alone, strict=True) is None
    assert read(alone).times == (Timing(),)


def test_text_is_any_octets():
    """Covers RFC 8866 §5: text may be of any character set.

    Covers RFC 8866 §6.10 [unknown-set-is-octets].
    """
    data = MINIMAL.replace(b"s=-", b"s=caf\xe9 \xe2\x82\xac")
    assert bytes(SessionDescription.parse(data)) == data


@pytest.mark.parametrize("text", ["a\r\nm=audio 9 RTP/AVP 0", "a\nb", "a\rb", "a\0"])
def test_nothing_breaks_out_of_its_line(text):
    """Covers RFC 8866 §9: a byte-string has no line ends.

    Covers RFC 8866 §6.10 [no-line-ends].
    """

    def written(value):
        attributes = (Attribute("tool", value),)
        return bytes(SessionDescription(Origin.at("192.0.2.1", 1), attributes=attributes))

    assert b"a=tool:x\r\n" in written("x")
    with pytest.raises(LocalError):
        written(text)


def test_many_media_are_refused_not_stored():
    """Own design: the number of lines is bounded."""
    line = b"m=audio 9 RTP/AVP 0\r\n"
    assert len(SessionDescription.parse(MINIMAL + line * 64).media) == 64
    assert read(MINIMAL + line * 65) is None


def test_attributes_by_name():
    """Covers RFC 8866 §5.13: a property has the value "" here, an absent one None."""
    line = MediaDescription(
        "audio", 9, "RTP/AVP", ("0",), attributes=(Attribute("x", "1"), Attribute("y"))
    )
    session = SessionDescription(Origin(), attributes=line.attributes).replace_media([line])
    for part in (line, session):
        assert (part.attribute("x"), part.attribute("y"), part.attribute("z")) == ("1", "", None)


@pytest.mark.parametrize("line", [b"x=1\r\n", b"V=0\r\n", b"m=audio 9 RTP/AVP 0\r\nx=1\r\n"])
def test_an_unknown_letter_refuses_the_whole(line):
    """Covers RFC 8866 §5 [unknown-letter-refuses]."""
    assert read(MINIMAL) and read(MINIMAL + line) is None


def test_one_description_is_one():
    """Covers RFC 3264 §5 [one-description]."""
    stream = b"m=audio 9 RTP/AVP 0\r\n"
    assert read(MINIMAL + stream) and read(MINIMAL + stream + MINIMAL) is None
    assert read(MINIMAL + stream + b"o=- 1 1 IN IP4 192.0.2.1\r\n") is None


def test_text_is_utf_8():
    """Covers RFC 8866 §5 [octets-are-utf-8], §5.3 [name-in-utf-8], §5.4 [information-in-utf-8]."""
    data = MINIMAL.replace(b"s=-\r\n", "s=café\r\ni=€\r\n".encode())
    session = SessionDescription.parse(data)
    assert (session.name, session.information) == ("café", "€")
    assert bytes(SessionDescription(session.origin, "café", "€")) == data


@pytest.mark.parametrize("name", [b"s=\r\n", b"s=-\r\n", b""])
def test_a_session_has_one_name_or_a_dash(name):
    """Covers RFC 8866 §5.3 [one-name] [name-not-empty] [dash-for-no-name]."""
    session = SessionDescription.parse(MINIMAL.replace(b"s=-\r\n", name))
    assert session.name == "-"
    assert bytes(SessionDescription(session.origin, "")) == MINIMAL


def test_a_user_name_has_no_space():
    """Covers RFC 8866 §5.2 [username-without-space]."""
    with pytest.raises(LocalError):
        Origin.at("192.0.2.1", 1, "two words")


def test_a_session_has_one_address():
    """Covers RFC 8866 §5.7 [one-for-the-session] [no-slash-for-unicast]."""
    where = f"c={Connection.to('192.0.2.1')}\r\n".encode()
    assert where == b"c=IN IP4 192.0.2.1\r\n"
    assert read(MINIMAL + where) and read(MINIMAL + where * 2, strict=True) is None
    again = MINIMAL + where + b"c=IN IP4 192.0.2.9\r\n"
    assert read(again).connection.address == "192.0.2.1"


def test_a_key_is_dropped_and_contacts_come_before_media():
    """Covers RFC 8866 §5.6 [contacts-first], §5.12 [drops-keys] [no-key] [never-writes-keys]."""
    media = b"m=audio 9 RTP/AVP 0\r\n"
    contacts = b"e=a@b.example\r\np=+1 2\r\n"
    data = MINIMAL.replace(b"t=", contacts + b"t=") + media
    keys = data.replace(media, b"k=prompt\r\n" + media + b"k=clear:x\r\n")
    assert bytes(SessionDescription.parse(keys)) == data
    assert read(MINIMAL + media + contacts, strict=True) is None
    assert read(MINIMAL + media + contacts).phones == ()
    assert read(MINIMAL + b"x=1\r\n") is read(MINIMAL + media + b"x=1\r\n") is None


def test_descriptions_in_captured_messages(corpus):
    """Covers RFC 8866 §5: every whole description in the SIP captures."""
    found = 0
    for path in sorted((corpus / "pcap/sip").glob("*.pcap")):
        with path.open("rb") as file:
            for _, frame in dpkt.pcap.UniversalReader(file):
                _, blank, body = bytes(frame).partition(b"\r\n\r\nv=0\r\n")
                if blank and body.endswith(b"\n"):
                    session = SessionDescription.parse(b"v=0\r\n" + body)
                    assert session.media and SessionDescription.parse(bytes(session)) == session
                    found += 1
    assert found == 29


@pytest.mark.parametrize(
    ("old", "new", "meant"),
    [
        (b"o=- 1 1", b"o=John Q. Public 1 1", b"o=John_Q._Public 1 1"),
        (
            b"o=- 1 1",
            b"o=- -1 -9223372036854775808",
            b"o=- 18446744073709551615 9223372036854775808",
        ),
        (b"IN IP4", b"in ip4", b"IN IP4"),
        (b"s=-\r\n", b"s=first\r\ns=second\r\n", b"s=first\r\n"),
        (b"t=0 0\r\n", b"b=AS:64.5\r\nt=0 0\r\n", b"b=AS:64\r\nt=0 0\r\n"),
        (b"t=0 0\r\n", b"c=in ip6 ::1\r\nt=0 0\r\n", b"c=IN IP6 ::1\r\nt=0 0\r\n"),
    ],
)
def test_what_phones_write_is_forgiven(old, new, meant):
    """Covers RFC 8866 §5: it is read as it was meant, and written as it should have been."""
    assert bytes(SessionDescription.parse(MINIMAL.replace(old, new))) == MINIMAL.replace(old, meant)


@pytest.mark.parametrize(
    "line", [b"b=AS:64.", b"b=AS:.5", b"b=AS:6.4.5", b"o=1 1 IN IP4 a", b"o=- -x 1"]
)
def test_what_nobody_can_mean_is_not(line):
    """Covers RFC 8866 §5.2 and §5.8."""
    base = MINIMAL.replace(b"o=- 1 1 IN IP4 192.0.2.1\r\n", b"") if line[:1] == b"o" else MINIMAL
    with pytest.raises(RemoteError):
        SessionDescription.parse(base + line + b"\r\n", strict=True)
    assert len(read(base + line + b"\r\n").faults) == 1


STREAM = b"m=audio 9 RTP/AVP 0\r\nc=IN IP4 192.0.2.1\r\n"


ANYWHERE = (b"a=", b"a=:x", b"a= ", b"b=AS:", b"b=AS:64k", b"b=AS", b"i=a\r\ni=b", b" ")
AT_FIRST = (b"t=", b"t=0", b"t=x 0", b"u=a\r\nu=b", b"o=phone", b"c=IN", b"c=IN IP4 1/2/3/4")
BEHIND = (b"t=0 0", b"z=1", b"r=1", b"s=-", b"u=a", b"e=a@b.example", b"p=+1 2")


@pytest.mark.parametrize(
    "data",
    [
        *(MINIMAL + line + b"\r\n" + STREAM for line in (*ANYWHERE, *AT_FIRST)),
        *(MINIMAL + STREAM + line + b"\r\n" for line in (*ANYWHERE, *BEHIND)),
    ],
)
def test_lines_that_no_stream_needs_end_no_call(data):
    """Covers RFC 8866 §5.8 and §5.13: what cannot be read there is not needed for media.

    Covers Field §"Descriptions with something amiss".
    """
    session = read(data)
    [media] = session.media
    assert session.faults and media.port == 9 and media.connection.address == "192.0.2.1"
    assert media.bandwidths == media.attributes == ()
    assert read(data, strict=True) is None


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        (b"m=video 0 RTP/AVP", "video"),
        (b"m=image 0 udptl", "image"),
        (b"m=video 0", "video"),
        (b"m=video", "video"),
        (b"m=video x RTP/AVP 99", "video"),
        (b"m=video 9/ RTP/AVP 99", "video"),
        (b"m=video 9 RTP/AVP", "video"),
        (b"m=video 9 RTP/AVP 99\r\nc=IN IP4", "video"),
        (b"m=video 0 RTP/AVP 99\r\nc=IN IP4", "video"),
    ],
)
def test_a_stream_that_cannot_be_read_is_off(line, kind):
    """Covers RFC 8866 §5.14: and the others are not.

    Covers Field §"Descriptions with something amiss".
    """
    session = read(MINIMAL + STREAM + line + b"\r\n")
    assert [(each.kind, each.port) for each in session.media] == [("audio", 9), (kind, 0)]
    is_on = line.split()[1:2] not in ([], [b"0"]) or line == b"m=video"
    assert bool(session.media[1].fault) == is_on
    assert read(MINIMAL + STREAM + line + b"\r\n", strict=True) is None


def test_an_address_that_cannot_be_read_is_the_fault_of_whom_it_serves():
    """Covers RFC 8866 §5.7: a stream with an address of its own needs no other."""
    session = read(MINIMAL + b"c=IN\r\n" + STREAM + b"m=video 9 RTP/AVP 99\r\n")
    assert [(each.port, each.fault) for each in session.media] == [(9, ""), (0, "Bad c= line")]


def test_spaces_at_the_end_of_a_line_mean_nothing():
    """Covers RFC 8866 §5.13: whatever the line is.

    Covers Field §"Descriptions with something amiss".
    """
    lines = MINIMAL + b"c=IN IP4 192.0.2.1\r\nb=AS:64\r\nm=audio 9 RTP/AVP 0\r\na=sendonly\r\n"
    lines += b"a=rtcp-mux\r\na=mid:1\r\na=ptime:30\r\na=rtcp:13\r\na=rtcp-fb:0 nack\r\n"
    spaced = read(lines.replace(b"s=-", b"s=").replace(b"\r\n", b"  \r\n"))
    plain = read(lines)
    for session in (plain, spaced):
        [media] = session.media
        assert direction(media, session) == "sendonly" and rtcp_mux(media) and mid(media) == "1"
        assert (ptime(media), media.attribute("rtcp")) == (30, "13")
        assert feedback_of(media, 0) == {"nack"}
    assert (spaced.origin, spaced.times, spaced.bandwidths) == (
        plain.origin, plain.times, plain.bandwidths,
    )  # fmt: skip
