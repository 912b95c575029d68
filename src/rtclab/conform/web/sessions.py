"""Cases that WHIP and WHEP have in common, since one was written after the other.

Own design: each function is two cases, with the sections and the requirements of both.
"""

import re
from collections.abc import Callable
from typing import Final

from rtclab.conform.case import Cases, NotApplicable, Unmet
from rtclab.conform.checks import expect_equal
from rtclab.conform.web.offers import CANDIDATE, UFRAG, fragment
from rtclab.conform.web.peer import FRAGMENT, SDP, WebPeer

WHIP: Final[Cases[WebPeer]] = Cases()
WHEP: Final[Cases[WebPeer]] = Cases()
Run = Callable[[WebPeer], None]
_STRONG: Final = re.compile(r'"[\x21\x23-\x7e]+"')  # an entity-tag that is not weak
SERVER: Final = re.compile(r';\s*rel="?ice-server"?', re.IGNORECASE)
_TARGET: Final = re.compile(r"<(stuns?|turns?):[^/\s>]+>", re.IGNORECASE)
_LEAST_NAME: Final = 16  # characters of a name that nobody guesses, beside others
_ORIGIN: Final = "http://page.example"


def both(whip: str, whep: str, slug: str, level: str = "MUST") -> Callable[[Run], Run]:
    """Make two cases of the function below, from these sections of RFC 9725 and of WHEP."""

    def keep(run: Run) -> Run:
        WHIP.case(f"RFC 9725 §{whip}", slug, level=level, role="server")(run)
        return WHEP.case(f"WHEP §{whep}", slug, level=level, role="server")(run)

    return keep


# -- the beginning ------------------------------------------------------------------------


@both("4.2", "4.2.1", "created")
def offer_has_201(peer: WebPeer) -> None:
    """An offer is answered by 201."""
    peer.post(peer.offer()).expect(201)


@both("4.2", "4.2.1", "created")
def answer_is_typed_as_sdp(peer: WebPeer) -> None:
    """The answer has the type of SDP."""
    expect_equal("Content-Type", SDP, peer.begin().answer.type)


@both("4.2", "4.2.1", "created")
def answer_has_the_lines_of_the_offer(peer: WebPeer) -> None:
    """The answer has as many lines as the offer, of the same kinds, in the same order."""
    session = peer.begin()
    expect_equal("lines", ["audio", "video"], [each.kind for each in session.description.media])


@both("4.2", "4.2.1", "created")
def location_is_that_of_a_session(peer: WebPeer) -> None:
    """Location is the address of a session, and not of the endpoint."""
    session = peer.begin()
    if session.url.partition("?")[0] == peer.url.partition("?")[0]:
        raise Unmet("an address of its own", session.url)
    peer.ask("GET", session.url).expect(2)


@both("4.2", "4.2.1", "created")
def type_may_have_parameters(peer: WebPeer) -> None:
    """A type is the same with parameters, and in capitals."""
    peer.post(peer.offer(), "Application/SDP; charset=utf-8").expect(201)


@both("4.2", "4.2.4", "offer-is-sdp")
def offer_of_another_type_has_4xx(peer: WebPeer) -> None:
    """What is posted as JSON is refused."""
    peer.post(peer.offer(), "application/json").expect(4)


@both("4.2", "4.2.4", "offer-is-sdp")
def offer_without_a_type_has_4xx(peer: WebPeer) -> None:
    """What is posted without a type is refused."""
    peer.post(peer.offer(), "").expect(4)


@both("4.2", "4.2.4", "offer-is-sdp")
def nonsense_has_4xx(peer: WebPeer) -> None:
    """What is no SDP is refused."""
    peer.post(b"conform\r\n").expect(4)


@both("4.2", "4.2.4", "offer-is-sdp")
def empty_offer_has_4xx(peer: WebPeer) -> None:
    """An empty offer is refused."""
    peer.post(b"").expect(4)


@both("4.2", "4.2.4", "offer-is-sdp")
def offer_cut_within_a_line_has_4xx(peer: WebPeer) -> None:
    """An offer that ends within its first media line is refused."""
    offered = peer.offer()
    peer.post(offered[: offered.index(b"m=audio") + 9]).expect(4)


@both("4.2", "4.2.4", "offer-is-sdp")
def octets_that_are_no_text_have_4xx(peer: WebPeer) -> None:
    """Octets that are no text are refused."""
    peer.post(bytes(range(256))).expect(4)


# -- its address --------------------------------------------------------------------------


