"""The commands of a rich client while a call is up, and what it hears of the phone meanwhile.

Implements RFC 4733 §2.5, RFC 3264 §8.4 and RFC 3428 §4 and §7 by way of `AudioCall`.

Own design: the commands `sendDTMF`, `hold` and `sendMessage`, and the calls `dtmf`, `holded` and
`receivedMessage`, of the client's API.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from p2psip.errors import LocalError, RemoteError
from p2psip.sip.address import Address
from p2psip.sip.message import Response
from p2psip.stack.stack import ServerHandle
from p2psip.ua.digest_client import DigestClient, Login
from p2psip.ua.messages import TEXT, InstantMessage, answer
from p2psip.ua.outside import outside_request
from rtmplite.amf.values import Value
from rtmplite.rtmp.netconnection import NetConnection
from rtmplite.rtmp.wire.command import on_status
from siprtmp.calls.call import AudioCall

if TYPE_CHECKING:
    from siprtmp.calls.line import Account
    from siprtmp.calls.sip_app import SipApplication

FAILED: Final = "NetConnection.Call.Failed"


class LineRequests(ABC):
    """The half of a `Line` that is about a call that is up: RFC 3261 §12.2."""

    connection: NetConnection
    account: "Account"
    _call: AudioCall | None
    _home: "SipApplication"

    @abstractmethod
    def _destination(self, dest: Value) -> Address: ...

    @abstractmethod
    def _login(self) -> Login | None: ...

    # -- commands -----------------------------------------------------------------------

    def _send_dtmf(self, args: tuple[Value, ...], now: float) -> None:
        """RFC 4733 §2.5.1."""
        if self._call is not None and args and isinstance(args[0], str):
            self._call.keys.press(args[0], now)

    def _hold(self, args: tuple[Value, ...], now: float) -> None:
        """RFC 3264 §8.4."""
        if self._call is not None:
            self._call.hold(not args or bool(args[0]), now)

    def _send_message(self, args: tuple[Value, ...], now: float) -> None:
        """RFC 3428 §4: within the call, or to somebody else."""
        text, dest = (*args, None, None)[:2]
        try:
            if not isinstance(text, str) or not text:
                raise RemoteError("Empty Message")
            if dest is not None:
                self._message_to(self._destination(dest), text, now)
            elif self._call is not None:
                self._call.message(text, now)
            else:
                raise RemoteError("Call/Transaction Does Not Exist", 481)
        except RemoteError as error:
            self.on_call_request_failed("sendMessage", f"{error.status} {error.reason}", now)
        except LocalError:
            self.on_call_request_failed("sendMessage", "513 Message Too Large", now)

    def _message_to(self, to: Address, text: str, now: float) -> None:
        facilities = self._home.facilities
        facilities.tolls.check(to.uri)
        body, login = text.encode(errors="replace"), self._login()
        request = outside_request(
            facilities.random, "MESSAGE", to, self.account.address, body=body, content_type=TEXT
        )
        keyring = DigestClient(login, facilities.random) if login is not None else None
        request = facilities.agent.signed(request)
        facilities.messages.send(request, self._heard, now, keyring)

    def _heard(self, response: Response, now: float) -> None:
        if response.status >= 300:
            reason = f"{response.status} {response.reason}"
            self.on_call_request_failed("sendMessage", reason, now)

    # -- messages to us -----------------------------------------------------------------

    def _take_message(self, server: ServerHandle, now: float) -> None:
        def told(message: InstantMessage) -> None:
            self.on_call_message(message, now)

        answer(server, server.request, told, self._home.facilities.agent.extensions, now)

    # -- CallUser -----------------------------------------------------------------------

    def on_call_held(self, held: bool, now: float) -> None:
        """Tell `holded`: RFC 3264 §8.4."""
        self.connection.call("holded", held)

    def on_call_digit(self, digit: str, now: float) -> None:
        """Tell `dtmf`: RFC 4733 §2.5.2.2."""
        self.connection.call("dtmf", digit)

    def on_call_message(self, message: InstantMessage, now: float) -> None:
        """Tell `receivedMessage`: RFC 3428 §7."""
        self.connection.call("receivedMessage", plain(message.sender), message.text)

    def on_call_request_failed(self, what: str, reason: str, now: float) -> None:
        """Tell a status, since the command has had its empty result: RTMP 1.0 §7.2.2."""
        status = on_status("error", FAILED, f"{what}: {reason}")
        self.connection.send_command(status)


def plain(address: Address) -> str:
    """An address without its tag, as clients show it: RFC 3261 §20.10."""
    return str(Address(address.uri, address.display))


LINE_REQUESTS: Final[Mapping[str, Callable[..., None]]] = {
    "hold": LineRequests._hold,
    "sendDTMF": LineRequests._send_dtmf,
    "sendMessage": LineRequests._send_message,
}
