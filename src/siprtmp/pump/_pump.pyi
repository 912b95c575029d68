from collections.abc import Callable
from typing import Any, final

@final
class Flow:
    passed: int
    deadline: float | None
    def offload(
        self,
        source: Any,
        ways: tuple[Callable[[bytes], None], ...] | Callable[[int, int, bytes, float], None],
        header: bytes,
        longest: int,
        head: bytes,
        check: int,
        payload_type: int,
        ssrc: int,
        reception: tuple[int, int, float, int, float],
        clock: tuple[int, int, int, int, int, int],
        order: tuple[int, float],
        wake: Callable[[], None],
        /,
    ) -> bool: ...
    def gather(
        self,
        source: Any,
        take: Callable[[int, tuple[bytes, ...], float], None],
        payload_type: int,
        ssrc: int,
        reception: tuple[int, int, float, int, float],
        /,
    ) -> bool: ...
    def follow(self) -> tuple[Any, ...] | None: ...
    def reclaim(self) -> tuple[Any, ...] | None: ...
    def tick(self, now: float, /) -> None: ...
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
