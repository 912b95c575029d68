"""Each torture message meets the reaction it deserves, from running elements of three kinds.

The page docs/6-conformance/torture.md has the tables of these tests.
"""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from support.sip.homes import BOB, request, store
from torture.reactions import IPV6, PAGE, TORTURE, page
from torture.rfc_messages import archive, messages
from torture.running import SOURCE, feed, phone, proxy, user_agent

from p2psip.sip.grammar import quote
from p2psip.sip.headers import Headers
from p2psip.sip.message import METHODS, Request, parse_message
from p2psip.sip.uri import Uri
from p2psip.strategies.large import SIP_EXCESSES
from p2psip.strategies.sip_parts import free_text, tokens, uris

LACK_LENGTH = {"inv2543", "baddn"}  # a stream would not know where these end


def named(rows):
    return pytest.mark.parametrize("row", rows, ids=[row.name for row in rows])


@named(TORTURE)
def test_reactions_to_rfc_4475(specs, row):
    """Covers RFC 4475 §3: through all layers, over UDP.

    Covers RFC 4475 §3.3.10 [stray-is-discarded], §3.3.11 [zero-hops-not-forwarded]
    [483-for-zero-hops] [zero-hops-at-the-end].
    """
    data = archive(specs)[row.name]
    assert (str(user_agent(data)), str(proxy(data))) == (row.agent, row.proxy)


@named(IPV6)
def test_reactions_to_rfc_5118(specs, row):
    """Covers RFC 5118 §4: through all layers, over UDP."""
    data = messages(specs)[row.name]
    assert (str(user_agent(data)), str(proxy(data))) == (row.agent, row.proxy)


@named([*TORTURE, *IPV6])
def test_reactions_of_a_phone(specs, row):
    """Covers RFC 4475 §3 and RFC 5118 §4: by the machines of an `Agent`, over UDP."""
    data = {**archive(specs), **messages(specs)}[row.name]
    assert str(phone(data)) == (row.phone or row.agent)


@named([row for row in TORTURE if row.name not in LACK_LENGTH and row.name != "clerr"])
def test_reactions_are_the_same_over_tcp(specs, row):
    """Covers RFC 4475 §3: a stream is framed by the Content-Length; see its other tests."""
    data = archive(specs)[row.name]
    if row.name == "dblreq":  # two messages on a stream, the second of which is cut short
        data = data[: data.index(b"INVITE")]
    assert (str(user_agent(data, "TCP")), str(proxy(data, "TCP"))) == (row.agent, row.proxy)


def test_the_page_has_these_tables():
    """All 49 and all 12 messages, with the reactions of today."""
    assert (len(TORTURE), len(IPV6)) == (49, 12)
    assert PAGE.read_text() == page(PAGE.read_text())


@named([row for row in (*TORTURE, *IPV6) if row.proxy == "forwarded"])
def test_a_proxy_changes_nothing_but_what_it_must(specs, row):
    """Covers RFC 3261 §16.6 and RFC 4475 §3: methods, headers and bodies, octet by octet."""
    data = {**archive(specs), **messages(specs)}[row.name]
    sent = parse_message(data)
    [out] = proxy(data).forwarded
    ours = {"Via", "Max-Forwards", "Max-Breadth", "Record-Route", "Route"}
    assert (out.method, out.body) == (sent.method, sent.body)
    assert [pair for pair in out.headers if pair[0] not in ours] == [
        pair for pair in sent.headers if pair[0] not in ours
    ]
    assert out.headers.all("Via")[2:] == sent.headers.all("Via")[1:]
    assert out.vias[1].received == SOURCE[0]


@given(
    tokens(),
    st.lists(st.tuples(tokens().map("X-".__add__), free_text()), max_size=3),
    uris().map(str),
    st.binary(max_size=40),
)
def test_what_nobody_knows_is_forwarded_as_it_came(method, more, uri, body):
    """Covers RFC 3261 §16.6, §7.3.1 and §20.10: methods, headers, schemes and bodies."""
    assume(method.upper() not in {*METHODS, "SIP"})
    fields = [(name, quote(text)) for name, text in more]
    fields += [("From", f"<{uri}>;tag=1"), ("To", f"<{uri}>"), ("Call-ID", "c")]
    fields += [("CSeq", f"1 {method}"), ("Via", "SIP/2.0/UDP a;branch=z9hG4bK1")]
    sent = Request(method, Uri.parse("sip:bob@example.com"), Headers(fields), body)
    [out] = proxy(bytes(sent)).forwarded
    assert (out.method, out.body) == (method, body)
    for name, value in fields[:-1]:
        assert value in out.headers.values(name)


