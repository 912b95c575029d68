"""Which URIs are ours."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2psip.server.domains import Domains
from p2psip.sip.uri import Uri
from p2psip.stack.routing import Hops, Listener


def domains(*names, port=5060, distinct=False, host="127.0.0.1"):
    listeners = [Listener("UDP", host, port), Listener("TCP", host, port)]
    hops = Hops(listeners, None, names)
    return Domains(names, hops.is_own_address, distinct=distinct)


@pytest.mark.parametrize(
    ("uri", "ours"),
    [
        ("sip:bob@localhost", True),
        ("sip:bob@127.0.0.1", True),
        ("sip:bob@127.0.0.1:53854", True),
        ("sip:bob@LOCALHOST:53854;transport=tcp", True),
        ("sips:bob@localhost", True),
        ("sip:localhost", True),
        ("sip:bob@127.0.0.1:5060", False),
        ("sip:bob@localhost:5062", False),
        ("sip:bob@example.com", False),
        ("sip:bob@example.com:53854", False),
        ("tel:+1555", False),
        ("urn:localhost", False),
    ],
)
def test_a_port_that_is_not_ours_is_another_server(uri, ours):
    """Covers RFC 3261 §16.5: names without a port are ours wherever we listen."""
    served = domains("localhost", "127.0.0.1", port=53854)
    assert served.of(Uri.parse(uri)) == ("localhost" if ours else None)


def test_names_of_one_machine_are_one_domain_and_configured_ones_are_not():
    one = domains("localhost", "127.0.0.1")
    assert one.address_of_record(Uri.parse("sip:bob@127.0.0.1")) == ("bob", "localhost")
    two = domains("example.com", "Example.net", distinct=True)
    assert two.address_of_record(Uri.parse("sip:bob@example.NET;x=y")) == ("bob", "example.net")
    assert two.address_of_record(Uri.parse("sip:bob@127.0.0.1:5060")) == ("bob", "example.com")
    assert two.address_of_record(Uri.parse("sip:bob@example.org")) is None


@pytest.mark.parametrize(
    ("uri", "distinct", "names"),
    [
        ("sip:bob@127.0.0.1", False, ("localhost", "127.0.0.1")),
        ("sip:bob@LOCALHOST", False, ("localhost", "127.0.0.1")),
        ("sip:bob@127.0.0.1", True, ("127.0.0.1",)),
        ("sip:bob@[::1]:5060", True, ("localhost", "::1")),
        ("sip:bob@Example.com", False, ("example.com",)),
    ],
)
def test_a_domain_has_all_its_names(uri, distinct, names):
    """Own design: what a pattern may call it."""
    served = domains("localhost", "127.0.0.1", distinct=distinct)
    assert served.names_of(Uri.parse(uri)) == names


def test_an_address_of_record_is_canonical():
    """Covers RFC 3261 §10.3 [canonical], step 5: escapes undone, parameters dropped.

    And RFC 3261 §16.5 [looked-up-in-canonical-form].
    """
    served = domains("localhost")
    aor = served.address_of_record(Uri.parse("sip:%62o%62:pw@localhost;a=b"))
    assert aor == ("bob", "localhost")
    assert served.address_of_record(Uri.parse("sip:localhost")) == ("", "localhost")


@given(
    st.sampled_from(["localhost", "127.0.0.1", "::1", "10.1.1.1", "example.com", "else.where"]),
    st.sampled_from([None, 5060, 5070]),
    st.sampled_from([5060, 5070]),
)
def test_where_we_listen_we_serve(host, port, listening):
    """Covers RFC 3261 §16.5: whatever leads to a listener of ours belongs to a domain of ours."""
    served = domains("example.com", port=listening, host="10.1.1.1")
    uri = Uri("sip", "bob", None, host, port)
    expected = host == "10.1.1.1" and (port or 5060) == listening
    expected |= host == "example.com" and port in (None, listening)
    assert (served.of(uri) is not None) == expected
