"""Servers are found as RFC 3263 says: what is asked, in which order, and what comes of it."""

import random
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from p2psip.errors import LocalError
from p2psip.sip.uri import Uri
from p2psip.stack.locate import MAX_HOPS, Hop, Locator, Naptr, Srv, in_order
from p2psip.transaction.flow import Flow

ALL = ("UDP", "TCP", "TLS")
ZONE = {  # the example of RFC 3263 §4.1, with addresses
    "example.com NAPTR": [
        Naptr(100, 50, "s", "SIP+D2U", "", "_sip._udp.example.com"),
        Naptr(50, 50, "s", "SIPS+D2T", "", "_sips._tcp.example.com"),
        Naptr(90, 50, "s", "SIP+D2T", "", "_sip._tcp.example.com"),
    ],
    "_sips._tcp.example.com SRV": [Srv(0, 1, 5061, "server1.example.com")],
    "_sip._tcp.example.com SRV": [
        Srv(1, 0, 5060, "server1.example.com"), Srv(0, 0, 5062, "server2.example.com"),
    ],
    "_sip._udp.example.com SRV": [Srv(0, 0, 5060, "server1.example.com")],
    "server1.example.com A": ["192.0.2.1", "192.0.2.3"],
    "server1.example.com AAAA": ["2001:db8::1"],
    "server2.example.com A": ["192.0.2.2"],
    "plain.example.com A": ["192.0.2.9"],
    "_sip._udp.gone.example.com SRV": [Srv(0, 0, 0, "")],
    "gone.example.com A": ["192.0.2.9"],
    "_sip._tcp.some.example.com SRV": [Srv(0, 0, 5070, "192.0.2.8")],
}  # fmt: skip


def walk(locator, zone=ZONE):
    """Answer from a zone; give the questions, round by round, and the hops as short text."""
    rounds = []
    while locator.questions:
        rounds.append([str(question) for question in locator.questions])
        locator.answer([zone.get(str(question), []) for question in locator.questions])
    return rounds, [f"{hop.transport} {hop.host} {hop.port}" for hop in locator.hops]


def search(uri, transports=("UDP", "TCP"), families=("A",), zone=ZONE):
    """The same for the servers of a URI."""
    return walk(
        Locator.of_uri(Uri.parse(uri), random=bytes, transports=transports, families=families),
        zone,
    )


@pytest.mark.parametrize(
    ("uri", "transports", "hops"),
    [
        ("sip:192.0.2.5", ALL, ["UDP 192.0.2.5 5060"]),
        ("sip:192.0.2.5:5080", ALL, ["UDP 192.0.2.5 5080"]),
        ("sip:a@[2001:db8::5]:5080", ALL, ["UDP 2001:db8::5 5080"]),
        ("sip:192.0.2.5;transport=tcp", ALL, ["TCP 192.0.2.5 5060"]),
        ("sip:192.0.2.5;transport=TLS", ALL, ["TLS 192.0.2.5 5061"]),
        ("sips:192.0.2.5", ALL, ["TLS 192.0.2.5 5061"]),
        ("sips:192.0.2.5", ("TCP", "TLS"), ["TLS 192.0.2.5 5061"]),
        ("sips:192.0.2.5;transport=tcp", ALL, ["TLS 192.0.2.5 5061"]),
        ("sip:example.com;maddr=192.0.2.6", ALL, ["UDP 192.0.2.6 5060"]),
        ("sip:192.0.2.5", ("TCP", "UDP"), ["UDP 192.0.2.5 5060"]),
        ("sip:192.0.2.5", ("TCP", "TLS"), ["TCP 192.0.2.5 5060"]),
        ("sip:192.0.2.5", ("TCP",), ["TCP 192.0.2.5 5060"]),
        ("sip:192.0.2.5;transport=tcp", ("UDP",), []),
        ("sip:192.0.2.5;transport=sctp", ALL, []),
        ("sips:192.0.2.5", ("UDP", "TCP"), []),
        ("sips:192.0.2.5;transport=udp", ALL, []),
        ("sip:192.0.2.5", ("SCTP",), []),
        ("tel:+15551234", ALL, []),
        ("http://example.com/", ALL, []),
    ],
)
def test_nothing_to_ask(uri, transports, hops):
    """Covers RFC 3263 §4.1 and §4.2: numbers, named transports, SIPS.

    Covers RFC 3263 §4.1 [named-transport] [number-by-udp].
    """
    assert search(uri, transports) == ([], hops)


