"""Our agent of ICE and aioice, which aiortc has, over real sockets on loopback."""

import asyncio
import os

import pytest

from p2psip.nat.ice import IceAgent, IceState
from p2psip.nat.ice_candidate import IceCandidate
from p2psip.nat.ice_credentials import IceCredentials
from p2psip.nat.stun import StunMessage

aioice = pytest.importorskip("aioice", reason="aiortc's ICE is the peer: pip install aiortc")
HOST = "127.0.0.1"


class Ours(asyncio.DatagramProtocol):
    """An `IceAgent` with a socket and a timer of asyncio."""

    def __init__(self, *, controlling):
        self.loop = asyncio.get_running_loop()
        self.agent = IceAgent(os.urandom, self.loop.time(), controlling=controlling)
        self.data, self.done, self.timer = asyncio.Queue(), asyncio.Event(), None

    def connection_made(self, transport):
        self.transport = transport
        self.base = transport.get_extra_info("sockname")[:2]
        self.candidate = self.agent.add_local(self.base)
        self.agent.gathered()

    def datagram_received(self, data, source):
        if data[:1] < b"\x04":
            now = self.loop.time()
            self.send(self.agent.received(StunMessage.parse(data), self.base, source[:2], now))
            self.tick()
        else:
            self.data.put_nowait(data)

    def send(self, datagrams):
        for data, _, to in datagrams:
            self.transport.sendto(data, to)

    def tick(self):
        self.send(self.agent.tick(self.loop.time()))
        if self.agent.state is not IceState.RUNNING:
            self.done.set()
        if self.timer is not None:
            self.timer.cancel()
        if self.agent.deadline is not None:
            self.timer = self.loop.call_at(self.agent.deadline, self.tick)


async def meet(theirs, ours):
    """Signal between aioice and ours, and send a datagram each way."""
    await theirs.gather_candidates()
    ours.agent.begin(IceCredentials(theirs.local_username, theirs.local_password), ours.loop.time())
    for candidate in theirs.local_candidates:
        ours.agent.add_remote(IceCandidate.parse(candidate.to_sdp()))
    ours.agent.end_of_candidates()
    theirs.remote_username, theirs.remote_password = ours.agent.ours.ufrag, ours.agent.ours.password
    await theirs.add_remote_candidate(aioice.Candidate.from_sdp(str(ours.candidate)))
    await theirs.add_remote_candidate(None)
    ours.tick()
    await theirs.connect()
    await ours.done.wait()
    assert ours.agent.state is IceState.COMPLETED
    await theirs.send(b"\x80 from aioice")
    assert await ours.data.get() == b"\x80 from aioice"
    ours.transport.sendto(b"\x80 from us", ours.agent.selected.remote.address)
    assert await theirs.recv() == b"\x80 from us"


@pytest.mark.parametrize("controlling", [True, False])
@pytest.mark.parametrize("conflict", [False, True])
def test_we_meet_aioice(monkeypatch, controlling, conflict):
    """Covers RFC 8445 §7.3.1.1 [larger-tie-breaker-controls]: in either role, or both in one."""
    monkeypatch.setattr(aioice.ice, "get_host_addresses", lambda **options: [HOST])

    async def main():
        _, ours = await asyncio.get_running_loop().create_datagram_endpoint(
            lambda: Ours(controlling=controlling), (HOST, 0)
        )
        theirs = aioice.Connection(ice_controlling=controlling is conflict)
        try:
            await asyncio.wait_for(meet(theirs, ours), 60)
            assert ours.agent.controlling is not theirs.ice_controlling
        finally:
            await theirs.close()
            ours.transport.close()
            if ours.timer is not None:
                ours.timer.cancel()

    asyncio.run(main())
