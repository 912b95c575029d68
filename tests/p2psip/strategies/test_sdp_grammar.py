"""The SDP that the strategies draw is what RFC 8866 derives; what they break is not.

Own design: the grammar is read from the RFC and matched by `support.abnf`, which knows nothing
of our parser.
"""

import re

import pytest
from hypothesis import given, settings
from support.abnf import Grammar
from support.faults import drawn_until_all, refused
from support.oracle import MANY, section

from p2psip.errors import RemoteError
from p2psip.sdp.offer_answer import LocalMedia, LocalTransport, make_answer
from p2psip.sdp.session import SessionDescription
from p2psip.strategies import large, sdp, sdp_faults
from p2psip.strategies.faults import broken


def strictly(data):
    """Read as those do who judge."""
    return SessionDescription.parse(data, strict=True)


# What the text leaves to other texts, or leaves too wide to say anything.
HOLES = """
   uri = 1*%x21-7E                ; URI-reference of RFC 3986, which has a `port` of its own
   addr-spec = dot-atom "@" dot-atom              ; of RFC 5322, without what is obsolete
   dot-atom = atext *("." atext)
   atext = 1*(ALPHA / DIGIT / "!" / "#" / "$" / "%" / "&" / "'" / "*" / "+" / "-" / "/" /
           "=" / "?" / "^" / "_" / "`" / "{" / "|" / "}" / "~")
   rtcp-value = port [SP nettype SP addrtype SP connection-address]
                                  ; RFC 3605 has no space behind the port, its examples have one
   unicast-address = IP4-address / IP6-address / name  ; not extn-addr, which is any word
   multicast-address = IP4-multicast / IP6-group
   IP6-group = "ff" 2HEXDIG ":" 1*(HEXDIG / ":" / ".") ["/" numaddr] ; the comment made a rule
   b1 = DIGIT / POS-DIGIT DIGIT / "1" 2DIGIT / "2" ("0" / "1") DIGIT / "22" ("0"/"1"/"2"/"3")
                                  ; the comment made a rule: less than 224
   name = *(label ".") ALPHA [*(alpha-numeric / "-") alpha-numeric] ["."]
   label = alpha-numeric [*(alpha-numeric / "-") alpha-numeric]
                                  ; FQDN is 4*(alpha-numeric / "-" / "."), 192.0.2.256 too
"""
OURS = [
    LocalMedia("audio", sdp.AUDIO, LocalTransport(5004)),
    LocalMedia("video", sdp.VIDEO, LocalTransport(5006)),
]


@pytest.fixture(scope="module")
def grammar(specs):
    """RFC 8866 §9, and the attributes of its §6."""
    text = (specs / "rfc8866.txt").read_text()
    return Grammar(
        HOLES,
        section(text, "9.  SDP Grammar", "10.  Summary"),
        section(text, "6.  SDP Attributes", "7.  Security"),
    )


@pytest.fixture(scope="module")
def uri_grammar(specs):
    """RFC 3986 §A."""
    text = (specs / "rfc3986.txt").read_text()
    return Grammar(section(text, "Appendix A.  Collected ABNF", "Appendix B."))


def faults(grammar, data):
    """What the grammar refuses: the whole, or the value of an attribute that it knows."""
    found = [grammar.refusal("session-description", data)]
    for name, value in re.findall(rb"(?m)^a=([^:\r\n]+):([^\r\n]*)", data):
        rule = f"{name.decode('ascii')}-value"
        if rule in grammar.rules:
            found.append(grammar.refusal(rule, value))
    return [each for each in found if each]


def families(data):
    """The kind of address that each `o=` and `c=` line, and each `a=rtcp`, announces and has."""
    line = rb"(?m)^(?:o=\S+ \d+ \d+|c=IN|a=rtcp:\d+ IN)(?: IN)? (IP[46]) (\S+)$"
    for kind, address in re.findall(line, data.replace(b"\r", b"")):
        yield kind, b"IP6" if b":" in address else b"IP4"


