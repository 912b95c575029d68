"""Where the clients are in whose name the gateway registers and calls."""

from support.sip.elements import random_source
from support.sip.homes import register, request

from p2psip.server.digest_server import DigestServer
from p2psip.server.users import UserStore
from p2psip.sip.uri import Uri
from p2psip.transaction.flow import LOCAL, Flow
from siprtmp.calls.access.client_origin import MAX_CALL_IDS, ClientOrigin

HERE = Flow(LOCAL, ("10.0.0.1", 5060))


def test_each_client_is_known_by_its_own_host():
    """Covers RFC 3261 §22.1: so that each waits for its own wrong passwords alone."""
    lines = {Uri.parse("sip:alice@home"): "10.0.0.8"}
    whence = ClientOrigin(lines.get)
    whence.registers("reg", "10.0.0.7")
    assert whence(register()) == "10.0.0.7" and whence(register(call="other")) is None
    assert whence(request()) == "10.0.0.8" and whence(request(user="bob")) is None
    judge = DigestServer(UserStore.parse(""), random_source("w"))
    judge.client_host = whence
    assert judge._host(register(), HERE) == "10.0.0.7"
    forwarded = register().replace(headers=register().headers.prepend("Via", "SIP/2.0/UDP a"))
    assert judge._host(forwarded, HERE) not in ("10.0.0.7", "10.0.0.1")  # where it was before


def test_what_is_remembered_is_bounded():
    whence = ClientOrigin(lambda uri: None)
    for number in range(MAX_CALL_IDS + 10):
        whence.registers(f"r{number}", "10.0.0.7")
    assert len(whence._hosts) == MAX_CALL_IDS and whence(register(call="r3")) is None
