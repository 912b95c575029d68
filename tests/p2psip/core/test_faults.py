"""What once brought an error of ours to light: it is answered now, and leaves nothing."""

import pytest
from support.sip.homes import FAR, HOME, Home, finals, request

from p2psip.sip.message import parse_message
from p2psip.stack.stack import Flow, Locate


@pytest.mark.parametrize("way", ["home", "10.0.0.1", "::1", "1.2.3.4%25x", "mirror", ""])
def test_a_way_that_leads_back_to_us(way):
    """Covers RFC 3261 §16.3: what comes to us by `maddr` is judged as what comes from abroad."""
    home = Home()
    message = request("INVITE", f"sip:bob@elsewhere;maddr={way}")
    sent = home.hear(message, source="127.0.0.1") + home.wait(until=300.0)
    assert finals(sent) and home.idle
    assert not [to for _, to, _ in sent if to == FAR]


@pytest.mark.parametrize("flows", [[], [Flow("UDP", (FAR, 5060))]])
def test_a_call_that_is_given_up_while_its_way_is_looked_up(flows):
    """Covers RFC 3261 §9.1 and §9.2: nothing is sent on, and 487 is said without waiting."""
    home = Home()
    source, invite = Flow("UDP", ("127.0.0.1", 5060), (HOME, 5060)), request(uri="sip:bob@far")
    cancel = invite.replace(
        method="CANCEL", headers=invite.headers.with_("CSeq", "1 CANCEL")
    )  # of the same branch
    home.stack.receive(bytes(invite), source, 1.0)
    [locate] = home.stack.take_orders()
    assert isinstance(locate, Locate)
    home.stack.receive(bytes(cancel), source, 1.1)
    home.stack.tick(1.1)
    said = [parse_message(order.data).status for order in home.stack.take_orders()]
    assert said == [200, 487]
    home.stack.located(locate.token, flows, 2.0)
    assert home.stack.take_orders() == []
    assert {message.status for message, *_ in home.wait(until=100.0)} == {487} and home.idle