@both("5", "5", "addresses-are-secret", "SHOULD")
def address_is_hard_to_guess(peer: WebPeer) -> None:
    """Sessions have addresses that differ in many places."""
    one = peer.begin()
    peer.ask("DELETE", one.url)
    other = peer.begin()
    differ = sum(a != b for a, b in zip(one.url, other.url, strict=False))
    if differ < _LEAST_NAME // 2 or len(other.url) - len(peer.url) < _LEAST_NAME:
        raise Unmet(f"addresses with {_LEAST_NAME} drawn characters", f"{one.url}, {other.url}")


@both("5", "5", "addresses-are-secret", "SHOULD")
def guessed_address_ends_nothing(peer: WebPeer) -> None:
    """DELETE of another address leaves the session."""
    session = peer.begin()
    guess = session.url[:-1] + ("A" if session.url[-1] != "A" else "B")
    peer.ask("DELETE", guess).expect(4)
    peer.ask("GET", session.url).expect(2)


@both("4.1", "4.1", "get-is-empty")
def get_of_the_endpoint_is_empty(peer: WebPeer) -> None:
    """GET of the endpoint has 2xx and no content."""
    expect_equal("content", b"", peer.ask("GET").expect(2).body)


@both("4.1", "4.1", "get-is-empty")
def get_of_the_session_is_empty(peer: WebPeer) -> None:
    """GET of the session has 2xx and no content."""
    expect_equal("content", b"", peer.ask("GET", peer.begin().url).expect(2).body)


# -- pages of other sites -----------------------------------------------------------------


def _preflight(peer: WebPeer, url: str, method: str) -> None:
    asked = {
        "Access_Control_Request_Method": method,
        "Access_Control_Request_Headers": "authorization,content-type,if-match",
        "Authorization": "",
        "Origin": _ORIGIN,
    }
    answer = peer.ask("OPTIONS", url, b"", "", **asked).expect(2)
    if answer.header("Access-Control-Allow-Origin") not in ("*", _ORIGIN):
        raise Unmet("Access-Control-Allow-Origin", str(answer.headers.items()))
    allowed = answer.header("Access-Control-Allow-Methods").upper()
    if method != "POST" and method not in allowed and allowed != "*":
        raise Unmet(f"Access-Control-Allow-Methods with {method}", repr(allowed))
    if "content-type" not in answer.header("Access-Control-Allow-Headers").lower():
        raise Unmet("Access-Control-Allow-Headers with Content-Type", str(answer.headers.items()))


@both("4.2", "4.3", "options-for-cors")
def pages_of_others_may_begin(peer: WebPeer) -> None:
    """A page of another site is told that it may post, without a token."""
    _preflight(peer, "", "POST")


@both("4.2", "4.3", "options-for-cors")
def pages_of_others_may_end(peer: WebPeer) -> None:
    """A page of another site is told that it may delete a session."""
    _preflight(peer, peer.begin().url, "DELETE")


@both("4.2", "4.3", "options-for-cors")
def pages_of_others_may_patch(peer: WebPeer) -> None:
    """A page of another site is told that it may patch a session."""
    _preflight(peer, peer.begin().url, "PATCH")


@both("4.2", "4.3", "options-for-cors")
def pages_of_others_see_the_location(peer: WebPeer) -> None:
    """A page of another site may read Location and ETag of the answer."""
    answer = peer.post(peer.offer(), Origin=_ORIGIN).expect(201)
    shown = answer.header("Access-Control-Expose-Headers").lower()
    if shown != "*" and ("location" not in shown or "etag" not in shown):
        raise Unmet("Access-Control-Expose-Headers with Location and ETag", repr(shown))


@both("4.2", "4.3", "accept-post", "SHOULD")
def options_say_what_can_be_posted(peer: WebPeer) -> None:
    """The answer to OPTIONS has Accept-Post with the type of SDP."""
    found = peer.ask("OPTIONS").expect(2).header("Accept-Post")
    if SDP not in found:
        raise Unmet(f"Accept-Post: {SDP}", repr(found))


# -- servers that the answer names --------------------------------------------------------


def servers(peer: WebPeer) -> list[str]:
    """The Link fields of an answer with a server; NotApplicable if there is none."""
    listed = peer.begin().answer.headers.get_all("Link") or []
    if not (named := [each for each in listed if SERVER.search(each)]):
        raise NotApplicable("the answer names no STUN or TURN server")
    return named


@both("4.6", "4.7", "links-name-servers")
def links_name_servers(peer: WebPeer) -> None:
    """The target of a Link of rel ice-server is the URI of a server."""
    for each in servers(peer):
        if not _TARGET.match(each):
            raise Unmet("<stun:HOST> or <turn:HOST>", each.partition(";")[0])


