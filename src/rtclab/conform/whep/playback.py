"""Cases of WHEP that WHIP has not: the direction, what it shows, and streams that are not there.

Implements WHEP §4.2.5, from the side of a page.
"""

from functools import partial

from rtclab.conform.case import Cases, NotApplicable, Unmet
from rtclab.conform.web.peer import SDP, WebPeer

cases: Cases[WebPeer] = Cases()


_must = partial(cases.case, level="MUST", role="server")


@_must("WHEP §4.2.5", "players-receive")
def offer_to_send_is_refused(peer: WebPeer) -> None:
    """An offer with sendonly has 4xx (§4.2.5)."""
    peer.post(peer.offer().replace(b"recvonly", b"sendonly")).expect(4)


@_must("WHEP §4.2.5", "players-receive")
def inactive_offer_is_refused(peer: WebPeer) -> None:
    """An offer with inactive has 4xx (§4.2.5)."""
    peer.post(peer.offer().replace(b"recvonly", b"inactive")).expect(4)


@_must("WHEP §4.2.5", "answers-sendonly")
def answer_sends(peer: WebPeer) -> None:
    """Each line of the answer is sendonly (§4.2.5)."""
    if None in (found := peer.begin().attributes("sendonly")):
        raise Unmet("sendonly in each line", str(found))


@_must("WHEP §4.2.5", "answers-sendonly")
def answer_to_sendrecv_sends(peer: WebPeer) -> None:
    """Each line of the answer is sendonly where the offer has sendrecv (§4.2.5)."""
    session = peer.begin(peer.offer().replace(b"recvonly", b"sendrecv"))
    if None in (found := session.attributes("sendonly")):
        raise Unmet("sendonly in each line", str(found))


@_must("WHEP §4.5.2", "one-stream")
def lines_are_of_one_stream(peer: WebPeer) -> None:
    """All lines of the answer have msid with the same stream (§4.5.2)."""
    found = [(each or "").partition(" ")[0] for each in peer.begin().attributes("msid")]
    if len(set(found)) != 1 or not found[0]:
        raise Unmet("one msid", str(found))


@_must("WHEP §4.2.8", "absent-is-409")
def stream_that_is_not_there_has_409(peer: WebPeer) -> None:
    """Where nobody publishes, 409 says when to ask again (§4.2.8)."""
    url = peer.url.replace("/whep", "-conform-absent/whep")
    if url == peer.url:
        raise NotApplicable("the target is no .../NAME/whep, so no other name is known")
    answer = peer.ask("POST", url, peer.offer(), SDP).expect(409)
    if not answer.header("Retry-After"):
        raise Unmet("Retry-After", "none")
