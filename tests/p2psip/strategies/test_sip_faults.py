"""Our readers of digests, streams, bodies and header values refuse each fault of the strategies."""

import pytest
from hypothesis import given
from support.faults import refused

from p2psip.errors import RemoteError
from p2psip.sip import values
from p2psip.sip.auth import Challenge, Credentials
from p2psip.sip.authentication_info import AuthenticationInfo
from p2psip.sip.framing import KeepAlive, Malformed, StreamFramer
from p2psip.sip.multipart import leaves
from p2psip.strategies import digest, faults, header_values, multipart, sip_streams

FORM = {
    "scheme of no token": "Bad Authentication Scheme",
    "no scheme": "Bad Authentication Scheme",
    "open quote": "Unbalanced Quotes",
    "parameter without a name": "Bad Parameter",
    "text behind a quote": "Bad Parameter",
}
MISSING = "Missing Digest Parameter"
CHALLENGES = FORM | {"no realm": MISSING, "no nonce": MISSING}
CREDENTIALS = FORM | {
    **dict.fromkeys((f"no {name}" for name in ("username", "realm", "nonce", "uri")), MISSING),
    "no response": MISSING,
    "two user names": "Two User Names",
}
INFOS = {name: FORM[name] for name in ("open quote", "parameter without a name")} | {
    "text behind a quote": "Bad Parameter"
}
STREAMS = {
    "no length": "Missing Content-Length",
    "length below zero": "Bad Number",
    "length of letters": "Bad Number",
    "two lengths": "Two Content-Lengths",
    "bare line feed": "Bare Line Break",
    "bare carriage return": "Bare Line Break",
    "line without colon": "Bad Header",
    "no SIP": ".",
}
TOO_LARGE = "Message Too Large"
LONG_STREAMS = dict.fromkeys(
    (
        *("head without an end", "head beyond the limit", "head of too many lines"),
        *("head too long to be read", "body beyond the limit"),
    ),
    TOO_LARGE,
)
BOUNDARY = "Body Parts Without Boundary"
BODIES = {
    "no boundary": BOUNDARY,
    "boundary of nothing": BOUNDARY,
    "boundary of 71 characters": BOUNDARY,
    "boundary that ends in a space": BOUNDARY,
    "boundary with a star": BOUNDARY,
    "no end": "Body Parts Without End",
    "no part": "Body Parts Without End",
    "line without colon": "Bad Header",
    "bare line feed": "Bare Line Break",
}
MANY_PARTS = {"too many parts": "Too Many Body Parts", "parts too deep": "Body Parts Too Deep"}
VALUE = "Bad Header Value"
TERMS = {
    "no word": VALUE,
    "two words": VALUE,
    "two slashes": VALUE,
    "parameter without a name": "Bad Parameter",
    "empty parameters": "Bad Parameter",
    "open quote": "Unbalanced Quotes",
}
REFERENCES = {
    "no brackets": VALUE,
    "open bracket": "Unbalanced Quotes",
    "text behind bracket": VALUE,
    "no URI": ".",
    "empty parameters": "Bad Parameter",
}
RETRIES = {
    "no number": ".",
    "fraction": "Bad Retry-After",
    "open comment": "Open Comment",
    "text behind a comment": "Bad Retry-After",
    "duration of letters": "Bad Number",
}
TIMESTAMPS = dict.fromkeys(
    ("no number", "two points", "delay of letters", "three numbers"), "Bad Timestamp"
)
WARNINGS = {
    "code of two digits": "Bad Warning",
    "code of four digits": "Bad Warning",
    "code of letters": ".",
    "text without quotes": "Bad Warning",
    "no agent": "Bad Warning",
    "open quote": "Bad Warning",
    "agent of no host": ".",
}
DATES = dict.fromkeys((fault.name for fault in header_values.DATE_FAULTS), "Bad Date")


def read_stream(data):
    """Raise the error of a stream, which the reader tells as an item."""
    *_, last = StreamFramer().feed(data)
    if isinstance(last, Malformed):
        raise last.error


def read_entity(data):
    head, _, body = data.partition(b"\r\n\r\n")
    name, _, content_type = head.decode().partition(": ")
    assert name == "Content-Type"
    return list(leaves(content_type, body))


@pytest.mark.parametrize(
    ("broken", "read", "reasons"),
    [
        (faults.broken(digest.CHALLENGE_FAULTS), Challenge.parse, CHALLENGES),
        (faults.broken(digest.CREDENTIAL_FAULTS), Credentials.parse, CREDENTIALS),
        (faults.broken(digest.INFO_FAULTS), AuthenticationInfo.parse, INFOS),
        (faults.broken(sip_streams.STREAM_FAULTS), read_stream, STREAMS),
        (faults.broken(sip_streams.STREAM_LIMITS), read_stream, LONG_STREAMS),
        (faults.broken(multipart.MULTIPART_FAULTS), read_entity, BODIES),
        (faults.broken(multipart.MULTIPART_LIMITS), read_entity, MANY_PARTS),
        (faults.broken(header_values.TERM_FAULTS), values.Term.parse, TERMS),
        (faults.broken(header_values.REFERENCE_FAULTS), values.Reference.parse, REFERENCES),
        (faults.broken(header_values.RETRY_FAULTS), values.RetryAfter.parse, RETRIES),
        (faults.broken(header_values.TIMESTAMP_FAULTS), values.Timestamp.parse, TIMESTAMPS),
        (faults.broken(header_values.WARNING_FAULTS), values.Warn.parse, WARNINGS),
        (
            faults.broken(header_values.DATE_FAULTS),
            lambda data: values.date_of(data.decode()),
            DATES,
        ),
    ],
    ids=[
        *("challenge", "credentials", "info", "stream", "long-stream", "body", "many-parts"),
        *("term", "reference", "retry", "timestamp", "warning", "date"),
    ],
)
def test_each_fault_is_refused(broken, read, reasons):
    """Covers RFC 3261 §18.3, §20 and §25.1, RFC 7616 §3.3 and §3.4, and RFC 2046 §5.1.1."""
    refused(broken, read, RemoteError, reasons)


@given(sip_streams.streams())
def test_a_stream_has_its_messages(drawn):
    """Covers RFC 3261 §18.3."""
    data, messages = drawn
    items = StreamFramer().feed(data)
    assert [each for each in items if not isinstance(each, KeepAlive)] == messages


@given(multipart.entities())
def test_an_entity_has_its_parts(drawn):
    """Covers RFC 2046 §5.1.1."""
    data, parts = drawn
    assert read_entity(data) == parts


@given(
    digest.challenges()
    | digest.credentials()
    | digest.foreign_credentials()
    | digest.authentication_infos()
)
def test_values_of_digest_authentication_are_read_as_they_are_meant(value):
    """Covers RFC 7616 §3.3 and §3.4."""
    assert type(value).parse(str(value)) == value
