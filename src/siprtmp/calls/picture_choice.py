"""Which codecs of pictures a call of stock tools may have beside H.264.

Own design: H.264 is what every player has.  Another codec is answered where the publisher sends it,
or where a client has said at connect that it can do something with it, by E-RTMP v2 §"Enhancing
NetConnection connect Command"; a player that says nothing is not sent what it may not know.
"""

from rtmplite.flv.enhanced import four_cc_text
from rtmplite.live.streams import LiveStream
from rtmplite.rtmp.netstream import ServerStream
from siprtmp.media.translate.flv_to_h264 import H264
from siprtmp.media.translate.tag_codec import FOUR_CCS


def is_taken(remote: LiveStream, codec: str) -> bool:
    """Whether a player of a stream has said that it takes a codec."""
    return any(_supports(each, codec) for each in remote.viewers)


def beside_h264(sent: str, publisher: ServerStream | None, remote: LiveStream) -> list[str]:
    """The codecs to answer a phone with: the one that is `sent`, and those that players take.

    A publisher that has sent nothing yet may have said what it can send.
    """
    return [
        name
        for name in FOUR_CCS
        if name != H264
        and (name == sent or is_taken(remote, name) or (not sent and _supports(publisher, name)))
    ]


def _supports(end: object, codec: str) -> bool:
    if not isinstance(end, ServerStream):
        return False
    return end.connection.capabilities.supports(four_cc_text(FOUR_CCS[codec]))
