"""What is wrong with a call and what to do, by how it has ended and what its media do.

Own design: the operator's words for the reasons in the log, as `siprtmp doctor` has them for a
machine.  `code` names the kind of fault for programs.
"""

import re
from collections.abc import Collection, Mapping
from enum import Enum
from typing import Final, NamedTuple

Row = dict[str, object]


class MissingMedia(Enum):
    """What is missing of the media of a call that is up."""

    NONE = ""
    NOTHING_HEARD = "no packet of the phone has arrived"
    NO_LONGER_HEARD = "the phone has become silent"
    NOTHING_SENT = "no packet was sent to the phone"


class _Advice(NamedTuple):
    """A fault: its kind, what it means, and what to do; "" for `why` repeats the reason."""

    code: str
    do: str
    why: str = ""


_NAT: Final = (
    "look whether UDP reaches the ports of --rtp-ports: name the router's address by --external-ip "
    "or --stun, relay by --turn, and let the firewall pass them"
)
_EXTRA: Final = "install the extra `transcode`, or allow the phone a codec that both have"
# Beginnings of reasons, as patterns; the first that fits counts.
_BY_REASON: Final[Mapping[str, _Advice]] = {
    r"\d{3} Not Found in DNS": _Advice(
        "dns",
        "look at the SRV and A records of the domain, and at /etc/resolv.conf",
        "DNS has no server for the domain that was called",
    ),
    r"\d{3} Not Reachable": _Advice(
        "port",
        "is the phone or server up, and is the port right? `siprtmp doctor sip:HOST` tries it",
        "nothing takes SIP at that address",
    ),
    r"503 No Media Port": _Advice(
        "port",
        "widen --rtp-ports, or raise the limit of descriptors",
        "no port was left for the media",
    ),
    r"503 Transport Not Supported": _Advice(
        "port", "call an address whose server takes UDP or TCP, or TLS with --sips"
    ),
    r"(415|488|606) ": _Advice(
        "codec", _EXTRA, "the two sides have no codec, or no encryption, in common"
    ),
    r"(401|407) |403 Forbidden": _Advice(
        "auth",
        "look at user, realm and password; with a trunk, those of its settings",
        "the other side does not take our credentials, or asks for some",
    ),
    r"403 Target Not Allowed": _Advice("limit", "add a pattern for it to --allow-targets"),
    r"403 Too Many": _Advice("limit", "raise --max-user-calls, or the calls of an hour"),
    r"404 No Trunk": _Advice("route", "declare a trunk whose numbers have this one"),
    r"404 |410 |484 |604 ": _Advice("address", "the address is wrong, or nobody has it there"),
    r"480 Not Registered": _Advice(
        "registration", "the phone has to register: look for its lines in the log"
    ),
    r"480 No Such User": _Advice("address", "the file of users has no such user"),
    r"480 Contact Gone": _Advice("registration", "the callee's client has disconnected"),
    r"408 |480 No Answer": _Advice(
        "silent",
        "is the phone up, and does a firewall drop SIP? `siprtmp doctor sip:HOST` tries it",
        "nothing was heard within the time",
    ),
    r"media timeout": _Advice(
        "nat", _NAT, "no packet and no answer of the phone has arrived for --media-timeout seconds"
    ),
    r"no media path": _Advice(
        "nat",
        "open the port of --webrtc for UDP, or TCP, and name the router by --external-ip",
        "the browser has not reached the port of its media",
    ),
    r"relay lost": _Advice(
        "nat", "look after the TURN server of --turn: it was restarted, or does not answer"
    ),
    r"481 ": _Advice("phone", "the phone was restarted, or has lost the call: call again"),
    r"(494|606|421) ": _Advice("certificate", "the other side wants another protection of SIP"),
    r"(500|502|503|504) ": _Advice(
        "server", "look at the log of the server that has answered so, and try again later"
    ),
    r"(416|420) ": _Advice("address", "the other side does not know such an address or extension"),
}
_BY_EVENT: Final[Mapping[str, _Advice]] = {
    "transcode-missing": _Advice("extra", "install the extra `transcode`", "a codec lacks here"),
    "sound-unsuitable": _Advice(
        "codec", _EXTRA, "the phone has not agreed to the codec that is published: it hears nothing"
    ),
    "video-unsuitable": _Advice(
        "codec",
        "publish H.264 as the phone takes it, or use --transcode-video",
        "the phone does not see the video that is published",
    ),
    "video-without-port": _Advice("port", "widen --rtp-ports", "no port was left for video"),
    "media-late": _Advice(
        "load", "look at the load of this machine and of the publisher's", "media come late"
    ),
}
_BY_SILENCE: Final[Mapping[MissingMedia, _Advice]] = {
    MissingMedia.NOTHING_HEARD: _Advice("nat", _NAT),
    MissingMedia.NO_LONGER_HEARD: _Advice(
        "nat", f"it may be muted or on hold, or the way is broken: {_NAT}"
    ),
    MissingMedia.NOTHING_SENT: _Advice(
        "publisher", "does the client publish, with audio in a codec that the phone has?"
    ),
}
_CURE: Final = "cure"


def advised(
    reason: str, events: Mapping[str, Row], silence: MissingMedia, causes: Collection[str] = ()
) -> Row:
    """Give `code`, `why` and `do`, or nothing if nothing is known to be wrong.

    `reason` is that of the end, "" before; `events` has what warnings of the log are about,
    `causes` what the Reason and Warning headers of the call have said.

    >>> advised("BYE", {}, MissingMedia.NONE)
    {}
    >>> advised("488 Not Here", {}, MissingMedia.NONE)["code"]
    'codec'
    """
    said = "; ".join((reason, *causes))
    for event, found in _BY_EVENT.items():
        if event in events:
            cure = events[event].get(_CURE)
            return _said(found, event, str(cure) if cure else found.do)
    for pattern, found in _BY_REASON.items():
        if re.match(pattern, reason):
            return _said(found, said, found.do)
    if (missing := _BY_SILENCE.get(silence)) is not None:
        return _said(missing, silence.value, missing.do)
    return {}


def _said(advice: _Advice, reason: str, do: str) -> Row:
    why = f"{advice.why} ({reason})" if advice.why else reason
    return {"code": advice.code, "why": why, "do": do}


def codes() -> Collection[str]:
    """All kinds of faults that there may be."""
    tables = (_BY_REASON, _BY_EVENT, _BY_SILENCE)
    return {each.code for table in tables for each in table.values()}
