from collections.abc import Callable
from typing import Any, final

@final
class Flow:
    passed: int
    def offload(
        self,
        source: Any,
        outlets: tuple[Any, ...],
        header: bytes,
        longest: int,
        head: bytes,
        check: int,
        payload_type: int,
        ssrc: int,
        reception: tuple[int, int, float, int, float],
        clock: tuple[int, int, int, int, int, int],
        /,
    ) -> bool: ...
    def reclaim(self) -> tuple[int, int, float, int, float, int, int, int] | None: ...
    def feed(self, data: bytes, source: Any, now: float, /) -> None: ...
    def close(self) -> None: ...

@final
class Pump:
    passed: int
    handed: int
    def open(
        self,
        fd: int,
        take: Callable[[bytes, Any, float], None],
        failed: Callable[[Exception], None],
        /,
    ) -> Flow: ...
    def turn(self) -> None: ...
    def fileno(self) -> int: ...
