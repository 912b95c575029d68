"""What a user agent announces, and how it meets what it does not know."""

import pytest
from support.sip.flows import B, ack, called, first_request, settle, within

from p2psip.ua.extensions import Extensions, listed
from p2psip.ua.request_validation import RefusalError


def test_an_unknown_option_is_refused_by_name():
    ours = Extensions(options=("100rel", "timer"))
    ours.refuse_unknown(first_request(Require="100rel"))
    with pytest.raises(RefusalError) as refusal:
        ours.refuse_unknown(first_request(Require="100rel, teleport, fold"))
    assert refusal.value.headers == [("Unsupported", "teleport, fold")]


def test_a_dialog_begins_with_the_list_of_info_packages():
    """Covers RFC 6086 §5.2.2 [lists-packages] [empty-list]."""
    link, script, bob, invite, response = called()
    assert response.headers.values("Recv-Info") == ("",) and "Supported" not in response.headers
    assert "INFO" in response.headers["Allow"]
    script.say(ack(invite, response), B)
    settle(link, bob)
    ours = Extensions(info_packages=("dtmf", "trickle-ice"))
    assert ("Recv-Info", "dtmf, trickle-ice") in ours.headers()


def test_an_info_of_an_unknown_package_is_refused_with_the_list():
    """Covers RFC 6086 §4.2.2 [469-lists-packages] and §5.2.2 [stays-prepared]."""
    link, script, bob, invite, response = called()
    script.say(ack(invite, response), B)
    bob.agent.extensions = Extensions(info_packages=("dtmf",))
    answer = script.say(within(invite, response, "INFO", 2, Info_Package="fax"), B)
    assert (answer.status, answer.headers["Recv-Info"]) == (469, "dtmf")
    answer = script.say(within(invite, response, "INFO", 3, Info_Package="DTMF;x=1"), B)
    assert answer.status == 200 and bob.log[-1][0] == "info" and bob.log[-1][-1] == "dtmf"
    assert [event for event in bob.events() if event == "info"] == ["info"]
    settle(link, bob)


def test_a_list_is_read_in_any_case_and_on_any_number_of_lines():
    request = first_request(extra=[("Recv-Info", "A, b"), ("Recv-Info", "")])
    assert listed(request, "Recv-Info") == {"a", "b"}
    assert listed(request, "Supported") is None
