"""The rich client as its users write it: connect, invite, accept, publish local, play remote."""

from collections.abc import Callable

import pytest
from gevent.queue import Empty, Queue
from support.peers.process import PATIENCE, wait_until

from rtmplite.net.client.client import Client
from rtmplite.net.client.rtmfp_client import RtmfpClient
from rtmplite.net.client.rtmp_client import RtmpClient

AUDIO = 8


def wait_for(condition: Callable[[], object], what: str, timeout: float = PATIENCE) -> None:
    """Poll while other greenlets run; fails the test after `timeout` seconds."""
    wait_until(condition, what=what, timeout=timeout)


class RichClient:
    """One connection to the application `sip`, and what the gateway has called on it."""

    scheme: str = "rtmp"
    connect: Callable[..., Client] = RtmpClient.connect

    def __init__(self, rtmp: str, identity: str, *args: object, **options: object) -> None:
        """`rtmp` is host:port of the gateway; `args` follow the connect object."""
        self.calls: Queue[tuple[str, tuple[object, ...]]] = Queue()
        url = f"{self.scheme}://{rtmp}/sip/{identity}"
        self.client = type(self).connect(url, *args, on_call=self._called, **options)
        self.local = self.remote = None

    def _called(self, name: str, args: tuple[object, ...]) -> None:
        self.calls.put((name, args))

    def expect(self, name: str, timeout: float = PATIENCE) -> tuple[object, ...]:
        """The arguments of the next call, which must be `name`."""
        try:
            got, args = self.calls.get(timeout=timeout)
        except Empty:
            pytest.fail(f"no {name} within {timeout:g} s")
        assert got == name, f"{got}{args} where {name} was expected"
        return args

    def call(self, name: str, *args: object) -> object:
        """One command of the API; it has an empty result at once."""
        result = self.client.call(name, *args)
        assert result is None
        return result

    def open_streams(self) -> None:
        """Publish `local` and play `remote`, as the original's clients do once accepted."""
        self.local = self.client.create_stream()
        self.local.publish("local")
        self.remote = self.client.create_stream()
        self.remote.play("remote")

    def heard(self, count: int, timeout: float = PATIENCE) -> list[bytes]:
        """The bodies of the next `count` audio messages of `remote`."""
        found: list[bytes] = []
        while len(found) < count:
            message = self.remote.read(timeout=timeout)
            assert message is not None, f"the stream ended after {len(found)} tags"
            if message.type_id == AUDIO:
                found.append(message.payload)
        return found

    def close(self) -> None:
        """End the connection."""
        self.client.close()


class FlashClient(RichClient):
    """The same by RTMFP; the address is that of the gateway's UDP port."""

    scheme = "rtmfp"
    connect = RtmfpClient.connect
