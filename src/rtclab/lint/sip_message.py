"""Single SIP messages: whether each can be read, and has what it must have.

Own design: the describers of `rtclab.explain` find the octet that the codec refuses, and the
section behind it; the rest are rules of RFC 3261 §8.1.1 and §8.2.6 that the codec leaves to others.
"""

import re
from dataclasses import dataclass
from typing import Final

from p2psip.errors import SipError
from p2psip.sip.message import (
    Message,
    Request,
    Response,
    check_request,
    check_response,
    parse_message,
)
from rtclab.explain import sip
from rtclab.explain.fields.context import Context
from rtclab.explain.fields.field import Field, Span, counted
from rtclab.explain.sip import SIP_START
from rtclab.lint.findings.finding import Findings
from rtclab.lint.findings.packet import WEBSOCKET, SeenPacket

COOKIE: Final = "z9hG4bK"  # Source: RFC 3261 §8.1.1.7
_WS: Final = "WS", "WSS"  # Source: RFC 7118 §5.1; WSS where a proxy has taken TLS off
_LENGTH: Final = re.compile(rb"(?im)^(?:content-length|l)[ \t]*:[ \t]*(\d+)[ \t]*\r?$")
_RULES: Final = {
    "CSeq Of Another Method": "sip-cseq-method",
    "Body Shorter Than Content-Length": "sip-content-length",
}


@dataclass(frozen=True, slots=True)
class HeardMessage:
    """A message that can be read, and the packet that ended it.  Own design."""

    packet: SeenPacket
    data: bytes
    message: Message

    @property
    def is_reliable(self) -> bool:
        """Whether it came by a stream."""
        return self.packet.segment is not None

    @property
    def label(self) -> str:
        """The name of this message in a diagram."""
        message = self.message
        sdp = " (SDP)" if message.content_type == "application/sdp" and message.body else ""
        if isinstance(message, Request):
            return f"{message.method}{sdp}"
        return f"{message.status} {message.reason}{sdp}"


def announced_length(head: bytes) -> int | None:
    """Read Content-Length as framing must, whatever else the head holds: RFC 3261 §20.14."""
    found = _LENGTH.search(head)
    return int(found[1]) if found and len(found[1]) < 10 else None


def read_message(packet: SeenPacket, data: bytes, findings: Findings) -> HeardMessage | None:
    """Read a message, and judge it by itself; None if it cannot be used: RFC 3261 §8.1.1."""
    _refusals(packet, data, findings)
    try:
        message = parse_message(data)
        if isinstance(message, Request):
            check_request(message)
        else:
            check_response(message)
    except SipError:
        return None
    heard = HeardMessage(packet, data, message)
    _judge_length(heard, findings)
    if isinstance(message, Request):
        _judge_request(packet, message, findings)
    else:
        _judge_response(packet, message, findings)
    return heard


def _refusals(packet: SeenPacket, data: bytes, findings: Findings) -> None:
    """Report what the codec refuses, at the octets where it stands.

    What does not begin as a message does is one mistake, whatever else it lacks.
    """
    if not SIP_START.match(data):
        what = f"no message, but {_shown(data)}"
        findings.add("sip-syntax", packet, what, citation="RFC 3261 §7")
        return
    field = sip.message(Span.all(data), Context())
    body = data.find(b"\r\n\r\n")
    wrong = [each for each in field.walk() if each.fault is not None]
    inner = {each.fault.reason for each in wrong if each.fault and each is not field}
    for each in wrong:
        if each.fault is None or (each is field and each.fault.reason in inner):
            continue
        _report(packet, each, body, findings)


def _shown(data: bytes) -> str:
    """Give the first line of a text, or the size of anything else."""
    line = data.strip(b"\r\n").split(b"\r\n")[0].decode("latin-1")
    is_text = line.isascii() and line.isprintable()
    return f'"{line[:40]}"' if is_text else counted(len(data), "octet")


def _report(packet: SeenPacket, field: Field, body: int, findings: Findings) -> None:
    assert field.fault is not None
    reason, citation = field.fault.reason, field.fault.citation
    if reason.startswith("Missing ") and reason != "Missing Empty Line":
        findings.add("sip-missing-header", packet, f"{field.name}: {reason}", citation=citation)
        return
    is_body = 0 <= body < field.start
    rule = _RULES.get(reason, "sdp-syntax" if is_body else "sip-syntax")
    what = f"{field.name}: {reason}, octets {field.start} to {field.end}"
    findings.add(rule, packet, what, citation=citation.partition(" [")[0])


def _judge_length(heard: HeardMessage, findings: Findings) -> None:
    """Compare Content-Length with a datagram: RFC 3261 §18.3."""
    head, _, body = heard.data.lstrip(b"\r\n").partition(b"\r\n\r\n")
    length = announced_length(head)
    if heard.is_reliable or length is None or length >= len(body):
        return
    more = len(body) - length
    findings.add("sip-content-length", heard.packet, f"{more} octets behind the announced body")


def _judge_request(packet: SeenPacket, request: Request, findings: Findings) -> None:
    """Check the headers that the sender of a request must write: RFC 3261 §8.1.1."""
    method = request.method
    if "Max-Forwards" not in request.headers:
        what = f"{method}: Missing Max-Forwards"
        findings.add("sip-missing-header", packet, what, citation="RFC 3261 §8.1.1.6")
    if not request.from_.tag:
        findings.add("sip-from-tag", packet, f"{method} without a tag in From")
    branch = request.via.branch
    if branch is None or not branch.startswith(COOKIE):
        findings.add("sip-branch", packet, f"{method} with branch {branch or '(none)'}")
    if packet.carrier == WEBSOCKET and request.via.transport not in _WS:
        findings.add("ws-via", packet, f"{method} with Via: {request.via.transport}")
    if method in ("INVITE", "SUBSCRIBE", "REFER") and not request.contacts:
        findings.add("sip-contact", packet, f"{method} without a Contact")


def _judge_response(packet: SeenPacket, response: Response, findings: Findings) -> None:
    """Check the headers that the status of a response requires: RFC 3261 §21."""
    headers, status = response.headers, response.status
    what = f"{status} {response.reason} to {response.cseq.method}"
    if status > 100 and not response.to.tag:
        findings.add("sip-to-tag", packet, f"{what} without a tag in To")
    challenge = {401: "WWW-Authenticate", 407: "Proxy-Authenticate"}.get(status)
    if challenge and challenge not in headers:
        findings.add("sip-challenge", packet, f"{what} without {challenge}")
    if status == 405 and "Allow" not in headers:
        findings.add("sip-allow", packet, f"{what} without Allow")
    if status == 420 and "Unsupported" not in headers:
        findings.add("sip-unsupported", packet, f"{what} without Unsupported")
    if status // 100 == 2 and response.cseq.method == "INVITE" and not response.contacts:
        citation = "RFC 3261 §12.1.1"
        findings.add("sip-contact", packet, f"{what} without a Contact", citation=citation)
