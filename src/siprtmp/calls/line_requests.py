"""The commands of a rich client while a call is up, and what it hears of the phone meanwhile.

Implements RFC 4733 §2.5 and RFC 3264 §8.4 by way of `AudioCall`.

Own design: the commands `sendDTMF` and `hold` and the calls `dtmf` and `holded` of the client's
API.
"""

from abc import ABC
from collections.abc import Callable, Mapping
from typing import Final

from rtmplite.amf.values import Value
from rtmplite.rtmp.netconnection import NetConnection
from rtmplite.rtmp.wire.command import on_status
from siprtmp.calls.call import AudioCall

FAILED: Final = "NetConnection.Call.Failed"


class LineRequests(ABC):
    """The half of a `Line` that is about a call that is up: RFC 3261 §12.2."""

    connection: NetConnection
    _call: AudioCall | None

    # -- commands -----------------------------------------------------------------------

    def _send_dtmf(self, args: tuple[Value, ...], now: float) -> None:
        """RFC 4733 §2.5.1."""
        if self._call is not None and args and isinstance(args[0], str):
            self._call.keys.press(args[0], now)

    def _hold(self, args: tuple[Value, ...], now: float) -> None:
        """RFC 3264 §8.4."""
        if self._call is not None:
            self._call.hold(not args or bool(args[0]), now)

    # -- CallUser -----------------------------------------------------------------------

    def on_call_held(self, held: bool, now: float) -> None:
        """Tell `holded`: RFC 3264 §8.4."""
        self.connection.call("holded", held)

    def on_call_digit(self, digit: str, now: float) -> None:
        """Tell `dtmf`: RFC 4733 §2.5.2.2."""
        self.connection.call("dtmf", digit)

    def on_call_request_failed(self, what: str, reason: str, now: float) -> None:
        """Tell a status, since the command has had its empty result: RTMP 1.0 §7.2.2."""
        status = on_status("error", FAILED, f"{what}: {reason}")
        self.connection.send_command(status)


LINE_REQUESTS: Final[Mapping[str, Callable[..., None]]] = {
    "hold": LineRequests._hold,
    "sendDTMF": LineRequests._send_dtmf,
}