# -- the end ------------------------------------------------------------------------------


@both("4.3.1", "4.4.1", "delete-needs-no-etag")
def delete_ends_the_session(peer: WebPeer) -> None:
    """DELETE has 2xx, and the session is not there any more."""
    session = peer.begin()
    peer.ask("DELETE", session.url).expect(2)
    peer.ask("DELETE", session.url).expect(404, 410)


@both("4.3.1", "4.4.1", "delete-needs-no-etag")
def delete_minds_no_tag(peer: WebPeer) -> None:
    """DELETE that names another tag ends the session all the same."""
    peer.ask("DELETE", peer.begin().url, If_Match='"conform"').expect(2)


@both("4.3.1", "4.4.1", "delete-needs-no-etag")
def ended_session_takes_no_patch(peer: WebPeer) -> None:
    """PATCH of a session that has ended has 4xx."""
    session = peer.begin()
    peer.ask("DELETE", session.url).expect(2)
    peer.patch(session, fragment(), session.tag or "*").expect(4)


# -- candidates ---------------------------------------------------------------------------


@both("4.3.1", "4.4.1", "etag-of-the-session")
def answer_has_a_strong_tag(peer: WebPeer) -> None:
    """The 201 has a strong entity-tag."""
    tag = peer.begin().tag
    if not _STRONG.fullmatch(tag):
        raise Unmet("a strong ETag", repr(tag))


@both("4.3.1", "4.4.1", "tag-of-each-ice")
def sessions_have_tags_of_their_own(peer: WebPeer) -> None:
    """The next session has another tag."""
    one = peer.begin()
    peer.ask("DELETE", one.url)
    if (tag := peer.begin().tag) == one.tag:
        raise Unmet("another ETag", tag)


@both("4.3.2", "4.4.2", "204-for-candidates")
def candidates_have_204(peer: WebPeer) -> None:
    """More candidates are answered by 204."""
    peer.trickle(peer.begin()).expect(204)


@both("4.3.2", "4.4.2", "204-for-candidates")
def answer_to_candidates_is_empty(peer: WebPeer) -> None:
    """The answer to candidates has no content and no tag."""
    answer = peer.trickle(peer.begin()).expect(2)
    expect_equal("content and ETag", (b"", ""), (answer.body, answer.header("ETag")))


@both("4.3.2", "4.4.2", "candidates-may-be-discarded")
def names_of_hosts_are_passed_over(peer: WebPeer) -> None:
    """A candidate with a name that nobody can resolve does no harm."""
    hidden = "a=candidate:2 1 udp 2113937151 6e6f626f6479.local 50000 typ host"
    peer.trickle(peer.begin(), hidden, CANDIDATE).expect(204)


@both("4.3.2", "4.4.2", "candidates-may-be-discarded")
def unknown_transports_are_passed_over(peer: WebPeer) -> None:
    """A candidate of a transport that nobody has does no harm."""
    other = "a=candidate:3 1 conform 2113937151 192.0.2.1 50000 typ host"
    tcp = "a=candidate:4 1 tcp 1518280000 192.0.2.7 9 typ host tcptype passive"
    peer.trickle(peer.begin(), other, tcp).expect(204)


@both("4.3.2", "4.4.2", "patch-names-its-etag")
def patch_without_a_tag_has_428(peer: WebPeer) -> None:
    """PATCH that names no tag is refused by 428."""
    session = peer.begin()
    peer.trickle(session)
    peer.patch(session, fragment(UFRAG, ""), "").expect(428)


@both("4.3.2", "4.4.2", "patch-names-its-etag")
def patch_with_another_tag_has_412(peer: WebPeer) -> None:
    """PATCH that names another tag is refused by 412."""
    session = peer.begin()
    peer.trickle(session)
    peer.patch(session, fragment(UFRAG, ""), '"conform"').expect(412)


@both("4.3.1", "4.4.1", "patch-is-a-fragment")
def patch_of_another_type_has_4xx(peer: WebPeer) -> None:
    """PATCH of JSON is refused."""
    session = peer.begin()
    peer.patch(session, fragment(), session.tag, "application/json").expect(4)


@both("4.3.1", "4.4.1", "patch-is-a-fragment")
def broken_fragment_has_4xx(peer: WebPeer) -> None:
    """PATCH with content that is not SDP is refused."""
    session = peer.begin()
    peer.patch(session, b"conform", session.tag).expect(4)


@both("4.3.1", "4.4.1", "patch-is-a-fragment")
def empty_fragment_has_4xx(peer: WebPeer) -> None:
    """PATCH without content is refused."""
    session = peer.begin()
    peer.patch(session, b"", session.tag).expect(4)


