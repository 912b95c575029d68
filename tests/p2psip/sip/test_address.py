"""Addresses in every form the grammar knows, and some that phones invent."""

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from support.mutations import mutations

from p2psip.errors import RemoteError
from p2psip.sip.address import STAR, Address
from p2psip.sip.uri import Uri
from p2psip.strategies.sip import addresses


@given(st.lists(addresses(), min_size=1, max_size=3))
def test_parsing_undoes_writing(people):
    """Covers RFC 3261 §20.10 and §20.39."""
    assert Address.parse_list(", ".join(map(str, people))) == tuple(people)
    assert Address.parse(str(people[0]).encode()) == people[0]


@pytest.mark.parametrize(
    ("text", "display", "user", "params"),
    [
        ("sip:bob@b;tag=1", "", "bob", (("tag", "1"),)),
        ("<sip:bob@b;tag=1>", "", "bob", ()),
        ("Bob <sip:bob@b>", "Bob", "bob", ()),
        ("caller<sip:bob@b>;tag=323", "caller", "bob", (("tag", "323"),)),
        ("Lee M. Foote <sip:bob@b>", "Lee M. Foote", "bob", ()),
        ('"Bob \\"B\\" <x>, y; z"<sip:bob@b>', 'Bob "B" <x>, y; z', "bob", ()),
        ('  ""  <sip:bob@b>  ;  a = b ; c ', "", "bob", (("a", "b"), ("c", None))),
        ("Jürgen <sip:bob@b>", "Jürgen", "bob", ()),
        ("Bell, A. (home) @5 <sip:bob@b>;tag=1", "Bell, A. (home) @5", "bob", (("tag", "1"),)),
        ("<sip:bob@b>;tag=1;", "", "bob", (("tag", "1"),)),
        ("0800 <sip:@b>", "0800", "", ()),
        ('""Bob B."" <sip:bob@b>;tag=1', "Bob B.", "bob", (("tag", "1"),)),
        ('""0800""<sip:bob@b>', "0800", "bob", ()),
    ],
)
def test_forms(text, display, user, params):
    """Covers RFC 3261 §20 [unknown-parameters-ignored], §20.10, §20.20 and RFC 4475 §3.1.1.6.

    Covers Field §"Quotes within quotes" and RFC 3261 §20 [bare-uri-without-parameters].
    """
    address = Address.parse(text)
    assert (address.display, address.uri.user, address.params) == (display, user, params)
    assert Address.parse(str(address)) == address


@pytest.mark.parametrize("uri", ["sip:a,b@c", "sip:a@b?to=c", "sip:a@b;lr", "sip:a@b", "tel:1;x=y"])
def test_a_written_uri_has_brackets(uri):
    """Covers RFC 3261 §20 [brackets-are-written], §20.10 [brackets-are-written].

    And §20.20 [brackets-are-written].
    """
    for display in ("", "Bob"):
        written = str(Address(Uri.parse(uri), display).with_tag("1"))
        assert written.endswith(f"<{uri}>;tag=1")


def test_tags_and_parameters():
    """Covers RFC 3261 §19.3."""
    bob = Address(Uri.parse("sip:bob@b"), "Bob")
    assert bob.tag is None and bob.with_tag("x").tag == "x"
    assert str(bob.with_param("text", "a b").with_tag("1")) == '"Bob" <sip:bob@b>;text="a b";tag=1'
    assert bob.with_param("lr", None).param("LR") == ""


def test_the_star():
    """Covers RFC 3261 §10.2.2."""
    assert Address.parse(" * ") == STAR and STAR.is_star and str(STAR) == "*"
    assert not Address.parse("<sip:a@b>").is_star


@pytest.mark.parametrize("text", ["<tel:*>", "<isbn:*>"])
def test_a_uri_that_ends_with_a_star_is_no_star(text):
    """Covers RFC 3261 §25.1 and RFC 3966 §3: a local number may be a star, and no "*" is it.

    As the Contact of a REGISTER that expires at once it removes its own binding, and not all.
    """
    address = Address.parse(text)
    assert not address.is_star and str(address) == text


BAD = [
    "", "<>", "<sip:a@b", "sip:a@b>", '"Bob <sip:a@b>', "< sip:a@b >",
    "sip:a@b?x=y", "sip:a@b,sip:c@d", "<sip:a@b> x", "<sip:a@b><sip:c@d>", "<sip:a@b>;;",
    '"a"b"c" <sip:a@b>', '"Bob" sip:a@b', 'Bob "B" <sip:a@b>', "<*>", '"*',
]  # fmt: skip


@pytest.mark.parametrize("text", BAD)
def test_bad_addresses_are_refused(text):
    """Covers RFC 4475 §3.1.2.6, §3.1.2.13, §3.1.2.14 and §3.1.2.15."""
    with pytest.raises(RemoteError):
        Address.parse(text)


@given(
    mutations(
        st.lists(addresses(), min_size=1, max_size=3).map(
            lambda people: ",".join(map(str, people)).encode("utf-8", "surrogateescape")
        )
    )
)
def test_no_input_crashes(data):
    """Covers RFC 4475 §3.1.2: accept, or RemoteError, nothing else."""

    try:
        people = Address.parse_list(data)
    except RemoteError as error:
        event(str(error))
        return
    event("accepted")
    assert Address.parse_list(", ".join(map(str, people))) == people
