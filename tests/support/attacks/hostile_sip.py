"""Attackers who speak SIP, by UDP: strangers, callers and phones."""

import re
import struct

from gevent import socket
from support.gateway.accounts import PASSWORD
from support.peers.process import PATIENCE

from p2psip.sip.auth import Challenge, answer
from p2psip.sip.message import parse_message
from p2psip.sip.uri import Uri

SPEEX = "m=audio {port} RTP/AVP 96\r\na=rtpmap:96 speex/16000\r\n"


class SipAttacker:
    """One UDP socket that says what it likes, and hears what becomes of it."""

    transport = "UDP"

    def __init__(self, server, host="127.0.0.1"):
        gateway, _, port = server.sip.rpartition(":")
        self.gateway, self.uri = (gateway, int(port)), f"sip:{server.sip}"
        self.socket = self.connected(host)
        self.host, self.port = self.socket.getsockname()
        self.number, self.known = 0, set()

    def connected(self, host):
        """The socket to use, at an address of this machine."""
        opened = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        opened.bind((host, 0))
        return opened

    def request(self, method, uri, *, body=b"", without=(), **fields):
        """A request as bytes; `fields` replace or add headers, underscores for hyphens."""
        self.number += 1
        branch = fields.pop("branch", f"z9hG4bK{self.port}{method}{self.number}")
        headers = {
            "Via": f"SIP/2.0/{self.transport} {self.host}:{self.port};branch={branch};rport",
            "Max-Forwards": "70",
            "From": f"<sip:mallory@evil.invalid>;tag={self.number}",
            "To": f"<{uri}>",
            "Call-ID": f"{self.port}-{self.number}",
            "CSeq": f"1 {method}",
            "Contact": f"<sip:mallory@{self.host}:{self.port}>",
        }
        if body:
            headers["Content-Type"] = "application/sdp"
        headers |= {name.replace("_", "-"): value for name, value in fields.items()}
        lines = [f"{name}: {value}" for name, value in headers.items() if name not in without]
        head = "\r\n".join([f"{method} {uri} SIP/2.0", *lines, f"Content-Length: {len(body)}"])
        return head.encode() + b"\r\n\r\n" + body

    def send(self, data):
        """Send a datagram."""
        self.socket.sendto(data, self.gateway)

    def heard(self, seconds=PATIENCE):
        """The next message, or None."""
        self.socket.settimeout(seconds)
        try:
            return self.socket.recv(65536)
        except TimeoutError:
            return None

    def news(self, seconds=PATIENCE):
        """The next message that is no copy of a request, or None.

        Whoever answers later than T1, as anybody does on a busy machine, is asked again.
        """
        while (message := self.heard(seconds)) in self.known:
            continue
        if message and not message.startswith(b"SIP/2.0"):
            self.known.add(message)
        return message

    def ask(self, method, uri, **fields):
        """Send a request; the status of its final response, or None if there is none."""
        return self.ask_raw(self.request(method, uri, **fields))

    def ask_raw(self, data, seconds=PATIENCE):
        """Send a message; the status of the next final response; failures get their ACK."""
        self.send(data)
        branch = re.search(rb"branch=[^;\r]*", data)[0]
        while answer := self.heard(seconds):
            status = int(answer[8:11]) if answer.startswith(b"SIP/2.0 ") else 0
            if status >= 200 and branch + b";" in answer:
                if data.startswith(b"INVITE") and status >= 300:
                    self.acknowledge(data, answer)
                return status
        return None

    def acknowledge(self, invite, answer):
        """The ACK of a failure: of the same branch, with the tag of the answer."""
        to = re.search(rb"\r\nTo: ([^\r]*)", answer)[0]
        head = invite.partition(b"\r\nContent-Length")[0].replace(b"INVITE", b"ACK")
        self.send(re.sub(rb"\r\nTo: [^\r]*", lambda _: to, head) + b"\r\nContent-Length: 0\r\n\r\n")


def sdp(media="m=audio 40000 RTP/AVP 0\r\n", address="127.0.0.1"):
    """A session description."""
    kind = "IP6" if ":" in address else "IP4"
    top = "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\n"
    return f"{top}c=IN {kind} {address}\r\nt=0 0\r\n{media}".encode()


NO_CALL = {  # what no call can come of: name, the body, the answers that would be right
    "nothing to hear": (sdp(""), {488}),
    "no port": (sdp("m=audio 0 RTP/AVP 0\r\n"), {488}),
    "port 99999": (sdp("m=audio 99999 RTP/AVP 0\r\n"), {400, 488}),
    "a group": (sdp(address="224.2.1.1/127"), {488}),
    "no address": (sdp(address="300.1.1.1"), {488}),
    "another family": (sdp(address="::1"), {488}),
    "type 200": (sdp("m=audio 40000 RTP/AVP 200\r\n"), {400, 488}),
    "type x": (sdp("m=audio 40000 RTP/AVP x\r\n"), {400, 488}),
    "not SDP": (b"\x00\xff" * 500, {400, 488}),
    "no lines": (b"v=0", {400, 488}),
    "long": (sdp() + b"a=" + b"x" * 60_000 + b"\r\n" + b"m=\r\n", {400, 488, 513}),
    "many lines": (sdp("m=audio 40000 RTP/AVP 99\r\n" * 2000), {400, 488, 513}),
}


