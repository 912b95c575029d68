"""Each case of WHIP, WHEP and ICE finds a server that is wrong in just that: ours, with a fault.

What is broken stands between the server and the page: its requests and answers by HTTP, and its
checks and answers by UDP.
"""

import re
from dataclasses import replace

import pytest
from support.web_server import web_server

from p2psip.nat import ice_lite, stun
from p2psip.nat.ice_credentials import IceCredentials
from p2psip.nat.stun import BINDING, StunClass, StunMessage, StunType
from rtclab.conform import ice, whep, whip
from rtclab.conform.ice import peer
from rtclab.conform.runner import Outcome, run
from siprtmp.edge.webrtc_side import WebRtcSide
from siprtmp.web import browser_sessions

SUITES = {"whip": whip.SUITE, "whep": whep.SUITE, "ice": ice.SUITE}
PLACES = {"whip": "live/cam/whip", "whep": "live/obs/whep", "ice": "live/cam/whip"}
BY_HTTP, BY_UDP = {}, {}
HEADERS = "Access-Control-"


def by_http(*found):
    """The function below changes an answer, a list of status, headers and body; cases that see."""
    return lambda fault: BY_HTTP.setdefault(fault.__name__, (fault, found))


def by_udp(*found):
    """The function below breaks the server in this process."""
    return lambda fault: BY_UDP.setdefault(fault.__name__, (fault, found))


class Wrong:
    """An application whose answers go through a fault."""

    def __init__(self, application, fault):
        self.application, self.fault = application, fault

    def __call__(self, environ, start):
        said = []
        body = b"".join(self.application(environ, lambda *told: said.extend(told)))
        answer = [said[0], dict(said[1]), body]
        self.fault(environ, answer)
        answer[1].pop("Content-Length", None)
        start(answer[0], [*answer[1].items()])
        return [answer[2]]


def creates(answer):
    return answer[0].startswith("201")


def restarts(answer):
    return answer[0] == "200 OK" and b"ice-pwd" in answer[2]


@by_http("offer_has_201", "type_may_have_parameters")
def answers_by_200(environ, answer):
    if creates(answer):
        answer[0] = "200 OK"


@by_http("answer_is_typed_as_sdp")
def has_no_types(environ, answer):
    answer[1].pop("Content-Type", None)


@by_http("answer_has_the_lines_of_the_offer")
def answers_audio_alone(environ, answer):
    if creates(answer):
        answer[2] = answer[2].partition(b"m=video")[0]


@by_http("location_is_that_of_a_session")
def has_one_address_for_all(environ, answer):
    if creates(answer):
        answer[1]["Location"] = environ["PATH_INFO"]


@by_http(
    *("offer_of_another_type_has_4xx", "offer_without_a_type_has_4xx", "nonsense_has_4xx"),
    *("empty_offer_has_4xx", "offer_cut_within_a_line_has_4xx", "octets_that_are_no_text_have_4xx"),
    *("guessed_address_ends_nothing", "ended_session_takes_no_patch", "delete_ends_the_session"),
    *("patch_without_a_tag_has_428", "patch_with_another_tag_has_412", "broken_fragment_has_4xx"),
    *("patch_of_another_type_has_4xx", "empty_fragment_has_4xx", "offer_to_receive_is_refused"),
    *("refused_patch_leaves_the_session",),
    *("inactive_offer_is_refused", "offer_without_mux_is_refused", "offer_to_send_is_refused"),
    *("two_lines_of_audio_are_refused", "two_lines_of_video_are_refused"),
    *("line_without_a_codec_refuses_all", "missing_token_has_401", "wrong_token_is_refused"),
    *("stream_that_is_not_there_has_409",),
)
def refuses_by_500(environ, answer):
    if answer[0][0] == "4":
        answer[0] = "500 Internal Server Error"


@by_http("get_of_the_endpoint_is_empty", "get_of_the_session_is_empty")
def shows_something(environ, answer):
    if environ["REQUEST_METHOD"] == "GET":
        answer[0], answer[2] = "200 OK", b"hello"


