"""The rules that two descriptions break together: an offer with its answer, and one with the next.

Implements RFC 3264 §6 and §8 as a rule book, for judges of what others have said; `offer_answer`
forgives some of these, since a call is better than none.

    >>> ours = "v=0\\r\\no=- 1 1 IN IP4 a.com\\r\\ns=-\\r\\nt=0 0\\r\\n"
    >>> one = SessionDescription.parse(f"{ours}m=audio 5004 RTP/AVP 0 8\\r\\n".encode())
    >>> two = SessionDescription.parse(f"{ours}m=audio 5004 RTP/AVP 18\\r\\n".encode())
    >>> [fault.text for fault in faults_of_answer(one, two)]
    ['audio 1 is answered with 18; the offer has 0, 8']
    >>> [fault.text for fault in faults_of_successor(one, two)]
    ['another description under o= version 1']
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from p2psip.sdp import attributes
from p2psip.sdp.session import MediaDescription, SessionDescription

_FITTING: Final = {  # Source: RFC 3264 §6.1
    "sendonly": ("recvonly", "inactive"),
    "recvonly": ("sendonly", "inactive"),
    "inactive": ("inactive",),
}


class SdpFault(NamedTuple):
    """A broken rule: its name, what is wrong, and the clause (RFC 3264 §6, §8)."""

    rule: str
    text: str
    clause: str


def faults_of_answer(offer: SessionDescription, answer: SessionDescription) -> Iterator[SdpFault]:
    """Compare an answer with its offer, line by line (RFC 3264 §6)."""
    if len(offer.media) != len(answer.media):
        text = f"{len(answer.media)} media answer {len(offer.media)}"
        yield SdpFault("media-count", text, "RFC 3264 §6")
    if offer.times != answer.times:
        yield SdpFault("times", "t= is not that of the offer", "RFC 3264 §6")
    for number, (asked, said) in enumerate(zip(offer.media, answer.media, strict=False), 1):
        if asked.kind != said.kind:
            text = f"medium {number} is {said.kind}, and was offered as {asked.kind}"
            yield SdpFault("media-order", text, "RFC 3264 §6.1")
        elif said.port and asked.port:
            yield from _faults_of_line(number, (asked, offer), (said, answer))
        elif said.port:
            text = f"{said.kind} {number} was offered with port 0, and got port {said.port}"
            yield SdpFault("zero-port", text, "RFC 3264 §8.2")


def faults_of_successor(
    before: SessionDescription, after: SessionDescription
) -> Iterator[SdpFault]:
    """Compare a description with the last one of the same author in this session (RFC 3264 §8)."""
    one, two = before.origin, after.origin
    if before == after or one.session_id != two.session_id or one.address != two.address:
        return  # of another author: a proxy or a transfer
    if one.version == two.version:
        text = f"another description under o= version {two.version}"
        yield SdpFault("version", text, "RFC 3264 §8")
    elif two.version < one.version:
        text = f"o= version {two.version} after {one.version}"
        yield SdpFault("version", text, "RFC 3264 §8")
    if len(after.media) < len(before.media):
        text = f"{len(after.media)} media after {len(before.media)}"
        yield SdpFault("media-removed", text, "RFC 3264 §8")


def _faults_of_line(
    number: int,
    offer: tuple[MediaDescription, SessionDescription],
    answer: tuple[MediaDescription, SessionDescription],
) -> Iterator[SdpFault]:
    asked, said = offer[0], answer[0]
    if not _names(asked) & _names(said):
        formats, offered = ", ".join(said.formats), ", ".join(asked.formats)
        text = f"{said.kind} {number} is answered with {formats}; the offer has {offered}"
        yield SdpFault("formats", text, "RFC 3264 §6.1")
    wanted, given = attributes.direction(*offer), attributes.direction(*answer)
    if given not in _FITTING.get(wanted, (given,)):
        text = f"{said.kind} {number}: {given} answers {wanted}"
        yield SdpFault("direction", text, "RFC 3264 §6.1")


def _names(media: MediaDescription) -> set[str]:
    """The formats by their encodings, since a dynamic type may differ: RFC 3264 §6.1."""
    maps = {str(each.payload_type): each for each in attributes.rtpmaps(media)}
    return {
        f"{maps[each].encoding.lower()}/{maps[each].clock_rate}" if each in maps else each
        for each in media.formats
    }
