"""A call by SIP, and what can be wrong with one: rule by rule, with the packet to blame.

Each case is (rule, scene, number of the packet).
"""

from support.lint.scene import A, B, Scene

SDP = (
    b"v=0\r\no=- 1 %d IN IP4 192.0.2.%d\r\ns=-\r\nc=IN IP4 192.0.2.%d\r\nt=0 0\r\n"
    b"m=audio %d RTP/AVP %s\r\na=%s\r\n"
)


def sdp(host, *, version=1, port=20000, formats="0 8", direction="sendrecv", more=b""):
    """A description of audio at 192.0.2.`host`."""
    values = version, host, host, port, formats.encode(), direction.encode()
    return SDP % values + more


OFFER, ANSWER = sdp(1), sdp(2, formats="0")


def message(start, fields, body=b"", drop=(), length=None, more=""):
    """A message of these headers, without those of `drop`."""
    kept = {name: value for name, value in fields.items() if name not in drop and value}
    if body:
        kept["Content-Type"] = "application/sdp"
    if "Content-Length" not in drop:
        kept["Content-Length"] = str(len(body) if length is None else length)
    lines = [start, *(f"{name}: {value}" for name, value in kept.items())]
    return "".join(f"{line}\r\n" for line in lines).encode() + more.encode() + b"\r\n" + body


def headers(branch, cseq, from_tag, to_tag, contact, call_id="1@a", via="UDP 192.0.2.1"):
    """The headers of requests, and of responses but for Max-Forwards."""
    return {
        "Via": f"SIP/2.0/{via};branch={branch}",
        "Max-Forwards": "70",
        "From": f"<sip:a@192.0.2.1>{from_tag and ';tag=' + from_tag}",
        "To": f"<sip:b@192.0.2.2>{to_tag and ';tag=' + to_tag}",
        "Call-ID": call_id,
        "CSeq": cseq,
        "Contact": contact,
    }


def request(
    method, branch, number, *, to_tag="b", tag="a", uri="sip:b@192.0.2.2", cseq=None, **more
):
    """A request of A's; `more` are for `message` and `headers`."""
    given = {name: more.pop(name) for name in ("call_id", "via") if name in more}
    contact = more.pop("contact", "<sip:a@192.0.2.1>" if method == "INVITE" else "")
    cseq = cseq or f"{number} {method}"
    fields = headers(f"z9hG4bK{branch}", cseq, tag, to_tag, contact, **given)
    fields |= more.pop("change", {})
    return message(f"{method} {uri} SIP/2.0", fields, **more)


def response(status, branch, cseq, *, to_tag="b", tag="a", **more):
    """A response of B's to a request of that branch and CSeq."""
    given = {name: more.pop(name) for name in ("call_id", "via") if name in more}
    is_contact = cseq.endswith("INVITE") and status < 300
    contact = more.pop("contact", "<sip:b@192.0.2.2>" if is_contact else "")
    fields = headers(f"z9hG4bK{branch}", cseq, tag, to_tag, contact, **given)
    fields |= more.pop("change", {})
    return message(f"SIP/2.0 {status} Text", fields, drop=("Max-Forwards",), **more)


PARTS = {
    "invite": (True, lambda **m: request("INVITE", 1, 1, **{"to_tag": "", "body": OFFER} | m)),
    "ringing": (False, lambda **m: response(180, 1, "1 INVITE", **m)),
    "ok": (False, lambda **m: response(200, 1, "1 INVITE", **{"body": ANSWER} | m)),
    "ack": (True, lambda **m: request("ACK", 2, 1, **m)),
    "bye": (True, lambda **m: request("BYE", 3, 2, **m)),
    "bye_ok": (False, lambda **m: response(200, 3, "2 BYE", **m)),
}


def call(scene=None, *, only=None, **changes):
    """A call of six messages; a change replaces arguments, octets, or omits one by None."""
    scene = scene or Scene()
    for name, (is_ours, make) in PARTS.items():
        change = changes.get(name, {})
        if change is None or (only and name not in only):
            continue
        data = change if isinstance(change, bytes) else make(**change)
        scene.udp(*((A, B) if is_ours else (B, A)), data, step=0.1)
    return scene


def one(data, *, ours=True):
    """A scene of one message."""
    return Scene().udp(*((A, B) if ours else (B, A)), data)


