"""The parsers of the RTMP family, and what the strategies draw for them."""

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from support.reach.reading import Family, Reading, first, octets, of_oracle, second

from rtmplite.amf import amf0, amf3, amf3_reader, cursor, u29
from rtmplite.flv import (
    audio,
    avc,
    color_info,
    enhanced,
    enhanced_audio,
    enhanced_raw,
    enhanced_video,
    file,
    hevc,
    metadata,
    tag,
    video,
)
from rtmplite.rtmfp.crypto import certificate, epd, fields, keying
from rtmplite.rtmfp.netconnection import messages
from rtmplite.rtmfp.wire import (
    acks,
    address,
    chunks,
    control_chunks,
    fast_path,
    flow_chunks,
    option,
    packet,
    startup_chunks,
    vlu,
)
from rtmplite.rtmp.wire import (
    aggregate,
    chunk_header,
    chunk_reader,
    command,
    control,
    message,
    shared_object,
)
from rtmplite.rtws import frames
from rtmplite.strategies import amf3 as amf3_values
from rtmplite.strategies import enhanced as enhanced_media
from rtmplite.strategies import (
    enhanced_faults,
    flash,
    flv,
    flv_faults,
    hevc_faults,
    large,
    limits,
    rtmfp,
    rtmfp_crypto,
    rtmfp_faults,
    rtmp,
    rtmp_faults,
    shared,
)
from rtmplite.strategies import hevc as hevc_media
from rtmplite.strategies.faults import broken

_PARSERS = (
    *(amf0, amf3, amf3_reader, cursor, u29),
    *(avc, file, tag, audio, video, metadata, hevc),
    *(color_info, enhanced, enhanced_audio, enhanced_raw, enhanced_video),
    *(acks, address, chunks, control_chunks, flow_chunks, option, packet, startup_chunks, vlu),
    *(fast_path, certificate, epd, fields, keying, messages, frames),
    *(aggregate, chunk_header, chunk_reader, command, control, message, shared_object),
)


def _in_pieces(reader: Any, data: bytes) -> None:
    """As TCP may deliver them: few octets at once."""
    for at in range(0, len(data), 5):
        reader.feed(data[at : at + 5])


def _fast(read: Callable[[bytes, int, int], object]) -> Callable[[bytes], None]:
    """A payload of a chunk, in a packet that ends with it, or goes on."""

    def both(payload: bytes) -> None:
        for packet_ in (payload + b"\5\5\5\5", payload):
            read(packet_, 0, len(payload))

    return both


def _relayed(type_id: int, payload: bytes) -> None:
    """The fields that a relay looks for."""
    is_audio = type_id == message.MessageType.AUDIO
    kind = enhanced_raw.AUDIO_MULTITRACK if is_audio else enhanced_raw.VIDEO_MULTITRACK
    (enhanced_raw.audio_packet_type if is_audio else enhanced_raw.video_packet_type)(payload)
    enhanced_raw.track_ids(payload, kind)
    enhanced_raw.codecs(payload, kind)


def _flow_message(data: bytes) -> None:
    messages.parse_control(messages.parse_message(data, 1))


