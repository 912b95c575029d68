"""Header parameters keep their spelling and lose nothing."""

import pytest
from hypothesis import given

from p2psip.errors import RemoteError
from p2psip.sip.grammar import split
from p2psip.sip.params import MAX_PARAMS, drop, find, parse_params, put, write_params
from p2psip.strategies.sip import free_text, header_params, tokens


@given(header_params())
def test_parsing_undoes_writing(params):
    """Covers RFC 3261 §25.1."""
    assert parse_params(split(write_params(params), ";")[1:]) == params


@given(header_params(), tokens(), free_text())
def test_what_is_put_is_found_in_any_capitals_and_dropped(params, name, value):
    """Covers RFC 3261 §7.3.1 [no-parameter-twice] [parameters-have-no-case].

    And RFC 3261 §25.1 [specials-in-quotes].
    """
    more = put(params, name, value)
    assert parse_params(split(write_params(more), ";")[1:]) == more
    assert find(more, name.swapcase()) == value
    assert len(more) == len(params) + (find(params, name) is None)
    assert find(drop(more, name.upper()), name) is None


def test_a_value_keeps_the_quotes_it_came_with():
    """Covers RFC 3261 §7.3.1: a proxy forwards parameters as they were."""
    params = parse_params(['text = "a"', "q=0.5", "lr", "e="])
    assert params == (("text", '"a"'), ("q", "0.5"), ("lr", None), ("e", ""))
    assert [find(params, name) for name in ("text", "lr", "e", "gone")] == ["a", "", "", None]


@pytest.mark.parametrize("piece", [" ", "a b", "=1", 'a="b', 'a="b"c', "a=b c", 'a="b\\"', "a\x00"])
def test_bad_parameters_are_refused(piece):
    """Covers RFC 4475 §3.1.2.1 [empty-values-refused]."""
    with pytest.raises(RemoteError):
        parse_params([piece])


def test_too_many_parameters_are_refused():
    """Own design: memory stays in proportion to the message."""
    assert len(parse_params(["a"] * MAX_PARAMS)) == MAX_PARAMS
    with pytest.raises(RemoteError):
        parse_params(["a"] * (MAX_PARAMS + 1))