def pair(method, status, **changes):
    """A request out of dialogs, and its response."""
    scene = one(request(method, 9, 1, to_tag=""))
    return scene.udp(B, A, response(status, 9, f"1 {method}", **changes))


def repeated(method, *gaps):
    """A request that is sent again and again."""
    scene = Scene().udp(A, B, request(method, 9, 1, to_tag=""))
    for gap in gaps:
        scene.wait(gap).udp(A, B, request(method, 9, 1, to_tag=""))
    return scene


def refused(**ack):
    """A call that B refuses."""
    scene = call(only=("invite",))
    scene.udp(B, A, response(486, 1, "1 INVITE"), step=0.1)
    return scene.udp(A, B, request("ACK", **{"branch": 1, "number": 1} | ack))


def cancelled(*, early=False, **cancel):
    """A call that A takes back."""
    scene = call(only=("invite",) if early else ("invite", "ringing"))
    data = request("CANCEL", **{"branch": 1, "number": 1, "to_tag": ""} | cancel)
    return scene.udp(A, B, data)


def streamed(*pieces):
    """SIP by TCP."""
    return Scene().tcp(A, B, *pieces)


RELIABLE = {"change": {"Require": "100rel", "RSeq": "7"}}
ASKS = {"change": {"Supported": "100rel"}}
ROUTE = {"change": {"Record-Route": "<sip:p@192.0.2.3;lr>"}}
TWO = sdp(1, more=b"m=video 30000 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\n")
INVITE = PARTS["invite"][1]()
TCP_INVITE = request("INVITE", 1, 1, to_tag="", via="TCP 192.0.2.1", body=OFFER)

