"""Where the clients are in whose name this process speaks SIP.

Own design: the registrar sees their REGISTER come from this very process, all of them.  Wrong
passwords of one would make the others wait, and no log line would say whose they were (RFC 3261
§26.1 leaves guessing to the server).
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from p2psip.sip.message import Request
from p2psip.sip.uri import Uri

MAX_CALL_IDS: Final = 20_000


class Whence:
    """The host of the client behind a request that was born here.  Own design: see the module.

    `line_host(uri)` is where the line is that has been let in as `uri`, None if there is none.
    """

    def __init__(self, line_host: Callable[[Uri], str | None]) -> None:
        self._line_host = line_host
        self._hosts: OrderedDict[str, str] = OrderedDict()  # by the Call-ID of a registration

    def registers(self, call_id: str, host: str) -> None:
        """Take that a client at `host` registers so.  Own design: it will take that back, too."""
        self._hosts[call_id] = host
        if len(self._hosts) > MAX_CALL_IDS:
            self._hosts.popitem(last=False)

    def __call__(self, request: Request) -> str | None:
        """The host, None if nobody knows.  Own design: a call is of the line that it is from."""
        if request.method != "REGISTER":
            return self._line_host(request.from_.uri)
        host = self._hosts.get(request.call_id)
        if host is not None:
            self._hosts.move_to_end(request.call_id)
        return host