@by_http(
    *("pages_of_others_may_begin", "pages_of_others_may_end", "pages_of_others_may_patch"),
    *("pages_of_others_see_the_location", "options_say_what_can_be_posted"),
)
def knows_no_other_pages(environ, answer):
    for name in [each for each in answer[1] if each.startswith((HEADERS, "Accept-"))]:
        del answer[1][name]


@by_http("links_name_servers", "turn_servers_have_credentials")
def names_an_odd_server(environ, answer):
    if creates(answer):
        answer[1]["Link"] = '<turn:>; rel="ice-server"'


@by_http("pages_learn_no_servers_before_they_post")
def names_servers_to_all(environ, answer):
    answer[1]["Link"] = '<stun:127.0.0.1>; rel="ice-server"'


@by_http("delete_ends_the_session", "delete_minds_no_tag", "refused_patch_leaves_the_session")
def takes_no_delete(environ, answer):
    if environ["REQUEST_METHOD"] == "DELETE":
        answer[0] = "405 Method Not Allowed"


@by_http("session_outlives_a_restart", "ended_session_answers_no_check")
def ends_by_500(environ, answer):
    if environ["REQUEST_METHOD"] == "DELETE":
        answer[0] = "500 Internal Server Error"


@by_http("answer_has_a_strong_tag", "sessions_have_tags_of_their_own", "restart_has_a_new_tag")
def has_one_weak_tag(environ, answer):
    if "ETag" in answer[1]:
        answer[1]["ETag"] = 'W/"1"'


@by_http(
    *("candidates_have_204", "names_of_hosts_are_passed_over"),
    *("unknown_transports_are_passed_over", "broken_restart_leaves_the_session"),
)
def takes_candidates_by_500(environ, answer):
    if environ["REQUEST_METHOD"] == "PATCH" and answer[0].startswith("204"):
        answer[0] = "500 Internal Server Error"


@by_http("answer_to_candidates_is_empty")
def tags_candidates(environ, answer):
    if environ["REQUEST_METHOD"] == "PATCH" and answer[0].startswith("204"):
        answer[1]["ETag"] = '"x"'


@by_http("restart_has_200", "restart_has_new_credentials", "restart_has_candidates")
def says_nothing_of_a_restart(environ, answer):
    if restarts(answer):
        answer[0], answer[2] = "204 No Content", b""


@by_http("restart_has_new_credentials", "restarted_credentials_are_answered")
def says_old_credentials(environ, answer):
    if restarts(answer):
        answer[2] = re.sub(rb"a=ice-(ufrag|pwd):.*\r\n", b"", answer[2])


@by_http("restart_has_candidates", "answer_has_candidates")
def has_no_candidates(environ, answer):
    answer[2] = answer[2].replace(b"a=candidate", b"a=nominee")


@by_http("restart_says_lite_as_the_answer")
def is_lite_at_first(environ, answer):
    if restarts(answer):
        answer[2] = answer[2].replace(b"a=ice-lite\r\n", b"")


@by_http("answer_bundles_all_lines")
def bundles_nothing(environ, answer):
    answer[2] = re.sub(rb"a=group:.*\r\n", b"", answer[2])


@by_http("answer_says_mux_only")
def says_no_mux_only(environ, answer):
    answer[2] = answer[2].replace(b"a=rtcp-mux-only\r\n", b"")


@by_http("answer_muxes")
def muxes_nothing(environ, answer):
    answer[2] = answer[2].replace(b"a=rtcp-mux\r\n", b"")


@by_http(
    *("answer_receives", "answer_to_sendrecv_receives", "answer_sends"),
    *("answer_to_sendrecv_sends",),
)
def flows_both_ways(environ, answer):
    answer[2] = re.sub(rb"a=(recv|send)only\r\n", b"a=sendrecv\r\n", answer[2])