@pytest.mark.parametrize(
    ("uri", "transport"),
    [
        ("sip:plain.example.com:5060", "UDP"),
        ("sip:plain.example.com:5060;transport=tcp", "TCP"),
        ("sips:plain.example.com:5060", "TLS"),
    ],
)
def test_an_explicit_port_needs_addresses_only(uri, transport):
    """Covers RFC 3263 §4.1 and §4.2.

    Covers RFC 3263 §4.1 [port-by-udp].
    """
    rounds, hops = search(uri, ALL)
    assert rounds == [["plain.example.com A"]] and hops == [f"{transport} 192.0.2.9 5060"]


def test_the_example_of_the_rfc():
    """Covers RFC 3263 §4.1 and §4.2: TCP and UDP supported, so TCP it is.

    Covers RFC 3263 §4.1 [asks-naptr] [only-our-transports].
    """
    rounds, hops = search("sip:user@example.com")
    assert rounds == [
        ["example.com NAPTR"], ["_sip._tcp.example.com SRV"],
        ["server2.example.com A", "server1.example.com A"],
    ]  # fmt: skip
    assert hops == ["TCP 192.0.2.2 5062", "TCP 192.0.2.1 5060", "TCP 192.0.2.3 5060"]


def test_secure_records_serve_sip_uris_too():
    """Covers RFC 3263 §4.1: "SIPS" records are kept for a SIP URI if we have TLS.

    Covers RFC 3263 §4.1 [sip-takes-sips].
    """
    for scheme in ("sip", "sips"):
        _, hops = search(f"{scheme}:user@example.com", ALL)
        assert hops == ["TLS 192.0.2.1 5061", "TLS 192.0.2.3 5061"]


def test_a_sips_uri_takes_no_other_records():
    """Covers RFC 3263 §4.1: "SIP" services are discarded; then SRV, then TLS.

    Covers RFC 3263 §4.1 [sips-wants-sips].
    """
    zone = {key: value for key, value in ZONE.items() if "_sips" not in key}
    zone["example.com NAPTR"] = zone["example.com NAPTR"][::2]
    zone["example.com A"] = ["192.0.2.4"]
    rounds, hops = search("sips:user@example.com", ALL, zone=zone)
    assert rounds[1:] == [["_sips._tcp.example.com SRV"], ["example.com A"]]
    assert hops == ["TLS 192.0.2.4 5061"]


def test_records_of_one_order_stay_together():
    """Covers RFC 3403 §4.1 [by-order] [then-by-preference] [only-what-we-speak] [one-order-alone]
    [not-both], §4.2.2 [needs-no-additions], §8 [in-their-order] [not-the-first-that-fits].
    """
    zone = ZONE | {
        "example.com NAPTR": [
            Naptr(10, 20, "S", "sip+d2u", "", "_sip._udp.example.com"),
            Naptr(10, 10, "s", "SIP+D2T", "", "_sip._tcp.example.com"),
            Naptr(20, 1, "s", "SIPS+D2T", "", "_sips._tcp.example.com"),
            Naptr(1, 1, "u", "SIP+D2U", "", "_sip._udp.elsewhere.example"),
            Naptr(1, 1, "s", "SIP+D2U", "!.*!x!", "_sip._udp.elsewhere.example"),
            Naptr(1, 1, "s", "SIP+D2S", "", "_sip._sctp.elsewhere.example"),
            Naptr(1, 1, "s", "E2U+sip", "", "elsewhere.example"),
            Naptr(1, 1, "s", "SIP+D2U", "", ""),
        ]
    }
    rounds, hops = search("sip:user@example.com", ALL, zone=zone)
    assert rounds[1] == ["_sip._tcp.example.com SRV", "_sip._udp.example.com SRV"]
    assert hops[0] == "TCP 192.0.2.2 5062" and hops[-1] == "UDP 192.0.2.3 5060"


