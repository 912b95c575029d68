"""The video tracks of a stream as layers, of which each viewer may choose one.

Own design: the tracks of Enhanced RTMP (E-RTMP v2 §"Multitrack Media Message Guidelines") are taken
apart once for a stream, and a viewer that has chosen one gets its frames from here.  Viewers of the
default track have nothing to do with this.  A viewer goes over at a key frame of the new track, and
plays the old one until then; a late one begins with the frames since the last key frame.
"""

from collections.abc import Callable, Collection
from contextlib import suppress
from typing import Final, Protocol

from rtmplite.errors import RemoteError
from rtmplite.flv.video import is_key_frame, is_sequence_header
from rtmplite.limits.memory_budget import Account, MemoryBudget
from rtmplite.live.group_cache import GroupCache
from rtmplite.live.streams import LiveStream
from siprtmp.media.sink import VIDEO
from siprtmp.media.translate.conversion import UnsuitableError
from siprtmp.media.translate.flv_to_video import FlvToH264, FlvToH265, FlvToVideo, FlvToVp8
from siprtmp.media.translate.video_tag import DEFAULT, H264, H265, VP8, codec_of, tracks_of
from siprtmp.media.video.b_frame_finder import BFrameFinder
from siprtmp.media.video.gop_cache import MAX_OCTETS
from siprtmp.media.video_to_phone import VideoMeter
from siprtmp.web.b_frames import B_FRAMES

MAX_LAYERS: Final = 8  # tracks of a stream that can be chosen; OBS makes six
_MASK: Final = 0xFFFFFFFF
_READERS: Final[dict[str, Callable[[], FlvToVideo]]] = {
    H264: lambda: FlvToH264(1),
    H265: FlvToH265,
    VP8: lambda: FlvToVp8(MAX_OCTETS),
}


class LayerViewer(Protocol):
    """A browser that plays a layer, or waits for its next key frame."""

    def keep_video(self, timestamp: int, payload: bytes) -> None:
        """Take a frame from before, which is shown at once with the next one."""

    def show_video(self, timestamp: int, payload: bytes, at: float) -> None:
        """Take a frame that has come at `at`."""

    def enter_layer(self, layer: "VideoLayer") -> None:
        """The frames of a layer come from now on: take no others."""

    def layer_changed(self, layer: "VideoLayer", now: float) -> None:
        """See whether a layer can still be shown: it has ended, or is another than before."""