@by_http("lines_are_of_one_stream")
def has_a_stream_for_each_line(environ, answer):
    answer[2] = re.sub(rb"a=msid:\S+ ", b"a=msid:- ", answer[2], count=1)


@by_http("stream_that_is_not_there_has_409")
def says_not_when(environ, answer):
    answer[1].pop("Retry-After", None)


@by_http("scheme_is_told_in_any_case")
def reads_one_case(environ, answer):
    if environ.get("HTTP_AUTHORIZATION", "").startswith("bearer"):
        answer[0] = "401 Unauthorized"


@by_http("lines_have_credentials")
def has_a_password_for_each_line(environ, answer):
    at = answer[2].rfind(b"a=ice-pwd:")
    if creates(answer):
        answer[2] = answer[2][: at + 10] + b"x" + answer[2][at + 10 :]


@by_http("candidates_have_addresses")
def hides_an_address(environ, answer):
    more = b"a=candidate:9 1 udp 1 hidden.local 5000 typ host\r\na=rtcp-mux-only\r\n"
    answer[2] = answer[2].replace(b"a=rtcp-mux-only\r\n", more)


@by_http(
    *("candidates_are_of_component_1", "hosts_have_nothing_related"),
    *("priority_has_type_and_component", "candidates_differ_in_priority"),
)
def has_odd_candidates(environ, answer):
    more = b"a=candidate:9 2 udp 4294967295 127.0.0.1 9 typ host raddr 192.0.2.9 rport 9\r\n"
    answer[2] = answer[2].replace(b"a=rtcp-mux-only\r\n", 2 * more + b"a=rtcp-mux-only\r\n")


@by_http("answer_has_a_fingerprint")
def has_no_fingerprint(environ, answer):
    answer[2] = re.sub(rb"a=fingerprint:.*\r\n", b"", answer[2])


@by_http("answer_says_who_begins_dtls")
def leaves_dtls_open(environ, answer):
    answer[2] = answer[2].replace(b"a=setup:passive", b"a=setup:actpass")


# -- by UDP -------------------------------------------------------------------------------


def ends(patch, draw):
    """Credentials as drawn by this."""
    patch.setattr(ice_lite.IceCredentials, "draw", classmethod(lambda cls, random: cls(*draw())))


@by_udp("user_name_has_24_bits", "password_has_128_bits", "sessions_have_credentials_of_their_own")
def has_short_credentials(patch):
    ends(patch, lambda: ("abc", "def"))


@by_udp("address_is_hard_to_guess")
def has_short_names(patch):
    patch.setattr(browser_sessions, "_ID_OCTETS", 3)


@by_udp("user_name_has_32_characters_at_most")
def has_long_names(patch):
    draw = IceCredentials.draw
    patch.setattr(
        IceCredentials,
        "draw",
        classmethod(lambda cls, random: replace(draw(random), ufrag=draw(random).ufrag * 5)),
    )


@by_udp(
    *("check_is_answered", "all_ports_of_a_page_are_answered", "answer_is_signed"),
    *("answer_has_the_address_of_the_check", "answer_has_the_transaction_of_the_check"),
    *("repeated_check_has_the_same_answer", "nomination_is_answered"),
    *("nomination_may_follow_a_check", "first_check_may_nominate_another_port"),
    *("consent_is_given_again_and_again", "right_role_is_answered_after_a_conflict"),
    *("restarted_credentials_are_answered", "other_cookie_has_no_answer"),
    *("longer_length_has_no_answer", "cut_message_has_no_answer", "set_top_bit_has_no_answer"),
    *("datagram_of_no_range_has_no_answer", "empty_datagram_has_no_answer"),
    *("attribute_beyond_the_end_has_no_answer", "attribute_may_have_any_length"),
    *("padding_may_have_any_value", "attributes_behind_the_signature_are_ignored"),
    *("role_behind_the_signature_is_ignored", "first_of_two_names_counts"),
    *("unknown_optional_attribute_does_no_harm", "attribute_without_a_use_does_no_harm"),
    *("unknown_attribute_has_420", "controlled_page_with_a_large_tie_breaker_has_487"),
)
def is_deaf(patch):
    patch.setattr(WebRtcSide, "_check", lambda *_: None)


