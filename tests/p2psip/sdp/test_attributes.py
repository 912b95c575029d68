"""The attributes of a media line mean what their sections say; nonsense means nothing."""

import re
from dataclasses import replace

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from support.mutations import mutations

from p2psip.errors import LocalError, RemoteError
from p2psip.sdp.attributes import (
    DTMF_EVENTS,
    STATIC,
    Fmtp,
    RtpMap,
    direction,
    events,
    fmtps,
    maxptime,
    media_address,
    parameters,
    ptime,
    rtcp_address,
    rtpmaps,
)
from p2psip.sdp.codec import Codec, numbered
from p2psip.sdp.line import find_all
from p2psip.sdp.session import Attribute, Connection, MediaDescription, Origin, SessionDescription
from p2psip.strategies import sdp


def line(*attributes, formats=("0",), port=49170, connection=None):
    """An audio line with these `name:value` attributes."""
    parsed = tuple(map(Attribute.parse, attributes))
    return MediaDescription(
        "audio", port, "RTP/AVP", formats, connection=connection, attributes=parsed
    )


def session(*media, host="192.0.2.1", attributes=()):
    """A description around them, at `host`."""
    return SessionDescription(
        Origin(), connection=Connection.to(host), media=media, attributes=attributes
    )


def test_noise_has_a_number_of_its_own_at_8000_hz():
    """Covers RFC 3389 §4 [type-13-at-8000]: at other rates it takes one that is free."""
    assert rtpmaps(line(formats=("13",))) == (RtpMap(13, "CN", 8000),)
    codecs = numbered([Codec("CN", 8000), Codec("CN", 16000)])
    assert [each.payload_type for each in codecs] == [13, 96]


@given(sdp.rtpmaps())
def test_rtpmap_both_ways(value):
    """Covers RFC 8866 §6.6."""
    assert RtpMap.parse(str(value)) == value


@pytest.mark.parametrize(
    "text",
    ["", "97", "97 speex", "97 speex/", "97 /8000", "97 speex/0", "128 speex/8000", "x speex/8000",
     "97 speex/8000/x", "97 speex/8000/1/1", "97 speex/99999999999", "-1 speex/8000"],
)  # fmt: skip
def test_bad_rtpmaps_are_no_rtpmaps(text):
    """Covers RFC 8866 §6.6 and §5.13: refused alone, passed over on a line."""
    with pytest.raises(RemoteError):
        RtpMap.parse(text)
    assert rtpmaps(line(f"rtpmap:{text}", formats=("97", "0"))) == (STATIC[0],)


def test_static_payload_types_are_those_of_the_tables(specs):
    """Covers RFC 3551 §6: every assigned row of Table 4 and Table 5, and no other."""
    text = (specs / "rfc3551.txt").read_text()
    rows = re.findall(r"^ +(\d+) +([\w-]+) +(?:AV|A|V) +([\d,]+)(?: +(\d))?", text, re.MULTILINE)
    table = {int(pt): (name, int(rate.replace(",", ""))) for pt, name, rate, _ in rows}
    assert {pt: (each.encoding, each.clock_rate) for pt, each in STATIC.items()} == table
    stereo = {int(pt) for pt, _, _, channels in rows if channels == "2"}
    assert {pt for pt, each in STATIC.items() if each.channels == 2} == stereo == {10}


def test_g722_counts_half_its_samples():
    """Covers RFC 3551 §4.5.2."""
    assert rtpmaps(line(formats=("9",))) == (RtpMap(9, "G722", 8000),)


def test_formats_keep_their_order():
    """Covers RFC 8866 §5.14 and §6.6: the preferred first; a mapping beats the static table."""
    media = line("rtpmap:97 speex/16000", "rtpmap:8 L16/16000/2", "rtpmap:99 unused/8000",
                 formats=("97", "8", "0", "97", "126", "t38", "999", "1"))  # fmt: skip
    assert [str(each) for each in rtpmaps(media)] == [
        "97 speex/16000", "8 L16/16000/2", "0 PCMU/8000",
    ]  # fmt: skip


def test_format_parameters():
    """Covers RFC 8866 §6.15: one for each format."""
    media = line('fmtp:97 mode="1,any";vbr=on', "fmtp:97 other", "fmtp:x y", "fmtp:98 ")
    assert fmtps(media) == {97: 'mode="1,any";vbr=on', 98: ""}
    assert parameters(fmtps(media)[97]) == {"mode": "1,any", "vbr": "on"}
    assert str(Fmtp.parse("101 0-15")) == "101 0-15"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("0-15,66,70", DTMF_EVENTS | {66, 70}),
        ("0-11", frozenset(range(12))),
        ("5", {5}),
        ("", DTMF_EVENTS),
        ("x", DTMF_EVENTS),
        ("0-99999999999", frozenset(range(256))),
        ("9-3", DTMF_EVENTS),
        ("300", DTMF_EVENTS),
        ("0-15, 16", DTMF_EVENTS | {16}),
    ],
)
def test_telephone_events(text, wanted):
    """Covers RFC 4733 §2.4.1 and §2.5.1.1."""
    assert events(text) == wanted


def test_direction_of_line_and_session():
    """Covers RFC 8866 §6.7, its example included.

    Covers RFC 8866 §6.7 [both-ways-by-default].
    """
    top = (Attribute("inactive"),)
    whole = session(attributes=top)
    assert direction(line("sendrecv"), whole) == "sendrecv"
    assert direction(line(), whole) == "inactive"
    assert direction(line("recvonly", "sendonly"), whole) == "recvonly"
    assert direction(line("rcvonly"), session()) == "sendrecv"  # a typing error from the corpus


