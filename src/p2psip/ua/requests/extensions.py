"""The extensions of a user agent, and the headers that announce them.

Implements RFC 3261 §8.2.2.3 and §13.2.1.

    >>> ours = Extensions(info_packages=("dtmf",), required=("100rel",))
    >>> for name, value in ours.of_invite():
    ...     print(f"{name}: {value}")
    Allow: INVITE, ACK, CANCEL, BYE, OPTIONS, INFO, UPDATE, PRACK
    Supported: 100rel, timer
    Recv-Info: dtmf
    Require: 100rel
"""

from dataclasses import dataclass
from typing import Final

from p2psip.sip.grammar import split
from p2psip.sip.message import Request, Response
from p2psip.ua.requests.request_validation import CALL_METHODS, SDP, RefusalError, refuse_extensions

# Bodies as they are, in any language: RFC 3261 §20.2 and §20.3.
UNDERSTOOD: Final = (("Accept-Encoding", "identity"), ("Accept-Language", "*"))


@dataclass(frozen=True, slots=True)
class Extensions:
    """What a user agent can do beyond RFC 3261, in one place (§13.2.1).

    `methods` are those it takes, `options` the option tags it knows, `info_packages` the Info
    Packages it wants to receive (RFC 6086 §5.2.2), and `required` those of the options that whoever
    is called has to know, too.

    Not done: RFC 5626 §4.3 [says-outbound]: only a REGISTER says it, since our Contacts in calls
    ask for no flow of their own.
    """

    methods: tuple[str, ...] = CALL_METHODS
    # §8.1.1.9 [standard-extensions]
    # RFC 3262 §4 [says-it-supports], RFC 4028 §7.1 [says-it-supports]
    # RFC 3261 §20.37 [standard-tags-only]
    options: tuple[str, ...] = ("100rel", "timer")
    info_packages: tuple[str, ...] = ()
    required: tuple[str, ...] = ()

    @property
    def allow(self) -> str:
        """The value of Allow (§13.2.1)."""
        return ", ".join(self.methods)  # §8.2.1 [allow-is-what-it-takes], §20.5 [allow-lists-all]

    def allow_but(self, method: str) -> str:
        """The value of Allow in a refusal of `method`, which others would take (§8.2.1)."""
        return ", ".join(each for each in self.methods if each != method)

    @property
    def recv_info(self) -> tuple[str, str]:
        """The list of Info Packages, an empty one if there are none (RFC 6086 §5.2.2)."""
        # RFC 6086 §5.2.2 [lists-packages] [empty-list], §5.2.3 [same-list-throughout]
        return "Recv-Info", ", ".join(self.info_packages)

    def headers(self) -> list[tuple[str, object]]:
        """The headers for a message that begins or changes a dialog (§13.2.1, §13.3.1.4)."""
        return [("Allow", self.allow), *self.supported(), self.recv_info]

    def supported(self) -> list[tuple[str, object]]:
        """The header for every other request (RFC 4028 §7.1)."""
        return [("Supported", ", ".join(self.options))] if self.options else []

    def of_invite(self, *applied: str) -> list[tuple[str, object]]:
        """The headers of an INVITE that begins a call, and makes use of `applied` (§13.2.1).

        Departs from RFC 3261 §8.1.3.5 [goes-without]: only what a call is worth nothing without is
        required, and so a 420 is the end of it.
        """
        # RFC 3262 §4 [only-in-invite], RFC 6086 §5.2.3 [invite-lists]
        return [*self.headers(), *self.require(*self.required, *applied)]

    def require(self, *applied: str) -> list[tuple[str, object]]:
        """The header for extensions that the receiver has to know (§8.1.1.9, §8.2.4)."""
        # §8.1.1.9 [insists-by-require]
        return [("Require", ", ".join(dict.fromkeys(applied)))] if applied else []

    def refuse_unknown(self, request: Request) -> None:
        """Refuse a request that needs an extension we lack (§8.2.2.3): RefusalError with 420."""
        refuse_extensions(request, self.options)  # RFC 3262 §3 [420-if-unwilling]

    def abilities(self, options: Request, allow: str | None = None) -> list[tuple[str, object]]:
        """The headers of the answer to an OPTIONS (§11.2).

        `allow` is the value of Allow where that is not our own.  Raises RefusalError with 420.

        Departs from RFC 3261 §11.2 [as-for-an-invite]: a program decides on a call when it hears of
        one; until then the answer to OPTIONS says that its phone is there, for which it is asked.
        Not done: RFC 3261 §11.2 [options-with-sdp]: a description would have to name ports, which
        are taken when a call comes.
        """
        self.refuse_unknown(options)
        # RFC 3261 §11.2 [lists-abilities] [options-without-a-body]
        allowed, readable = ("Allow", allow or self.allow), ("Accept", SDP)
        return [allowed, readable, *UNDERSTOOD, *self.supported()]

    def info_package(self, info: Request) -> str | None:
        """The Info Package of an INFO, None for the old kind (RFC 6086 §4.2.2).  469: not ours."""
        value = info.headers.get("Info-Package")
        if value is None:
            return None
        package = value.partition(";")[0].strip().lower()
        for ours in self.info_packages:
            if ours.lower() == package:
                return ours
        # RFC 6086 §4.2.2 [469-lists-packages], §5.2.2 [stays-prepared]
        raise RefusalError(469, "Bad Info Package", [self.recv_info])


def listed(message: Request | Response, name: str) -> frozenset[str] | None:
    """The tokens of a list header in lower case, None if it is absent (RFC 3261 §7.3.1)."""
    lines = message.headers.values(name)
    values = (value for line in lines for value in split(line, ",", lenient=True))
    return frozenset(value.strip().lower() for value in values if value.strip()) if lines else None