_MEDIA = (
    Reading("amf3 object", amf3_values.encoded(), amf3.decode_one),
    Reading("audio", octets(flv.audio_tags()), audio.AudioTag.parse),
    Reading("audio broken", second(broken(flv_faults.AUDIO_FAULTS)), audio.AudioTag.parse),
    Reading("video", octets(flv.video_tags()), video.VideoTag.parse),
    Reading("video broken", second(broken(flv_faults.VIDEO_FAULTS)), video.VideoTag.parse),
    Reading("description", flv.descriptions(), metadata.read),
    Reading("description broken", second(broken(flv_faults.DESCRIPTION_FAULTS)), metadata.read),
    Reading(
        "file in pieces",
        flv.files() | second(broken(flv_faults.FILE_FAULTS)),
        lambda data: _in_pieces(file.FlvReader(), data),
    ),
    Reading("h265", octets(hevc_media.hevc_configs()), hevc.HevcConfig.parse),
    Reading("h265 broken", second(broken(hevc_faults.CONFIG_FAULTS)), hevc.HevcConfig.parse),
    Reading("h265 set", first(hevc_media.hevc_parameter_sets()), hevc.HevcParameters.parse),
    Reading("h265 set broken", second(broken(hevc_faults.SPS_FAULTS)), hevc.HevcParameters.parse),
    Reading("colors", enhanced_media.metadata(), color_info.ColorInfo.parse),
    Reading(
        "loudspeakers",
        octets(enhanced_media.multichannel_configs())
        | second(broken(enhanced_faults.MULTICHANNEL_FAULTS)),
        enhanced_audio.MultichannelConfig.parse,
    ),
)
_AUDIO = (
    octets(enhanced_media.audio_tags())
    | second(broken(enhanced_faults.AUDIO_FAULTS))
    | second(broken(limits.AUDIO_LIMITS))
)
_VIDEO = (
    octets(enhanced_media.video_tags())
    | second(broken(enhanced_faults.VIDEO_FAULTS))
    | second(broken(limits.VIDEO_LIMITS))
)
_ENHANCED = (
    Reading("enhanced audio of a relay", _AUDIO.filter(bool), lambda data: _relayed(8, data)),
    Reading("enhanced video of a relay", _VIDEO.filter(bool), lambda data: _relayed(9, data)),
    Reading(
        "many tracks", large.tracks().map(bytes), lambda data: _relayed(data[0] & 0xF | 8, data)
    ),
)

_MESSAGES = (
    Reading(
        "rtmp in pieces",
        first(rtmp.chunk_streams()),
        lambda data: _in_pieces(chunk_reader.ChunkReader(), data),
    ),
    Reading(
        "rtmp of little",
        first(rtmp.chunk_streams()),
        lambda data: _in_pieces(chunk_reader.ChunkReader(max_message=140, max_streams=4), data),
    ),
    Reading(
        "rtmp unfinished",
        first(rtmp.chunk_streams(st.just(message.Message(9, 0, 1, bytes(129))))),
        lambda data: chunk_reader.ChunkReader(max_message=129).feed(data),
    ),
    Reading(
        "basic header",
        first(rtmp.chunk_streams()).filter(bool),
        lambda data: chunk_header.read_basic_header(data, 0),
    ),
    Reading("control", rtmp.controls().map(lambda each: each.message()), control.parse_control),
    Reading("control broken", second(broken(rtmp_faults.CONTROL_FAULTS)), control.parse_control),
    Reading(
        "command",
        st.builds(
            lambda each, kind: each.message(type_id=kind),
            rtmp.commands(),
            st.sampled_from([17, 20]),
        ),
        command.Command.parse,
    ),
    Reading("command broken", second(broken(rtmp_faults.COMMAND_FAULTS)), command.Command.parse),
    Reading(
        "shared object",
        st.builds(lambda each, amf3_: each.message(amf3_), shared.messages(), st.booleans()),
        shared_object.SharedObject.parse,
    ),
    Reading(
        "shared object broken",
        second(broken(rtmp_faults.SHARED_OBJECT_FAULTS)),
        shared_object.SharedObject.parse,
    ),
    Reading("aggregate", first(rtmp.aggregates()), lambda each: list(aggregate.aggregated(each))),
    Reading(
        "aggregate broken",
        second(broken(rtmp_faults.AGGREGATE_FAULTS)),
        lambda each: list(aggregate.aggregated(each)),
    ),
    Reading(
        "message beyond a limit",
        second(broken(limits.MESSAGE_LIMITS)),
        lambda each: _BY_TYPE[each.type_id](each),
    ),
)
_BY_TYPE: dict[int, Callable[[message.Message], object]] = {
    message.MessageType.COMMAND: command.Command.parse,
    message.MessageType.SHARED_OBJECT: shared_object.SharedObject.parse,
    message.MessageType.AGGREGATE: lambda each: list(aggregate.aggregated(each)),
}
_PACKETS = rtmfp.packets().map(lambda each: each.encode())


