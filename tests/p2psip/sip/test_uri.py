"""URIs survive being written and read, and compare as the RFC's own examples do."""

import re

import pytest
from hypothesis import event, given
from support.mutations import mutations

from p2psip.errors import RemoteError
from p2psip.sip.uri import Uri, equivalent
from p2psip.strategies.sip import sip_uris, uris


@given(uris())
def test_parsing_undoes_writing(uri):
    """Covers RFC 3261 §19.1.1 and §19.1.2."""
    assert Uri.parse(bytes(uri)) == Uri.parse(memoryview(bytes(uri))) == Uri.parse(str(uri)) == uri
    assert equivalent(uri, uri)


def test_every_part_is_found():
    """Covers RFC 3261 §19.1.1."""
    uri = Uri.parse("SIP:alice:pa%3Ass@[2001:DB8::1]:5070;Transport=TCP;lr?a=b%20c&d=")
    assert uri == Uri(
        scheme="sip",
        user="alice",
        password="pa:ss",
        host="2001:db8::1",
        port=5070,
        params=(("Transport", "TCP"), ("lr", None)),
        headers=(("a", "b c"), ("d", "")),
    )
    assert str(uri) == "sip:alice:pa%3Ass@[2001:db8::1]:5070;Transport=TCP;lr?a=b%20c&d="
    assert (uri.param("transport"), uri.param("LR"), uri.param("ttl")) == ("TCP", "", None)


def test_what_does_not_stand_for_itself_is_escaped():
    """Covers RFC 3261 §19.1.2 [rest-is-escaped] [escaped-in-headers] [escaped-in-numbers]."""
    every = "".join(map(chr, range(128)))
    number = Uri("sip", '+1;ext="2"', host="b")
    assert str(number) == "sip:+1;ext=%222%22@b"
    uri = Uri("sip", every, every, "b", None, (("p", every),), (("h", every),))
    user, password, rest = re.fullmatch(r"sip:([^:@]*):([^@]*)@b;p=(.*)", str(uri)).groups()
    param, _, header = rest.partition("?h=")
    plain = r"\-A-Za-z0-9_.!~*'()%"  # Source: RFC 3261 §25.1, unreserved and escaped
    assert re.fullmatch(rf"[{plain}&=+$,;?/]+", user)
    assert re.fullmatch(rf"[{plain}&=+$,]+", password)
    assert re.fullmatch(rf"[{plain}\[\]/:&+$]+", param)
    assert re.fullmatch(rf"[{plain}\[\]/?:+$]+", header)
    assert Uri.parse(str(uri)) == uri
    assert str(Uri("sip", host="b", headers=(("h", "&"), ("i", "=")))) == "sip:b?h=%26&i=%3D"


def test_parameters_come_and_go():
    """Covers RFC 3261 §19.1.1 [no-param-twice] [unknown-ignored]."""
    uri = Uri.parse("sip:a@b;lr;x=1").with_params(x="2", ob=None)
    assert str(uri) == "sip:a@b;lr;x=2;ob"
    assert str(uri.without_params("LR", "x")) == "sip:a@b;ob"


def test_a_user_may_be_anything_once_it_is_escaped():
    """Covers RFC 3261 §8.1.1.2 [sip-uris] [sips-uris] and §25.1 [numbers-are-escaped]."""
    for scheme in ("sip", "sips"):
        uri = Uri(scheme, "+1 (2) #3@4", None, "gateway.com")
        assert str(uri) == f"{scheme}:+1%20(2)%20%233%404@gateway.com"
        assert Uri.parse(str(uri)) == uri


def test_what_would_end_a_value_is_escaped():
    """Covers RFC 3966 §3 [delimiters-stand] [escaped-in-values], RFC 3986 §2.1 [capital-hex] and
    §2.2 [conflicts-are-escaped] [reserved-is-escaped].
    """
    tel = Uri("tel", opaque="+1-2", params=(("x", "a;b=c?d"), ("phone-context", "+44")))
    assert str(tel) == "tel:+1-2;x=a%3Bb%3Dc%3Fd;phone-context=+44"
    assert str(Uri(host="a", params=(("lr", None), ("x", "")))) == "sip:a;lr;x="
    back = Uri.parse(str(tel))
    assert (back.opaque, back.params) == (tel.opaque, tel.params)


def test_tel_and_opaque_uris():
    """Covers RFC 3966 §3 and RFC 4475 §3.3.3."""
    tel = Uri.parse("tel:+1-201-555-0123;phone-context=example.com")
    assert tel.user == tel.opaque == "+1-201-555-0123"
    assert tel.param("phone-context") == "example.com"
    assert str(tel) == "tel:+1-201-555-0123;phone-context=example.com"
    beep = Uri.parse("soap.beep://192.0.2.103:3002")
    assert (beep.scheme, beep.opaque, beep.host) == ("soap.beep", "//192.0.2.103:3002", "")


