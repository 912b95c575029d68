"""Why a request failed at this element: the reason phrases of its own 480, 500 and 503.

Implements RFC 3261 §21.4.18: a 480 names its cause in the reason phrase.  500 and 503 do the same
here, since a phrase reaches the log, the caller's display and an RTMP client alike.
RFC 3326 §2 keeps the Reason header to requests, and to responses whose status allows it.
"""

from typing import Final

# To a callee of ours.
NO_SUCH_USER: Final = "No Such User"
NOT_REGISTERED: Final = "Not Registered"
NOT_CONFIRMED: Final = "Contact Not Confirmed"  # it has not answered the registrar yet
CONTACT_GONE: Final = "Contact Gone"  # a line of this process that was closed
NO_ANSWER: Final = "No Answer"  # it rang too long, and no user took the call

# On the way to a server, or to a phone's contact.
NOT_REACHABLE: Final = "Not Reachable"  # the transport reports an error
NOT_IN_DNS: Final = "Not Found in DNS"
NO_TRANSPORT: Final = "Transport Not Supported"
TOO_MANY: Final = "Too Many Requests Waiting"