@by_udp("answer_has_the_address_of_the_check", "all_ports_of_a_page_are_answered")
def maps_all_to_one(patch):
    answer = IceCredentials.answer
    patch.setattr(
        IceCredentials, "answer", lambda self, request, _: answer(self, request, ("192.0.2.9", 9))
    )


@by_udp("repeated_check_has_the_same_answer")
def maps_each_to_another(patch):
    answer, count = IceCredentials.answer, iter(range(9, 99))
    patch.setattr(
        IceCredentials,
        "answer",
        lambda self, request, _: answer(self, request, ("192.0.2.9", next(count))),
    )


def written(patch, change):
    """Answers as this makes them: `change` takes the arguments of `StunMessage.write`."""
    write = StunMessage.write

    def wrong(cls, kind, method, transaction, attributes=(), **more):
        if kind in (StunClass.SUCCESS, StunClass.ERROR):
            kind, transaction, attributes, more = change(kind, transaction, attributes, more)
        return write(kind, method, transaction, attributes, **more)

    wrongly = type("Wrong", (StunMessage,), {"write": classmethod(wrong)})
    patch.setattr("p2psip.nat.ice_credentials.StunMessage", wrongly)


@by_udp(
    *("answer_is_signed", "conflict_is_signed", "error_to_a_signed_check_is_signed"),
    *("consent_is_given_again_and_again",),
)
def signs_nothing(patch):
    written(patch, lambda kind, at, what, more: (kind, at, what, {"fingerprint": True}))


@by_udp("answer_has_a_fingerprint_of_stun", "fingerprint_is_the_last")
def has_no_fingerprint_of_stun(patch):
    written(patch, lambda kind, at, what, more: (kind, at, what, more | {"fingerprint": False}))


@by_udp("answer_has_the_transaction_of_the_check", "repeated_check_has_the_same_answer")
def has_its_own_transactions(patch):
    count = iter(range(1000))
    written(
        patch,
        lambda kind, at, what, more: (kind, next(count).to_bytes(12, "big"), what, more),
    )


@by_udp(
    *("error_has_a_class_of_3_to_6", "error_has_a_number_below_100"),
    *("reserved_bits_of_an_error_are_zero", "unknown_attribute_has_420"),
    *("controlled_page_with_a_large_tie_breaker_has_487", "error_names_the_unknown_attribute"),
    *("error_names_all_unknown_attributes", "conflict_is_signed"),
)
def has_odd_errors(patch):
    odd = ((StunType.ERROR_CODE, b"\1\1\xff\xff"),)
    written(
        patch,
        lambda kind, at, what, more: (kind, at, odd if kind is StunClass.ERROR else what, more),
    )


@by_udp(
    *("wrong_password_has_no_success", "unsigned_check_has_no_success"),
    *("changed_check_has_no_success", "password_of_another_session_has_no_success"),
)
def minds_no_signature(patch):
    patch.setattr(StunMessage, "integrity_holds", lambda *_: True)


@by_udp(
    *("unknown_user_has_no_success", "user_without_a_colon_has_no_success"),
    *("names_in_the_other_order_have_no_success", "user_name_has_its_case"),
    *("beginning_of_a_user_name_has_no_success", "check_without_a_user_has_no_success"),
    *("wrong_fingerprint_has_no_answer",),
)
def minds_no_name(patch):
    find = lambda names: next(reversed(names.values()), None)  # noqa: E731
    take = WebRtcSide._check

    def check(self, data, source, now):
        kept, self._by_name = (
            self._by_name,
            type("Any", (dict,), {"get": lambda s, _: find(s)})(self._by_name),
        )
        try:
            take(self, data, source, now)
        finally:
            self._by_name = kept

    patch.setattr(WebRtcSide, "_check", check)
    patch.setattr(IceCredentials, "names", lambda *_: True)


