"""WHIP and WHEP by HTTP requests, with a port that sends nothing."""

import pytest
from support.gateway.h264_world import header_of, main_sps, tag_of
from support.gateway.whip_world import World, offer

from p2psip.sdp.session import SessionDescription
from p2psip.srtp.suites import AES_CM_128_HMAC_SHA1_80
from siprtmp.web import browser_sessions
from siprtmp.web.whip import MAX_OFFER

KEYS = (bytes(16), bytes(14))
FRAGMENT = "application/trickle-ice-sdpfrag"


@pytest.fixture
def world():
    return World()


def test_an_offer_is_answered_with_the_place_of_its_session(world):
    """Covers RFC 9725 §4.2 [created], §4.3.1 [etag-of-the-session]."""
    got = world.publish()
    assert got.status == 201 and got.headers["Content-Type"] == "application/sdp"
    assert got.headers["Location"].startswith("/live/cam/whip/") and got.headers["ETag"][0] == '"'
    answer = SessionDescription.parse(got.body)
    assert [each.attribute("recvonly") for each in answer.media] == ["", ""]
    assert world.registry.get("live", "cam").publishing and len(world.sessions) == 1
    assert world.events == [
        ("publish-start", {"source": "192.0.2.7", "port": 4000, "app": "live", "name": "cam"})
    ]


def test_delete_ends_the_session_and_its_stream(world):
    """Covers RFC 9725 §4.3.1 [delete-needs-no-etag]."""
    where = world.publish().headers["Location"]
    assert world.ask("DELETE", where, HTTP_IF_MATCH='"another"').status == 200
    assert world.registry.get("live", "cam") is None and len(world.sessions) == 0
    assert world.left == 1 and world.transports == []
    event, values = world.events[-1]
    assert event == "publish-end" and values["reason"] == "ended by the client"
    assert world.ask("DELETE", where).status == 404


def test_nobody_ends_the_session_of_another(world):
    """Covers RFC 9725 §5 [addresses-are-secret]: the only key to it is what was drawn."""
    octets = []
    world.sessions._random = lambda count: octets.append(count) or bytes([7] * count)
    where = world.publish().headers["Location"]
    assert max(octets) * 8 >= 128 and where.endswith("/" + "BwcH" * 6)
    guess = where[:-1] + ("A" if where[-1] != "A" else "B")
    for method in ("DELETE", "PATCH"):
        assert world.ask(method, guess).status == 404
        assert world.ask(method, "/live/cam/whip/" + "A" * 24).status == 404
    assert len(world.sessions) == 1


def test_only_sdp_is_taken(world):
    """Covers RFC 9725 §4.2 [offer-is-sdp]."""
    assert world.publish(kind="application/json").status == 415
    assert world.publish(sdp=b"nonsense").status == 400
    assert world.publish(sdp=b"v=0\n" * MAX_OFFER).status == 413
    assert world.publish(kind="Application/SDP; charset=utf-8").status == 201
    assert world.left == 1 and len(world.transports) == 1  # those that failed have left nothing


def test_a_client_that_leaves_before_its_offer_is_whole_is_no_error_of_ours(world):
    class Gone:
        def read(self, octets):
            raise OSError("unexpected end of file")

    assert world.publish(**{"wsgi.input": Gone()}).status == 400
    assert world.asked == [] and world.transports == []


def test_an_offer_that_cannot_be_answered_whole_is_refused(world):
    """Covers RFC 9725 §4.4.3 [all-or-nothing], §4.2 [publishers-send]."""
    for sdp, said in (
        (offer("audio", "av1"), b"No video in common: offer one line of h264"),
        (offer("g711", "h264"), b"No audio in common: offer one line of opus"),
        (offer("h264"), b"No audio in the offer: offer one line of opus"),
        (offer("audio", flow="recvonly"), b"sendonly is meant"),
    ):
        got = world.publish(sdp=sdp)
        assert got.status == 422 and said in got.body
    assert len(world.sessions) == 0 and world.transports == []
    assert world.registry.get("live", "cam") is None


