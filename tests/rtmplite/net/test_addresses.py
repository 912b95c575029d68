"""HOST:PORT."""

import argparse

import pytest
from support.host_ports import BAD, GOOD

from rtmplite.errors import LocalError
from rtmplite.net.addresses import listener, parse, written


@pytest.mark.parametrize("text", GOOD)
def test_addresses(text):
    """Names, numbers, and IPv6 in brackets; written as they are read."""
    assert parse(text) == listener(text) == GOOD[text]
    assert written(*GOOD[text]) == text


@pytest.mark.parametrize("text", BAD)
def test_a_mistake_is_answered_by_the_right_form(text):
    """One line for the operator, who has typed a port, a URL, or IPv6 without brackets."""
    with pytest.raises(LocalError) as caught:
        parse(text)
    assert BAD[text] in str(caught.value)
    with pytest.raises(argparse.ArgumentTypeError) as said:
        listener(text)
    assert str(said.value) == str(caught.value)


def test_a_listener_may_be_off():
    """And is none then."""
    assert listener("off") is None
