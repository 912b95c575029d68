"""Phones that leave something out of what they say: raw datagrams to a real gateway."""

import re

import pytest
from support.attacks.hostile_sip import Callee, sdp
from support.gateway.richclient import RichClient

SOUND = "m=audio 40000 RTP/AVP 0\r\n"
UNUSED = (
    *("m=video 0 RTP/AVP", "m=image 0 udptl", "m=video 0 RTP/AVP\r\nm=image 0 udptl"),
    *("a=", "a=:x", "b=AS:", "b=AS:64k", "i=a\r\ni=b", "t=0 0", "a=rtcp-mux "),
)
TOP = ("t=", "i=a\r\ni=b", "b=AS:", "o=phone")
ODD = [*(sdp(f"{SOUND}{line}\r\n") for line in UNUSED)]
ODD += [sdp(SOUND).replace(b"t=0 0", line.encode()) for line in TOP]
ODD += [sdp("m=audio 40000 RTP/AVP 96\r\na=rtpmap:96 G722/16000\r\n"), sdp(SOUND, "phone.example")]


@pytest.fixture
def server(gateway, tmp_path):
    """A gateway where a stream takes each call to news."""
    path = tmp_path / "siprtmp.toml"
    path.write_text('[[route]]\nmatch = "news@127.0.0.1"\nstream = "show"\n')
    return gateway("--config", str(path))


def within(phone, request, method, answer, number):
    """A request in the dialog that an answer has made."""
    to = re.search(rb"\r\nTo: ([^\r]*)", answer)[1].decode()
    call_id = re.search(rb"\r\nCall-ID: ([^\r]*)", request)[1].decode()
    from_ = re.search(rb"\r\nFrom: ([^\r]*)", request)[1].decode()
    fields = {"To": to, "Call_ID": call_id, "From": from_, "CSeq": f"{number} {method}"}
    return lambda **more: phone.request(method, "sip:news@127.0.0.1", **fields, **more)


def final(phone):
    """The next final response."""
    while (heard := phone.news())[8:9] == b"1":
        continue
    return heard


def test_odd_phones_call(server):
    """Covers RFC 8866 §5.8 and §5.13, Field §"Descriptions with something amiss".

    And Field §"Encodings by another rate": each gets its answer, with a line for each of its own.
    """
    for body in ODD:
        phone = Callee(server)
        invite = phone.request("INVITE", "sip:news@127.0.0.1", body=body)
        phone.send(invite)
        answer = final(phone)
        assert answer.startswith(b"SIP/2.0 200"), body
        assert answer.count(b"\r\nm=") == body.count(b"\r\nm="), body
        phone.send(within(phone, invite, "ACK", answer, 1)())
        keys = within(phone, invite, "INFO", answer, 2)
        phone.send(keys(body=b"Signal=10\r\n", Content_Type="application/dtmf-relay"))
        assert final(phone).startswith(b"SIP/2.0 200")
        keys = within(phone, invite, "INFO", answer, 3)
        phone.send(keys(body=b"5", Content_Type="text/plain"))
        refused = final(phone)
        assert refused.startswith(b"SIP/2.0 415") and b"application/dtmf-relay" in refused
        phone.send(within(phone, invite, "BYE", answer, 4)())
        assert final(phone).startswith(b"SIP/2.0 200")
    server.wait_status({"calls": 0, "media_legs": 0})


def test_odd_phones_answer(server):
    """Covers Field §"Answers with fewer lines" and §"Descriptions with something amiss".

    A door station answers with lines that nobody has offered, and the call is up.
    """
    client = RichClient(server.rtmp, "alice@127.0.0.1")
    for body in ODD:
        phone = Callee(server)
        client.call("invite", f"sip:door@127.0.0.1:{phone.port}", "pcmu", "g722")
        phone.respond(phone.invite(), "200 OK", body=body)
        heard = "aac" if b"G722" in body else "pcmu"  # what the client hears
        assert client.expect("accepted")[0] == heard, body
        client.call("bye")
        phone.drain()
    client.close()
    server.wait_status({"calls": 0, "media_legs": 0})
