"""What connections make us keep, in all."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.rtmp.rtmp_world import World

from rtmplite.errors import RemoteError
from rtmplite.limits.memory_budget import Account, MemoryBudget
from rtmplite.live.streams import Registry
from rtmplite.rtmp.connection import ConnectionLimits
from rtmplite.rtmp.wire.chunk_reader import BLOCK, STREAM_COST, ChunkReader
from rtmplite.rtmp.wire.chunk_writer import encode_absolute


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 400), st.booleans())))
def test_accounts_never_take_more_than_there_is(steps):
    """Own design: strangers stop at half, and the sum is always that of the accounts."""
    budget = MemoryBudget(1000)
    accounts = [Account(budget, is_trusted=number > 1) for number in range(4)]
    taken = [0] * 4
    for number, size, gives in steps:
        account = accounts[number]
        if gives:
            account.give(size)
            taken[number] -= min(size, taken[number])
        elif sum(taken) + size <= 1000 and (number > 1 or sum(taken[:2]) + size <= 500):
            account.take(size)
            taken[number] += size
        else:
            with pytest.raises(RemoteError, match="more than all"):
                account.take(size)
        assert budget.used == sum(taken) <= 1000 and budget.by_strangers == sum(taken[:2])
    accounts[0].trust()
    assert budget.by_strangers == taken[1]
    for account in accounts:
        account.close()
        account.close()
    assert budget.used == budget.by_strangers == 0


def unfinished(size, chunk_stream=3, chunk=128):
    """A message of that size without its last chunk, so that others can follow."""
    raw = encode_absolute(9, 0, 1, bytes(size), chunk_stream, chunk)
    return raw[: len(raw) - len(last(size, chunk_stream, chunk))]


def last(size, chunk_stream=3, chunk=128):
    """The chunk that `unfinished` left out."""
    raw = encode_absolute(9, 0, 1, bytes(size), chunk_stream, chunk)
    return raw[-((size - 1) % chunk + (2 if chunk_stream < 64 else 3)) :]


def test_what_lies_unfinished_is_paid_in_blocks():
    """Own design: and given back when it is complete, but for one block."""
    budget = MemoryBudget()
    reader = ChunkReader(account=Account(budget))
    reader.feed(unfinished(100_000))
    assert budget.used == STREAM_COST + 7 * BLOCK
    assert len(reader.feed(last(100_000))) == 1
    assert budget.used == STREAM_COST + BLOCK


def test_strangers_keep_little_and_lose_it_when_they_go():
    """Own design: 64 KiB in one message, twice that in all, and few chunk streams."""
    world = World()
    budget = world.registry.budget
    for raw, reason in (
        (unfinished(65_537, 5), "a message of 65537 bytes"),
        (unfinished(65_500, 4) + unfinished(10_000, 5), "unfinished"),
        (b"".join(unfinished(200, number) for number in range(4, 80)), "chunk streams"),
    ):
        server = world.server()
        server.transport.receive(b"\x03" + bytes(1536) + bytes(1536), 0.0)
        server.transport.receive(unfinished(65_536), 0.0)
        assert not server.closed and budget.used
        server.transport.receive(raw, 0.0)
        assert server.transport.aborted and reason in server.reason and not budget.used


def test_who_is_accepted_may_send_more():
    """Own design: up to `ConnectionLimits.message`, and that twice."""
    world = World(limits=ConnectionLimits(message=200_000))
    peer, other = world.client(), world.client()
    chunks = [unfinished(200_000, 6 + n, 4096) for n in range(2)]
    peer.server.transport.receive(b"".join(chunks), 0.0)
    assert not peer.server.closed and world.registry.budget.used > 390_000
    peer.server.transport.receive(unfinished(20_000, 8, 4096), 0.0)
    assert peer.server.transport.aborted
    other.server.transport.receive(encode_absolute(9, 0, 1, bytes(200_000), 4, 4096), 0.0)
    assert not other.server.closed
    other.server.transport.receive(encode_absolute(9, 0, 1, bytes(200_001), 4, 4096), 0.0)
    assert other.server.transport.aborted


def test_a_crowd_is_stopped_by_the_budget_and_those_inside_stay():
    """Own design: strangers get half of it; closing them makes room."""
    world = World(registry=Registry(budget=MemoryBudget(400_000)))
    guest = world.client()
    crowd = [world.server() for _ in range(10)]
    for server in crowd:
        server.transport.receive(b"\x03" + bytes(1536) + bytes(1536) + unfinished(60_000), 0.0)
    assert [server.transport.aborted for server in crowd] == [False] * 3 + [True] * 7
    guest.server.transport.receive(unfinished(100_000, 6, 4096), 0.0)
    assert not guest.server.closed
    crowd[0].transport.connection_lost(0.0)
    late = world.server()
    late.transport.receive(b"\x03" + bytes(1536) + bytes(1536) + unfinished(200), 0.0)
    assert not late.closed


def test_what_waits_for_an_answer_is_paid_as_well():
    """Own design: a client that is not listened to cannot fill our memory either."""
    world = World(registry=Registry(budget=MemoryBudget(100_000)))
    peer = world.client()
    before = world.registry.budget.used
    peer.server.pause_reading()
    peer.server.transport.receive(bytes(10_000), 0.0)
    assert world.registry.budget.used == before + 10_000
    peer.server.transport.receive(bytes(100_000), 0.0)
    assert peer.server.transport.aborted and not world.registry.budget.used


def test_who_says_much_of_himself_pays_for_it():
    """RTMP 1.0 §7.2.1.1: what connect says is kept, and takes far more memory than its bytes."""
    world = World(registry=Registry(budget=MemoryBudget(1_900_000)))
    small, large = {"token": "x" * 1000}, {"token": "x" * 20_000}
    assert not any(world.client(properties=small).server.closed for _ in range(100))
    before = world.registry.budget.used
    first, second, third = (world.client(properties=large).server for _ in range(3))
    assert not first.closed and not second.closed
    assert third.transport.aborted and "than all connections may use" in third.reason
    for server in (first, second):
        server.close(world.now)
    assert world.registry.budget.used <= before
    assert not world.client(properties=large).server.closed


HEADER = b"\x17\x00\0\0\0" + bytes(1_000_000)


def headed(world, name="demo"):
    """A publisher who has sent a long header."""
    peer = world.client()
    stream_id = peer.publish(name)
    peer.write(9, 0, stream_id, HEADER)
    return peer, stream_id


@pytest.mark.parametrize("ends", ["deleteStream", "lost"])
def test_codec_headers_are_paid_until_the_end(ends):
    """Own design: they are kept as long as the stream; a new one replaces the old."""
    world = World()
    peer, stream_id = headed(world)
    used = world.registry.budget.used
    assert used >= len(HEADER)
    peer.write(9, 0, stream_id, HEADER)
    assert world.registry.budget.used == used
    if ends == "lost":
        peer.server.transport.connection_lost(world.now)
    else:
        peer.send("deleteStream", float(stream_id))
    assert world.registry.budget.used <= used - len(HEADER)


def test_who_has_too_many_headers_kept_is_cut_off():
    """Own design: the last one who wants more; those before go on, and what it took comes back."""
    world = World(registry=Registry(budget=MemoryBudget(5_000_000)))
    peers = [headed(world, str(number))[0] for number in range(5)]
    assert [peer.server.closed for peer in peers] == [False] * 4 + [True]
    assert "more than all connections may use" in peers[4].server.reason
    assert not world.registry.get("live", "4") and world.registry.get("live", "3").publishing
    for peer in peers:
        peer.server.transport.connection_lost(world.now)
    assert world.registry.budget.used == 0


def test_what_is_ours_is_not_paid():
    """Own design: a phone's stream goes on, however much strangers have us keep."""
    registry = Registry(budget=MemoryBudget(1000))
    live = registry.open("sip", "remote")
    live.write(9, 0, HEADER, 0.0)
    assert registry.budget.used == 0 and live.opening() == [(9, HEADER)]
