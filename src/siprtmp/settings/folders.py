"""The settings of the folders of recordings, of files to play, and of shared objects."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rtmplite.net.settings import FOLDER, Choice, setting

RECORD_WHEN: Final = ("always", "asked")


@dataclass(frozen=True, slots=True)
class FolderSettings:
    """The folders of recordings, of files to play, and of shared objects."""

    record: Path | None = setting(
        FOLDER,
        None,
        "Store what is published in this folder, as FLV files, and both sides of calls.",
        note="It is made if it is missing.",
        example="recordings",
    )
    record_when: str = setting(
        Choice(*RECORD_WHEN),
        RECORD_WHEN[0],
        "Store all that is published (always), or the streams alone for which an operator asks by "
        "the console or by HTTP (asked). The default is {default}.",
    )
    vod: Path | None = setting(
        FOLDER,
        None,
        "Play the FLV files of this folder as rtmp://HOST/vod/NAME.",
        note="It has to be there, unless it is the folder of `record`. Recorded calls, which are "
        "in folders called `call`, `sip` and `mixed`, are played to users only: with "
        "`?user=NAME&pass=PASSWORD`, or from this machine, if every listener is on loopback.",
        example="films",
    )
    shared: Path | None = setting(
        FOLDER,
        None,
        "Keep the persistent shared objects of clients in this folder.",
        example="objects",
    )