@named([row for row in TORTURE if row.agent.isdecimal()])
def test_a_response_has_what_its_request_had(specs, row):
    """Covers RFC 3261 §8.2.6.2, for requests however odd: the copied headers, and a tag."""
    [response] = user_agent(archive(specs)[row.name]).responses
    again = parse_message(bytes(response))
    assert again.headers.values("CSeq") and len(again.headers.values("Via")) >= 1
    assert all("tag=" in to for to in again.headers.values("To")[:1] if row.agent[0] == "2")


def test_what_is_not_supported_is_named(specs):
    """Covers RFC 4475 §3.3.5: by the header that speaks to the role of the element."""
    data = archive(specs)["bext01"]
    for element in (user_agent, phone):
        [said] = element(data).responses
        lacking = ("nothingSupportsThis", "nothingSupportsThisEither")
        assert said.headers.all("Unsupported") == lacking
    [said] = proxy(data).responses
    assert said.headers.all("Unsupported") == ("noProxiesSupportThis", "norDoAnyProxiesSupportThis")


@pytest.mark.parametrize("method", ["OPTIONS", "SUBSCRIBE", "REFER", "MESSAGE", "INVITE"])
def test_a_phone_names_what_it_does_not_know(method):
    """Covers RFC 3261 §8.2.2.3 [420-for-unknown] [unknown-are-named]: of known tags none."""
    [said] = phone(bytes(request(method, "sip:bob@home", ("Require", "Timer, nothing")))).responses
    assert (said.status, said.headers["Unsupported"]) == (420, "nothing")


def test_a_phone_tells_what_it_knows():
    """Covers RFC 3261 §11.2."""
    [said] = phone(bytes(request("OPTIONS", "sip:bob@home"))).responses
    assert {"100rel", "timer", "replaces"} <= set(said.headers.all("Supported"))
    assert "REFER" in said.headers.all("Allow") and said.headers["Accept"] == "application/sdp"


@pytest.mark.parametrize(("name", "asked"), [("zeromf", "483"), ("bext01", "420")])
def test_a_proxy_checks_a_request_before_it_looks_for_the_target(specs, name, asked):
    """Covers RFC 3261 §16.3 and RFC 4475 §3.3.5, §3.3.11: where nobody has registered."""
    data = archive(specs)[name].replace(b"sip:user@", b"sip:nobody@", 1)
    assert str(feed(proxy(b"").home, data)) == asked


def test_a_broken_via_is_answered_at_the_source(specs):
    """Covers RFC 4475 §3.1.2.1: the Via goes back as it came."""
    outcome = user_agent(archive(specs)["badinv01"])
    [(response, to, _)] = outcome.sent
    assert to == SOURCE[0] and response.headers["Via"] == "SIP/2.0/UDP 192.0.2.15;;,;,,"


def test_unknown_schemes_in_headers_are_a_registrars_business_alone(specs):
    """Covers RFC 4475 §3.3.4 [any-scheme-is-read] [any-scheme-is-forwarded].

    And RFC 4475 §3.3.4 [registrar-wants-sip], RFC 3261 §8.2.2.1 [any-to].
    """
    data = archive(specs)["unksm2"]
    assert str(proxy(data)) == "400"
    [out] = proxy(data.replace(b"REGISTER", b"OPTIONS").replace(b"sip:", b"sip:user@", 1)).forwarded
    assert (str(out.to.uri), out.from_.uri.scheme) == ("isbn:2983792873", "http")
    assert str(out.contacts[0].uri) == "name:John_Smith"


