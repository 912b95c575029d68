"""What can go wrong in the SIP family: our caller's bug, or the peer's fault.

Own design: h11's split in two, so that `except RemoteError` is all an edge needs around a peer.
"""


class LocalError(Exception):
    """Our caller broke a precondition; the peer did nothing wrong.

    Own design: a bug is never answered on the wire.
    """


class RemoteError(Exception):
    """The peer broke a rule; `status` and `reason` are the response it deserves.

    RFC 3261 §21 gives the codes.  A parser that has no better word raises 400.
    """

    def __init__(self, reason: str = "Bad Request", status: int = 400) -> None:
        super().__init__(f"{status} {reason}")
        self.status = status
        self.reason = reason
