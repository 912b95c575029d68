"""The IPv6 torture messages, re-joined from the RFC's text, are read as it says.

Covers RFC 5118 §4, section by section.
"""

import pytest
from torture.rfc_messages import messages

from p2psip.errors import RemoteError
from p2psip.sip.grammar import host_port
from p2psip.sip.message import check_request, parse_message
from p2psip.sip.uri import Uri

NAMES = [
    "ipv6-good",
    "ipv6-bad",
    "port-ambiguous",
    "port-unambiguous",
    "via-received-param-with-delim",
    "via-received-param-no-delim",
    "ipv6-in-sdp",
    "mult-ip-in-header",
    "mult-ip-in-sdp",
    "ipv4-mapped-ipv6",
    "ipv6-bug-abnf-3-colons",
    "ipv6-correct-abnf-2-colons",
]


@pytest.fixture
def message(specs):
    """A reader of one valid message."""

    def read(name):
        found = parse_message(messages(specs)[name])
        check_request(found)
        assert parse_message(bytes(found)) == found
        return found

    return read


def test_all_messages_are_found(specs):
    """Covers RFC 5118 §4."""
    assert list(messages(specs)) == NAMES


def test_the_corpus_holds_the_same_messages(specs, corpus):
    """Covers RFC 5118 §2: two people re-joined the text alike."""
    for name, data in messages(specs).items():
        path = corpus / "sip" / "rfc5118" / f"{name}.dat"
        fixed = path.with_name(f"{name}-fixed.dat")
        assert data == (fixed if fixed.exists() else path).read_bytes()


def test_references(message):
    """Covers RFC 5118 §4.1."""
    found = message("ipv6-good")
    assert found.uri.host == "2001:db8::10" and found.via.host == "2001:db8::9:1"
    assert found.contacts[0].uri.host == "2001:db8::1"
    assert str(found.uri) == "sip:[2001:db8::10]"


def test_an_address_without_brackets_is_refused(specs):
    """Covers RFC 5118 §4.2 [no-brackets-refused]."""
    with pytest.raises(RemoteError) as error:
        parse_message(messages(specs)["ipv6-bad"])
    assert error.value.status == 400
    assert host_port("a:65535") == ("a", 65535)
    with pytest.raises(RemoteError):
        host_port("a:65536")


def test_ports(message):
    """Covers RFC 5118 §4.3 [port-outside-brackets] and §4.4."""
    ambiguous, clear = message("port-ambiguous").uri, message("port-unambiguous").uri
    assert (ambiguous.host, ambiguous.port) == ("2001:db8::10:5070", None)
    assert (clear.host, clear.port) == ("2001:db8::10", 5070)


@pytest.mark.parametrize("name", ["via-received-param-with-delim", "via-received-param-no-delim"])
def test_received_with_and_without_brackets(message, name):
    """Covers RFC 5118 §4.5 [received-either-way]."""
    assert message(name).via.received == "2001:db8::9:255"


def test_addresses_of_both_kinds(message):
    """Covers RFC 5118 §4.7."""
    found = message("mult-ip-in-header")
    assert [(via.host, via.port) for via in found.vias] == [
        ("2001:db8::9:1", 6050),
        ("192.0.2.1", None),
        ("2001:db8::9:255", None),
    ]
    assert found.vias[2].received == "192.0.2.200"


def test_bodies_are_not_touched(message):
    """Covers RFC 5118 §4.6 and §4.8."""
    for name in ("ipv6-in-sdp", "mult-ip-in-sdp"):
        assert b"IN IP6 2001:db8" in message(name).body


def test_mapped_addresses(message):
    """Covers RFC 5118 §4.9 [mapped-is-read] [port-of-a-mapped-one]."""
    found = message("ipv4-mapped-ipv6")
    assert found.vias[0].host == "::ffff:192.0.2.10" and found.vias[0].port == 19823
    assert found.contacts[0].uri.host == "::ffff:192.0.2.2"
    with pytest.raises(RemoteError, match="IPv6"):
        Uri.parse("sip:[::ffff:192.0.2]")


def test_the_extra_colon_is_dropped(message):
    """Covers RFC 5118 §4.10 [three-colons-read]."""
    for name in ("ipv6-bug-abnf-3-colons", "ipv6-correct-abnf-2-colons"):
        found = message(name)
        assert found.uri.host == "2001:db8::192.0.2.1"
        assert ":::" not in str(found.uri)
