"""Conversations of two user agents, message by message, as a referee takes them."""

from p2psip.sip.message import parse_message
from rtclab.oracle.referee.traced import Traced

A, B = "10.0.0.1:5060", "10.0.0.2:5060"


def sdp(host, version=1, media=("audio 5004 RTP/AVP 0",), more="", times="0 0"):
    """A description by the user at 10.0.0.`host`; `more` stands below the last line."""
    head = f"v=0\r\no=- {host} {version} IN IP4 10.0.0.{host}\r\ns=-\r\nc=IN IP4 10.0.0.{host}\r\n"
    return head + f"t={times}\r\n" + "".join(f"m={each}\r\n" for each in media) + more


OFFER, ANSWER = sdp(1), sdp(2)
NEW_OFFER, NEW_ANSWER = sdp(1, 2, more="a=sendonly\r\n"), sdp(2, 2, more="a=recvonly\r\n")


class Conversation:
    """What a caller "a" and a callee "b" say, a quarter of a second apart, but for each `wait`.

    Numbers count up on each side.  ACK and PRACK belong to the last INVITE of their side.
    """

    def __init__(self):
        self.trace, self.at = [], 0.0
        self._numbers, self._invites, self._refused = {"a": 0, "b": 0}, {}, set()

    def wait(self, seconds):
        self.at += seconds
        return self

    def ask(self, side, method, body="", *, fields=(), number=None, kind="application/sdp"):
        """A request of one side; the first one makes the dialog."""
        if number is None and method != "ACK":
            self._numbers[side] += 1
        number = number or (self._invites[side] if method == "ACK" else self._numbers[side])
        if method == "INVITE":
            self._invites[side] = number
        start = f"{method} sip:{'b' if side == 'a' else 'a'}@10.0.0.9 SIP/2.0"
        return self._say(side, side, start, number, method, body, kind, fields)

    def answer(self, side, status, method="INVITE", body="", *, fields=(), number=None, kind=None):
        """A response of one side, to the last request of the other."""
        asker = "b" if side == "a" else "a"
        number = number or self._numbers[asker]
        kind = kind or "application/sdp"
        if method == "INVITE" and status >= 300:
            self._refused.add((asker, number))
        return self._say(asker, side, f"SIP/2.0 {status} X", number, method, body, kind, fields)

    def reliable(self, status, rseq, body="", **options):
        """A provisional response of b that wants a PRACK."""
        fields = ["Require: 100rel", f"RSeq: {rseq}"]
        return self.answer("b", status, "INVITE", body, fields=fields, **options)

    def prack(self, rseq, body="", **options):
        """The PRACK of a for it."""
        fields = [f"RAck: {rseq} {self._invites['a']} INVITE"]
        return self.ask("a", "PRACK", body, fields=fields, **options)

    def call(self, offer=OFFER, answer=ANSWER):
        """A call from its INVITE to its ACK."""
        return self.ask("a", "INVITE", offer).answer("b", 200, body=answer).ask("a", "ACK")

    def _say(self, asker, side, start, number, method, body, kind, fields):
        hosts = {"a": "10.0.0.1", "b": "10.0.0.2"}
        ends = {each: f"<sip:{each}@{host}>" for each, host in hosts.items()}
        is_first = method == "INVITE" and number == 1 and asker == side == "a"
        tag = "" if is_first else f";tag={'b' if asker == 'a' else 'a'}"
        is_own = method != "ACK" or (asker, number) in self._refused
        branch = f"z9hG4bK-{asker}-{number}-{'' if is_own else 'ack'}"
        lines = [
            start,
            f"Via: SIP/2.0/TCP {hosts[asker]};branch={branch}",
            f"From: {ends[asker]};tag={asker}",
            f"To: {ends['b' if asker == 'a' else 'a']}{tag}",
            "Call-ID: call",
            f"CSeq: {number} {method}",
            f"Contact: <sip:{side}@10.0.0.9>",
            *fields,
            *([f"Content-Type: {kind}"] if body else ()),
            f"Content-Length: {len(body.encode())}",
        ]
        octets = "\r\n".join([*lines, "", body]).encode()
        source, target = (A, B) if side == "a" else (B, A)
        self.trace.append(Traced(self.at, source, target, "TCP", parse_message(octets)))
        self.at += 0.25
        return self