@both("4.3.1", "4.4.1", "patch-is-a-fragment")
def refused_patch_leaves_the_session(peer: WebPeer) -> None:
    """A session goes on after a PATCH that was refused."""
    session = peer.begin()
    peer.patch(session, b"conform", session.tag).expect(4)
    peer.ask("DELETE", session.url).expect(2)


# -- ICE begins anew ----------------------------------------------------------------------


@both("4.3.3", "4.4.3", "restart-is-200")
def restart_has_200(peer: WebPeer) -> None:
    """New credentials are answered by 200 with a fragment."""
    answer = peer.restart(peer.begin()).expect(200)
    expect_equal("Content-Type", FRAGMENT, answer.type)


@both("4.3.3", "4.4.3", "restart-is-200")
def restart_has_new_credentials(peer: WebPeer) -> None:
    """The fragment has credentials that are not those of the answer."""
    session = peer.begin()
    body = peer.restart(session).expect(200).body.decode(errors="replace")
    for name in ("ice-ufrag", "ice-pwd"):
        found = re.search(rf"^a={name}:(\S+)", body, re.MULTILINE)
        if found is None or found[1] in session.attributes(name):
            raise Unmet(f"a new {name}", body)


@both("4.3.3", "4.4.3", "restart-is-200")
def restart_has_candidates(peer: WebPeer) -> None:
    """The fragment has the candidates of the server."""
    body = peer.restart(peer.begin()).expect(200).body
    if b"a=candidate:" not in body:
        raise Unmet("candidates", repr(body))


@both("4.3.3", "4.4.3", "restart-has-a-new-etag")
def restart_has_a_new_tag(peer: WebPeer) -> None:
    """The answer to a restart has another tag, which later candidates name."""
    session = peer.begin()
    tag = peer.restart(session).expect(200).header("ETag")
    if tag == session.tag or not _STRONG.fullmatch(tag):
        raise Unmet("another strong ETag", repr(tag))
    later = fragment("anew", "anewanewanewanewanewanew")
    peer.patch(session, later, tag).expect(204)
    peer.patch(session, later, session.tag).expect(412)


@both("4.3.3", "4.4.3", "same-options")
def restart_says_lite_as_the_answer(peer: WebPeer) -> None:
    """The fragment says ice-lite if the answer did."""
    session = peer.begin()
    body = peer.restart(session).expect(200).body
    said = session.description.attribute("ice-lite") is not None
    expect_equal("ice-lite", said, b"a=ice-lite" in body)


@both("4.3.3", "4.4.3", "failed-restart-keeps-the-session")
def broken_restart_leaves_the_session(peer: WebPeer) -> None:
    """A restart without a password has an error, and candidates of before are taken still."""
    session = peer.begin()
    peer.trickle(session)
    peer.patch(session, fragment("anew", ""), "*").expect(4, 5)
    peer.trickle(session).expect(204)


@both("4.3.3", "4.4.3", "restart-keeps-the-rest")
def session_outlives_a_restart(peer: WebPeer) -> None:
    """The session has its address after a restart."""
    session = peer.begin()
    peer.restart(session).expect(200)
    peer.ask("DELETE", session.url).expect(2)


# -- what an answer says ------------------------------------------------------------------


@both("4.4.1", "4.5.1", "bundles")
def answer_bundles_all_lines(peer: WebPeer) -> None:
    """The answer has a BUNDLE group with all its lines."""
    session = peer.begin()
    group = (session.description.attribute("group") or "").split()
    wanted = ["BUNDLE", *(str(each.attribute("mid")) for each in session.lines)]
    expect_equal("a=group", wanted, group)


@both("4.4.1", "4.5.1", "mux-only-is-said")
def answer_says_mux_only(peer: WebPeer) -> None:
    """Each line of the answer has rtcp-mux-only."""
    if None in (found := peer.begin().attributes("rtcp-mux-only")):
        raise Unmet("rtcp-mux-only in each line", str(found))


@both("4.4.1", "4.5.1", "muxes")
def answer_muxes(peer: WebPeer) -> None:
    """Each line of the answer has rtcp-mux."""
    if None in (found := peer.begin().attributes("rtcp-mux")):
        raise Unmet("rtcp-mux in each line", str(found))


@both("4.3.2", "4.4.2", "answer-has-all-candidates")
def answer_has_candidates(peer: WebPeer) -> None:
    """The answer has the candidates of the server."""
    if b"a=candidate:" not in peer.begin().answer.body:
        raise Unmet("candidates", "none")
