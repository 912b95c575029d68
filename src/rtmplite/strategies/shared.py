"""Shared object messages of every kind: RTMP 1.0 §7.1.3."""

from typing import cast

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from rtmplite.rtmp.shared_object import (
    Change,
    Clear,
    Event,
    Flags,
    OtherEvent,
    Release,
    Remove,
    RequestChange,
    RequestRemove,
    SendMessage,
    SharedObject,
    Status,
    Success,
    Use,
    UseSuccess,
)
from rtmplite.strategies import amf

_NAMES = st.text(max_size=8)
_BARE = st.sampled_from([Use(), Release(), Clear(), UseSuccess()])


def events() -> SearchStrategy[Event]:
    """One event of any type, listed in RTMP 1.0 §7.1.3 or not."""
    values = amf.values(max_leaves=4)
    return cast(
        SearchStrategy[Event],
        st.one_of(
            _BARE,
            st.builds(RequestChange, _NAMES, values),
            st.builds(Change, _NAMES, values),
            st.builds(Success, _NAMES),
            st.builds(SendMessage, st.lists(values, max_size=3).map(tuple)),
            st.builds(Status, _NAMES, _NAMES),
            st.builds(Remove, _NAMES),
            st.builds(RequestRemove, _NAMES),
            st.builds(OtherEvent, st.integers(12, 255), st.binary(max_size=8)),
        ),
    )


def messages() -> SearchStrategy[SharedObject]:
    """One message with some events: RTMP 1.0 §7.1.3."""
    return st.builds(
        SharedObject,
        _NAMES,
        st.integers(0, 0xFFFFFFFF),
        st.integers(0, 0xFFFFFFFF).map(Flags),
        st.lists(events(), max_size=6).map(tuple),
    )
