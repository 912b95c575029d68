"""The parameter sets of a stream as they come, and the record that a frame needs of them.

Own design: a set replaces the one of its number, so those that came last are in force.  They go
into the records of FLV 10.1 §E.4.3.2 and E-RTMP v2 §"Enhanced Video".
"""

from collections.abc import Iterable
from typing import Protocol

from rtmplite.errors import RemoteError
from rtmplite.flv import hevc
from rtmplite.flv.avc import (
    MAX_OCTETS,
    MAX_PPS,
    PPS,
    SPS,
    AvcConfig,
    SequenceParameters,
    pps_ids,
    slice_pps_id,
)
from rtmplite.flv.hevc import HevcConfig, HevcParameters


class Sets(Protocol):
    """The parameter sets of one stream, the latest of each number: FLV 10.1 §E.4.3.2."""

    changed: bool  # since `config_for`
    size: tuple[int, int] | None
    reorder: int

    def learn(self, units: Iterable[bytes]) -> None:
        """Keep the sets among these NAL units; those that make no sense are none."""

    def config_for(self, unit: bytes) -> AvcConfig | HevcConfig | None:
        """The record with the sets that a slice needs, None if one is missing: FLV 10.1 §E.4.3.2.

        Own design: others of the same sequence are in it, sets of another sequence are not.
        """


class AvcSets:
    """The parameter sets of one stream, the latest of each number: FLV 10.1 §E.4.3.2."""

    def __init__(self) -> None:
        self.changed = False
        self.size: tuple[int, int] | None = None
        self.reorder = 0
        self._sps: dict[int, bytes] = {}
        self._pps: dict[int, tuple[int, bytes]] = {}  # with the number of their sequence's set

    def learn(self, units: Iterable[bytes]) -> None:
        """Keep the sets among these NAL units; those that make no sense are none."""
        for unit in units:
            kind = unit[0] & 0x1F if len(unit) < MAX_OCTETS else 0
            try:
                if kind == SPS and unit not in self._sps.values():
                    read = SequenceParameters.parse(unit)
                    self._sps[read.set_id] = unit
                    self._use(read)
                    self.changed = True
                elif kind == PPS:
                    number, sequence = pps_ids(unit)
                    self.changed |= self._pps.get(number) != (sequence, unit)
                    self._pps[number] = sequence, unit
            except RemoteError:
                continue

    def config_for(self, unit: bytes) -> AvcConfig | None:
        """See `Sets.config_for`: FLV 10.1 §E.4.3.2."""
        try:
            sequence, _ = self._pps[slice_pps_id(unit)]
            sps = self._sps[sequence]
            self._use(SequenceParameters.parse(sps))
            pps = [unit for _, (of, unit) in sorted(self._pps.items()) if of == sequence]
            config = AvcConfig.of([sps], pps[:MAX_PPS])
        except (KeyError, RemoteError):
            return None
        self.changed = False
        return config

    def _use(self, read: SequenceParameters) -> None:
        self.size, self.reorder = (read.width, read.height), read.reorder or 0


class HevcSets:
    """The parameter sets of one stream, the latest of each number: E-RTMP v2 §"Enhanced Video"."""

    def __init__(self) -> None:
        self.changed = False
        self.size: tuple[int, int] | None = None
        self.reorder = 0
        self._found: dict[tuple[int, int], bytes] = {}  # by type and number

    def learn(self, units: Iterable[bytes]) -> None:
        """Keep the sets among these NAL units; those that make no sense are none."""
        for unit in units:
            if not 2 < len(unit) < MAX_OCTETS:
                continue
            try:
                self._learn(unit)
            except RemoteError:
                continue

    def _learn(self, unit: bytes) -> None:
        kind, number = hevc.kind_of(unit), 0
        if kind == hevc.VPS:
            number = hevc.vps_id(unit)
        elif kind == hevc.SPS:
            read = HevcParameters.parse(unit)
            number = read.set_id
            self._use(read)
        elif kind == hevc.PPS:
            number, _ = hevc.pps_ids(unit)
        else:
            return
        self.changed |= self._found.get((kind, number)) != unit
        self._found[kind, number] = unit

    def config_for(self, unit: bytes) -> HevcConfig | None:
        """See `Sets.config_for`: E-RTMP v2 §"Enhanced Video"."""
        try:
            _, sequence = hevc.pps_ids(self._found[hevc.PPS, hevc.slice_pps_id(unit)])
            sps = self._found[hevc.SPS, sequence]
            vps = self._found[hevc.VPS, hevc.sps_vps_id(sps)]
            self._use(HevcParameters.parse(sps))
            pps = [
                each
                for (kind, _), each in sorted(self._found.items())
                if kind == hevc.PPS and hevc.pps_ids(each)[1] == sequence
            ]
            config = HevcConfig.of([vps], [sps], pps)
        except (KeyError, RemoteError):
            return None
        self.changed = False
        return config

    def _use(self, read: HevcParameters) -> None:
        self.size, self.reorder = (read.width, read.height), read.reorder
