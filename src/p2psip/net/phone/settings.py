"""The settings of an agent: whose phone it is, where it is reached, and what its calls are like.

Own design: each group is what one person decides, and none of them changes once the agent is made.

    >>> Account("bob", "example.com", password="secret").user
    'bob'
"""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field

from p2psip.net.tls import TlsContexts
from p2psip.transaction.flow import HostPort


@dataclass(frozen=True, slots=True)
class Account:
    """A user, and the servers that know the user: RFC 3261 §10.

    `domain`, "host" or "host:port", is where `user` registers; without one the agent is reached at
    its own address only.  `registrar`, "host", "host:port" or a SIP URI, takes registrations and
    calls where the domain itself does not lead to it (RFC 3261 §8.1.2).  Of several, the agent
    registers by each, and calls by the first that is there (RFC 5626 §4.2.1).  `password` is proven
    to these servers alone, never to callees; `login` is the name that goes with it, `user` unless
    given.  `display` is the name that callees are shown (RFC 3261 §20.20).  With `uses_gruus` calls
    have our GRUU as Contact (RFC 5627 §4.4), which not every proxy can route to within a call.
    """

    user: str = "anonymous"
    domain: str | None = None
    _: KW_ONLY
    password: str | None = field(default=None, repr=False)
    display: str = ""
    login: str | None = None
    registrar: str | Sequence[str] | None = None
    uses_gruus: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkSettings:
    """The sockets of an agent, and how peers reach them: RFC 3261 §18.

    `listen` is for UDP and TCP, port 0 takes a free one; its host goes into SDP, and so must be an
    address of this machine that others reach.  `also` is such an address of the other family, for
    peers with addresses of that family (RFC 6157 §3.2).  `rtp_ports` are the first and the last
    port for media, (0, 0) for any.  With `tls` the agent is reached by TLS, at `tls_port`, and
    reaches a registrar such as "sip:192.0.2.7:5061;transport=tls" by it.  With `websocket` it opens
    WebSockets to servers such as "sip:192.0.2.7:80;transport=ws", with `tls` also those of
    "transport=wss" (RFC 7118 §5), and is reached by them alone.  The servers `stun`,
    (host, port) each, are asked where peers outside the local network reach us (RFC 8489 §2): the
    first answer is waited for, up to three seconds.  `turn`, a URI and a password, is a server that
    the audio of such peers goes through (RFC 8656 §3).  With `ice` the audio of a call goes by
    the best of these ways that works, if the other side has ICE too (RFC 8839 §4.2.5).  `ice_tcp`
    adds connections to the ways (RFC 6544 §4.1), at ports of their own.
    """

    listen: HostPort = ("127.0.0.1", 0)
    also: HostPort | None = None
    rtp_ports: tuple[int, int] = (0, 0)
    tls: TlsContexts | None = None
    tls_port: int = 0
    websocket: bool = False
    stun: Sequence[HostPort] = ()
    turn: tuple[str, str] | None = field(default=None, repr=False)
    ice: bool = False
    ice_tcp: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CallSettings:
    """What an agent offers and understands in its calls: RFC 3261 §13.

    `codecs` are names as `audio_codec` reads them, the preferred one first, and `ptime` the ms of
    audio that a packet to us had better have (RFC 8866 §6.4).  SRTP is used where it is offered
    (RFC 4568); with `srtp` it is offered, and nothing else.  With `dtls` keys come by a handshake,
    as those of browsers do (RFC 5763 §5): nothing else is offered, and it needs ICE.  RTP and
    RTCP share a port where the peer offers that (RFC 5761 §5.1), and with `rtcp_mux` where it
    agrees.  With `voip_metrics` peers are told how we hear them (RFC 3611 §4.7).  With `echo` our
    own audio is heard where a reflector sends it back, which is dropped as a loop otherwise (RFC
    3550 §8.2).  A call rings for `answer_timeout` seconds.  `info_packages` are the Info Packages
    that `Call.on_info` understands (RFC 6086 §5.2.2).  `user_agent` names our software to the peer
    (RFC 3261 §20.41).
    """

    codecs: Sequence[str] = ("PCMU", "PCMA")
    ptime: int | None = None
    srtp: bool = False
    dtls: bool = False
    rtcp_mux: bool = False
    voip_metrics: bool = False
    echo: bool = False
    answer_timeout: float = 60.0
    info_packages: Sequence[str] = ()
    user_agent: str = "p2psip"
