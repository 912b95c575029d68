"""Shared object messages of every kind: RTMP 1.0 §7.1.3."""

from functools import cache
from typing import cast

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from rtmplite.rtmp.wire import shared_object as said
from rtmplite.rtmp.wire.shared_object import Event, Flags, SharedObject
from rtmplite.strategies import amf

_NAMES = st.text(max_size=8)
_BARE = st.sampled_from([said.Use(), said.Release(), said.Clear(), said.UseSuccess()])


@cache
def events() -> SearchStrategy[Event]:
    """One event of any type, listed in RTMP 1.0 §7.1.3 or not."""
    values = amf.values(max_leaves=4)
    return cast(
        SearchStrategy[Event],
        st.one_of(
            _BARE,
            st.builds(said.RequestChange, _NAMES, values),
            st.builds(said.Change, _NAMES, values),
            st.builds(said.Success, _NAMES),
            st.builds(said.SendMessage, st.lists(values, max_size=3).map(tuple)),
            st.builds(said.Status, _NAMES, _NAMES),
            st.builds(said.Remove, _NAMES),
            st.builds(said.RequestRemove, _NAMES),
            st.builds(said.OtherSharedObjectEvent, st.integers(12, 255), st.binary(max_size=8)),
        ),
    )


@cache
def messages() -> SearchStrategy[SharedObject]:
    """One message with some events: RTMP 1.0 §7.1.3."""
    return st.builds(
        SharedObject,
        _NAMES,
        st.integers(0, 0xFFFFFFFF),
        st.integers(0, 0xFFFFFFFF).map(Flags),
        st.lists(events(), max_size=6).map(tuple),
    )
