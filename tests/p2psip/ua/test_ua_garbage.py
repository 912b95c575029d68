"""A peer that knows the dialog and sends nonsense in it breaks nothing and leaves nothing."""

from hypothesis import event, given
from hypothesis import strategies as st
from support.mutations import mutations
from support.rtmfp.link import Link
from support.sip.elements import Phone, Script

from p2psip.sip.build import response_to
from p2psip.sip.headers import Headers
from p2psip.sip.message import Request
from p2psip.sip.uri import Uri

US, THEM = "10.0.0.1", "10.0.0.2"
SDP = "application/sdp"
METHODS = ["INVITE", "ACK", "BYE", "CANCEL", "UPDATE", "INFO", "OPTIONS", "PRACK", "REFER"]
EXTRAS = [
    ("Require", "x"),
    ("Contact", "*"),
    ("Contact", f"<sip:{THEM}>"),
    ("Record-Route", f"<sip:{THEM};lr>"),
    ("Record-Route", f"<sip:{THEM}>"),
    ("Expires", "0"),
    ("WWW-Authenticate", 'Digest realm="x", nonce="y"'),
]
STATUSES = st.sampled_from([100, 180, 183, 200, 202, 302, 401, 407, 408, 481, 487, 491, 503])
SOME_METHOD, BODIES = st.sampled_from(METHODS), st.sampled_from([b"", b"v=0"])
TYPES = st.sampled_from([SDP, "text/plain"])
SOME_EXTRAS = st.lists(st.sampled_from(EXTRAS), max_size=2)
OUR_TAGS, THEIR_TAGS = st.sampled_from("tu"), st.sampled_from("tuv")
WAITS = st.sampled_from([0.0, 0.1, 40.0])


@st.composite
def requests(draw, invite):
    """A request that is in the dialog of `invite`, or nearly."""
    method = draw(SOME_METHOD)
    body = draw(BODIES)
    fields = [
        ("Via", f"SIP/2.0/UDP {THEM};branch=z9hG4bK{draw(st.integers(0, 9))}"),
        ("From", invite.headers["To"] + f";tag={draw(OUR_TAGS)}"),
        ("To", invite.headers["From"]),
        ("Call-ID", invite.call_id),
        ("CSeq", f"{draw(st.integers(0, 5))} {method}"),
        ("Content-Type", draw(TYPES)),
        *draw(SOME_EXTRAS),
    ]
    return bytes(Request(method, Uri(host=US), Headers(fields), body))


@st.composite
def responses(draw, sent):
    """A response to something we have sent."""
    request = sent[draw(st.integers(0, len(sent) - 1))]
    response = response_to(
        request,
        draw(STATUSES),
        to_tag=draw(THEIR_TAGS),
        headers=draw(SOME_EXTRAS),
        body=draw(BODIES),
        content_type=SDP,
    )
    return bytes(response)


@given(st.data(), st.integers(1, 12), st.booleans())
def test_nonsense_within_a_dialog(data, rounds, answered):
    link = Link()
    us, them = Phone(link, US), Script(link, THEM)
    call = us.dial(THEM, 0.0)
    link.run(until=0.1)
    if answered:
        them.say(response_to(them.heard[0], 200, to_tag="t", body=b"v=0", content_type=SDP), US)
    for _ in range(rounds):
        sent = [message for message in them.heard if isinstance(message, Request)]
        message = data.draw(mutations(responses(sent) | requests(sent[0])))
        them.out.append((("UDP", message), US))
        link.run(until=link.now + data.draw(WAITS))
        if data.draw(st.booleans()):
            call.reinvite(b"new", link.now)
        event(f"the call is {call.state}")
    call.bye(link.now)
    link.run()
    assert us.idle and us.deadline is None