def test_without_naptr_every_transport_is_asked_for():
    """Covers RFC 3263 §4.1: in our order of preference, without TLS for a SIP URI."""
    zone = {key: value for key, value in ZONE.items() if "NAPTR" not in key}
    rounds, hops = search("sip:user@example.com", ALL, zone=zone)
    assert rounds[1] == ["_sip._udp.example.com SRV", "_sip._tcp.example.com SRV"]
    assert hops[0] == "UDP 192.0.2.1 5060" and "TCP 192.0.2.2 5062" in hops
    rounds, _ = search("sip:user@example.com", ("TLS",), zone=zone)
    assert rounds == [["example.com NAPTR"], ["example.com A"]]


def test_without_srv_the_address_of_the_domain():
    """Covers RFC 3263 §4.1 and §4.2: UDP and the default port.

    Covers RFC 3263 §4.1 [udp-without-srv].
    """
    rounds, hops = search("sip:bob@PLAIN.example.com")
    assert len(rounds) == 3 and rounds[-1] == ["plain.example.com A"]
    assert hops == ["UDP 192.0.2.9 5060"]


def test_a_named_transport_skips_naptr():
    """Covers RFC 3263 §4.2: one SRV question, "_sips" for TLS."""
    rounds, hops = search("sip:example.com;transport=tcp")
    assert rounds[0] == ["_sip._tcp.example.com SRV"] and hops[0] == "TCP 192.0.2.2 5062"
    rounds, _ = search("sip:example.com;transport=tls", ALL)
    assert rounds[0] == ["_sips._tcp.example.com SRV"]
    _, hops = search("sip:plain.example.com;transport=tcp")
    assert hops == ["TCP 192.0.2.9 5060"]


def test_a_service_that_is_not_there():
    """Covers RFC 2782 §"The format of the SRV RR": a root target is a plain no."""
    rounds, hops = search("sip:gone.example.com;transport=udp")
    assert rounds == [["_sip._udp.gone.example.com SRV"]] and hops == []


def test_address_families():
    """Covers RFC 3263 §4.2: A, AAAA or both, as we can reach them.

    And RFC 2782 §"Notes:" [asks-for-addresses].
    """
    _, hops = search("sip:server1.example.com:5060", families=("AAAA", "A"))
    assert hops == ["UDP 2001:db8::1 5060", "UDP 192.0.2.1 5060", "UDP 192.0.2.3 5060"]
    _, hops = search("sip:some.example.com;transport=tcp")
    assert hops == ["TCP 192.0.2.8 5070"]  # an address as SRV target, against RFC 2782


def test_hops_know_the_domain_and_the_flow():
    """Covers RFC 3263 §4.1: the certificate is for the domain that was asked for."""
    locator = Locator.of_uri(Uri.parse("sips:example.com"), random=bytes, transports=ALL)
    walk(locator)
    hop = locator.hops[0]
    assert hop == Hop("TLS", "192.0.2.1", 5061, "example.com")
    assert hop.flow == Flow("TLS", ("192.0.2.1", 5061), domain="example.com")


@pytest.mark.parametrize(
    ("uri", "asked", "hop"),
    [
        ("sip:192.0.2.5;transport=ws", [], "WS 192.0.2.5 80"),
        ("sip:192.0.2.5:8080;transport=WS", [], "WS 192.0.2.5 8080"),
        ("sip:192.0.2.5;transport=wss", [], "WSS 192.0.2.5 443"),
        ("sips:192.0.2.5;transport=ws", [], "WSS 192.0.2.5 443"),
        ("sip:server1.example.com;transport=ws", [["server1.example.com A"]], "WS 192.0.2.1 80"),
    ],
)
def test_a_server_of_websockets_is_found_by_its_address(uri, asked, hop):
    """Covers RFC 7118 §5.5: its default ports, and no question for services."""
    rounds, hops = search(uri, (*ALL, "WS", "WSS"))
    assert (rounds, hops[:1]) == (asked, [hop])
    assert search(uri, ALL) == ([], [])  # where nothing opens WebSockets