@by_udp("stranger_gets_no_more_than_it_sends")
def tells_strangers_much(patch):
    refuse = IceCredentials.refuse
    much = ((StunType.SOFTWARE, bytes(400)),)
    patch.setattr(
        IceCredentials,
        "refuse",
        lambda self, request, code, more=(), *, signed=True: refuse(
            self, request, code, much, signed=signed
        ),
    )


@by_udp(
    *("attributes_behind_the_signature_are_ignored", "role_behind_the_signature_is_ignored"),
)
def reads_behind_the_signature(patch):
    def all_of(attributes):
        return (stun.StunAttribute(kind, value) for _, kind, value in attributes)

    patch.setattr(stun, "_counted", all_of)


@by_udp(
    *("unknown_optional_attribute_does_no_harm", "attribute_without_a_use_does_no_harm"),
    *("attribute_may_have_any_length", "padding_may_have_any_value"),
)
def understands_all_or_nothing(patch):
    known = {StunType.USERNAME, 0x24, 0x25, 0x8029, 0x802A, 8, 0x8028}

    def unknown(self, _):
        return tuple(each.type for each in self.attributes if each.type not in known)

    patch.setattr(StunMessage, "unknown", unknown)


@by_udp("first_of_two_names_counts")
def reads_the_last(patch):
    def get(self, wanted):
        return next((value for kind, value in reversed(self.attributes) if kind == wanted), None)

    patch.setattr(StunMessage, "get", get)


@by_udp("ended_session_answers_no_check")
def never_forgets(patch):
    patch.setattr(WebRtcSide, "detach", lambda *_: None)


@by_udp(
    *("other_cookie_has_no_answer", "longer_length_has_no_answer", "cut_message_has_no_answer"),
    *("set_top_bit_has_no_answer", "datagram_of_no_range_has_no_answer"),
    *("empty_datagram_has_no_answer", "attribute_beyond_the_end_has_no_answer"),
    *("wrong_fingerprint_has_no_answer",),
)
def answers_whatever_comes(patch):
    take = WebRtcSide.take

    def answer(self, data, source, now):
        take(self, data, source, now)
        self._send(StunMessage.write(StunClass.ERROR, BINDING, bytes(12)).data, source)

    patch.setattr(WebRtcSide, "take", answer)


def judge(protocol, names, within=lambda application: application):
    """The verdicts of the cases that a suite has of these."""
    suite = SUITES[protocol]
    cases = [each for each in suite.cases if each.name in names]
    with web_server(within) as root:
        return run(suite, f"{root}/{PLACES[protocol]}", cases, 3) if cases else []


def unseen(results):
    return {
        each.case.name: (each.outcome, each.got)
        for each in results
        if each.outcome is not Outcome.UNMET
    }


@pytest.mark.parametrize("fault", BY_HTTP)
def test_a_wrong_server_is_found(fault):
    change, found = BY_HTTP[fault]
    results = [
        result
        for protocol in SUITES
        for result in judge(protocol, found, lambda application: Wrong(application, change))
    ]
    assert {each.case.name for each in results} == set(found)
    assert unseen(results) == {}


@pytest.mark.parametrize("fault", BY_UDP)
def test_a_wrong_agent_is_found(fault, monkeypatch):
    breaks, found = BY_UDP[fault]
    breaks(monkeypatch)
    monkeypatch.setattr(peer, "PATIENCE", 0.3)
    results = [result for protocol in SUITES for result in judge(protocol, found)]
    assert {each.case.name for each in results} == set(found)
    assert unseen(results) == {}


def test_each_case_has_a_server_that_it_finds():
    seen = {name for _, names in [*BY_HTTP.values(), *BY_UDP.values()] for name in names}
    assert {case.name for suite in SUITES.values() for case in suite.cases} - seen == set()
