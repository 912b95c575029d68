"""What the gateway sends to somebody who never asked: a stranger forges the source of one request.

Own design: each kind of request comes once from an address that then stays silent, and everything
that is sent there until the gateway gives up is counted.  Each factor, in datagrams and in octets,
stays below 3.  `pytest -s` shows the table.
"""

import gevent
import pytest
from support.attacks.hostile_sip import SPEEX, SipAttacker, sdp
from support.gateway.accounts import users_file
from support.gateway.richclient import RichClient
from support.peers.process import PATIENCE

from p2psip.nat.stun import BINDING, StunClass, StunMessage
from rtmplite.net.client.rtmp_client import RtmpClient

T1 = ("--sip-t1", "10")  # ms: it gives up after 0.64 s
SILENCE = 1.0  # s without a datagram, longer than any pause between two
OFFER = sdp(SPEEX.format(port=40000))
PRACKS = {"Require": "100rel", "Supported": "100rel"}
STUN = StunMessage.write(StunClass.REQUEST, BINDING, bytes(12), fingerprint=True).data


class Victim(SipAttacker):
    """Sends one request, and counts what comes of it."""

    def factors(self, data, is_answered):
        """(datagrams, octets) that came for each that was sent, until there is silence."""
        self.send(data)
        count = size = 0
        while answer := self.heard(PATIENCE if is_answered and not count else SILENCE):
            count, size = count + 1, size + len(answer)
        return count, size / len(data)


def table(server, requests, silent=()):
    """The factors of each kind of request, measured all at once: {name: (datagrams, octets)}."""

    def measured(name, method, uri, fields):
        victim = Victim(server)
        data = method if isinstance(method, bytes) else victim.request(method, uri, **fields)
        return victim.factors(data, name not in silent)

    jobs = {name: gevent.spawn(measured, name, *request) for name, request in requests.items()}
    found = {name: job.get(timeout=2 * PATIENCE) for name, job in jobs.items()}
    for name, (count, size) in found.items():
        print(f"| {name:40} | {count:9} | {size:6.2f} |")
    return found


def judge(server, requests, silent=()):
    """Each below 3, and an answer to all that deserve one."""
    found = table(server, requests, silent)
    assert not {name: each for name, each in found.items() if max(each) >= 3}
    assert {name for name, (count, _) in found.items() if not count} == set(silent)


def test_nobody_is_sent_three_times_what_he_sent(gateway):
    """Covers RFC 3261 §26.3.2.4; of a gateway that serves everybody."""
    server = gateway(*T1, "--answer-timeout", "2")
    ours, bob = f"sip:{server.sip}", f"sip:bob@{server.sip}"
    waiting = RtmpClient.connect(server.url("call"))
    for name in ("radio", "other"):  # each takes one call
        waiting.create_stream().publish(name)
    ringing = [RichClient(server.rtmp, f"{name}@127.0.0.1") for name in ("bob", "carol")]
    radio = f"sip:radio@{server.sip}"
    no_sdp = "v=0\r\n"
    call = {"body": OFFER}
    short = (
        f"REGISTER {ours} SIP/2.0\r\nv:SIP/2.0/UDP a;branch=z9hG4bKa;rport\r\nf:<sip:a@a>;tag=1\r\n"
        f"t:<sip:a@a>\r\ni:1\r\nCSeq:1 REGISTER\r\nl:0\r\n\r\n"
    )
    requests = {
        "OPTIONS": ("OPTIONS", ours, {}),
        "OPTIONS to nobody": ("OPTIONS", f"sip:nobody@{server.sip}", {}),
        "REGISTER": ("REGISTER", ours, {"To": f"<{bob}>"}),
        "INVITE to nobody (480)": ("INVITE", f"sip:nobody@{server.sip}", call),
        "INVITE elsewhere (403)": ("INVITE", "sip:x@192.0.2.1", {"Route": f"<{ours};lr>"}),
        "INVITE without a codec (488)": ("INVITE", radio, {"body": sdp("")}),
        "INVITE with no SDP (4xx)": ("INVITE", radio, {"body": no_sdp.encode()}),
        "INVITE to a name that answers": ("INVITE", radio, call),
        "INVITE to a client that rings": ("INVITE", bob, call),
        "BYE": ("BYE", radio, {"To": f"<{radio}>;tag=x"}),
        "CANCEL": ("CANCEL", radio, {}),
        "SUBSCRIBE": ("SUBSCRIBE", radio, {"Event": "presence"}),
        "MESSAGE": ("MESSAGE", radio, {}),
        "ACK": ("ACK", radio, {}),
        "a request that is broken": ("OPTIONS", ours, {"CSeq": "x"}),
        "a request of 150 octets": (short.encode(), "", {}),
        "garbage": (b"\xff" * 500, "", {}),
        "INVITE that wants PRACKs, answered": (
            "INVITE",
            f"sip:other@{server.sip}",
            call | PRACKS,
        ),
        "INVITE that wants PRACKs, rings": ("INVITE", f"sip:carol@{server.sip}", call | PRACKS),
        "PRACK": ("PRACK", radio, {"To": f"<{radio}>;tag=x", "RAck": "1 1 INVITE"}),
        "REFER": ("REFER", radio, {"Refer_To": "<sip:x@192.0.2.1>"}),
        "REGISTER with a long Path": (
            "REGISTER",
            ours,
            {"To": f"<{bob}>", "Supported": "path", "Path": ", ".join([f"<{ours};lr>"] * 20)},
        ),
        "INVITE to a GRUU of nobody": ("INVITE", f"{bob};gr=urn:uuid:0", call),
        "STUN": (STUN, "", {}),
        "STUN, broken": (STUN[:-4], "", {}),
    }
    judge(server, requests, {"ACK", "garbage", "STUN, broken"})
    server.wait_status({"transactions": 0, "dialogs": 0})
    for client in ringing:
        client.close()
    waiting.close()