def test_a_hop_by_a_secure_websocket_has_a_name_to_prove():
    """Covers RFC 7118 §5.1."""
    uri = Uri.parse("sip:192.0.2.5;transport=wss")
    [hop] = Locator.of_uri(uri, random=bytes, transports=("WSS",)).hops
    assert hop.flow == Flow("WSS", ("192.0.2.5", 443), domain="192.0.2.5")


def test_answers_must_fit_the_questions():
    """Own design: a mismatch is our caller's bug."""
    locator = Locator.of_uri(Uri.parse("sip:example.com"), random=bytes)
    assert locator.hops is None
    for answers in ([], [[], []]):
        with pytest.raises(LocalError):
            locator.answer(answers)
    done = Locator.of_uri(Uri.parse("sip:192.0.2.1"), random=bytes)
    with pytest.raises(LocalError):
        done.answer([])


srvs = st.builds(
    Srv,
    st.integers(0, 3),
    st.sampled_from([0, 0, 1, 7, 65535]),
    st.integers(0, 65535),
    st.sampled_from(["a.example", "b.example", "", "."]),
)
naptrs = st.builds(Naptr, st.integers(0, 3), st.integers(0, 3), st.sampled_from(["s", "u", ""]),
                   st.sampled_from(["SIP+D2U", "SIP+D2T", "SIPS+D2T"]), st.sampled_from(["", "!"]),
                   st.sampled_from(["_sip._udp.a.example", "a.example", ""]))  # fmt: skip
addresses = st.sampled_from(["192.0.2.1", "2001:db8::1", "not an address", ""])


@given(
    st.sampled_from(["sip:a.example", "sips:a.example", "sip:a.example:5", "sip:1.2.3.4",
                     "sip:a.example;transport=tls", "sip:a.example;transport=x"]),
    st.permutations(ALL), st.data(),
)  # fmt: skip
def test_any_dns_leads_to_an_end(uri, transports, data):
    """Covers RFC 3263 §4: at most three rounds, at most so many hops, all of them usable."""
    locator = Locator.of_uri(Uri.parse(uri), random=bytes, transports=transports,
                             families=("A", "AAAA"))  # fmt: skip
    answers = st.lists(st.one_of(srvs, naptrs, addresses), max_size=40)
    rounds = 0
    while locator.questions:
        assert locator.hops is None and len(locator.questions) <= 2 * MAX_HOPS
        locator.answer([data.draw(answers) for _ in locator.questions])
        rounds += 1
    assert rounds <= 3 and len(locator.hops) <= MAX_HOPS
    event(f"{rounds} rounds, {'some' if locator.hops else 'no'} hops")
    for hop in locator.hops:
        assert hop.transport in transports and 0 < hop.port < 65536
        assert hop.transport == "TLS" or not uri.startswith("sips")


@given(st.lists(srvs, max_size=12), st.randoms(use_true_random=False))
def test_srv_order(records, source):
    """Covers RFC 2782 §"The format of the SRV RR" [lowest-first]: all of them, by priority."""
    result = in_order(records, source.randbytes)
    assert Counter(result) == Counter(records)
    assert all(a.priority <= b.priority for a, b in pairwise(result))


def test_srv_weights_are_chances():
    """Covers RFC 2782 §"The format of the SRV RR" [by-weight] [in-proportion] [by-lot].

    Three to one; zero, now and then.
    """
    two = [Srv(0, 1, 1, "light"), Srv(0, 3, 1, "heavy")]
    lots = [in_order(two, lambda count, lot=lot: lot.to_bytes(count, "big")) for lot in range(10)]
    assert "".join(each[0].target[0] for each in lots) == "llhhhllhhh"  # of five, two are light
    records = [Srv(0, 0, 1, "zero"), Srv(0, 30, 1, "heavy"), Srv(0, 10, 1, "light")]
    source = random.Random(1)
    first = Counter(in_order(records, source.randbytes)[0].target for _ in range(2000))
    assert 2.5 < first["heavy"] / first["light"] < 3.5
    assert 0 < first["zero"] < 150
