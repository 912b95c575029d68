"""RTMFP: packets and chunks, the machines over them, and Flash's profile (RFC 7016, RFC 7425).

The names in `__all__` are the public ones, each loaded when it is first asked for, as in
`rtmplite`.

    >>> from rtmplite import rtmfp
    >>> rtmfp.FlashProfile.__name__
    'FlashProfile'
"""

from importlib import import_module
from typing import TYPE_CHECKING, Final

# The public names by the module that each comes from.  Own design: lazy exports (PEP 562) need
# names as text; a test holds this table and the imports below it, for type checkers, together.
_HOMES: Final = {
    # As in `rtmplite`
    "rtmplite.errors": "RtmpError LocalError RemoteError",
    "rtmplite.rtmp.client": "Target",
    # Codecs
    "rtmplite.rtmfp.wire.packet": "Packet Mode",
    "rtmplite.rtmfp.wire.chunks": "parse_chunks encode_chunk",
    "rtmplite.rtmfp.wire.address": "SocketAddress",
    "rtmplite.rtmfp.wire.option": "Option",
    # Machines
    "rtmplite.rtmfp.crypto.profile": "CryptoProfile",
    "rtmplite.rtmfp.crypto.flash_profile": "FlashProfile",
    "rtmplite.rtmfp.session.session": "Session SessionListener",
    "rtmplite.rtmfp.session.send_flow": "SendFlow FlowSender Priority",
    "rtmplite.rtmfp.session.recv_flow": "RecvFlow FlowReceiver",
    "rtmplite.rtmfp.endpoint.endpoint": "Endpoint",
    "rtmplite.rtmfp.endpoint.endpoint_listener": "EndpointListener",
    "rtmplite.rtmfp.endpoint.limits": "StartupLimits",
    "rtmplite.rtmfp.netconnection.media_flows": "Lifetimes",
    "rtmplite.rtmfp.netconnection.server": "RtmfpServerConnection",
    "rtmplite.rtmfp.netconnection.client": "RtmfpClientConnection",
    # The edge
    "rtmplite.net.server.rtmfp_listener": "RtmfpListener",
    "rtmplite.net.rtmfp_port": "RtmfpPort",
    "rtmplite.net.client.rtmfp_client": "RtmfpClient DirectClient DirectPublishing "
    "UnreachableError",
}
_HOME_OF: Final = {name: home for home, names in _HOMES.items() for name in names.split()}

__all__ = list(_HOME_OF)

if TYPE_CHECKING:
    from rtmplite.errors import LocalError as LocalError
    from rtmplite.errors import RemoteError as RemoteError
    from rtmplite.errors import RtmpError as RtmpError
    from rtmplite.net.client.rtmfp_client import DirectClient as DirectClient
    from rtmplite.net.client.rtmfp_client import DirectPublishing as DirectPublishing
    from rtmplite.net.client.rtmfp_client import RtmfpClient as RtmfpClient
    from rtmplite.net.client.rtmfp_client import UnreachableError as UnreachableError
    from rtmplite.net.rtmfp_port import RtmfpPort as RtmfpPort
    from rtmplite.net.server.rtmfp_listener import RtmfpListener as RtmfpListener
    from rtmplite.rtmfp.crypto.flash_profile import FlashProfile as FlashProfile
    from rtmplite.rtmfp.crypto.profile import CryptoProfile as CryptoProfile
    from rtmplite.rtmfp.endpoint.endpoint import Endpoint as Endpoint
    from rtmplite.rtmfp.endpoint.endpoint_listener import EndpointListener as EndpointListener
    from rtmplite.rtmfp.endpoint.limits import StartupLimits as StartupLimits
    from rtmplite.rtmfp.netconnection.client import RtmfpClientConnection as RtmfpClientConnection
    from rtmplite.rtmfp.netconnection.media_flows import Lifetimes as Lifetimes
    from rtmplite.rtmfp.netconnection.server import RtmfpServerConnection as RtmfpServerConnection
    from rtmplite.rtmfp.session.recv_flow import FlowReceiver as FlowReceiver
    from rtmplite.rtmfp.session.recv_flow import RecvFlow as RecvFlow
    from rtmplite.rtmfp.session.send_flow import FlowSender as FlowSender
    from rtmplite.rtmfp.session.send_flow import Priority as Priority
    from rtmplite.rtmfp.session.send_flow import SendFlow as SendFlow
    from rtmplite.rtmfp.session.session import Session as Session
    from rtmplite.rtmfp.session.session import SessionListener as SessionListener
    from rtmplite.rtmfp.wire.address import SocketAddress as SocketAddress
    from rtmplite.rtmfp.wire.chunks import encode_chunk as encode_chunk
    from rtmplite.rtmfp.wire.chunks import parse_chunks as parse_chunks
    from rtmplite.rtmfp.wire.option import Option as Option
    from rtmplite.rtmfp.wire.packet import Mode as Mode
    from rtmplite.rtmfp.wire.packet import Packet as Packet
    from rtmplite.rtmp.client import Target as Target

else:  # a type checker would take this for any name at all

    def __getattr__(name: str) -> object:
        """Load a public name from its module, once: PEP 562."""
        if name not in _HOME_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(_HOME_OF[name]), name)
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
