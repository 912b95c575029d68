"""The errors of the RTMP family: our caller's bug, or the peer's fault.

Own design: h11's split in two, so that `except RemoteError` is all an edge needs around a peer,
and `except RtmpError` all that a program needs around this package.
"""


class RtmpError(Exception):
    """The base of the errors that this package raises on purpose: local and remote ones.

    Own design: `TimeoutError` and `OSError` keep their usual meaning and stand beside it.
    """


class LocalError(RtmpError):
    """Our caller broke a precondition; the peer did nothing wrong.

    Own design: a bug is never answered on the wire.
    """


class RemoteError(RtmpError):
    """The peer broke a rule; an `_error` carries `code`, `level` and `description` to it.

    RTMP 1.0 §7.2.1.1 and §7.2.2 show the information object these three fill.
    """

    def __init__(
        self, description: str, code: str = "NetConnection.Call.Failed", level: str = "error"
    ) -> None:
        super().__init__(f"{code}: {description}")
        self.code = code
        self.level = level
        self.description = description