BAD = [
    "", "sip", "sip:", "1:a", ":a", "sip:a@", "sip:a@b:x", "sip:a@b@c", "sip:a b@c",
    "<sip:a@b>", "sip:a%4@b", "sip:a%zz@b", "sip:a@b;;", "sip:a@b;=1", "sip:a@b?", "sip:a@b?x",
    "sip:a@b\r\nX: y", "sip:a@2001:db8::1", "tel:", 'sip:"a"@b', "sip:a@b?=x", "sip:a@b;p" * 50,
    "sip:a@%62.com", "sip:a\x01@b", "tel:+1 2",
]  # fmt: skip


@pytest.mark.parametrize("text", BAD)
def test_bad_uris_are_refused(text):
    """Covers RFC 3261 §7.1 [no-spaces-in-the-uri] [no-brackets-around-the-uri].

    And RFC 4475 §3.1.2.7, §3.1.2.8, §3.1.2.14 and RFC 5118 §4.2.
    Covers RFC 3261 §19.1.2 [no-space] [host-as-it-is].
    """
    with pytest.raises(RemoteError):
        Uri.parse(text)


def test_what_phones_without_a_number_write():
    """Covers RFC 3261 §19.1.1: an empty user is kept, a semicolon at the end is not."""
    uri = Uri.parse("sip:@192.0.2.1;lr;")
    assert (uri.user, uri.host, str(uri)) == ("", "192.0.2.1", "sip:@192.0.2.1;lr")


# Source: the examples of RFC 3261 §19.1.4
SAME = [
    ("sip:%61lice@atlanta.com;transport=TCP", "sip:alice@AtLanTa.CoM;Transport=tcp"),
    ("sip:carol@chicago.com", "sip:carol@chicago.com;newparam=5"),
    ("sip:carol@chicago.com", "sip:carol@chicago.com;security=on"),
    (
        "sip:biloxi.com;transport=tcp;method=REGISTER?to=sip:bob%40biloxi.com",
        "sip:biloxi.com;method=REGISTER;transport=tcp?to=sip:bob%40biloxi.com",
    ),
    (
        "sip:alice@atlanta.com?subject=project%20x&priority=urgent",
        "sip:alice@atlanta.com?priority=urgent&subject=project%20x",
    ),
    ("sip:a@[2001:db8::1]", "sip:a@[2001:0db8:0::1]"),
]
# Source: the other examples of RFC 3261 §19.1.4
DIFFERENT = [
    ("SIP:ALICE@AtLanTa.CoM;Transport=udp", "sip:alice@AtLanTa.CoM;Transport=UDP"),
    ("sip:bob@biloxi.com", "sip:bob@biloxi.com:5060"),
    ("sip:bob@biloxi.com", "sip:bob@biloxi.com;transport=udp"),
    ("sip:bob@biloxi.com", "sip:bob@biloxi.com:6000;transport=tcp"),
    ("sip:carol@chicago.com", "sip:carol@chicago.com?Subject=next%20meeting"),
    ("sip:bob@phone21.boxesbybob.com", "sip:bob@192.0.2.4"),
    ("sip:carol@chicago.com;security=on", "sip:carol@chicago.com;security=off"),
    ("sip:a@b", "sips:a@b"),
    ("sip:a@b", "sip:b"),
    ("sip:a:@b", "sip:a@b"),
    ("sip:a@b", "sip:a@b;maddr=192.0.2.1"),
    ("tel:+1", "tel:+2"),
]


@pytest.mark.parametrize(
    ("a", "b", "same"), [(*p, True) for p in SAME] + [(*p, False) for p in DIFFERENT]
)
def test_equivalence_is_that_of_the_examples(a, b, same):
    """Covers RFC 3261 §19.1.4 [same-headers]."""
    assert equivalent(Uri.parse(a), Uri.parse(b)) is same
    assert equivalent(Uri.parse(b), Uri.parse(a)) is same


@given(mutations(uris().map(bytes)))
def test_no_input_crashes(data):
    """Covers RFC 4475 §3.1.2: accept, or RemoteError, nothing else."""

    try:
        uri = Uri.parse(data)
    except RemoteError as error:
        event(str(error))
        return
    event("accepted")
    assert Uri.parse(bytes(uri)) == uri


@given(sip_uris())
def test_a_host_in_capitals_is_the_same_host(uri):
    """Covers RFC 3261 §19.1.4."""
    assert equivalent(uri, uri.replace(host=uri.host.upper()))


@pytest.mark.parametrize(
    ("text", "other", "same"),
    [
        ("sip:bob@home;gr=urn:uuid:1", "sip:bob@home", True),
        ("sip:bob@home;gr=urn:uuid:1", "sip:bob@home;gr=URN:UUID:1", True),
        ("sip:bob@home;gr=urn:uuid:1", "sip:bob@home;gr=urn:uuid:2", False),
        ("sip:bob@home;gr=urn:uuid:1", "sip:bob@home;gr", False),
        ("sip:x@home;gr", "sip:y@home;gr", False),
    ],
)
def test_a_public_gruu_equals_its_address_of_record_and_no_other_gruu(text, other, same):
    """Covers RFC 5627 §5.4 [different-devices-differ]."""
    first, second = Uri.parse(text), Uri.parse(other)
    assert first.is_gruu and equivalent(first, second) is same is equivalent(second, first)
    assert str(first) == text and not Uri.parse("tel:+1;gr").is_gruu
