"""The host of the RTMP client for which this process has made a SIP request.

Own design: to the registrar every REGISTER of a rich client comes from this process.  Without the
client's host, wrong passwords of one client would make all others wait.  Log lines could not name
it (RFC 3261 §26.1 leaves guessing to the server).
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from p2psip.sip.message import Request
from p2psip.sip.uri import Uri

MAX_CALL_IDS: Final = 20_000


class ClientOrigin:
    """The host of the client behind a request that was born here.

    `line_host(uri)` is the host of the line that is logged in as `uri`, None if there is none;
    `elsewhere(call_id)` that of the client for which another worker registers.
    """

    def __init__(
        self,
        line_host: Callable[[Uri], str | None],
        elsewhere: Callable[[str], str | None] = lambda call_id: None,
    ) -> None:
        self._line_host, self._elsewhere = line_host, elsewhere
        self._hosts: OrderedDict[str, str] = OrderedDict()  # by the Call-ID of a registration

    def registers(self, call_id: str, host: str) -> None:
        """Remember the client's host for the Call-ID of its registration, and of its end."""
        self._hosts[call_id] = host
        if len(self._hosts) > MAX_CALL_IDS:
            self._hosts.popitem(last=False)

    def __call__(self, request: Request) -> str | None:
        """The host of the client behind `request`, None if unknown; a call is its From's line's."""
        if request.method != "REGISTER":
            return self._line_host(request.from_.uri)
        host = self._hosts.get(request.call_id)
        if host is None:
            return self._elsewhere(request.call_id)
        self._hosts.move_to_end(request.call_id)
        return host
