"""The threads that decode and encode pictures, for all calls: the loop must not wait for them.

Own design: as many threads as the machine has processors, but for one that is left to the loop, and
each way of a call has one of them at a time.  ffmpeg works without the interpreter's lock, so the
loop goes on meanwhile.
"""

import os
from collections.abc import Callable
from typing import TypeVar

from p2psip.net.clock import monotonic
from rtmplite.net.workers import Workers
from siprtmp.media.transcode import video_encoder
from siprtmp.media.transcode.transcoding import AvVideoTranscoders
from siprtmp.operation.arguments import ConfigError
from siprtmp.settings.types import VideoLimits

T = TypeVar("T")


def video_transcoding(wanted: VideoLimits | None) -> AvVideoTranscoders | None:
    """The transcoding of --transcode-video, None without that.

    Raises ConfigError if PyAV has no encoders.
    """
    if wanted is None:
        return None
    if missing := video_encoder.missing():
        raise ConfigError(f"--transcode-video: this PyAV has no {' and no '.join(missing)}")
    workers = Workers(max(1, (os.cpu_count() or 1) - 1))

    def run(job: Callable[[], T], then: Callable[[T, float], None]) -> None:
        workers.run(job, lambda made: then(made, monotonic()))

    return AvVideoTranscoders(run, **wanted._asdict())
