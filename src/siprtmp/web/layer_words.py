"""How a viewer of WHEP is told the layers of its stream, and how it names one: JSON and an event.

Implements WHEP §4.9 for this extension.

Own design: the text names no extension, but an earlier draft had one, and players such as that of
Broadcast Box and servers such as live777 have it still.  A Link of the answer names the resource
of both; `layers` is an event by which EventSource is told, each time that it asks again.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from p2psip.errors import RemoteError
from siprtmp.web.layers import VideoLayer

JSON: Final = "application/json"
EVENTS: Final = "text/event-stream"
_RETRY_MS: Final = 5000  # after which EventSource asks again
_EXTENSIONS: Final = "urn:ietf:params:whep:ext:core"
_NAMES: Final = ("encodingId", "rid")  # of drafts one after the other


class Shown(NamedTuple):
    """What a viewer can be shown in its line of video, and the name of the layer it has chosen."""

    line: str
    layers: Sequence[VideoLayer]
    chosen: str


def links(where: str) -> list[tuple[str, str]]:
    """The header fields that name the extensions of a session, by the address of their resource."""
    # WHEP §4.9 [extensions-are-linked]
    return [
        ("Link", f'<{where}>; rel="{_EXTENSIONS}:layer"'),
        ("Link", f'<{where}>; rel="{_EXTENSIONS}:server-sent-events"; events="layers"'),
    ]


def told(shown: Shown) -> bytes:
    """The layers of each line, as JSON."""
    layers = [_described(each) for each in shown.layers]
    return json.dumps({shown.line: {"chosen": shown.chosen, "layers": layers}}).encode()


def event(shown: Shown) -> bytes:
    """The same as a server-sent event."""
    return b"retry: %d\nevent: layers\ndata: %s\n\n" % (_RETRY_MS, told(shown))


def wanted(body: bytes) -> str:
    """The name of the layer that a viewer asks for, "" for the one that it gets by itself.

    Raises RemoteError for what is no wish.
    """
    try:
        said = json.loads(body)
    except (ValueError, RecursionError):
        raise RemoteError("A layer is named in JSON") from None
    name = (
        next((said[each] for each in _NAMES if each in said), "")
        if isinstance(said, dict)
        else None
    )
    if not isinstance(name, str):
        raise RemoteError('A layer is named as in {"encodingId": "1"}')
    return name


def _described(layer: VideoLayer) -> Mapping[str, object]:
    width, height = layer.size
    facts = {"width": width, "height": height, "bitrate": layer.bits}
    known = {name: value for name, value in facts.items() if value}
    return {"encodingId": layer.name, "rid": layer.name, "codec": layer.codec, **known}
