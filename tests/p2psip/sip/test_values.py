"""Header values of a form of their own come out as they went in."""

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from support.mutations import mutations

from p2psip.errors import LocalError, RemoteError
from p2psip.sip.values import (
    Reference,
    RetryAfter,
    Term,
    Timestamp,
    Warn,
    date_of,
    date_text,
)
from p2psip.strategies.sip_parts import free_text, header_params, ip_addresses, tokens, uris

words = st.tuples(tokens(), st.none() | tokens()).map(
    lambda pair: "/".join(part for part in pair if part).lower()
)
terms = st.builds(Term, words, header_params())
references = st.builds(
    Reference, uris().filter(lambda uri: not set("<>") & set(str(uri))), header_params()
)
comments = st.sampled_from(["", "I'm in a meeting", "a (b) c", "\\) \\(", "é"])
retries = st.builds(
    RetryAfter, st.integers(0, 2**32 - 1), comments, st.none() | st.integers(0, 2**32 - 1)
)
timestamps = st.builds(Timestamp, st.integers(0, 10**12), st.integers(0, 10**9))
agents = tokens() | ip_addresses().map(lambda ip: f"[{ip}]:5060" if ":" in ip else f"{ip}:5060")
warnings = st.builds(Warn, st.integers(0, 999), agents, free_text())
KINDS = {
    Term: terms,
    Reference: references,
    RetryAfter: retries,
    Timestamp: timestamps,
    Warn: warnings,
}
each_kind = pytest.mark.parametrize("kind", KINDS)


@each_kind
@given(data=st.data())
def test_parsing_undoes_writing(kind, data):
    """Covers RFC 3261 §20.1, §20.4, §20.9, §20.11, §20.33, §20.38 and §20.43."""
    value = data.draw(KINDS[kind])
    assert kind.parse(str(value)) == value


@each_kind
@given(data=st.data())
def test_no_input_crashes(kind, data):
    """Covers RFC 4475 §3.1.2: accept, or RemoteError, nothing else."""
    written = KINDS[kind].map(lambda value: str(value).encode("utf-8", "surrogateescape"))
    try:
        value = kind.parse(data.draw(mutations(written) | st.binary(max_size=40)))
    except RemoteError as error:
        event(str(error))
        return
    event("accepted")
    assert kind.parse(str(value)) == value


@pytest.mark.parametrize(
    ("accept", "covered"),
    [
        ("application/sdp", True),
        ("application/*;q=0.1", True),
        ("*/*;level=1", True),
        ("application/sdp;q=0", False),
        ("application/sdp;q=0.000", False),
        ("application/sdp;q=nonsense", True),
        ("text/*", False),
    ],
)
def test_a_range_of_accept(accept, covered):
    """Covers RFC 3261 §20.1."""
    assert Term.parse(accept).covers("application/sdp") is covered


def test_the_examples_of_the_rfc():
    """Covers RFC 3261 §20.3, §20.9, §20.11, §20.33, §20.38 and §20.43."""
    assert [each.q for each in Term.parse_list("da, en-gb;q=0.8, en;q=0.7")] == [1.0, 0.8, 0.7]
    assert Term.parse("session;handling=Optional").param("HANDLING") == "Optional"
    icon = Reference.parse("<http://www.example.com/alice/photo.jpg> ;purpose=icon")
    assert (icon.uri.scheme, icon.param("purpose")) == ("http", "icon")
    assert RetryAfter.parse("120 (I'm in a meeting)") == RetryAfter(120, "I'm in a meeting")
    assert RetryAfter.parse("18000;duration=3600") == RetryAfter(18000, duration=3600)
    assert Timestamp.parse("54") == Timestamp(54000) and str(Timestamp(54000)) == "54"
    assert str(Timestamp.parse("54.020 0.5")) == str(Timestamp.parse("54.02 .5")) == "54.02 0.5"
    warning = Warn.parse("307 isi.edu \"Session parameter 'foo' not understood\"")
    assert (warning.code, warning.agent) == (307, "isi.edu")


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (Term, ""), (Term, "a/b/c"), (Term, "a b"), (Reference, "http://a"), (Reference, "<http:a"),
        (RetryAfter, ""), (RetryAfter, "-1"), (RetryAfter, "5 (open"), (RetryAfter, "5 minutes"),
        (RetryAfter, "949302838503028349304023988"), (Timestamp, ""), (Timestamp, "1.2.3"),
        (Timestamp, "noon"), (Warn, '1812 overture "In Progress"'), (Warn, "399 a"),
        (Warn, '399 a,b "x"'), (Warn, "399 a bare"),
    ],
)  # fmt: skip
def test_what_is_no_value(kind, text):
    """Covers RFC 3261 §25.1 and RFC 4475 §3.1.2.5."""
    with pytest.raises(RemoteError):
        kind.parse(text)


@given(st.integers(-62135596800, 253402300799))
def test_dates(seconds):
    """Covers RFC 3261 §20.17: the years 1 to 9999."""
    assert date_of(date_text(seconds)) == seconds


def test_the_only_form_of_a_date():
    """Covers RFC 3261 §20.17 and RFC 4475 §3.1.2.12."""
    assert date_text(1289690940) == "Sat, 13 Nov 2010 23:29:00 GMT"
    for text in (
        "", "Fri, 01 Jan 2010 16:00:00 EST", "sat, 13 nov 2010 23:29:00 gmt",
        "Sat, 31 Feb 2010 23:29:00 GMT", "Xxx, 13 Nov 2010 23:29:00 GMT",
        "Sat, 13 Nov 2010 24:00:00 GMT", "Sat, 13 Nov 0000 23:29:00 GMT",
    ):  # fmt: skip
        with pytest.raises(RemoteError):
            date_of(text)
    with pytest.raises(LocalError):
        date_text(10**12)