@pytest.mark.parametrize("drawn", [sdp.sessions(), sdp.offers()], ids=["sessions", "offers"])
@pytest.mark.timeout(2400)
def test_every_description_is_in_the_grammar(grammar, uri_grammar, drawn):
    """Covers RFC 8866 §5, §6 and §9: as a whole, in each attribute of §6, and in our answer.

    The formats of RTP are payload type numbers, and every stream has an address (§5.7, §5.14).
    """

    @MANY
    @given(drawn)
    def check(session):
        data = bytes(session)
        assert faults(grammar, data) == []
        assert all(said == is_so for said, is_so in families(data))
        if session.uri:
            assert uri_grammar.refusal("URI-reference", session.uri.encode("ascii")) is None
        for media in session.media:
            assert session.connection or media.connection
            assert media.connection or not media.more_connections
            if media.protocol.startswith(("RTP/", "UDP/TLS/RTP/")):
                assert all(format.isdigit() and int(format) < 128 for format in media.formats)
            assert_once_for_a_format(media)
        answer, _ = make_answer(session, OURS, session.origin, "192.0.2.1")
        assert faults(grammar, bytes(answer)) == []

    check()


def assert_once_for_a_format(media):
    """Hold a stream to RFC 8866 §6.6 and §6.15."""
    about = [
        (each.name, each.value.partition(" ")[0])
        for each in media.attributes
        if each.name in ("rtpmap", "fmtp")
    ]
    assert len(about) == len(set(about))
    assert all(number in media.formats for _, number in about)


LINE = "Bad line"
NUMBER = "Bad number"
SECTIONS = {
    "no version": NUMBER,
    "version 1": "Unknown SDP version",
    "version of letters": NUMBER,
    "two versions": "Two v= lines",
    "no origin": "Bad o= line",
    "two origins": "Two o= lines",
    "two titles of a stream": "Two i= lines",
    "two connections": "Two c= lines",
}
KINDS = {
    "unknown letter": LINE,
    "letter in capitals": LINE,
    "no letter": LINE,
    "no equals sign": LINE,
    "space before the equals sign": LINE,
    "Nul": "Nul",
    "line of the session in a stream": LINE,
}
PLACES = {
    "origin of five words": "Bad o= line",
    "session-id of letters": NUMBER,
    "connection of two words": "Bad c= line",
    "hops of letters": NUMBER,
    "IPv4 address with three numbers": "Bad c= line",
    "IPv6 address with two numbers": "Bad c= line",
}
VALUES = {
    "bandwidth without a colon": NUMBER,
    "bandwidth below zero": NUMBER,
    "one time": "Bad t= line",
    "time below zero": NUMBER,
    "attribute without a name": "Bad a= line",
    "stream of three words": "Bad m= line",
    "port below zero": NUMBER,
    "port of letters": NUMBER,
    "no number of ports": NUMBER,
}


@pytest.mark.parametrize(
    ("broken", "reasons"),
    [
        (broken(sdp_faults.SECTION_FAULTS), SECTIONS),
        (broken(sdp_faults.KIND_FAULTS), KINDS),
        (broken(sdp_faults.PLACE_FAULTS), PLACES),
        (broken(sdp_faults.VALUE_FAULTS), VALUES),
    ],
    ids=["sections", "kinds", "places", "values"],
)
def test_each_fault_is_refused(grammar, broken, reasons):
    """Covers RFC 8866 §5, §5.1, §5.2, §5.7 to §5.9, §5.13 and §5.14: by us, and the grammar.

    `version-field` derives other versions too.
    """

    def read(data):
        assert faults(grammar, data) or data.startswith(b"v=1")
        strictly(data)

    refused(broken, read, RemoteError, reasons)


TOO_MUCH = {
    "too many lines": "Too many lines",
    "too many streams": "Too many media",
    "too many formats": "Too many formats",
    "too many formats of all streams": "Too many formats",
    "too many digits": NUMBER,
}


def test_what_is_too_large_is_refused(grammar):
    """Covers RFC 8866 §9: the grammar has no limits, a reader does."""
    assert [faults(grammar, data) for _, data in batched(broken(large.SDP_EXCESSES))] == [[]] * 5
    refused(broken(large.SDP_EXCESSES), strictly, RemoteError, TOO_MUCH)


def batched(drawn):
    """One pair of each fault."""
    return {fault.name: (fault, data) for fault, data in drawn_until_all(drawn, TOO_MUCH)}.values()


def test_descriptions_at_the_limits_are_read(grammar):
    """Covers RFC 8866 §9: as many lines, streams or formats as we take."""

    @settings(max_examples=20, database=None, deadline=None)
    @given(large.sessions())
    def check(session):
        assert faults(grammar, bytes(session)) == []
        assert SessionDescription.parse(bytes(session)) == session

    check()
