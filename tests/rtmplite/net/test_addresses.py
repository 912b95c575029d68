"""HOST:PORT."""

import pytest

from rtmplite.errors import LocalError
from rtmplite.net.addresses import parse


def test_addresses():
    """Names, numbers and brackets."""
    assert parse("localhost:80") == ("localhost", 80)
    assert parse("[::1]:0") == ("::1", 0)


@pytest.mark.parametrize("text", ["", "x", ":1", "x:", "x:y", "x:-1", "x:65536"])
def test_what_is_none(text):
    """One line for the operator."""
    with pytest.raises(LocalError):
        parse(text)
