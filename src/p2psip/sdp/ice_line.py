"""The ICE of a media line: its credentials and candidates, and whether they fit its address.

Implements RFC 8839 §4.2, §5.2 to §5.4 and §5.6.

Own design: candidates stay text here, since `p2psip.nat` reads and writes them.

    >>> from dataclasses import replace
    >>> from p2psip.sdp.line import Connection, Origin
    >>> line = IceLine("8hhY", "asd88fgpdd777uzjYhagZg", ("1 1 UDP 9 192.0.2.1 4000 typ host",))
    >>> said = MediaDescription("audio", 4000, "RTP/AVP", ("0",), attributes=line.attributes())
    >>> session = SessionDescription(Origin(), connection=Connection.to("192.0.2.1"), media=(said,))
    >>> IceLine.read(said, session) == line
    True
    >>> IceLine.read(replace(said, port=4002), session).is_mismatched
    True
"""

import ipaddress
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Self

from p2psip.errors import RemoteError
from p2psip.sdp.attributes import connection
from p2psip.sdp.line import Attribute, Attributes, find_all, is_unspecified, number
from p2psip.sdp.session import MediaDescription, SessionDescription

OPTION: Final = "ice2"  # Source: §4.2.5
DISCARD: Final = 9  # the port of a line whose address comes by ICE.  Source: §4.2.5
MISMATCH: Final = Attribute("ice-mismatch")  # Source: §5.3
MAX_CANDIDATES: Final = 128  # Own design: read of one line; others say some ten

HostPort = tuple[str, int]


@dataclass(frozen=True, slots=True)
class IceLine:
    """The ICE of one line: §4.2; `candidates` are values of the attribute, unread.

    `remote_candidates` are those of the other end that its author has nominated, for RTP and for
    RTCP at a port of its own.  A line without `is_modern` follows RFC 5245.  `is_mismatched` means
    that the default destination is not among the candidates, of this line or of ours as the peer
    says; then there is no ICE.
    """

    ufrag: str
    password: str
    candidates: tuple[str, ...] = ()
    remote_candidates: tuple[HostPort, ...] = ()
    is_lite: bool = False
    is_modern: bool = True
    is_mismatched: bool = False

    @classmethod
    def read(cls, line: MediaDescription, session: SessionDescription) -> Self | None:
        """Read a line, None for one without ICE: §4.2.5."""
        ufrag, password = (of_either(line, session, name) for name in ("ice-ufrag", "ice-pwd"))
        is_mismatched = line.attribute(MISMATCH.name) is not None
        if not ufrag or not password:
            return cls("", "", is_mismatched=True) if is_mismatched else None
        candidates = (*find_all(line.attributes, "candidate"),)[:MAX_CANDIDATES]
        options = of_either(line, session, "ice-options") or ""
        return cls(
            ufrag,
            password,
            candidates,
            tuple(_remote_candidates(line.attribute("remote-candidates") or "")),
            session.attribute("ice-lite") is not None,
            OPTION in options.split(),
            is_mismatched or not _fits(line, session, candidates),
        )

    def attributes(self) -> Attributes:
        """Write the ICE of a full agent: §4.3.1, §4.4.1.2.2.

        Departs from RFC 8839 §4.3.1 [pacing-is-said]: checks are 50 ms apart, which is the default
        of a line without pacing.
        Departs from RFC 8839 §4.3.2 [pacing-is-answered]: the same holds for an answer.
        """
        numbered = enumerate(self.remote_candidates, 1)
        remote = " ".join(f"{number} {host} {port}" for number, (host, port) in numbered)
        return (
            Attribute("ice-ufrag", self.ufrag),
            Attribute("ice-pwd", self.password),
            # §4.3.1 [offer-has-credentials], §4.3.2 [answer-has-credentials]
            # §4.2.1.5 [says-ice2], §4.2.5 [says-ice2]
            # §4.4.1.1.1 [options-stay], §4.4.2.1 [answer-options-stay]
            Attribute("ice-options", OPTION),
            *(Attribute("candidate", each) for each in self.candidates),
            *((Attribute("remote-candidates", remote),) if remote else ()),
        )


def of_either(line: MediaDescription, session: SessionDescription, name: str) -> str | None:
    """An attribute of a line, else of the session: §5.4."""
    of_line = line.attribute(name)
    # §4.4.1.1.1 [place-is-no-restart]
    return session.attribute(name) if of_line is None else of_line


def _fits(line: MediaDescription, session: SessionDescription, candidates: tuple[str, ...]) -> bool:
    """Whether the default destination of a line is a candidate, or says nothing: §4.2.5."""
    where = connection(line, session)
    if where is None or is_unspecified(where.address):
        return True  # §4.2.5 [nowhere-is-no-mismatch]
    try:
        default = ipaddress.ip_address(where.address), line.port
    except ValueError:
        return True  # §4.2.5 [names-are-no-mismatch]
    return default in set(_places(candidates))


def _places(candidates: tuple[str, ...]) -> Iterator[tuple[object, int]]:
    """The addresses of candidates for RTP."""
    for value in candidates:
        match value.split():
            case [_, "1", _, _, host, port, *_]:
                try:
                    yield ipaddress.ip_address(host), number(port)
                except (ValueError, RemoteError):
                    continue


def _remote_candidates(value: str) -> Iterator[HostPort]:
    """Read the value of `a=remote-candidates`, in the order of its components: §5.2."""
    words = value.split()
    for _, host, port in sorted(zip(words[::3], words[1::3], words[2::3], strict=False)):
        try:
            yield host, number(port)
        except RemoteError:
            continue
