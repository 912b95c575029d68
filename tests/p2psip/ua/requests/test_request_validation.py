"""What a user agent refuses before it looks at a request any closer."""

import pytest

from p2psip.errors import RemoteError
from p2psip.sip.headers import Headers
from p2psip.sip.message import Request
from p2psip.sip.multipart import Part, write_multipart
from p2psip.sip.uri import Uri
from p2psip.ua.requests.request_validation import (
    RefusalError,
    offer_of,
    refuse_accept,
    refuse_method,
    session,
)

SDP = Part(Headers([("Content-Type", "application/sdp")]), b"v=0\r\n")
ISUP = [("Content-Type", "application/isup;version=itu-t92+"), ("Content-Disposition", "signal")]
REMARK = Part(Headers(ISUP), b"\x01\x00\x49")


def invite(*parts, kind="mixed", **headers):
    """An INVITE with a body of these parts, or with these headers and none."""
    fields = [(name.replace("_", "-"), value) for name, value in headers.items()]
    body = write_multipart(parts, "b1") if parts else b""
    if parts:
        fields.append(("Content-Type", f"multipart/{kind};boundary=b1"))
    return Request("INVITE", Uri.parse("sip:bob@b"), Headers(fields), body)


def demanding(part, handling):
    """The part with a word on those who do not understand it."""
    disposition = f"signal;handling={handling}"
    return Part(part.headers.with_("Content-Disposition", disposition), part.body)


@pytest.mark.parametrize("kind", ["mixed", "alternative", "related"])
def test_an_offer_is_found_among_other_parts(kind):
    """Covers RFC 3261 §7.4.1, §8.2.3 and §20.11 [sdp-is-a-session]."""
    for parts in ([SDP, REMARK], [REMARK, SDP], [SDP], [demanding(REMARK, "optional"), SDP]):
        request = invite(*parts, kind=kind)
        assert offer_of(request) == session(request) == SDP.body
    inner = invite(REMARK, SDP)
    nested = invite(Part(inner.headers, inner.body.replace(b"b1", b"b2")), REMARK)
    nested = nested.replace(body=nested.body.replace(b"boundary=b1", b"boundary=b2"))
    assert offer_of(nested) == SDP.body


def test_a_part_that_must_be_understood_is_refused():
    """Covers RFC 3261 §8.2.3 [415-for-the-body] [415-says-accept].

    And RFC 3261 §20.11 [required-unless-said].
    """
    for parts in ([SDP, demanding(REMARK, "required")], [REMARK]):
        with pytest.raises(RefusalError) as refusal:
            offer_of(invite(*parts))
        assert refusal.value.status == 415
        assert dict(refusal.value.headers)["Accept"].startswith("application/sdp, multipart/mixed")
    assert offer_of(invite(demanding(REMARK, "optional"))) is None
    assert offer_of(invite(SDP, REMARK)) == offer_of(invite(demanding(SDP, "required"))) == SDP.body


def test_parts_that_cannot_be_read():
    """Covers RFC 3261 §8.2.3: 400 for a request; of a response only the rest counts."""
    request = invite(SDP).replace(body=b"--b1\r\n")
    with pytest.raises(RemoteError) as error:
        offer_of(request)
    assert error.value.status == 400 and session(request) is None


@pytest.mark.parametrize(
    ("accept", "status"),
    [
        ("application/sdp", None),
        ("text/plain, application/SDP;level=1", None),
        ("*/*", None),
        ("application/*;q=0.5", None),
        ("", None),
        (None, None),
        ("text/plain", 406),
    ],
)
def test_what_the_caller_takes_back(accept, status):
    """Covers RFC 3261 §21.4.7 and §20.1 [sdp-is-the-default]."""
    refused = None
    try:
        refuse_accept(invite() if accept is None else invite(Accept=accept))
    except RefusalError as refusal:
        refused = refusal.status
    assert refused == status


def test_methods_known_and_unknown():
    """Covers RFC 3261 §8.2.1 [405-for-others] [405-says-allow], §21.5.2."""
    for method, status in (("MESSAGE", 405), ("DANCE", 501)):
        with pytest.raises(RefusalError) as refusal:
            refuse_method(invite().replace(method=method))
        assert refusal.value.status == status and dict(refusal.value.headers)["Allow"]
