"""Strategies for the candidates of ICE, valid and broken, for tests of any implementation.

Own design: the oracle's grammar of RFC 8839 §5.1.
"""

from typing import Final

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from p2psip.nat.ice_candidate import CandidateType, IceCandidate
from p2psip.strategies.faults import Octets, by_clause

_ICE_CHARS: Final = "ABCxyz0189+/"
_TOKENS: Final = st.from_regex(r"[a-z][a-z0-9-]{0,10}", fullmatch=True)
foundations: SearchStrategy[str] = st.text(_ICE_CHARS, min_size=1, max_size=32)
ports: SearchStrategy[int] = st.integers(0, 0xFFFF)
hosts: SearchStrategy[str] = st.one_of(
    st.ip_addresses().filter(lambda ip: not getattr(ip, "scope_id", None)).map(str),
    st.uuids().map(lambda drawn: f"{drawn}.local"),  # as browsers hide their addresses
)

_KINDS: Final = st.sampled_from(CandidateType)
_TRANSPORTS: Final = st.sampled_from(["UDP", "udp", "TCP"])
_KNOWN: Final = st.tuples(st.sampled_from(["generation", "ufrag", "network-cost"]), _TOKENS)
_MORE: Final = st.lists(_KNOWN | st.tuples(_TOKENS, _TOKENS), max_size=3)
_TCP_TYPES: Final = st.sampled_from(["active", "passive", "so"])
_RELATED: Final = st.tuples(hosts, ports)


@st.composite
def candidates(draw: DrawFn) -> IceCandidate:
    """Any candidate, of UDP or TCP, with a name or an address: RFC 8839 §5.1."""
    kind = draw(_KINDS)
    transport = draw(_TRANSPORTS)
    more = [pair for pair in draw(_MORE) if pair[0] not in ("raddr", "rport")]
    if transport == "TCP":
        more.insert(0, ("tcptype", draw(_TCP_TYPES)))
    related = None if kind is CandidateType.HOST else draw(_RELATED)
    return IceCandidate(
        draw(foundations),
        draw(st.integers(1, 256)),
        transport,
        draw(st.integers(1, 0x7FFFFFFF)),
        draw(hosts),
        draw(ports),
        kind,
        related,
        tuple(more),
    )


_VALUES: Final = candidates().map(lambda drawn: str(drawn).split())


def _joined(words: SearchStrategy[list[str]]) -> Octets:
    return words.map(lambda each: " ".join(each).encode())


def _edited(at: int, *words: str) -> Octets:
    """A candidate with another word in one place."""
    other = st.sampled_from(words)
    return _joined(st.builds(lambda all_, new: [*all_[:at], new, *all_[at + 1 :]], _VALUES, other))


CANDIDATE_FAULTS: Final = by_clause(
    {
        "RFC 8839 §5.1": {
            "cut": _joined(st.builds(lambda words, n: words[:n], _VALUES, st.integers(0, 7))),
            "foundation with another character": _edited(0, "a-b", "ä", "a.b"),
            "foundation of 33": _edited(0, "x" * 33),
            "component of none or too many": _edited(1, "0", "257", "x"),
            "priority out of range": _edited(3, "0", "2147483648", "-1", "²"),
            "port out of range": _edited(5, "65536", "-1", "+1"),
            "no typ": _edited(6, "type", "raddr"),
            "unknown type": _edited(7, "HOST", "token"),
            "name without a value": _joined(_VALUES.map(lambda words: [*words, "generation"])),
        },
    }
)
