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

from rtmplite.compiled import obey_environment

obey_environment(__path__)

# The public names by the module that each comes from.  Own design: lazy exports (PEP 562) need
# names as text; a test holds this table and the imports below it, for type checkers, together.
_HOMES: Final = {
    "rtmplite.errors": "RtmpError LocalError RemoteError",
    # AMF
    "rtmplite.amf": "amf0 amf3",
    "rtmplite.amf.values": "UNDEFINED EcmaArray TypedObject Date",
    # FLV
    "rtmplite.flv": "metadata",
    "rtmplite.flv.tag": "Tag TagType",
    "rtmplite.flv.file": "FlvReader read_flv write_flv",
    "rtmplite.flv.audio": "AudioTag",
    "rtmplite.flv.video": "VideoTag is_key_frame",
    "rtmplite.flv.avc": "AvcConfig",
    "rtmplite.flv.enhanced_audio": "ExAudioTag",
    "rtmplite.flv.enhanced_video": "ExVideoTag",
    # RTMP
    "rtmplite.rtmp.wire.message": "Message MessageType",
    "rtmplite.rtmp.wire.command": "Command",
    "rtmplite.rtmp.wire.chunk_reader": "ChunkReader",
    "rtmplite.rtmp.wire.chunk_writer": "ChunkWriter",
    "rtmplite.rtmp.wire.control": "parse_control",
    # Machines
    "rtmplite.rtmp.handshake": "ServerHandshake ClientHandshake",
    "rtmplite.rtmp.message_transport": "ConnectionLimits",
    "rtmplite.rtmp.netconnection": "Application NetConnection",
    "rtmplite.rtmp.server": "ServerConnection",
    "rtmplite.rtmp.client": "ClientConnection Target",
    "rtmplite.rtmp.application": "LiveApplication",
    "rtmplite.live.streams": "Registry LiveStream",
    "rtmplite.shared_objects.server": "SharedObjects",
    "rtmplite.auth.guard": "Guards GuardedApplication",
    "rtmplite.auth.credentials": "Users UsersGuard",
    "rtmplite.vod.application": "VodApplication",
    "rtmplite.vod.recorder": "Recorder",
    # The edge
    "rtmplite.net.server.rtmp_server": "RtmpServer",
    "rtmplite.net.server.record": "Recordings",
    "rtmplite.net.client.rtmfp_client": "connect",
    "rtmplite.net.client.client": "Client ClientStream",
    "rtmplite.net.client.reconnecting": "Publisher Player",
    "rtmplite.net.tls": "client_context server_context",
}
_HOME_OF: Final = {name: home for home, names in _HOMES.items() for name in names.split()}

__all__ = list(_HOME_OF)

if TYPE_CHECKING:
    from rtmplite.amf import amf0 as amf0
    from rtmplite.amf import amf3 as amf3
    from rtmplite.amf.values import UNDEFINED as UNDEFINED
    from rtmplite.amf.values import Date as Date
    from rtmplite.amf.values import EcmaArray as EcmaArray
    from rtmplite.amf.values import TypedObject as TypedObject
    from rtmplite.auth.credentials import Users as Users
    from rtmplite.auth.credentials import UsersGuard as UsersGuard
    from rtmplite.auth.guard import GuardedApplication as GuardedApplication
    from rtmplite.auth.guard import Guards as Guards
    from rtmplite.errors import LocalError as LocalError
    from rtmplite.errors import RemoteError as RemoteError
    from rtmplite.errors import RtmpError as RtmpError
    from rtmplite.flv import metadata as metadata
    from rtmplite.flv.audio import AudioTag as AudioTag
    from rtmplite.flv.avc import AvcConfig as AvcConfig
    from rtmplite.flv.enhanced_audio import ExAudioTag as ExAudioTag
    from rtmplite.flv.enhanced_video import ExVideoTag as ExVideoTag
    from rtmplite.flv.file import FlvReader as FlvReader
    from rtmplite.flv.file import read_flv as read_flv
    from rtmplite.flv.file import write_flv as write_flv
    from rtmplite.flv.tag import Tag as Tag
    from rtmplite.flv.tag import TagType as TagType
    from rtmplite.flv.video import VideoTag as VideoTag
    from rtmplite.flv.video import is_key_frame as is_key_frame
    from rtmplite.live.streams import LiveStream as LiveStream
    from rtmplite.live.streams import Registry as Registry
    from rtmplite.net.client.client import Client as Client
    from rtmplite.net.client.client import ClientStream as ClientStream
    from rtmplite.net.client.reconnecting import Player as Player
    from rtmplite.net.client.reconnecting import Publisher as Publisher
    from rtmplite.net.client.rtmfp_client import connect as connect
    from rtmplite.net.server.record import Recordings as Recordings
    from rtmplite.net.server.rtmp_server import RtmpServer as RtmpServer
    from rtmplite.net.tls import client_context as client_context
    from rtmplite.net.tls import server_context as server_context
    from rtmplite.rtmp.application import LiveApplication as LiveApplication
    from rtmplite.rtmp.client import ClientConnection as ClientConnection
    from rtmplite.rtmp.client import Target as Target
    from rtmplite.rtmp.handshake import ClientHandshake as ClientHandshake
    from rtmplite.rtmp.handshake import ServerHandshake as ServerHandshake
    from rtmplite.rtmp.message_transport import ConnectionLimits as ConnectionLimits
    from rtmplite.rtmp.netconnection import Application as Application
    from rtmplite.rtmp.netconnection import NetConnection as NetConnection
    from rtmplite.rtmp.server import ServerConnection as ServerConnection
    from rtmplite.rtmp.wire.chunk_reader import ChunkReader as ChunkReader
    from rtmplite.rtmp.wire.chunk_writer import ChunkWriter as ChunkWriter
    from rtmplite.rtmp.wire.command import Command as Command
    from rtmplite.rtmp.wire.control import parse_control as parse_control
    from rtmplite.rtmp.wire.message import Message as Message
    from rtmplite.rtmp.wire.message import MessageType as MessageType
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
