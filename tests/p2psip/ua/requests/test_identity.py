"""The identity that a trusted proxy asserts, and what is not one."""

import pytest
from support.sip.flows import A, first_request

from p2psip.stack.stack import Flow
from p2psip.ua.requests.identity import asserted_identity, sender

PROXY = Flow("UDP", (A, 5060))
TRUSTED = frozenset({A})


@pytest.mark.parametrize(
    ("values", "found"),
    [
        (["<sip:ann@home>"], "sip:ann@home"),
        (["<sips:ann@home>"], "sips:ann@home"),
        (["<tel:+1>"], "tel:+1"),
        (["<tel:+1>, <sip:ann@home>"], "sip:ann@home"),
        (["<sip:ann@home>", "<tel:+1>"], "sip:ann@home"),
        (["<http://home/ann>"], None),
        (["<sip:ann@home>, <sip:eve@home>"], None),
        (["<sip:ann@home>, <sips:ann@home>"], None),
        (["<tel:+1>, <tel:+2>"], None),
        (["<sip:ann@home>, <tel:+1>, <tel:+2>"], None),
        (["<sip:ann@home> junk"], None),
        ([], None),
    ],
)
def test_what_can_be_asserted(values, found):
    """Covers RFC 3325 §9.1 [one-address-each] [of-three-schemes] [one-uri-of-two]
    [one-number-of-two], §8 [not-of-strangers] and RFC 3261 §8.2.2 [odd-values-pass].
    """
    request = first_request(extra=[("P-Asserted-Identity", value) for value in values])
    identity = asserted_identity(request, PROXY, TRUSTED)
    assert (None if identity is None else str(identity.uri)) == found
    assert sender(request, PROXY, TRUSTED) == (identity or request.from_)
    assert asserted_identity(request, PROXY, frozenset()) is None