@pytest.mark.parametrize(
    ("text", "wanted"),
    [("20", 20), ("22.5", 22), ("0", None), ("", None), ("-5", None), ("x", None), (" 30 ", 30),
     ("9" * 5000, None), ("0.5", None)],
)  # fmt: skip
def test_packet_times(text, wanted):
    """Covers RFC 8866 §6.4 and §6.5."""
    assert ptime(line(f"ptime:{text}")) == maxptime(line(f"maxptime:{text}")) == wanted
    assert ptime(line()) is None


@pytest.mark.parametrize(
    ("attribute", "wanted"),
    [
        ("x", ("192.0.2.1", 49171)),
        ("rtcp:53020", ("192.0.2.1", 53020)),
        ("rtcp:53020 IN IP4 126.16.64.4", ("126.16.64.4", 53020)),
        ("rtcp:53020 IN IP6 2001:db8::1", ("2001:db8::1", 53020)),
        ("rtcp:x", ("192.0.2.1", 49171)),
        ("rtcp:99999", None),
        ("rtcp:53020 IN IP4 0.0.0.0", None),
    ],
)
def test_rtcp_address(attribute, wanted):
    """Covers RFC 3605 §2.1 [of-one-line] and RFC 8866 §5.14."""
    media = line(attribute)
    assert rtcp_address(media, session(media)) == wanted
    whole = replace(session(media), attributes=(Attribute("rtcp", "7"),))
    assert rtcp_address(media, whole) == wanted


def test_addresses_to_send_to():
    """Covers RFC 8866 §5.7, RFC 3264 §5.1 and §8.4.

    Covers RFC 8866 §4.1 [address-of-receiver].
    """
    own = line(connection=Connection.to("192.0.2.9"))
    assert media_address(own, session(own)) == ("192.0.2.9", 49170)
    assert media_address(line(), session()) == ("192.0.2.1", 49170)
    for nowhere, where in [
        (line(port=0), session()),
        (line(port=70000), session()),
        (line(), session(host="0.0.0.0")),
        (line(), session(host="::")),
        (line(), SessionDescription(Origin())),
        (line(connection=Connection("ATM", "NSAP", "47.0091")), session()),
    ]:
        assert media_address(nowhere, where) is None
        assert rtcp_address(nowhere, where) is None
    assert rtcp_address(line(port=65535), session()) is None


def test_an_odd_port_is_used_as_it_is():
    """Covers RFC 8866 §5.14 [odd-port-is-kept] [ports-as-told]."""
    odd = line("rtcp:53020", port=49171)
    assert media_address(odd, session(odd)) == ("192.0.2.1", 49171)
    assert rtcp_address(odd, session(odd)) == ("192.0.2.1", 53020)


def test_an_attribute_that_nobody_knows_means_nothing():
    """Covers RFC 8866 §5 [unknown-attribute-ignored] and §5.13 [not-understood-ignored]."""
    plain = line("rtpmap:97 speex/16000", "ptime:30", formats=("97",))
    odd = line("x-new:97 PCMU/8000", "rtpmap:97 speex/16000", "NEW", "ptime:30", formats=("97",))
    for read in (rtpmaps, fmtps, ptime, maxptime):
        assert read(odd) == read(plain)
    assert direction(odd, session(odd)) == "sendrecv"
    assert list(find_all(odd.attributes, "NEW")) == [""]
    assert list(find_all(odd.attributes, "ptime")) == ["30"]


def test_another_rate_than_the_static_one_is_mapped():
    """Covers RFC 3551 §4.5 [other-rate-is-dynamic] [clock-is-told]."""
    usual, wide = numbered((Codec("PCMU", 8000), Codec("PCMU", 16000)))
    assert (usual.payload_type, wide.payload_type) == (0, 96)
    assert next(wide.attributes()) == Attribute("rtpmap", "96 PCMU/16000")


def test_dynamic_numbers_do_not_look_like_rtcp():
    """Covers RFC 3550 §12 [no-lookalikes]: with the marker neither."""
    given = [codec.payload_type for codec in numbered([Codec(f"x{n}", 8000) for n in range(32)])]
    assert not {each | 0x80 for each in given} & {200, 201}
    with pytest.raises(LocalError):
        numbered([Codec(f"x{n}", 8000) for n in range(33)])


@given(sdp.sessions(), mutations(st.sampled_from([b"97 speex/16000/1", b"0-15,66", b"1.5"])))
def test_no_attribute_does_harm(whole, value):
    """Covers RFC 8866 §5.13: what makes no sense is passed over."""
    names = ("rtpmap", "fmtp", "ptime", "maxptime", "rtcp")
    text = value.decode("utf-8", "surrogateescape")
    for media in whole.media:
        extra = tuple(Attribute(name, text) for name in names)
        spoiled = MediaDescription(
            media.kind,
            media.port,
            media.protocol,
            media.formats,
            connection=media.connection,
            attributes=(*extra, *media.attributes),
        )
        event("explained" if rtpmaps(spoiled) else "unexplained")
        assert all(0 <= number <= 127 for number in fmtps(spoiled))
        assert (ptime(spoiled) or 1) > 0 and (maxptime(spoiled) or 1) > 0
        for address in (media_address(spoiled, whole), rtcp_address(spoiled, whole)):
            assert address is None or 0 < address[1] < 65536
    assert events(text)
