"""Values of headers with a form of their own: terms, references, times, warnings and dates.

Implements RFC 3261 §20 in reverse, for headers that few messages have.

Own design: `p2psip.strategies.faults` says why faults are drawn one at a time.
"""

from functools import cache
from typing import Final

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from p2psip.sip.values import Reference, RetryAfter, Term, Timestamp, Warn, date_text
from p2psip.strategies.faults import written
from p2psip.strategies.sip_parts import free_text, header_params, ip_addresses, tokens, uris

_SECONDS: Final = st.integers(0, 2**32 - 1)
_COMMENTS: Final = st.sampled_from(["", "I'm in a meeting", "a (b) c", "\\) \\(", "é"])
_LAST_DATE: Final = 253402300799  # the last second of the year 9999


@cache
def terms() -> SearchStrategy[Term]:
    """A word or a media type, with parameters: §20.1, §20.2, §20.3 and §20.11."""
    words = st.tuples(tokens(), st.none() | tokens()).map(
        lambda pair: "/".join(part for part in pair if part).lower()
    )
    return st.builds(Term, words, header_params())


@cache
def references() -> SearchStrategy[Reference]:
    """A URI in brackets, with parameters: §20.4 and §20.9."""
    plain = uris().filter(lambda uri: not set("<>") & set(str(uri)))
    return st.builds(Reference, plain, header_params())


@cache
def retries() -> SearchStrategy[RetryAfter]:
    """Times with a comment and a duration, or without: §20.33."""
    return st.builds(RetryAfter, _SECONDS, _COMMENTS, st.none() | _SECONDS)


@cache
def timestamps() -> SearchStrategy[Timestamp]:
    """Times with a delay or without: §20.38."""
    return st.builds(Timestamp, st.integers(0, 10**12), st.just(0) | st.integers(0, 10**9))


@cache
def warnings() -> SearchStrategy[Warn]:
    """Warnings by a name, a host or a pseudonym: §20.43."""
    places = ip_addresses().map(lambda ip: f"[{ip}]" if ":" in ip else ip)
    agents = tokens() | places | places.map("{}:5060".format)
    return st.builds(Warn, st.integers(0, 999), agents, free_text())


@cache
def dates() -> SearchStrategy[str]:
    """Dates of the years 1 to 9999: §20.17."""
    return st.integers(-62135596800, _LAST_DATE).map(date_text)


_GRAMMAR: Final = "RFC 3261 §25.1"

TERM_FAULTS: Final = (
    written("no word", _GRAMMAR, "", ";q=1", " ", "/", "a/", "/b"),
    written("two words", _GRAMMAR, "a b", "text/plain html;q=1"),
    written("two slashes", _GRAMMAR, "a/b/c"),
    written("parameter without a name", _GRAMMAR, "a/b;=1", "session;=x"),
    written("empty parameters", _GRAMMAR, "a/b;;;", "a/b;;q=1"),
    written("open quote", _GRAMMAR, 'a/b;x="y'),
)
"""Every fault of a value of Accept and its kin: §20.1, §25.1."""

REFERENCE_FAULTS: Final = (
    written("no brackets", _GRAMMAR, "http://a.example/x", "sip:a@b;purpose=icon", "x>"),
    written("open bracket", _GRAMMAR, "<http://a.example/x", "<sip:a@b;x=y"),
    written("text behind bracket", _GRAMMAR, "<http://a.example/x> y"),
    written("no URI", _GRAMMAR, "<>", "<no uri>"),
    written("empty parameters", _GRAMMAR, "<http://a.example/x>;;;"),
)
"""Every fault of a value of Call-Info and its kin: §20.9, §25.1."""

RETRY_FAULTS: Final = (
    written("no number", _GRAMMAR, "", "soon", "(in a minute)", ";duration=1", "-1"),
    written("fraction", _GRAMMAR, "1.5", "1.5;duration=1"),
    written("open comment", _GRAMMAR, "1 (x", "1 (a (b)", "1 (\\)", "1 (x;duration=2"),
    written("text behind a comment", _GRAMMAR, "1 (x) y", "1 (x) y;duration=2"),
    written("duration of letters", _GRAMMAR, "1;duration=long", "1;duration", "1;duration=1.5"),
)
"""Every fault of Retry-After: §20.33, §25.1."""

TIMESTAMP_FAULTS: Final = (
    written("no number", _GRAMMAR, "", "now", "-1", ".5"),
    written("two points", _GRAMMAR, "1.2.3", "1.2 3.4.5"),
    written("delay of letters", _GRAMMAR, "1 x", "1.5 -2"),
    written("three numbers", _GRAMMAR, "1 2 3"),
)
"""Every fault of Timestamp: §20.38, §25.1."""

WARNING_FAULTS: Final = (
    written("code of two digits", _GRAMMAR, '30 a "x"', '3 a "x"'),
    written("code of four digits", _GRAMMAR, '3011 a "x"'),
    written("code of letters", _GRAMMAR, 'abc a "x"', '-12 a "x"'),
    written("text without quotes", _GRAMMAR, "301 a x", "301 a"),
    written("no agent", _GRAMMAR, '301 "x"', "301"),
    written("open quote", _GRAMMAR, '301 a "x', '301 a "x\\"'),
    written("agent of no host", _GRAMMAR, '301 a@b "x"', '301 [::1 "x"', '301 a:b "x"'),
)
"""Every fault of Warning: §20.43, §25.1."""

_IN_1994: Final = "13 Nov 1994 23:29:00 GMT"
DATE_FAULTS: Final = (
    written("another zone", "RFC 3261 §20.17", "Sat, 13 Nov 2010 23:29:00 EST"),
    written("no zone", _GRAMMAR, "Sat, 13 Nov 2010 23:29:00"),
    written("another form", "RFC 3261 §20.17", "Sun Nov  6 08:49:37 1994", "2010-11-13T23:29:00Z"),
    written("unknown day", _GRAMMAR, f"Xyz, {_IN_1994}", f"Sam, {_IN_1994}"),
    written("unknown month", _GRAMMAR, "Sat, 13 Nob 2010 23:29:00 GMT"),
    written(
        "no such day",
        _GRAMMAR,
        "Sat, 31 Feb 2010 23:29:00 GMT",
        "Sat, 00 Nov 2010 23:29:00 GMT",
        "Sat, 13 Nov 2010 24:00:00 GMT",
    ),
    written("day of one digit", _GRAMMAR, "Sat, 6 Nov 2010 23:29:00 GMT"),
)
"""Every fault of Date: §20.17, §25.1."""
