"""The option --transcode-video, and the limits that it takes."""

import pytest

from siprtmp.operation.arguments import ConfigError
from siprtmp.settings import check
from siprtmp.settings.load import load
from siprtmp.settings.table import Settings
from siprtmp.settings.types import VideoLimits


@pytest.mark.parametrize(
    ("words", "limits"),
    [
        ([], VideoLimits()),
        (["on"], VideoLimits()),
        (["off"], None),
        (["640x360"], VideoLimits(640, 360)),
        (["640x360@15"], VideoLimits(640, 360, 15)),
        (["@15"], VideoLimits(rate=15)),
        (["500"], VideoLimits(kilobits=500)),
        (["baseline,300"], VideoLimits(kilobits=300, baseline=True)),
        (["640x360@15,500,baseline"], VideoLimits(640, 360, 15, 500, True)),
    ],
)
def test_each_limit_may_be_left_out(words, limits):
    assert load(["--transcode-video", *words]).media.transcode_video == limits


@pytest.mark.parametrize(
    "text", ["", "x", "640x", "1x1", "640x12", "640x360@0", "@100", "8", "640x360,8", "500,", "yes"]
)
def test_other_words_are_refused(text):
    with pytest.raises(ConfigError):
        load(["--transcode-video", text])


def test_pictures_are_not_made_without_the_extra(monkeypatch):
    monkeypatch.setattr(check.importlib.util, "find_spec", lambda name: None)
    assert load(["--transcode-video", "off"]) == Settings()
    with pytest.raises(ConfigError, match="--transcode-video needs the extra transcode"):
        load(["--transcode-video"])
