"""Cases of WHIP that WHEP has not: the direction, the tracks, refusals of a part, tokens, and
the passwords of TURN servers.

Implements RFC 9725 §4.2, §4.6 and §4.7, from the side of a page.
"""

from functools import partial

from rtclab.conform.case import Cases, NotApplicable, Unmet
from rtclab.conform.checks import expect_equal
from rtclab.conform.web.peer import WebPeer
from rtclab.conform.web.sessions import SERVER, servers

cases: Cases[WebPeer] = Cases()
_REFUSED = (400, 422)
_must = partial(cases.case, level="MUST", role="server")
_should = partial(cases.case, level="SHOULD", role="server")


@_must("RFC 9725 §4.2", "publishers-send")
def offer_to_receive_is_refused(peer: WebPeer) -> None:
    """An offer with recvonly has 4xx (§4.2)."""
    peer.post(peer.offer().replace(b"sendonly", b"recvonly")).expect(4)


@_must("RFC 9725 §4.2", "publishers-send")
def inactive_offer_is_refused(peer: WebPeer) -> None:
    """An offer with inactive has 4xx (§4.2)."""
    peer.post(peer.offer().replace(b"sendonly", b"inactive")).expect(4)


@_must("RFC 9725 §4.2", "answers-recvonly")
def answer_receives(peer: WebPeer) -> None:
    """Each line of the answer is recvonly (§4.2)."""
    if None in (found := peer.begin().attributes("recvonly")):
        raise Unmet("recvonly in each line", str(found))


@_must("RFC 9725 §4.2", "answers-recvonly")
def answer_to_sendrecv_receives(peer: WebPeer) -> None:
    """Each line of the answer is recvonly where the offer has sendrecv (§4.2)."""
    session = peer.begin(peer.offer().replace(b"sendonly", b"sendrecv"))
    if None in (found := session.attributes("recvonly")):
        raise Unmet("recvonly in each line", str(found))


@_must("RFC 9725 §4.4.1", "muxes")
def offer_without_mux_is_refused(peer: WebPeer) -> None:
    """An offer whose lines are not multiplexed with RTCP has 4xx (§4.4.1)."""
    offered = peer.offer().replace(b"a=rtcp-mux\r\n", b"").replace(b"a=rtcp-mux-only\r\n", b"")
    peer.post(offered).expect(4)


@_must("RFC 9725 §4.4.2", "one-track-of-each-kind")
def two_lines_of_audio_are_refused(peer: WebPeer) -> None:
    """An offer with two tracks of audio has 422 or 400, or both are taken (§4.4.2)."""
    _whole(peer, peer.offer("audio", "audio"))


@_must("RFC 9725 §4.4.2", "one-track-of-each-kind")
def two_lines_of_video_are_refused(peer: WebPeer) -> None:
    """An offer with two tracks of video has 422 or 400, or all are taken (§4.4.2)."""
    _whole(peer, peer.offer("audio", "video", "video"))


@_should("RFC 9725 §4.4.3", "all-or-nothing")
def line_without_a_codec_refuses_all(peer: WebPeer) -> None:
    """An offer of a line that nothing can answer has 422 or 400 (§4.4.3)."""
    _whole(peer, peer.offer("telephone", "video"))


def _whole(peer: WebPeer, offered: bytes) -> None:
    """Unmet if an offer is taken in part."""
    try:
        session = peer.begin(offered)
    except NotApplicable:
        peer.post(offered).expect(*_REFUSED)
    else:
        lines = session.description.media
        if len(session.lines) < len(lines):
            raise Unmet(
                "422, 400 or an answer to all lines", f"{len(session.lines)} of {len(lines)}"
            )


@_must("RFC 9725 §4.7", "http-has-proofs")
def missing_token_has_401(peer: WebPeer) -> None:
    """An offer without the token has 401, which names the scheme (§4.7)."""
    _needs_token(peer)
    answer = peer.post(peer.offer(), Authorization="").expect(401)
    expect_equal("a WWW-Authenticate", True, bool(answer.header("WWW-Authenticate")))


@_must("RFC 9725 §4.7", "bearer-is-known")
def wrong_token_is_refused(peer: WebPeer) -> None:
    """An offer with another token has 401 or 403 (§4.7)."""
    _needs_token(peer)
    peer.post(peer.offer(), Authorization="Bearer conform").expect(401, 403)


@_must("RFC 9725 §4.7", "bearer-is-known")
def scheme_is_told_in_any_case(peer: WebPeer) -> None:
    """The scheme may be written in small letters (§4.7)."""
    _needs_token(peer)
    peer.post(peer.offer(), Authorization=f"bearer {peer.token}").expect(201)


def _needs_token(peer: WebPeer) -> None:
    if not peer.token:
        raise NotApplicable("there is no token in the target, TOKEN@ before the host")


@_must("RFC 9725 §4.6", "links-have-credentials")
def turn_servers_have_credentials(peer: WebPeer) -> None:
    """The Link of a TURN server has a username and a credential (§4.6)."""
    for each in servers(peer):
        if each.startswith("<turn") and not ("username=" in each and "credential=" in each):
            raise Unmet("username and credential", each.partition(";")[0])


@_should("RFC 9725 §4.6", "no-links-before-a-page")
def pages_learn_no_servers_before_they_post(peer: WebPeer) -> None:
    """The browser's own question before a page's request names no server (§4.6)."""
    servers(peer)
    asked = {"Access_Control_Request_Method": "POST", "Authorization": ""}
    answer = peer.ask("OPTIONS", "", b"", "", **asked)
    for each in answer.headers.get_all("Link") or []:
        if SERVER.search(each):
            raise Unmet("no Link of rel ice-server", each.partition(";")[0])