def test_warnings_and_methods_are_told(specs):
    """Covers RFC 4475 §3.3.15 and RFC 3261 §8.2.1, §21.5.2."""
    [said] = user_agent(archive(specs)["sdp01"]).responses
    assert said.headers["Warning"].startswith("399 ")
    for name in ("esc02", "intmeth", "mpart01"):
        [said] = user_agent(archive(specs)[name]).responses
        assert "INVITE" in said.headers["Allow"]


def test_an_unknown_scheme_of_authorization_is_no_password(specs):
    """Covers RFC 4475 §3.3.7: 401 where passwords count."""
    users = store("j.user", realm="example.com")
    [said] = proxy(archive(specs)["regaut01"], users=users).responses
    assert said.status == 401 and said.headers["WWW-Authenticate"].startswith("Digest")


@pytest.mark.parametrize(
    ("name", "contact"),
    [
        ("cparam01", "<sip:+19725552222@gw1.example.net>;unknownparam"),
        ("cparam02", "<sip:+19725552222@gw1.example.net;unknownparam>"),
        ("regescrt", "<sip:user@example.com?Route=%3Csip:sip.example.com%3E>"),
        ("escnull", "<sip:%00%00@host5.example.com>"),
    ],
)
def test_a_later_query_tells_what_was_registered(specs, name, contact):
    """Covers RFC 4475 §3.3.12 [contact-parameter], §3.3.13 [uri-parameter], §3.1.1.4.

    And §3.3.14 [escaped-headers-are-kept].
    """
    data = archive(specs)[name]
    home = proxy(data).home
    message = parse_message(data)
    query = message.replace(
        headers=message.headers.without("Contact")
        .with_("CSeq", f"{message.cseq.number + 1} REGISTER")
        .with_("Via", "SIP/2.0/TCP a;branch=z9hG4bKquery")
    )
    [said] = feed(home, bytes(query), "TCP").responses
    assert contact in [value.partition(";expires")[0] for value in said.headers.all("Contact")]
    if name == "regescrt":  # the user itself, to which nothing is sent
        assert list(home.registrar.bindings(message.to.uri, 0.0)) == []


def test_a_name_without_quotes_is_forwarded_with_them(specs):
    """Covers RFC 4475 §3.1.2.15 [quotes-added]: a proxy must not repeat the error."""
    [out] = proxy(archive(specs)["baddn"].rstrip(b"\r\n") + b"\r\n\r\n").forwarded
    assert out.headers["From"] == '"Bell, Alexander" <sip:a.g.bell@example.com>;tag=43'
    assert out.headers["To"] == '"Watson, Thomas" <sip:t.watson@example.org>'


def test_a_name_with_quotes_twice_is_forwarded_with_them_once(specs):
    """Covers RFC 4475 §3.1.2.15 [quotes-added] and Field §"Quotes within quotes"."""
    data = archive(specs)["baddn"].rstrip(b"\r\n") + b"\r\n\r\n"
    [out] = proxy(data.replace(b"Bell, Alexander", b'""Bell, Alexander""')).forwarded
    assert out.headers["From"] == '"Bell, Alexander" <sip:a.g.bell@example.com>;tag=43'


@pytest.mark.parametrize("transport", ["UDP", "TCP"])
@pytest.mark.parametrize("excess", SIP_EXCESSES, ids=lambda excess: excess.name)
def test_what_is_too_much_is_refused_and_leaves_nothing(specs, excess, transport):
    """Covers RFC 3261 §21.5.7: 513, or 400 for one value, and no memory."""
    sent = parse_message(archive(specs)["lwsdisp"])
    outcome = proxy(excess.spoil(sent), transport)
    assert outcome.forwarded == []
    assert [each.status for each in outcome.responses] == [excess.status]
    assert outcome.home.idle


def test_a_call_of_an_rfc_2543_client_reaches_its_end(specs):
    """Covers RFC 4475 §3.4.1 [2543-is-taken]: without a Contact it is reached by its From."""
    outcome = user_agent(archive(specs)["inv2543"])
    [call] = outcome.home.agent.core.calls
    assert str(call.dialog.target) == "sip:+13035551111@ift.client.example.net;user=phone"
    assert BOB not in [to for _, to, _ in outcome.sent]
