"""Session descriptions that break the grammar, one fault at a time.

Own design: `p2psip.strategies.faults` says why faults are drawn one at a time.
The clauses are of RFC 8866 §5 and §9.  A strict reader refuses each of them; that of a call passes
over most of them.

    >>> from hypothesis import given
    >>> @given(broken(VALUE_FAULTS))
    ... def test_refused(drawn):
    ...     fault, octets = drawn
    ...     with pytest.raises(RemoteError):
    ...         SessionDescription.parse(octets, strict=True)
"""

from collections.abc import Callable
from typing import Final, TypeAlias

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from p2psip.sdp.session import Connection, SessionDescription
from p2psip.strategies.faults import MediaFault, broken
from p2psip.strategies.sdp import media, origins, texts, timings

_Lines: TypeAlias = list[bytes]
_SHORT: Final = st.builds(  # what surrounds a fault, and is right
    SessionDescription,
    origin=origins(),
    name=texts(),
    connection=st.just(Connection.to("192.0.2.1")),
    times=timings().map(lambda timing: (timing,)),
    media=st.lists(media(), max_size=1).map(tuple),
).map(bytes)


def broken_sessions() -> SearchStrategy[bytes]:
    """Descriptions with one fault of any kind: RFC 8866 §5, §9."""
    drawn = (
        broken(SECTION_FAULTS) | broken(KIND_FAULTS) | broken(PLACE_FAULTS) | broken(VALUE_FAULTS)
    )
    return drawn.map(lambda pair: pair[1])


def _fault(name: str, section: str, spoil: Callable[[_Lines], _Lines]) -> MediaFault:
    def spoilt(data: bytes) -> bytes:
        return b"\r\n".join([*spoil(data.split(b"\r\n")[:-1]), b""])

    return MediaFault(name, f"RFC 8866 §{section}", _SHORT.map(spoilt))


def _without(letter: bytes) -> Callable[[_Lines], _Lines]:
    return lambda lines: [line for line in lines if line[:2] != letter]


def _last(*added: bytes) -> Callable[[_Lines], _Lines]:
    """Add lines, the last of which stand in the last section."""
    return lambda lines: [*lines, *added]


def _in_stream(*added: bytes) -> Callable[[_Lines], _Lines]:
    return _last(b"m=audio 9 RTP/AVP 0", b"c=IN IP4 192.0.2.1", *added)


def _instead(*added: bytes) -> Callable[[_Lines], _Lines]:
    """Put lines where the session's own of that letter stand, or would."""
    order = b"vosiuepcbtrzkam"
    place = order.index(added[0][0])

    def spoil(lines: _Lines) -> _Lines:
        end = next((at for at, line in enumerate(lines) if line[:2] == b"m="), len(lines))
        top = lines[:end]
        before = [line for line in top if order.index(line[0]) < place]
        after = [line for line in top if order.index(line[0]) > place and line[0] not in b"rz"]
        return [*before, *added, *after, *lines[end:]]

    return spoil


SECTION_FAULTS: Final = (
    _fault("no version", "5.1", _without(b"v=")),
    _fault("version 1", "5.1", _instead(b"v=1")),
    _fault("version of letters", "9", _instead(b"v=zero")),
    _fault("two versions", "9", _instead(b"v=0", b"v=0")),
    _fault("no origin", "5.2", _without(b"o=")),
    _fault("two origins", "9", lambda lines: [*lines[:2], *lines[1:]]),
    _fault("two titles of a stream", "9", _in_stream(b"i=a", b"i=b")),
    _fault("two connections", "9", _instead(b"c=IN IP6 ::1", b"c=IN IP6 ::2")),
)
"""Every fault of lines that are there too rarely or too often: RFC 8866 §5, §9."""

KIND_FAULTS: Final = (
    _fault("unknown letter", "5", _last(b"x=1")),
    _fault("letter in capitals", "5", _last(b"M=audio 1 RTP/AVP 0")),
    _fault("no letter", "5", _last(b"=1")),
    _fault("no equals sign", "5", _last(b"audio")),
    _fault("space before the equals sign", "5", _last(b"a =sendrecv")),
    _fault("Nul", "9", _last(b"a=x:\x00")),
    _fault("line of the session in a stream", "5", _in_stream(b"e=j.doe@example.com")),
)
"""Every fault of lines of no kind, or of none that may stand there: RFC 8866 §5."""

PLACE_FAULTS: Final = (
    _fault("origin of five words", "5.2", _instead(b"o=- 1 1 IN IP4")),
    _fault("session-id of letters", "5.2", _instead(b"o=- x 1 IN IP4 192.0.2.1")),
    _fault("connection of two words", "5.7", _instead(b"c=IN IP4")),
    _fault("hops of letters", "5.7", _instead(b"c=IN IP4 233.252.0.1/x")),
    _fault("IPv4 address with three numbers", "5.7", _instead(b"c=IN IP4 233.252.0.1/1/2/3")),
    _fault("IPv6 address with two numbers", "5.7", _instead(b"c=IN IP6 ff00::1/1/2")),
)
"""Every fault in the value of `o=` and `c=`: RFC 8866 §5.2, §5.7."""

VALUE_FAULTS: Final = (
    _fault("bandwidth without a colon", "5.8", _instead(b"b=AS")),
    _fault("bandwidth below zero", "9", _instead(b"b=AS:-1")),
    _fault("one time", "5.9", _instead(b"t=0")),
    _fault("time below zero", "9", _instead(b"t=-3724394400 0")),
    _fault("attribute without a name", "5.13", _last(b"a=:x")),
    _fault("stream of three words", "5.14", _last(b"m=audio 9 RTP/AVP")),
    _fault("port below zero", "9", _last(b"m=audio -1 RTP/AVP 0")),
    _fault("port of letters", "9", _last(b"m=audio x RTP/AVP 0")),
    _fault("no number of ports", "5.14", _last(b"m=audio 9/ RTP/AVP 0")),
)
"""Every fault in the value of another line: RFC 8866 §5.8 to §5.14."""