MESSAGES = [
    ("sip-syntax", one(request("OPTIONS", 1, 1, change={"Date": "tomorrow"})), 1),
    ("sip-missing-header", one(request("OPTIONS", 1, 1, drop=("Call-ID",))), 1),
    ("sip-missing-header", one(request("OPTIONS", 1, 1, drop=("Max-Forwards",))), 1),
    ("sip-cseq-method", one(request("OPTIONS", 1, 1, cseq="1 BYE")), 1),
    ("sip-content-length", one(request("OPTIONS", 1, 1, length=4)), 1),
    ("sip-content-length", call(invite={"length": 10}), 1),
    ("sip-no-length", streamed(request("OPTIONS", 1, 1, drop=("Content-Length",))), 3),
    ("sip-branch", one(request("OPTIONS", 1, 1, change={"Via": "SIP/2.0/UDP a;branch=1"})), 1),
    ("sip-from-tag", one(request("OPTIONS", 1, 1, to_tag="", tag="")), 1),
    ("sip-contact", call(invite={"contact": ""}), 1),
    ("sip-contact", call(ok={"contact": ""}), 3),
    ("sip-challenge", pair("OPTIONS", 401), 2),
    ("sip-challenge", pair("OPTIONS", 407, change={"WWW-Authenticate": "Digest a=b"}), 2),
    ("sip-allow", pair("OPTIONS", 405), 2),
    ("sip-unsupported", pair("OPTIONS", 420), 2),
]
TRANSACTIONS = [
    ("sip-response-alone", one(response(200, 8, "1 OPTIONS"), ours=False), 1),
    ("sip-response-differs", call(ok={"tag": "z"}), 3),
    ("sip-response-differs", call(ok={"call_id": "2@a"}), 3),
    ("sip-to-tag", call(ringing={"to_tag": ""}), 2),
    ("sip-repeated-early", repeated("INVITE", 0.5, 0.5), 3),
    ("sip-repeated-early", repeated("OPTIONS", 0.1), 2),
    ("sip-repeated-on-stream", streamed(TCP_INVITE).wait(1).tcp(A, B, TCP_INVITE), 4),
    (
        "sip-repeated-after-response",
        call(only=("invite", "ringing")).wait(1).udp(A, B, INVITE),
        3,
    ),
    ("sip-after-final", refused().udp(B, A, response(180, 1, "1 INVITE")), 4),
    ("sip-unanswered", repeated("OPTIONS", 0.5, 1, 2), 1),
    ("sip-unanswered", pair("OPTIONS", 100).end(), 1),
    ("sip-bye-unanswered", call(bye_ok=None).end(), 5),
    ("sip-no-ack", call(ack=None, bye=None, bye_ok=None).end(), 3),
    ("sip-no-ack", one(INVITE).udp(B, A, response(486, 1, "1 INVITE")).end(), 2),
    ("sip-ack-branch", refused(branch=7), 3),
    ("sip-ack-branch", call(ack=request("ACK", 1, 1)), 4),
    ("sip-ack-cseq", call(ack=request("ACK", 2, 3)), 4),
    ("sip-ack-cseq", refused(number=4), 3),
    ("sip-cancel-alone", cancelled(branch=5), 3),
    ("sip-cancel-early", cancelled(early=True), 2),
    ("sip-cancel-differs", cancelled(number=2), 3),
    ("sip-cancel-differs", cancelled(uri="sip:c@192.0.2.2"), 3),
]
DIALOGS = [
    ("sip-cseq", call(bye=request("BYE", 3, 1)), 5),
    ("sip-tag-changed", call(bye={"to_tag": "x"}), 5),
    ("sip-route", call(ok=ROUTE | {"body": ANSWER}), 4),
    ("sip-target", call(bye={"uri": "sip:other@192.0.2.2"}), 5),
    ("sip-after-bye", call().udp(A, B, request("INFO", 4, 3)), 7),
    ("sip-rseq", call(invite=ASKS, ringing={"change": {"Require": "100rel"}}), 2),
    ("sip-100rel-unasked", call(ringing=RELIABLE), 2),
    ("sip-no-prack", call(invite=ASKS, ringing=RELIABLE).end(), 2),
]
OFFERS = [
    ("sdp-syntax", call(invite={"body": b"v=0\r\nm=audio\r\n"}), 1),
    ("sdp-no-offer", call(invite={"body": b""}, ok={"body": b""}), 3),
    ("sdp-no-answer", call(ok={"body": b""}), 3),
    ("sdp-no-answer", call(invite={"body": b""}), 4),
    ("sdp-unasked-answer", call(ack={"body": OFFER}), 4),
    ("sdp-media-count", call(invite={"body": TWO}), 3),
    ("sdp-media-order", call(ok={"body": sdp(2).replace(b"audio", b"video")}), 3),
    ("sdp-formats", call(invite={"body": sdp(1, formats="8")}), 3),
    ("sdp-direction", call(invite={"body": sdp(1, direction="sendonly")}), 3),
    ("sdp-times", call(ok={"body": ANSWER.replace(b"t=0 0", b"t=1 0")}), 3),
    ("sdp-zero-port", call(invite={"body": sdp(1, port=0)}), 3),
    (
        "sdp-media-removed",
        call(invite={"body": TWO}, only=("invite", "ringing", "ok", "ack")).udp(
            A, B, request("INVITE", 5, 2, body=sdp(1, version=2))
        ),
        5,
    ),
    (
        "sdp-version",
        call(only=("invite", "ringing", "ok", "ack")).udp(
            A, B, request("INVITE", 5, 2, body=sdp(1, port=20002))
        ),
        5,
    ),
    ("sdp-odd-port", call(invite={"body": sdp(1, port=20001)}), 1),
]
CASES = [*MESSAGES, *TRANSACTIONS, *DIALOGS, *OFFERS]
GOOD = {
    "call": call().end(),
    "refused": refused().end(),
    "cancelled": cancelled()
    .udp(B, A, response(200, 1, "1 CANCEL"))
    .udp(B, A, response(487, 1, "1 INVITE"))
    .udp(A, B, request("ACK", 1, 1))
    .end(),
    "repeated": repeated("INVITE", 0.5, 1.0).udp(B, A, response(100, 9, "1 INVITE")),
    "by stream": streamed(TCP_INVITE[:50], TCP_INVITE[50:] + b"\r\n\r\n"),
    "late offer": call(invite={"body": b""}, ok={"body": OFFER}, ack={"body": ANSWER}),
    "route": call(
        ok=ROUTE | {"body": ANSWER},
        ack={"change": {"Route": "<sip:p@192.0.2.3;lr>"}},
        bye={"change": {"Route": "<sip:p@192.0.2.3;lr>"}},
    ),
    "reliable": call(only=("invite",), invite=ASKS)
    .udp(B, A, response(183, 1, "1 INVITE", **RELIABLE))
    .udp(A, B, request("PRACK", 6, 2, change={"RAck": "7 1 INVITE"}))
    .udp(B, A, response(200, 6, "2 PRACK")),
    "another offer": call(only=("invite", "ringing", "ok", "ack")).udp(
        A, B, request("INVITE", 5, 2, body=sdp(1, version=2, port=20002))
    ),
}