def test_a_name_has_one_publisher_while_that_is_there(world):
    world.publish()
    assert world.publish().status == 409
    world.now = 6.0  # the browser has sent nothing since
    assert world.publish().status == 201
    assert len(world.sessions) == 1 and world.registry.get("live", "cam").publishing
    assert world.events[-2][1]["reason"] == "somebody else publishes that now"
    world.live("obs")
    assert world.publish("obs").status == 409


def test_who_takes_the_name_of_a_silent_browser_has_the_stream_and_ends_it(world):
    world.publish()
    world.now = 6.0
    where = world.publish().headers["Location"]
    live = world.registry.get("live", "cam")
    assert live.publisher is world.sessions.find(where.rpartition("/")[2]).peer
    world.ask("DELETE", where)
    assert not live.publishing and live.on_players_changed is None
    assert world.publish().status == 201


def test_a_token_stands_for_the_key_of_the_stream(world):
    """Covers RFC 9725 §4.7.1 [token-may-be-asked-for], §4.7 [bearer-is-known] [http-has-proofs]."""
    world.publish(HTTP_AUTHORIZATION="Bearer secret")
    signed = {"HTTP_AUTHORIZATION": "bearer expires=1&token=2", "QUERY_STRING": "x=1"}
    world.publish("b", **signed)
    named = {"HTTP_AUTHORIZATION": "Basic abc", "QUERY_STRING": "user=ann&pass=word"}
    world.publish("c", **named)
    world.publish("e", HTTP_AUTHORIZATION="Bearer c2VjcmV0MQ==")  # of base64, with its padding
    assert world.asked == [
        ("whip", "live", "cam", "key=secret", "192.0.2.7"),
        ("whip", "live", "b", "expires=1&token=2&x=1", "192.0.2.7"),
        ("whip", "live", "c", "user=ann&pass=word", "192.0.2.7"),
        ("whip", "live", "e", "key=c2VjcmV0MQ==", "192.0.2.7"),
    ]
    world.may = False
    got = world.publish("d")
    assert got.status == 401 and got.headers["WWW-Authenticate"] == "Bearer"


def test_pages_of_all_sites_may_ask(world):
    """Covers RFC 9725 §4.2 [options-for-cors] [accept-post], §4.1 [get-is-empty]."""
    got = world.ask("OPTIONS", "/live/cam/whip")
    assert got.status == 200 and got.headers["Access-Control-Allow-Origin"] == "*"
    assert "Authorization" in got.headers["Access-Control-Allow-Headers"]
    assert got.headers["Accept-Post"] == "application/sdp"
    got = world.ask("GET", "/live/cam/whip")
    assert (got.status, got.body) == (204, b"")
    assert "Location" in world.publish().headers["Access-Control-Expose-Headers"]


def patch(world, ufrag="them", kind=FRAGMENT, password="secret", **more):
    where = world.sessions_at
    body = f"a=ice-ufrag:{ufrag}\na=candidate:1 1 tcp 1 host.local 9 typ host\n"
    body += f"a=ice-pwd:{password}\n" if password else ""
    return world.ask("PATCH", where, body.encode() if ufrag else b"", kind, **more)


def test_more_candidates_are_taken_with_the_right_tag(world):
    """Covers RFC 9725 §4.3.2 [patch-names-its-etag] [204-for-candidates].

    Covers RFC 9725 §4.3.2 [candidates-may-be-discarded].
    """
    created = world.publish()
    world.sessions_at, tag = created.headers["Location"], created.headers["ETag"]
    assert patch(world).status == 428 == patch(world, HTTP_IF_MATCH=" , ").status
    for other in ('"other"', f"W/{tag}", f"{tag} *"):
        assert patch(world, HTTP_IF_MATCH=other).status == 412
    for right in (tag, f'"other", {tag}', "*"):
        got = patch(world, HTTP_IF_MATCH=right)
        assert (got.status, got.body) == (204, b"") and "ETag" not in got.headers


