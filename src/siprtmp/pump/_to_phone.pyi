from collections.abc import Callable
from typing import Any, final

@final
class ToPhone:
    passed: int
    unsent: int
    def __init__(self, fd: int, take: Callable[..., None], /) -> None: ...
    def publish(self, type_id: int, timestamp: int, payload: bytes, now: float, /) -> None: ...
    def aim(self, address: Any, /) -> None: ...
    def offload(
        self,
        head: bytes,
        check: int,
        octets: int,
        layers: bool,
        ticks: int,
        source: tuple[int, int, int],
        clock: tuple[int, int, int, int, int],
        pace: tuple[float, float, float],
        /,
    ) -> bool: ...
    def reclaim(self) -> tuple[int, int, int, float, int, float, float] | None: ...
    def close(self) -> None: ...

def figures() -> tuple[int, int]: ...