def _payloads(type_id: int) -> SearchStrategy[bytes]:
    """Broken chunks of one type."""
    return second(
        broken(rtmfp_faults.SESSION_FAULTS).filter(lambda each: each[1][0] == type_id)
    ).map(lambda chunk: chunk[1])


_RTMFP = (
    Reading(
        "packet of a stranger",
        _PACKETS,
        lambda data: packet.Packet.parse(data, 2),
    ),
    Reading("header", _PACKETS, fast_path.read_header),
    Reading("header broken", second(broken(rtmfp_faults.PACKET_FAULTS)), fast_path.read_header),
    Reading(
        "user data",
        rtmfp.user_data().map(lambda each: each.encode()) | _payloads(flow_chunks.UserData.type_id),
        _fast(fast_path.read_user_data),
    ),
    Reading(
        "next user data",
        rtmfp.next_user_data().map(lambda each: each.encode())
        | _payloads(flow_chunks.NextUserData.type_id),
        _fast(fast_path.read_next_user_data),
    ),
    Reading(
        "ranges",
        rtmfp.range_acks().map(lambda each: each.encode())
        | rtmfp.range_acks().map(lambda each: each.encode()[:-1])
        | _payloads(acks.DataAckRanges.type_id),
        fast_path.read_range_ack,
    ),
    Reading("opening", rtmfp.openings(), flow_chunks.read_flow_options),
    Reading(
        "opening broken",
        second(broken(rtmfp_faults.OPENING_FAULTS)),
        flow_chunks.read_flow_options,
    ),
    Reading("metadata", second(flash.odd_metadata()), messages.FlowMetadata.parse),
    Reading(
        "metadata broken",
        second(broken(rtmfp_faults.METADATA_FAULTS)),
        messages.FlowMetadata.parse,
    ),
    Reading("flow message", flash.flow_messages(), _flow_message),
    Reading("flow message broken", second(broken(rtmfp_faults.MESSAGE_FAULTS)), _flow_message),
    Reading("addresses", first(flash.odd_peer_infos()), messages.parse_peer_info),
)


def _of_options(
    name: str,
    drawn: SearchStrategy[Any],
    faults: SearchStrategy[Any],
    read: Callable[[Any], object],
) -> tuple[Reading, ...]:
    """What is read from a field of options: in order, broken, and too many."""
    return (
        Reading(name, first(drawn), read),
        Reading(f"{name} broken", second(faults), read),
        Reading(f"{name} beyond", second(broken(limits.OPTION_LIMITS)), read),
    )


_PROFILE = (
    *_of_options(
        "certificate",
        rtmfp_crypto.certificates(),
        broken(rtmfp_faults.CERTIFICATE_FAULTS),
        certificate.Certificate.parse,
    ),
    *_of_options(
        "discriminator", rtmfp_crypto.epds(), broken(rtmfp_faults.EPD_FAULTS), epd.Epd.parse
    ),
    *_of_options(
        "component",
        rtmfp_crypto.components(),
        broken(rtmfp_faults.COMPONENT_FAULTS),
        keying.Component.parse,
    ),
)

_CODECS = (
    *("amf0", "amf3", "flv-tag", "flv", "enhanced-audio", "enhanced-video", "rtmp", "rtmfp"),
    *("rtws", "h264-config", "h264-sps"),
)
_PROTOCOL = "a method of a Protocol has no body"
FAMILY = Family(
    _PARSERS,
    [*of_oracle(*_CODECS), *_MEDIA, *_ENHANCED, *_MESSAGES, *_RTMFP, *_PROFILE],
    {
        "rtmplite.amf.amf3_reader ExternalReader.read: "
        'def read(self, reader: "Amf3Reader") -> Value:': _PROTOCOL,
        "rtmplite.flv.file Source.read: def read(self, at: int, size: int) -> bytes:": _PROTOCOL,
        "rtmplite.flv.file MemoryFile.read: def read(self, at: int, size: int) -> bytes:": (
            "it gives the octets of a file, whatever they are"
        ),
    },
)
