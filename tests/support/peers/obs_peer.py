"""OBS Studio as a test peer: on a screen that nobody sees, streaming and recording at once."""

import json
import os
import signal
from pathlib import Path
from typing import Any

from support.peers.process import Process, require

SIZE = (320, 240)
FPS, KEY_FRAMES = 15, 15  # frames a second, and from key frame to key frame
GLOBAL = """\
[General]
FirstRun=true
EnableAutoUpdates=false
ConfirmOnExit=false
[Basic]
Profile=test
ProfileDir=test
SceneCollection=test
SceneCollectionFile=test
ConfigOnNewProfile=false
[OBSWebSocket]
FirstLoad=false
"""
PROFILE = """\
[General]
Name=test
[Output]
Mode=Simple
Reconnect=false
[SimpleOutput]
FilePath={recordings}
RecFormat=flv
RecQuality=Stream
StreamEncoder=x264
{encoding}VBitrate=300
ABitrate=64
[Video]
BaseCX={width}
BaseCY={height}
OutputCX={width}
OutputCY={height}
FPSType=1
FPSInt={fps}
[Audio]
SampleRate=44100
"""
QUICK = f"UseAdvanced=true\nPreset=ultrafast\nx264Settings=keyint={KEY_FRAMES}\n"  # no B-frames
RED = {"color": 0xFF0000FF, "width": SIZE[0], "height": SIZE[1]}
ITEM = {
    **{"id": 1, "name": "red", "visible": True, "rot": 0.0, "align": 5},
    **{"pos": {"x": 0.0, "y": 0.0}, "scale": {"x": 1.0, "y": 1.0}, "bounds": {"x": 0.0, "y": 0.0}},
}
SCENES: dict[str, Any] = {
    **{"name": "test", "current_scene": "scene", "current_program_scene": "scene"},
    "scene_order": [{"name": "scene"}],
    "sources": [
        {"id": "color_source", "versioned_id": "color_source_v3", "name": "red", "settings": RED},
        {"id": "scene", "name": "scene", "settings": {"id_counter": 1, "items": [ITEM]}},
    ],
}


class Xvfb(Process):
    """An X server without a screen."""

    def __init__(self, folder: Path) -> None:
        """It picks its number."""
        words = ["-displayfd", "1", "-screen", "0", "800x600x24", "-nolisten", "tcp"]
        super().__init__(folder, [require("Xvfb", "xvfb"), *words])

    @property
    def display(self) -> str:
        """What DISPLAY has to be."""
        return f":{self.output.strip()}"

    def is_ready(self) -> bool:
        """Truthy once it told its number."""
        return self.output.strip().isdigit()


def showing(film: Path) -> dict[str, Any]:
    """A scene with a film, which begins again at its end."""
    settings = {"local_file": str(film), "is_local_file": True, "looping": True}
    source = {"id": "ffmpeg_source", "name": "film", "settings": settings}
    scene = {"id": "scene", "name": "scene", "settings": {"items": [{**ITEM, "name": "film"}]}}
    return {**SCENES, "sources": [source, scene]}


class Obs(Process):
    """OBS streaming a red picture and silence, or a film; `stop` ends it as its user would.

    What it streams it also records, from the same encoders: see `recording`.  A film is encoded as
    OBS does by default, with B-frames.
    """

    def __init__(
        self, folder: Path, display: str, url: str, key: str, film: Path | None = None
    ) -> None:
        """`url` ends with the application, `key` is the stream.

        It looks for news of its services, for which it is given a proxy that is not there.
        """
        super().__init__(folder)
        home, self.recordings = folder / "config" / "obs-studio", folder / "recordings"
        profile, scenes = home / "basic" / "profiles" / "test", home / "basic" / "scenes"
        for each in (profile, scenes, self.recordings):
            each.mkdir(parents=True)
        text = PROFILE.format(
            recordings=self.recordings,
            width=SIZE[0],
            height=SIZE[1],
            fps=FPS,
            encoding=QUICK if film is None else "",
        )
        service = {"type": "rtmp_custom", "settings": {"server": url, "key": key}}
        (home / "global.ini").write_text(GLOBAL)
        (profile / "basic.ini").write_text(text)
        (profile / "service.json").write_text(json.dumps(service))
        (scenes / "test.json").write_text(json.dumps(showing(film) if film else SCENES))
        nowhere = "http://127.0.0.1:9"
        environment = {
            **{"HOME": folder, "XDG_CONFIG_HOME": folder / "config", "XDG_RUNTIME_DIR": folder},
            **{"DISPLAY": display, "http_proxy": nowhere, "https_proxy": nowhere},
        }
        words = ["--multi", "--startstreaming", "--startrecording", "--disable-updater"]
        program = require("obs", "obs-studio")
        self.argv = ["env", *(f"{k}={v}" for k, v in environment.items()), program, *words]

    @property
    def recording(self) -> Path:
        """What it recorded."""
        (path,) = self.recordings.iterdir()
        return path

    def leave(self) -> int:
        """Close its window; the exit code."""
        os.kill(self.child.pid, signal.SIGINT)
        return self.finish()
