import socket
from collections.abc import Callable
from typing import final

from rtmplite.net.pipe import Owner

@final
class Pipe:
    is_plain: bool
    def __init__(
        self,
        owner: Owner,
        output: list[bytes],
        dirty: list[Pipe],
        wake: Callable[[], None] | None,
        connected: socket.socket,
        /,
    ) -> None: ...
    def put(self, data: bytes, /) -> None: ...
    def close(self) -> None: ...

def flush(dirty: list[Pipe], /) -> None: ...
