"""RTMP, AMF and FLV, each class beside the section it implements.

The names in `__all__` are the public ones; any other name may change.  Each is loaded when it is
first asked for, so that a program which only reads messages never loads gevent.  RTMFP has a front
door of its own, `rtmplite.rtmfp`.

    >>> import rtmplite
    >>> rtmplite.amf0.decode(rtmplite.amf0.encode("connect", 1.0))
    ['connect', 1.0]
"""

from importlib import import_module
from typing import TYPE_CHECKING, Final

# The public names by the module that each comes from.  Own design: lazy exports (PEP 562) need
# names as text; a test holds this table and the imports below it, for type checkers, together.
_HOMES: Final = {
    "rtmplite.errors": "RtmpError LocalError RemoteError",
    # AMF
    "rtmplite.amf": "amf0 amf3",
    "rtmplite.amf.values": (
        "UNDEFINED UNSUPPORTED EcmaArray Array Traits TypedObject Date Xml XmlDocument Vector "
        "VectorKind Dictionary"
    ),
    # FLV
    "rtmplite.flv": "metadata",
    "rtmplite.flv.tag": "Tag TagType",
    "rtmplite.flv.file": "FlvHeader FlvReader MemoryFile read_flv write_flv",
    "rtmplite.flv.audio": "AudioTag SoundFormat",
    "rtmplite.flv.video": "VideoTag CodecId FrameType is_key_frame",
    "rtmplite.flv.avc": "AvcConfig join_units split_units",
    "rtmplite.flv.avc_sps": "SequenceParameters",
    "rtmplite.flv.enhanced_audio": "ExAudioTag AudioTrack is_silence",
    "rtmplite.flv.enhanced_video": "ExVideoTag VideoTrack",
    "rtmplite.flv.color_info": "ColorInfo",
    "rtmplite.flv.index": "Index load_index scan",
    # RTMP
    "rtmplite.rtmp.wire.message": "Message MessageType",
    "rtmplite.rtmp.wire.command": "Command",
    "rtmplite.rtmp.wire.chunk_reader": "ChunkReader",
    "rtmplite.rtmp.wire.chunk_writer": "ChunkWriter",
    "rtmplite.rtmp.wire.control": (
        "parse_control SetChunkSize Abort Acknowledgement WindowAcknowledgementSize "
        "SetPeerBandwidth StreamBegin StreamEof StreamDry SetBufferLength StreamIsRecorded "
        "PingRequest PingResponse"
    ),
    "rtmplite.rtmp.wire.shared_object": "SharedObject",
    "rtmplite.rtmp.wire.capabilities": "Capabilities",
    "rtmplite.limits.memory_budget": "MemoryBudget",
    # Machines
    "rtmplite.rtmp.handshake": "ServerHandshake ClientHandshake",
    "rtmplite.rtmp.message_transport": "ConnectionLimits",
    "rtmplite.rtmp.netconnection": "NetConnection",
    "rtmplite.rtmp.netstream": "ServerStream",
    "rtmplite.rtmp.server": "ServerConnection",
    "rtmplite.rtmp.client": "NetClient ClientConnection Target Reply Called Ended",
    "rtmplite.rtmp.application": "Application OpenApplication PlayRequest applications",
    "rtmplite.rtmp.live_application": "LiveApplication",
    "rtmplite.live.player": "Player Viewer Outlet",
    "rtmplite.live.streams": "Registry LiveStream",
    "rtmplite.live.sink": "Sink",
    "rtmplite.live.slow_consumer": "SlowConsumerPolicy",
    "rtmplite.live.probe": "Probe",
    "rtmplite.shared_objects.server": "SharedObjects SharedLimits",
    "rtmplite.shared_objects.replica": "Mirror",
    "rtmplite.auth.guard": "Guard Question Verdict Calling Guards GuardedApplication",
    "rtmplite.auth.credentials": "Users UsersGuard KeysGuard SignedGuard",
    "rtmplite.vod.application": "VodApplication",
    "rtmplite.vod.recorder": "Recorder",
    "rtmplite.relay.link": "Link ReconnectBackoff",
    "rtmplite.relay.rules": "Relays Rule",
    # The edge
    "rtmplite.net.server.stream_server": "StreamServer",
    "rtmplite.net.server.rtmp_server": "RtmpServer",
    "rtmplite.net.http.rtmpt": "TunnelServer",
    "rtmplite.net.http.flv_http": "FlvHttp",
    "rtmplite.net.server.files": "Files Alarms",
    "rtmplite.net.server.record": "Recordings",
    "rtmplite.net.connection_limit": "ConnectionLimit",
    "rtmplite.net.tls": "client_context server_context",
    "rtmplite.net.client.rtmfp_client": "connect",
    "rtmplite.net.client.client": "Client ClientStream",
    "rtmplite.net.client.rtmp_client": "RtmpClient",
    "rtmplite.net.client.reconnecting": "Publishing Playing",
    "rtmplite.net.client.shared": "RemoteObject",
    "rtmplite.net.client.dialer": "Dialer",
}
_HOME_OF: Final = {name: home for home, names in _HOMES.items() for name in names.split()}

