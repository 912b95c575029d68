"""The text of offers and answers.

Own design: descriptions are octets to the machines; here they are read and compared, where they can
be read.
"""

from collections.abc import Iterable, Iterator

from p2psip.errors import RemoteError
from p2psip.sdp.faults import SdpFault, faults_of_answer, faults_of_successor
from p2psip.sdp.session import SessionDescription
from rtclab.oracle.referee.ruling import Ruling


def of_answer(offer: bytes, answer: bytes, name: str, now: float) -> Iterator[Ruling]:
    """Compare an answer, which the message `name` has, with its offer (RFC 3264 §6)."""
    asked, said = _read(offer), _read(answer)
    if asked is not None and said is not None:
        yield from _rulings(faults_of_answer(asked, said), name, now)


def of_successor(before: bytes | None, after: bytes, name: str, now: float) -> Iterator[Ruling]:
    """Compare a description with the one in force of the same side (RFC 3264 §8)."""
    old, new = _read(before or b""), _read(after)
    if old is not None and new is not None:
        yield from _rulings(faults_of_successor(old, new), name, now)


def are_same(one: bytes, other: bytes) -> bool:
    """Whether two descriptions say the same."""
    return one == other or ((read := _read(one)) is not None and read == _read(other))


def _rulings(faults: Iterable[SdpFault], name: str, now: float) -> Iterator[Ruling]:
    return (Ruling(now, f"{name}: {each.text}", each.clause) for each in faults)


def _read(sdp: bytes) -> SessionDescription | None:
    try:
        return SessionDescription.parse(sdp)
    except RemoteError:
        return None