def test_a_patch_is_a_fragment(world):
    """Covers RFC 9725 §4.3.1 [patch-is-a-fragment]."""
    world.sessions_at = world.publish().headers["Location"]
    assert patch(world, "", HTTP_IF_MATCH="*").status == 400
    assert patch(world, "them\nnonsense", HTTP_IF_MATCH="*").status == 400
    assert patch(world, kind="text/plain", HTTP_IF_MATCH="*").status == 415


def test_each_address_takes_its_own_methods(world):
    """Covers RFC 9725 §4.1 [get-is-empty]."""
    at = world.publish().headers["Location"]
    for method, where, allowed in (
        ("PUT", at, "OPTIONS, GET, HEAD, PATCH, DELETE"),
        ("POST", at, "OPTIONS, GET, HEAD, PATCH, DELETE"),
        ("DELETE", "/live/cam/whip", "OPTIONS, GET, HEAD, POST"),
    ):
        got = world.ask(method, where)
        assert got.status == 405 and got.headers["Allow"] == allowed
    assert [world.ask(each, at).status for each in ("GET", "HEAD", "OPTIONS")] == [204, 204, 200]
    assert world.ask("GET", at[:-1]).status == 404


def test_ice_is_restarted_by_new_credentials(world):
    """Covers RFC 9725 §4.3.3 [restart-is-200] [restart-has-a-new-etag], §4.3.1 [tag-of-each-ice].

    Covers RFC 9725 §4.3.3 [restart-keeps-the-rest], §4.3 [trickle-and-restarts].
    """
    created = world.publish()
    world.sessions_at, tag = created.headers["Location"], created.headers["ETag"]
    before, (transport,) = world.transports[0].ice, world.transports
    before.remote, before.sources = ("192.0.2.7", 5000), [("192.0.2.7", 5000)]
    got = patch(world, "new", HTTP_IF_MATCH="*")
    assert got.status == 200 and got.headers["Content-Type"] == FRAGMENT
    assert got.headers["ETag"] not in (tag, "") and got.headers["ETag"][0] == '"'
    assert f"a=ice-ufrag:{transport.ice.ufrag}\r\n".encode() in got.body
    assert f"a=ice-pwd:{transport.ice.password}\r\n".encode() in got.body
    assert transport.ice.theirs == ("new", "secret")
    assert transport.ice.ufrag != before.ufrag and len(world.sessions) == 1
    assert transport.ice.remote == ("192.0.2.7", 5000)  # until a check of the new one has come
    assert patch(world, HTTP_IF_MATCH=tag).status == 412  # candidates of before, overtaken
    assert patch(world, "new", HTTP_IF_MATCH=got.headers["ETag"]).status == 204
    assert [event for event, _ in world.events] == ["publish-start", "ice-restart"]


def test_a_restart_that_fails_changes_nothing(world):
    """Covers RFC 9725 §4.3.3 [failed-restart-keeps-the-session]."""
    created = world.publish()
    world.sessions_at, before = created.headers["Location"], world.transports[0].ice
    assert patch(world, "new", password="", HTTP_IF_MATCH="*").status == 400
    assert patch(world, "new").status == 428
    assert world.transports[0].ice is before and len(world.sessions) == 1
    assert patch(world, HTTP_IF_MATCH=created.headers["ETag"]).status == 204


def test_a_session_ends_if_nobody_uses_the_restarted_ice(world):
    """Covers RFC 9725 §4.3.3 [restart-ends-with-consent]."""
    world.sessions_at = world.publish().headers["Location"]
    (transport,) = world.transports
    transport._srtp.use(AES_CM_128_HMAC_SHA1_80, KEYS, KEYS)  # it has connected
    world.now = 20.0
    assert patch(world, "new", HTTP_IF_MATCH="*").status == 200
    transport.tick(49.9)
    assert len(world.sessions) == 1
    transport.tick(50.0)
    assert len(world.sessions) == 0 and world.events[-1][1]["reason"] == "the browser has gone"


