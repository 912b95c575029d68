"""Redundant audio of ours: each packet has the audio before it as well.

Implements RFC 2198 §3.

    >>> ours = RedundantSender()
    >>> ours.packed(0, 97, b"one", 0)
    (97, b'\\x00one')
    >>> ours.packed(0, 97, b"two", 160)
    (97, b'\\x80\\x02\\x80\\x03\\x00onetwo')
"""

from p2psip.rtp.payload.red import MAX_LENGTH, MAX_OFFSET, RedundantBlock, RedundantPayload


class RedundantSender:
    """Keeps the last payload of a stream, for the packet after it: §3."""

    def __init__(self) -> None:
        self._said: tuple[int, bytes] | None = None  # position and payload

    def packed(
        self, kind: int, red: int | None, payload: bytes, position: int
    ) -> tuple[int, bytes]:
        """The payload type and payload to send, of the type `red` where that was agreed on: §3.

        `kind` is the type of the audio, `position` its time in ticks.  What does not fit into a
        block stays out.
        """
        before, self._said = self._said, (position, payload)
        if red is None:
            return kind, payload
        older: tuple[RedundantBlock, ...] = ()
        offset = position - before[0] if before is not None else 0
        if before is not None and 0 < offset <= MAX_OFFSET and len(before[1]) <= MAX_LENGTH:
            # §3 [same-clock] [copy-of-the-primary] [no-more-bandwidth]
            older = (RedundantBlock(kind, offset, before[1]),)
        return red, bytes(RedundantPayload(kind, payload, older))