class Caller(SipAttacker):
    """An attacker in a call of its own, with one RTP and one RTCP port."""

    def __init__(self, server, user):
        super().__init__(server)
        self.rtp, self.rtcp = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in "ab")
        self.rtp.bind(("127.0.0.1", 0))
        self.rtcp.bind(("127.0.0.1", 0))
        port, reports = (each.getsockname()[1] for each in (self.rtp, self.rtcp))
        self.offer = sdp(SPEEX.format(port=port) + f"a=rtcp:{reports}\r\n")
        self.user, self.tag, self.cseq = f"sip:{user}@127.0.0.1", "", 0
        self.where = ("127.0.0.1", 0)

    def within(self, method, **fields):
        """A request of the dialog."""
        if method != "ACK":
            self.cseq += 1
        to = f"<{self.user}>" + (f";tag={self.tag}" if self.tag else "")
        fixed = {"From": "<sip:mallory@evil.invalid>;tag=m", "To": to, "Call_ID": f"{self.port}"}
        fixed["CSeq"] = f"{self.cseq} {method}"
        return self.request(method, self.user, **fixed | fields)

    def call(self, client):
        """Call a rich client, who accepts."""
        self.invite = self.within("INVITE", body=self.offer)
        self.send(self.invite)
        client.expect("invited")
        merged = self.invite.replace(b"branch=z9hG4bK", b"branch=z9hG4bKother", 1)
        self.send(merged)
        while not (answer := self.heard()).startswith(b"SIP/2.0 482"):
            assert answer[8:9] == b"1"
        self.acknowledge(merged, answer)
        client.call("accept")
        while not (answer := self.heard()).startswith(b"SIP/2.0 200"):
            assert answer[8:9] == b"1" or answer[8:11] == b"482"  # again, before its ACK arrived
        self.tag = re.search(rb"\r\nTo: [^\r]*tag=([^\r;]*)", answer)[1].decode()
        self.where = ("127.0.0.1", int(re.search(rb"m=audio (\d+)", answer)[1]))
        self.send(self.within("ACK"))
        client.expect("accepted")

    def say(self, sequence, payload, *, ssrc=7, kind=96, version=2, via=None):
        """Send one RTP packet."""
        head = struct.pack(">BBHII", version << 6, kind, sequence, sequence * 320, ssrc)
        (via or self.rtp).sendto(head + payload, self.where)

    def report(self, data, via=None):
        """Send what may be RTCP."""
        (via or self.rtcp).sendto(data, (self.where[0], self.where[1] + 1))


class Callee(SipAttacker):
    """A phone that answers an INVITE as it likes."""

    def invite(self):
        """The next new INVITE; whatever else comes is answered with 200, or is an ACK."""
        while True:
            request = self.news()
            assert request is not None
            if request.startswith(b"INVITE"):
                return request
            self.settle(request)

    def settle(self, request):
        """Answer what wants an answer, as a good phone would."""
        if not request.startswith((b"ACK", b"SIP/2.0")):
            self.respond(request, "200 OK")

    def respond(self, request, status, *, tag="p", contact=True, body=b"", more=""):
        """Send a response; with the headers of the request that belong there."""
        text = request.partition(b"\r\n\r\n")[0].decode()
        lines = text.split("\r\n")[1:]
        kept = ("Via", "From", "Call-ID", "CSeq", "Record-Route")
        copied = [line for line in lines if line.startswith(kept)]
        to = next(line for line in lines if line.startswith("To:"))
        copied.append(to if "tag=" in to else f"{to};tag={tag}")
        if contact:
            copied.append(f"Contact: <sip:phone@{self.host}:{self.port}>")
        if body:
            copied.append("Content-Type: application/sdp")
        head = "\r\n".join([f"SIP/2.0 {status}", *copied])
        self.send(f"{head}\r\n{more}Content-Length: {len(body)}\r\n\r\n".encode() + body)

    def drain(self):
        """Answer what is still coming, until nothing is."""
        while request := self.heard(0.1):
            self.settle(request)


class Account(Callee):
    """An attacker, or a victim, with a name and a password at the gateway."""

    def __init__(self, server, user, host="127.0.0.1"):
        super().__init__(server, host)
        self.user, self.aor = user, f"sip:{user}@127.0.0.1"

    def proven(self, method, uri, **fields):
        """Send a request that is challenged, and again with the password; the final answer."""
        fields = {"From": f"<{self.aor}>;tag={self.user}", "Call_ID": f"{self.port}"} | fields
        data = self.request(method, uri, CSeq=f"1 {method}", **fields)
        self.send(data)
        challenged = self.final(data)
        if method == "INVITE":
            self.acknowledge(data, challenged)
        return self.send_signed(method, uri, challenged, **fields)

    def send_signed(self, method, uri, challenged, **fields):
        """The request with what answers the challenge, as it was sent."""
        response = parse_message(challenged)
        asking, answering = "WWW-Authenticate", "Authorization"
        if response.status == 407:
            asking, answering = "Proxy-Authenticate", "Proxy-Authorization"
        challenge = Challenge.parse(response.headers.values(asking)[0])
        target, body = Uri.parse(uri), fields.get("body", b"")
        proof = answer(challenge, method, target, self.user, PASSWORD, cnonce="c", nc=1, body=body)
        self.proof = {answering.replace("-", "_"): proof}
        data = self.request(method, uri, CSeq=f"2 {method}", **self.proof, **fields)
        self.send(data)
        return data

    def register(self, contact=None, status=200):
        """Be registered, at `contact` instead of the own address, or be refused with `status`."""
        contact = contact or f"<sip:{self.user}@{self.host}:{self.port}>"
        sent = self.proven("REGISTER", "sip:127.0.0.1", To=f"<{self.aor}>", Contact=contact)
        assert self.final(sent).startswith(f"SIP/2.0 {status}".encode())

    def final(self, request):
        """The final response to a request."""
        branch = re.search(rb"branch=[^;\r]*", request)[0]
        while heard := self.heard():
            if heard.startswith(b"SIP/2.0") and heard[8:9] > b"1" and branch in heard:
                return heard
        raise AssertionError("no answer")