def test_there_is_one_track_of_each_kind(world):
    """Covers RFC 9725 §4.4.2 [one-track-of-each-kind]."""
    for kinds in (("audio", "audio"), ("audio", "h264", "h264")):
        got = world.publish(sdp=offer(*kinds))
        assert got.status == 422 and b"One line of audio and one of video" in got.body
    assert world.transports == []


def test_a_viewer_gets_the_codec_of_the_stream(world):
    world.live()
    got = world.ask("POST", "/live/obs/whep", offer("audio", "h264", flow="recvonly"))
    answer = SessionDescription.parse(got.body)
    assert got.status == 201 and [each.attribute("sendonly") for each in answer.media] == ["", ""]
    assert world.registry.get("live", "obs").players == 0  # an offer alone costs nothing
    world.transports[0].on_connected(1.0)
    assert world.registry.get("live", "obs").players == 1
    assert world.asked == [("whep", "live", "obs", "", "192.0.2.7")]
    assert world.ask("DELETE", got.headers["Location"]).status == 200
    assert world.registry.get("live", "obs").players == 0
    assert [event for event, _ in world.events] == ["play-start", "play-end"]


def view(world, **more):
    world.live()
    created = world.ask("POST", "/live/obs/whep", offer("audio", "h264", flow="recvonly"), **more)
    world.sessions_at = created.headers["Location"]
    return created


def test_the_answer_to_a_viewer_has_one_stream_and_one_transport(world):
    """Covers WHEP §4.2.1 [created], §4.2.5 [answers-sendonly], §4.5.2 [one-stream].

    Covers WHEP §4.5.1 [bundles] [muxes] [mux-only-is-said], §4.4.2 [answer-has-all-candidates].
    """
    got = view(world)
    answer = SessionDescription.parse(got.body)
    assert got.status == 201 and got.headers["Content-Type"] == "application/sdp"
    assert answer.attribute("group") == "BUNDLE 0 1"
    for line in answer.media:
        names = {each.name for each in line.attributes}
        assert {"sendonly", "rtcp-mux", "rtcp-mux-only", "candidate"} <= names
        assert line.attribute("msid").split()[0] == "siprtmp"
    unmuxed = offer("audio", "h264", flow="recvonly").replace(b"a=rtcp-mux\n", b"")
    assert world.ask("POST", "/live/obs/whep", unmuxed).status == 422


def test_an_offer_of_a_viewer_is_refused_as_one_of_a_publisher(world):
    """Covers WHEP §4.2.4 [offer-is-sdp], §4.2.5 [players-receive], §4.1 [get-is-empty].

    Covers WHEP §4.3 [options-for-cors] [accept-post].
    """
    world.live()
    offered = offer("audio", "h264", flow="recvonly")
    assert world.ask("POST", "/live/obs/whep", offered, "text/plain").status == 415
    assert world.ask("POST", "/live/obs/whep", b"nonsense").status == 400
    for wrong in (b"sendonly", b"inactive"):
        got = world.ask("POST", "/live/obs/whep", offered.replace(b"recvonly", wrong))
        assert got.status == 422
    got = world.ask("GET", "/live/obs/whep")
    assert (got.status, got.body) == (204, b"")
    got = world.ask("OPTIONS", "/live/obs/whep")
    assert got.status == 200 and got.headers["Accept-Post"] == "application/sdp"


