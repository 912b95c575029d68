"""Alice and Bob, who describe sessions to each other."""

from p2psip.sdp.codec import Codec
from p2psip.sdp.offer_answer import LocalMedia, LocalTransport, make_answer
from p2psip.sdp.session import Origin, SessionDescription

A, B = "192.0.2.1", "192.0.2.2"
ALICE, BOB = Origin.at(A, 100), Origin.at(B, 200)
PCMU, PCMA = Codec("PCMU", 8000, 1, 0), Codec("PCMA", 8000, 1, 8)
WIDE, NARROW = Codec("speex", 16000, 1, 96), Codec("speex", 8000, 1, 98)
DTMF = Codec("telephone-event", 8000, 1, 101, "0-15")
FLV = Codec("x-flv", 90000, 1, 97)


def audio(*codecs, port=5004, host=None, rtcp_port=None, protocol="RTP/AVP", **more):
    """An audio stream we can have."""
    return LocalMedia("audio", codecs, LocalTransport(port, host, rtcp_port, protocol), **more)


def video(formats, port):
    """A stream of pictures we can have."""
    return LocalMedia("video", formats, LocalTransport(port))


def offered(*lines, host=A):
    """A description with these lines, as a peer would send it."""
    head = f"v=0\no=- 1 1 IN IP4 {host}\ns=-\nc=IN IP4 {host}\nt=0 0\n"
    return SessionDescription.parse((head + "\n".join(lines) + "\n").encode())


def answer_to(offer, *media, **more):
    """Bob's answer, as it would arrive, and what he made of it."""
    answer, agreed = make_answer(offer, media, BOB, B, **more)
    assert SessionDescription.parse(bytes(answer)) == answer
    return answer, agreed
