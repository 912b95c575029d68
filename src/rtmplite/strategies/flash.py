"""Messages of Flash peers in RTMFP flows, with every freedom that RFC 7425 §5 gives them."""

from functools import cache
from typing import NamedTuple

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from rtmplite.amf.values import Value
from rtmplite.rtmfp.netconnection.messages import (
    Address,
    FlowMetadata,
    FlowSynchronization,
    Intent,
    SetKeepaliveTimers,
    encode_message,
)
from rtmplite.rtmfp.wire.vlu import encode_vlu
from rtmplite.rtmp.wire.command import Command
from rtmplite.strategies.rtmp import controls, messages

_U32 = st.integers(0, 0xFFFFFFFF)
_STREAM_IDS = st.sampled_from([0, 1, 127, 128, 0xFFFFFF]) | st.integers(0, 0xFFFFFF)

_NO_ADDRESSES: list[Value] = [
    *("", "host:1", "192.0.2.1", "192.0.2.1:0", "192.0.2.1:65536", "::1:7", "[192.0.2.1]:7", 1.0),
    *("192.0.2.1:0000065536", "192.0.2.1:1" + "0" * 5000, "192.0.2.1:\u0661"),
]


@cache
def metadata() -> SearchStrategy[FlowMetadata]:
    """The metadata of flows of RTMP messages: RFC 7425 §5.1.1."""
    return st.builds(FlowMetadata, _STREAM_IDS, st.sampled_from(Intent))


@cache
def odd_metadata() -> SearchStrategy[tuple[FlowMetadata, bytes]]:
    """Metadata with reserved bits and longer numbers, meaning first: RFC 7425 §5.1.1."""

    def write(meant: FlowMetadata, reserved: int, padding: bytes, rest: bytes) -> bytes:
        flags = 0x04 | meant.intent | (reserved & 0xFA)
        return b"TC" + bytes((flags,)) + padding + encode_vlu(meant.stream_id) + rest

    paddings = st.integers(0, 2).map(lambda count: b"\x80" * count)
    return st.tuples(metadata(), st.integers(0, 255), paddings, st.binary(max_size=3)).map(
        lambda drawn: (drawn[0], write(*drawn))
    )


@cache
def flow_messages() -> SearchStrategy[bytes]:
    """RTMP messages as flows carry them: RFC 7425 §5.1.2."""
    anything = messages() | controls().map(lambda each: each.message())
    events = synchronizations().map(lambda each: each.message())
    timers = keepalive_timers().map(lambda each: each.message())
    return (anything | events | timers).map(
        lambda each: encode_message(each.type_id, each.timestamp, each.payload)
    )


@cache
def synchronizations() -> SearchStrategy[FlowSynchronization]:
    """Barriers: RFC 7425 §5.2."""
    return st.builds(FlowSynchronization, _U32, st.integers(1, 4) | _U32)


@cache
def keepalive_timers() -> SearchStrategy[SetKeepaliveTimers]:
    """Advice about keep-alive periods: RFC 7425 §5.3.4."""
    return st.builds(SetKeepaliveTimers, _U32, _U32)


@cache
def addresses() -> SearchStrategy[Address]:
    """Addresses by which a client may be reached: RFC 7425 §5.3.3."""
    hosts = st.ip_addresses().map(str).filter(lambda host: "%" not in host)
    return st.tuples(hosts, st.integers(1, 65535))


@cache
def odd_peer_infos() -> SearchStrategy[tuple[Command, tuple[Address, ...]]]:
    """setPeerInfo commands with more in them than addresses, and these: RFC 7425 §5.3.3."""
    good = addresses().map(lambda address: _Listed(_written(*address), address))
    others = st.sampled_from(_NO_ADDRESSES).map(lambda value: _Listed(value, None))
    return st.lists(good | others, max_size=4).map(_peer_info)


class _Listed(NamedTuple):
    """An argument of setPeerInfo, and the address that it is."""

    value: Value
    address: Address | None


def _peer_info(listed: list[_Listed]) -> tuple[Command, tuple[Address, ...]]:
    command = Command("setPeerInfo", 0.0, None, tuple(each.value for each in listed))
    return command, tuple(each.address for each in listed if each.address)


def _written(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