def test_a_session_of_a_viewer_takes_candidates_and_ends(world):
    """Covers WHEP §4.4.1 [etag-of-the-session] [delete-needs-no-etag] [patch-is-a-fragment].

    Covers WHEP §4.4.2 [patch-names-its-etag] [204-for-candidates] [candidates-may-be-discarded].
    Covers WHEP §5 [addresses-are-secret].
    """
    octets, draw = [], world.sessions._random
    world.sessions._random = lambda count: octets.append(count) or draw(count)
    tag = view(world).headers["ETag"]
    assert max(octets) * 8 >= 128
    assert patch(world).status == 428
    assert patch(world, HTTP_IF_MATCH='"other"').status == 412
    assert patch(world, "", HTTP_IF_MATCH=tag).status == 400
    assert patch(world, "them\nnonsense", HTTP_IF_MATCH=tag).status == 400
    assert patch(world, kind="text/plain", HTTP_IF_MATCH=tag).status == 415
    got = patch(world, HTTP_IF_MATCH=tag)
    assert (got.status, got.body) == (204, b"") and "ETag" not in got.headers
    assert world.ask("DELETE", world.sessions_at, HTTP_IF_MATCH='"other"').status == 200
    assert patch(world, HTTP_IF_MATCH=tag).status == 404


def test_the_ice_of_a_viewer_is_restarted(world):
    """Covers WHEP §4.4.3 [restart-is-200] [restart-has-a-new-etag] [restart-keeps-the-rest].

    Covers WHEP §4.4.3 [same-options] [failed-restart-keeps-the-session], §4.4.1 [tag-of-each-ice].
    """
    tag = view(world).headers["ETag"]
    before = world.transports[0].ice
    before.remote, before.sources = ("192.0.2.7", 5000), [("192.0.2.7", 5000)]
    assert patch(world, "new", password="", HTTP_IF_MATCH="*").status == 400
    assert world.transports[0].ice is before
    got = patch(world, "new", HTTP_IF_MATCH="*")
    ice = world.transports[0].ice
    assert got.status == 200 and got.headers["Content-Type"] == FRAGMENT
    assert f"a=ice-ufrag:{ice.ufrag}\r\n".encode() in got.body and b"a=ice-lite" in got.body
    assert got.headers["ETag"] not in (tag, "") and ice.remote == ("192.0.2.7", 5000)
    assert len(world.sessions) == 1 and patch(world, HTTP_IF_MATCH=tag).status == 412


def test_a_viewer_without_the_codec_is_told_which_it_is(world):
    world.live()
    got = world.ask("POST", "/live/obs/whep", offer("audio", "vp8", flow="recvonly"))
    assert got.status == 422 and b"the stream has AVC and AAC" in got.body


def test_there_is_nothing_to_play_where_nobody_publishes(world):
    """Covers WHEP §4.2.8 [absent-is-409]."""
    got = world.ask("POST", "/live/none/whep", offer("audio", flow="recvonly"))
    assert got.status == 409 and got.headers["Retry-After"] == "2" and world.left == 1


def test_a_viewer_ends_with_its_stream(world):
    live = world.live()
    for _ in range(2):
        world.ask("POST", "/live/obs/whep", offer("audio", "h264", flow="recvonly"))
    seated, late = world.transports
    seated.on_connected(1.0)
    live.end(1.0)
    assert len(world.sessions) == 1 and world.events[-1][1]["reason"] == "the stream has ended"
    late.on_connected(2.0)
    assert len(world.sessions) == 0 and world.events[-1][1]["reason"] == "the stream has ended"


REORDERED = [(0, 1, 80), (40, 2, 120), (80, 2, 0)]  # the third is shown before the second
IN_ORDER = [(0, 1, 80), (40, 2, 80), (80, 2, 79)]


def show(live, frames, now=0.0):
    for timestamp, kind, composition in frames:
        live.write(9, timestamp, tag_of(kind, [b"\x65frame"], composition), now)


def watch(world, *kinds, name="obs"):
    return world.ask("POST", f"/live/{name}/whep", offer(*kinds, flow="recvonly"))


def warnings(world):
    return [values for event, values in world.events if event == "b-frames"]


