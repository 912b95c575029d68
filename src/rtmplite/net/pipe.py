"""The output of connections, from a stream to their sockets, as short as can be.

Own design: a server with an audience does hardly anything but put one message on the output of
each player, and send it at the end of the turn.  This is all of that, in Python; where it is
compiled, `_pipe.c` does the same for all players by one call.  A pipe is for a connection about
which there is nothing special; its owner does the rest.
"""

import socket
from collections.abc import Callable, Sequence
from typing import Any, Protocol


class Owner(Protocol):
    """The owner of a socket.  Own design: see the module."""

    def guard(self, call: Callable[..., None], *args: Any) -> None:
        """Call a method of its own; an error costs this connection only."""

    def flush(self) -> None:
        """Send output of any kind."""

    def keep(self, output: Sequence[bytes], sent: int) -> None:
        """Keep what the socket has not taken."""

    def send_failed(self, error: OSError, output: Sequence[bytes]) -> None:
        """Keep output if the socket is full, or end the connection."""


class Pipe:
    """The short way to one socket: `put` adds to `output`, and `flush` sends.

    `dirty` is the list of pipes with something to send, `wake` is called before the first of them.
    `is_plain` says that a single buffer may be sent without asking the owner.
    """

    def __init__(
        self,
        owner: Owner,
        output: list[bytes],
        dirty: "list[Pipe]",
        wake: Callable[[], None] | None,
        connected: socket.socket,
        /,
    ) -> None:
        self.owner: Owner | None = owner
        self.output, self._dirty, self._wake = output, dirty, wake
        self.send = connected.send
        self.is_plain = True

    def put(self, data: bytes, /) -> None:
        """Queue whole messages, already cut into chunks."""
        if not self.output:
            if not self._dirty and self._wake is not None:
                self._wake()
            self._dirty.append(self)
        self.output.append(data)

    def close(self) -> None:
        """Use socket and owner no longer."""
        self.is_plain, self.owner = False, None


def flush(dirty: list[Pipe], /) -> None:
    """Send what waits in a list of pipes, and empty the list."""
    if not dirty:
        return
    pipes = dirty.copy()
    dirty.clear()
    for pipe in pipes:
        owner, output = pipe.owner, pipe.output
        if owner is None:
            continue
        if len(output) != 1 or not pipe.is_plain:
            owner.guard(owner.flush)
            continue
        data = output.pop()
        try:
            sent = pipe.send(data)
        except OSError as error:
            owner.guard(owner.send_failed, error, [data])
            continue
        if sent != len(data):
            owner.guard(owner.keep, [data], sent)