__all__ = list(_HOME_OF)

if TYPE_CHECKING:
    from rtmplite.amf import amf0 as amf0
    from rtmplite.amf import amf3 as amf3
    from rtmplite.amf.values import UNDEFINED as UNDEFINED
    from rtmplite.amf.values import UNSUPPORTED as UNSUPPORTED
    from rtmplite.amf.values import Array as Array
    from rtmplite.amf.values import Date as Date
    from rtmplite.amf.values import Dictionary as Dictionary
    from rtmplite.amf.values import EcmaArray as EcmaArray
    from rtmplite.amf.values import Traits as Traits
    from rtmplite.amf.values import TypedObject as TypedObject
    from rtmplite.amf.values import Vector as Vector
    from rtmplite.amf.values import VectorKind as VectorKind
    from rtmplite.amf.values import Xml as Xml
    from rtmplite.amf.values import XmlDocument as XmlDocument
    from rtmplite.auth.credentials import KeysGuard as KeysGuard
    from rtmplite.auth.credentials import SignedGuard as SignedGuard
    from rtmplite.auth.credentials import Users as Users
    from rtmplite.auth.credentials import UsersGuard as UsersGuard
    from rtmplite.auth.guard import Calling as Calling
    from rtmplite.auth.guard import Guard as Guard
    from rtmplite.auth.guard import GuardedApplication as GuardedApplication
    from rtmplite.auth.guard import Guards as Guards
    from rtmplite.auth.guard import Question as Question
    from rtmplite.auth.guard import Verdict as Verdict
    from rtmplite.errors import LocalError as LocalError
    from rtmplite.errors import RemoteError as RemoteError
    from rtmplite.errors import RtmpError as RtmpError
    from rtmplite.flv import metadata as metadata
    from rtmplite.flv.audio import AudioTag as AudioTag
    from rtmplite.flv.audio import SoundFormat as SoundFormat
    from rtmplite.flv.avc import AvcConfig as AvcConfig
    from rtmplite.flv.avc import join_units as join_units
    from rtmplite.flv.avc import split_units as split_units
    from rtmplite.flv.avc_sps import SequenceParameters as SequenceParameters
    from rtmplite.flv.color_info import ColorInfo as ColorInfo
    from rtmplite.flv.enhanced_audio import AudioTrack as AudioTrack
    from rtmplite.flv.enhanced_audio import ExAudioTag as ExAudioTag
    from rtmplite.flv.enhanced_audio import is_silence as is_silence
    from rtmplite.flv.enhanced_video import ExVideoTag as ExVideoTag
    from rtmplite.flv.enhanced_video import VideoTrack as VideoTrack
    from rtmplite.flv.file import FlvHeader as FlvHeader
    from rtmplite.flv.file import FlvReader as FlvReader
    from rtmplite.flv.file import MemoryFile as MemoryFile
    from rtmplite.flv.file import read_flv as read_flv
    from rtmplite.flv.file import write_flv as write_flv
    from rtmplite.flv.index import Index as Index
    from rtmplite.flv.index import load_index as load_index
    from rtmplite.flv.index import scan as scan
    from rtmplite.flv.tag import Tag as Tag
    from rtmplite.flv.tag import TagType as TagType
    from rtmplite.flv.video import CodecId as CodecId
    from rtmplite.flv.video import FrameType as FrameType
    from rtmplite.flv.video import VideoTag as VideoTag
    from rtmplite.flv.video import is_key_frame as is_key_frame
    from rtmplite.limits.memory_budget import MemoryBudget as MemoryBudget
    from rtmplite.live.player import Outlet as Outlet
    from rtmplite.live.player import Player as Player
    from rtmplite.live.player import Viewer as Viewer
    from rtmplite.live.probe import Probe as Probe
    from rtmplite.live.sink import Sink as Sink
    from rtmplite.live.slow_consumer import SlowConsumerPolicy as SlowConsumerPolicy
    from rtmplite.live.streams import LiveStream as LiveStream
    from rtmplite.live.streams import Registry as Registry
    from rtmplite.net.client.client import Client as Client
    from rtmplite.net.client.client import ClientStream as ClientStream
    from rtmplite.net.client.dialer import Dialer as Dialer
    from rtmplite.net.client.reconnecting import Playing as Playing
    from rtmplite.net.client.reconnecting import Publishing as Publishing
    from rtmplite.net.client.rtmfp_client import connect as connect
    from rtmplite.net.client.rtmp_client import RtmpClient as RtmpClient
    from rtmplite.net.client.shared import RemoteObject as RemoteObject
    from rtmplite.net.connection_limit import ConnectionLimit as ConnectionLimit
    from rtmplite.net.http.flv_http import FlvHttp as FlvHttp
    from rtmplite.net.http.rtmpt import TunnelServer as TunnelServer
    from rtmplite.net.server.files import Alarms as Alarms
    from rtmplite.net.server.files import Files as Files
    from rtmplite.net.server.record import Recordings as Recordings
    from rtmplite.net.server.rtmp_server import RtmpServer as RtmpServer
    from rtmplite.net.server.stream_server import StreamServer as StreamServer
    from rtmplite.net.tls import client_context as client_context
    from rtmplite.net.tls import server_context as server_context
    from rtmplite.relay.link import Link as Link
    from rtmplite.relay.link import ReconnectBackoff as ReconnectBackoff
    from rtmplite.relay.rules import Relays as Relays
    from rtmplite.relay.rules import Rule as Rule
    from rtmplite.rtmp.application import Application as Application
    from rtmplite.rtmp.application import OpenApplication as OpenApplication
    from rtmplite.rtmp.application import PlayRequest as PlayRequest
    from rtmplite.rtmp.application import applications as applications
    from rtmplite.rtmp.client import Called as Called
    from rtmplite.rtmp.client import ClientConnection as ClientConnection
    from rtmplite.rtmp.client import Ended as Ended
    from rtmplite.rtmp.client import NetClient as NetClient
    from rtmplite.rtmp.client import Reply as Reply
    from rtmplite.rtmp.client import Target as Target
    from rtmplite.rtmp.handshake import ClientHandshake as ClientHandshake
    from rtmplite.rtmp.handshake import ServerHandshake as ServerHandshake
    from rtmplite.rtmp.live_application import LiveApplication as LiveApplication
    from rtmplite.rtmp.message_transport import ConnectionLimits as ConnectionLimits
    from rtmplite.rtmp.netconnection import NetConnection as NetConnection
    from rtmplite.rtmp.netstream import ServerStream as ServerStream
    from rtmplite.rtmp.server import ServerConnection as ServerConnection
    from rtmplite.rtmp.wire.capabilities import Capabilities as Capabilities
    from rtmplite.rtmp.wire.chunk_reader import ChunkReader as ChunkReader
    from rtmplite.rtmp.wire.chunk_writer import ChunkWriter as ChunkWriter
    from rtmplite.rtmp.wire.command import Command as Command
    from rtmplite.rtmp.wire.control import Abort as Abort
    from rtmplite.rtmp.wire.control import Acknowledgement as Acknowledgement
    from rtmplite.rtmp.wire.control import PingRequest as PingRequest
    from rtmplite.rtmp.wire.control import PingResponse as PingResponse
    from rtmplite.rtmp.wire.control import SetBufferLength as SetBufferLength
    from rtmplite.rtmp.wire.control import SetChunkSize as SetChunkSize
    from rtmplite.rtmp.wire.control import SetPeerBandwidth as SetPeerBandwidth
    from rtmplite.rtmp.wire.control import StreamBegin as StreamBegin
    from rtmplite.rtmp.wire.control import StreamDry as StreamDry
    from rtmplite.rtmp.wire.control import StreamEof as StreamEof
    from rtmplite.rtmp.wire.control import StreamIsRecorded as StreamIsRecorded
    from rtmplite.rtmp.wire.control import WindowAcknowledgementSize as WindowAcknowledgementSize
    from rtmplite.rtmp.wire.control import parse_control as parse_control
    from rtmplite.rtmp.wire.message import Message as Message
    from rtmplite.rtmp.wire.message import MessageType as MessageType
    from rtmplite.rtmp.wire.shared_object import SharedObject as SharedObject
    from rtmplite.shared_objects.replica import Mirror as Mirror
    from rtmplite.shared_objects.server import SharedLimits as SharedLimits
    from rtmplite.shared_objects.server import SharedObjects as SharedObjects
    from rtmplite.vod.application import VodApplication as VodApplication
    from rtmplite.vod.recorder import Recorder as Recorder

else:  # a type checker would take this for any name at all

    def __getattr__(name: str) -> object:
        """Load a public name from its module, once: PEP 562."""
        if name not in _HOME_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(_HOME_OF[name]), name)
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