def test_b_frames_are_refused_by_name_with_the_cure(world):
    """They are known from the kept frames; whoever only listens may."""
    show(world.live(), REORDERED)
    for _ in range(2):
        got = watch(world, "audio", "h264")
        assert got.status == 422
        assert b"B-frames" in got.body and b"-bf 0" in got.body and b"zerolatency" in got.body
    assert world.transports == [] and world.left == 2
    assert [(each["app"], each["name"]) for each in warnings(world)] == [("live", "obs")]
    assert watch(world, "audio").status == 201


def test_a_set_that_tells_of_b_frames_is_enough(world):
    live = world.registry.open("live", "obs")
    live.write(9, 0, header_of(main_sps(reorder=2)), 0.0)
    assert watch(world, "audio", "h264").status == 422
    live.end(0.0)
    live.write(9, 0, header_of(main_sps(reorder=0)), 0.0)
    assert watch(world, "audio", "h264").status == 201


def test_a_viewer_ends_with_the_first_b_frame(world):
    """One that listens stays, and a viewer of another stream, and one of frames in order."""
    live = world.live()
    show(world.live("other"), IN_ORDER)
    show(live, IN_ORDER)
    for kinds in (["audio", "h264"], ["audio", "h264"], ["audio"]):
        assert watch(world, *kinds).status == 201
    assert watch(world, "audio", "h264", name="other").status == 201
    for transport in world.transports:
        if transport is not world.transports[1]:  # which is still connecting
            transport.on_connected(1.0)
    assert len(world.sessions) == 4 and not warnings(world)
    show(live, REORDERED)
    ended = [values["reason"] for event, values in world.events if event == "play-end"]
    assert len(ended) == 2 and all("B-frames" in reason for reason in ended)
    assert len(world.sessions) == 2 and live.players == 1 and len(warnings(world)) == 1


def test_each_publication_is_watched_anew(world):
    live = world.live()
    watch(world, "audio", "h264")
    world.transports[0].on_connected(1.0)
    live.begin(2.0)  # by another publisher, which replaces the first
    show(live, REORDERED)
    assert len(world.sessions) == 0 and len(warnings(world)) == 1
    live.begin(3.0)
    show(live, IN_ORDER)
    assert watch(world, "audio", "h264").status == 201
    live.begin(4.0)
    show(live, REORDERED)
    world.transports[0].on_connected(5.0)  # it made its offer for what was before
    assert "B-frames" in world.events[-1][1]["reason"] and len(warnings(world)) == 2


def test_other_applications_and_paths_are_not_its_own(world):
    for path in ("/status", "/live/cam.flv", "/sip/cam/whip", "/live/whip", "/live/cam/whop"):
        assert not world.application.serves({"PATH_INFO": path})


def test_offers_without_a_browser_behind_them_do_not_keep_others_out(world, monkeypatch):
    """Own design: 10,000 of one host are refused; those of many hosts make room for the next.

    Covers RFC 9725 §4.5 [overload-is-503], §5 [offers-are-limited].
    """
    for number in range(200):
        got = world.publish(str(number))
    assert got.status == 503 and got.headers["Retry-After"] == "10"
    assert len(world.sessions) == browser_sessions.MAX_OPENING_OF_HOST
    monkeypatch.setattr(browser_sessions, "MAX_OPENING", 64)
    for number in range(200):
        got = world.publish(f"x{number}", REMOTE_ADDR=f"198.51.{number}.1")
        assert got.status == 201
    assert len(world.sessions) == 64 == world.sessions.opening
    assert any(values.get("reason") == "too many offers" for _, values in world.events)


def test_there_is_an_end_of_places(world, monkeypatch):
    monkeypatch.setattr(browser_sessions, "MAX_SESSIONS", 1)
    assert world.publish("a").status == 201
    assert world.publish("b", REMOTE_ADDR="192.0.2.8").status == 503
    world.sessions.stop()
    assert len(world.sessions) == 0 and world.registry.streams == 0