class VideoLayer:
    """One video track of a publication, as tags that have it alone; `name` is its number.

    `codec` is its name in the client's API, "" for one that browsers have not got by RTP from here;
    `size` is width and height, 0 if they are not known.
    """

    def __init__(self, track: int, group: GroupCache) -> None:
        self.track, self.name, self.has_ended = track, str(track), False
        self.codec, self.size = "", (0, 0)
        self._header, self._group = b"", group
        self._meter, self._finder = VideoMeter(), BFrameFinder()
        self._viewers: dict[LayerViewer, bool] = {}  # and whether it waits for a key frame

    @property
    def bits(self) -> int:
        """The bits of a second, 0 if they are not known."""
        return round(self._meter.bits)

    def fault(self, names: Collection[str]) -> str:
        """Why a browser with these codecs cannot be shown this layer, "" if it can."""
        if self.has_ended:
            return "The stream has ended"
        if self.codec not in names:
            codec = self.codec or "a codec that browsers have not got"
            return f"Layer {self.name} is {codec}, and the session has {' and '.join(names)}"
        return B_FRAMES if self._finder.found else ""

    def join(self, viewer: LayerViewer, *, is_new: bool) -> None:
        """Show the layer to a viewer; one that is not new goes over at the next key frame."""
        kept = self._group.messages if is_new else []
        self._viewers[viewer] = not kept
        if kept:
            if self._header:
                viewer.keep_video(kept[0][1], self._header)
            for _, timestamp, payload in kept:
                viewer.keep_video(timestamp, payload)

    def leave(self, viewer: LayerViewer) -> None:
        """Have one viewer less; a second time does nothing."""
        self._viewers.pop(viewer, None)

    def put(self, timestamp: int, payload: bytes, now: float) -> None:
        """Take a header or a frame of the track."""
        before, is_header = (self.codec, self._finder.found), is_sequence_header(payload)
        is_key = is_key_frame(payload)
        self._meter.put(timestamp, payload)
        self._finder.put(timestamp, payload)
        if is_header or is_key:
            self._read(payload, is_header=is_header)
        if (self.codec, self._finder.found) != before:
            self._tell(now)
        if is_key:
            self._group.begin()
        if not is_header:
            self._group.put(VIDEO, timestamp, payload)
        for viewer, waits in list(self._viewers.items()):
            if not waits:
                viewer.show_video(timestamp, payload, now)
            elif is_key:
                self._viewers[viewer] = False
                self._enter(viewer, timestamp, payload, now)

    def end(self, now: float) -> None:
        """The publication has ended."""
        self.has_ended = True
        self._group.drop()
        self._tell(now)
        self._viewers.clear()

    def _read(self, payload: bytes, *, is_header: bool) -> None:
        """Note what a header or a key frame says of the track."""
        self.codec = codec_of(payload)
        if is_header and payload != self._header:
            self._group.drop()  # its frames need the header before
            self._header = payload
        reader = _READERS.get(self.codec)
        if reader is not None and (is_header or self.codec == VP8):
            packer = reader()
            with suppress(UnsuitableError):
                packer.convert(payload, 0)
            self.size = packer.size if any(packer.size) else self.size

    def _enter(self, viewer: LayerViewer, timestamp: int, payload: bytes, now: float) -> None:
        """Show a viewer that has waited for it a key frame, and the header before it.

        One ms later: the frame that it has got from another track may have this time, and a browser
        takes all packets of one time for one frame.
        """
        viewer.enter_layer(self)
        for each in filter(None, (self._header, payload)):
            viewer.show_video(timestamp + 1 & _MASK, each, now)

    def _tell(self, now: float) -> None:
        for viewer in list(self._viewers):
            viewer.layer_changed(self, now)


class VideoLayers:
    """The layers of one publication; a tap of its `LiveStream`.

    What is kept for late viewers is paid from `budget`, and nothing is if the registry keeps no
    groups.  `on_end` is called at the end of the publication.
    """

    def __init__(
        self, live: LiveStream, budget: MemoryBudget, limit: int, on_end: Callable[[], object]
    ) -> None:
        self._live, self._budget, self._limit, self._on_end = live, budget, limit, on_end
        self._layers: dict[int, VideoLayer] = {DEFAULT: self._layer(DEFAULT)}

    def begin(self, now: float) -> None:
        """Take the headers and the frames that the stream has kept, and all that comes."""
        for type_id, body in self._live.opening():
            self.write(type_id, self._live.timestamp, body, now)
        for message in list(self._live.kept):
            self.write(*message, now)
        self._live.tap(self)

    def find(self, name: str) -> VideoLayer | None:
        """The layer of a name, None if the stream has none such."""
        return next((each for each in self._layers.values() if each.name == name), None)

    def all(self) -> list[VideoLayer]:
        """The layers in the order of their tracks, the default one first."""
        return [self._layers[each] for each in sorted(self._layers)]

    def write(self, type_id: int, timestamp: int, payload: bytes, now: float) -> None:
        """Take a published message; with one track alone nothing is read but its header."""
        if type_id != VIDEO or not payload:
            return
        try:
            tracks = tracks_of(payload)
        except RemoteError:
            return
        for track, body in tracks:
            layer = self._layers.get(track)
            if layer is None:
                if len(self._layers) == MAX_LAYERS:
                    continue
                layer = self._layers[track] = self._layer(track)
            if len(self._layers) > 1 or is_sequence_header(body):
                layer.put(timestamp, body, now)

    def end(self, now: float) -> None:
        """The publication has ended."""
        for layer in self._layers.values():
            layer.end(now)
        self._on_end()

    def _layer(self, track: int) -> VideoLayer:
        # the stream itself keeps the group of its default track
        limit = 0 if track == DEFAULT else min(self._limit, MAX_OCTETS)
        return VideoLayer(track, GroupCache(limit, Account(self._budget)))
