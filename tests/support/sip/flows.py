"""Call flows step by step: phones that meet each other, or a peer that the test plays itself."""

from support.rtmfp.link import Link
from support.sip.elements import Phone, Script

from p2psip.sip.build import response_to
from p2psip.sip.headers import Headers
from p2psip.sip.message import Request, parse_message
from p2psip.sip.uri import Uri
from p2psip.ua.ua import CallState

A, B, C = "10.0.0.1", "10.0.0.2", "10.0.0.3"


SDP = "application/sdp"


def ring(call, now):
    call.ring(now)


def early(call, now):
    call.ring(now, 183, b"answer")


def pick_up(call, now):
    call.accept(b"answer", now)


def phones(answer=pick_up, weather=None, **options):
    link = Link(weather)
    return link, Phone(link, A, **options), Phone(link, B, answer, **options)


def drop(*unwanted):
    """Weather that loses one message for each of these beginnings."""
    wanted_away = list(unwanted)

    def weather(parcel, source, destination):
        for start in wanted_away:
            if parcel[1].startswith(start.encode()):
                wanted_away.remove(start)
                return ()
        return (0.01,)

    return weather


def names(link):
    """The messages sent: sender, and method, or status and the method that it answers."""
    found = []
    for _, source, _, (_, data) in link.sent:
        message = parse_message(data)
        what = message.method if isinstance(message, Request) else message.status
        about = "" if isinstance(message, Request) else f" {message.cseq.method}"
        found.append(f"{'ABC'[[A, B, C].index(source)]} {what}{about}")
    return found


def settle(link, *elements):
    """Hang up and let all time pass: nothing may be left."""
    for element in elements:
        for call in element.calls:
            call.bye(link.now)
    link.run()
    assert all(element.idle for element in elements)
    assert all(call.state is CallState.ENDED for element in elements for call in element.calls)


def established(**options):
    link, alice, bob = phones(**options)
    alice.dial(B, link.now)
    link.run(until=1.0)
    [call], [other] = alice.calls, bob.calls
    assert call.state is other.state is CallState.UP
    link.sent.clear(), alice.log.clear(), bob.log.clear()
    return link, alice, bob, call, other


def calling():
    """A phone that calls a script: the INVITE has arrived."""
    link = Link()
    alice, script = Phone(link, A), Script(link, B)
    call = alice.dial(B, 0.0)
    link.run(until=0.1)
    [invite] = script.heard
    return link, alice, script, call, invite


def accept(invite, tag="t", status=200, body=b"answer", contact=B):
    headers = [("Contact", f"<sip:{contact}>")]
    return response_to(
        invite, status, to_tag=tag, headers=headers, body=body, content_type=SDP if body else None
    )


def provisional(invite, rseq, status=183, body=b"answer", tag="t"):
    """A response that wants a PRACK."""
    headers = [("Contact", f"<sip:{B}>"), ("Require", "100rel"), ("RSeq", rseq)]
    kind = SDP if body else None
    return response_to(invite, status, to_tag=tag, headers=headers, body=body, content_type=kind)


def pracks(script):
    """The PRACKs that a script has heard."""
    return [m for m in script.heard if isinstance(m, Request) and m.method == "PRACK"]


def called(answer=pick_up, **more):
    """A script that calls a phone: the INVITE, and the first response to it."""
    link = Link()
    script, bob = Script(link, A), Phone(link, B, answer)
    invite = first_request(**more)
    return link, script, bob, invite, script.say(invite, B)


def first_request(method="INVITE", body=b"offer", branch="1", extra=(), **changes):
    fields = {
        "Via": f"SIP/2.0/UDP {A};branch=z9hG4bK{branch}",
        "Max-Forwards": 70,
        "From": "<sip:alice@a.com>;tag=a",
        "To": "<sip:bob@b.com>",
        "Call-ID": "call",
        "CSeq": f"1 {method}",
        "Contact": f"<sip:{A}>",
    }
    if body:
        fields["Content-Type"] = SDP
    fields |= {name.replace("_", "-"): value for name, value in changes.items()}
    fields = {name: value for name, value in fields.items() if value is not None}
    return Request(method, Uri.parse(f"sip:bob@{B}"), Headers([*fields.items(), *extra]), body)


def within(invite, response, method, cseq, body=b"", **changes):
    """A request of the caller within the dialog."""
    changes = {"To": response.headers["To"], "CSeq": f"{cseq} {method}"} | changes
    return first_request(method, body, f"{method}{cseq}{body.hex()}", **changes)


def back(invite, response, method, cseq, body=b""):
    """A request of the callee within the dialog."""
    changes = {"From": response.headers["To"], "To": response.headers["From"]}
    changes |= {"Call-ID": invite.call_id, "CSeq": f"{cseq} {method}"}
    changes["Via"] = f"SIP/2.0/UDP {B};branch=z9hG4bKback{cseq}{method}"
    return first_request(method, body, **changes)


def ack(invite, response, cseq=1, body=b""):
    return within(invite, response, "ACK", cseq, body)