def test_nor_by_a_gateway_with_users(gateway, tmp_path):
    """Covers RFC 3261 §26.3.2.4: a challenge is sent once."""
    server = gateway(*T1, "--users", users_file(tmp_path, "alice", "bob"))
    ours, bob = f"sip:{server.sip}", f"sip:bob@{server.sip}"
    as_alice = {"From": f"<sip:alice@{server.sip}>;tag=1"}
    guess = (
        'Digest username="alice", realm="127.0.0.1", nonce="1.2.3", uri="sip:127.0.0.1",'
        f' response="{"0" * 32}"'
    )
    requests = {
        "REGISTER (401)": ("REGISTER", ours, {"To": f"<{bob}>"}),
        "REGISTER, a guess": ("REGISTER", ours, {"To": f"<{bob}>", "Authorization": guess}),
        "INVITE of a user (407)": ("INVITE", bob, {"body": OFFER} | as_alice),
        "INVITE of a user, a guess": (
            "INVITE",
            bob,
            {"body": OFFER, "Proxy-Authorization": guess} | as_alice,
        ),
    }
    judge(server, requests)
    server.wait_status({"transactions": 0})


@pytest.mark.parametrize("lost", [0, 1, 2, 4])
def test_an_honest_stranger_gets_through_the_losses(gateway, lost):
    """Covers RFC 3261 §17.1.1.2: an INVITE that hears nothing is said again, and pays for more."""
    server = gateway(*T1)
    with_radio = RtmpClient.connect(server.url("call"))
    with_radio.create_stream().publish("radio")
    caller = SipAttacker(server)
    invite = caller.request("INVITE", f"sip:radio@{server.sip}", body=OFFER)
    caller.send(invite)
    for _ in range(lost):
        assert caller.heard() is not None  # and took no notice
        caller.send(invite)
    while not (answer := caller.heard()).startswith(b"SIP/2.0 200"):
        pass
    caller.send(
        caller.request(
            "ACK",
            f"sip:radio@{server.sip}",
            **{
                name: answer.decode().split(f"\r\n{name}: ")[1].split("\r\n")[0]
                for name in ("From", "To", "Call-ID")
            },
        )
    )
    with_radio.close()
    heard = iter(caller.heard, None)
    assert any(message.startswith(b"BYE") for message in heard)  # the ACK told that it is heard


@pytest.mark.parametrize(("octets", "copies"), [(420, 1), (330, 2)])
def test_an_invite_without_an_offer_is_answered_by_the_datagram_that_pays(gateway, octets, copies):
    """Covers RFC 3261 §13.3.1.4: the 200 has less than three times 420."""
    server = gateway("--room", "team", "--sip-t1", "4000")  # ms: nothing is repeated meanwhile
    with_radio = RtmpClient.connect(server.url("call"))
    with_radio.create_stream().publish("radio")
    for name in ("team", "radio"):
        caller, uri = SipAttacker(server), f"sip:{name}@{server.sip}"
        short = caller.request("INVITE", uri, Subject="")
        subject = "x" * (octets - len(short))
        invite = short.replace(b"Subject: ", b"Subject: " + subject.encode())
        for _ in range(copies):
            caller.send(invite)
        answer = caller.heard()
        assert answer is not None and answer.startswith(b"SIP/2.0 200 ")
        assert len(answer) < 3 * copies * octets
        assert b"L16/" not in answer and b"mpeg4-generic/" not in answer
    with_radio.close()
