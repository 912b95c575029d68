"""The errors of the SIP family: our caller's bug, or the peer's fault.

Own design: h11's split in two, so that `except RemoteError` is all an edge needs around a peer,
and `except SipError` all that a program needs around this package.
"""


class SipError(Exception):
    """The base of the errors that this package raises on purpose: local and remote ones.

    Own design: `TimeoutError` and `OSError` keep their usual meaning and stand beside it.
    """


class LocalError(SipError):
    """Our caller broke a precondition.  Own design: a bug is never answered on the wire."""


class RemoteError(SipError):
    """The peer broke a rule; `status` and `reason` are the response it deserves.

    RFC 3261 §21 gives the codes.  A parser that has no better word raises 400.
    """

    def __init__(self, reason: str = "Bad Request", status: int = 400) -> None:
        super().__init__(f"{status} {reason}")
        self.status = status
        self.reason = reason
