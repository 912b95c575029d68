"""What a line of a browser says of the feedback by which a sender finds its rate.

Implements Transport-wide CC 01 §2.3, with header extensions as RFC 8285 names them.

    >>> line = MediaDescription("video", 9, "UDP/TLS/RTP/SAVPF", ("96",), attributes=(
    ...     Attribute("extmap", f"3 {TRANSPORT_WIDE}"),
    ...     Attribute("rtcp-fb", "96 transport-cc"), Attribute("rtcp-rsize")))
    >>> [str(each) for each in rate_feedback(line, {"96"})][1:]
    ['rtcp-fb:96 transport-cc', 'rtcp-rsize']
    >>> wide_number_id(line)
    3
"""

from collections.abc import Collection
from typing import Final

from p2psip.sdp.line import Attribute, find_all
from p2psip.sdp.local_media import ANY_FORMAT
from p2psip.sdp.session import MediaDescription

TRANSPORT_WIDE: Final = (
    "http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01"  # Source: §2.3
)
MESSAGE: Final = "transport-cc"  # of a=rtcp-fb: Field §"Feedback of the rate"
ONE_BYTE_IDS: Final = range(1, 15)  # Source: RFC 8285 §4.2
RATE_OFFER: Final = (  # what we offer of it
    Attribute("extmap", f"3 {TRANSPORT_WIDE}"),
    Attribute("rtcp-fb", f"{ANY_FORMAT} {MESSAGE}"),
    Attribute("rtcp-rsize"),
)


def wide_number_id(line: MediaDescription) -> int | None:
    """Give the identifier of transport-wide numbers in the packets of a line: §2.3.

    None where the line has no feedback for them, or where they have no short form.
    """
    if not any(value.endswith(f" {MESSAGE}") for value in find_all(line.attributes, "rtcp-fb")):
        return None
    for value in find_all(line.attributes, "extmap"):
        identifier, _, name = value.partition(" ")
        number = identifier.partition("/")[0]
        if name.partition(" ")[0] == TRANSPORT_WIDE and number.isascii() and number.isdigit():
            return int(number) if int(number[:6]) in ONE_BYTE_IDS else None
    return None


def rate_feedback(offered: MediaDescription, formats: Collection[str]) -> tuple[Attribute, ...]:
    """Answer the feedback of the rate that an offered line has for these formats: §2.3.

    Times of arrival, where packets are numbered and RTCP may be short.
    """
    identifier = wide_number_id(offered)
    if identifier is None or all(each.name != "rtcp-rsize" for each in offered.attributes):
        return ()
    return (
        Attribute("extmap", f"{identifier} {TRANSPORT_WIDE}"),
        *(
            Attribute("rtcp-fb", value)
            for value in find_all(offered.attributes, "rtcp-fb")
            if value.partition(" ")[0] in (ANY_FORMAT, *formats)
            and value.partition(" ")[2].strip() == MESSAGE
        ),
        Attribute("rtcp-rsize"),
    )
