"""The parsers of the SIP family, and what the strategies draw for them."""

from hypothesis import strategies as st
from support.reach.p2psip_media import MEDIA, MEDIA_PARSERS, SRTP
from support.reach.p2psip_signalling import DESCRIPTIONS, SIGNALLING, SIGNALLING_PARSERS
from support.reach.reading import Family, Reading, of_oracle, second

from p2psip.nat import stun, turn
from p2psip.rtp import (
    extended_report,
    fast,
    feedback,
    packet,
    rtcp,
    rtcp_frame,
    source_description,
    voip_metrics,
)
from p2psip.rtp.payload import dtmf
from p2psip.sdp import line, session
from p2psip.sip import (
    address,
    grammar,
    headers,
    message,
    message_limits,
    params,
    uri,
    via,
    views,
)
from p2psip.strategies import faults, rtp, rtp_faults, sip, stun_faults
from p2psip.strategies.stun import addresses, channel_messages, transaction_ids

_PARSERS = (
    *(address, grammar, headers, message, message_limits, params, uri, via, views),
    *(line, session),
    *(packet, fast, rtcp, rtcp_frame, feedback, extended_report, source_description, voip_metrics),
    *(dtmf, stun, turn),
    *SIGNALLING_PARSERS,
    *MEDIA_PARSERS,
)


def _headers_by_name(data):
    """Ask a message for each of its headers, of whatever name."""
    found = message.parse_message(data).headers
    return [(found.get(name), found.values(name)) for name, _ in found]


def _lists_of_places(data):
    """Read the headers that list hops and addresses, a line each."""
    found = message.parse_message(data).headers
    hops = [via.Via.parse_list(line) for line in found.values("Via")]
    names = ("Contact", "Record-Route", "Route")
    return hops, [address.Address.parse_list(line) for name in names for line in found.values(name)]


_PACKETS = rtp.rtcp_packets().filter(lambda each: not isinstance(each, rtcp.UnknownPacket))
_SIP_OCTETS = sip.messages().map(bytes)

FAMILY = Family(
    _PARSERS,
    (
        *of_oracle("sip", "sdp", "rtp", "rtcp", "stun"),
        *SIGNALLING,
        *DESCRIPTIONS,
        *MEDIA,
        *SRTP,
        Reading("headers by name", _SIP_OCTETS, _headers_by_name),
        Reading(
            "the latest hop",
            _SIP_OCTETS | sip.separators().map(bytes),
            lambda data: message.parse_message(data).via,
        ),
        Reading("lists of hops and addresses", _SIP_OCTETS, _lists_of_places),
        Reading(
            "a response one of whose places cannot be read",
            st.just(b"SIP/2.0 302 Moved\r\nVia: SIP/2.0/UDP a\r\nContact: <, <sip:c@d>\r\n\r\n"),
            lambda data: message.parse_message(data).contacts,
        ),
        Reading("a name in doubled quotes", st.just('""Bob"" <sip:b@c>'), address.Address.parse),
        Reading("a word before a tab", st.just("7\tINVITE"), grammar.first_word),
        Reading(
            "a list that ends within quotes",
            st.just('<sip:a@b>, "C <sip:c@d>'),
            lambda text: grammar.readable(text, address.Address.parse),
        ),
        Reading(
            "what can be read of RTCP",
            st.lists(_PACKETS, min_size=1, max_size=3).map(lambda each: b"".join(map(bytes, each)))
            | second(faults.broken(rtp_faults.RTCP_FAULTS)),
            rtcp.parse_readable,
        ),
        Reading("RTP, fast", rtp.rtp_packets().map(bytes), fast.unpack),
        Reading(
            "broken RTP, fast",
            second(faults.broken(rtp_faults.RTP_FAULTS)),
            fast.unpack,
        ),
        Reading(
            "RTCP that begins with a report",
            st.lists(_PACKETS, min_size=1, max_size=3).map(lambda each: b"".join(map(bytes, each))),
            lambda data: rtcp.parse_compound(data, strict=True),
        ),
        Reading(
            "one RTCP packet, of this type or another",
            st.tuples(_PACKETS.map(type), _PACKETS.map(bytes)),
            lambda two: two[0].parse(two[1]),
        ),
        Reading(
            "one RTCP packet",
            _PACKETS.map(lambda each: (type(each), bytes(each))),
            lambda two: two[0].parse(two[1]),
        ),
        Reading("addresses of STUN", addresses.map(stun.write_address), stun.read_address),
        Reading(
            "hidden addresses of STUN",
            st.tuples(addresses, transaction_ids).map(
                lambda two: (stun.write_address(*two), two[1])
            ),
            lambda two: stun.read_address(*two),
        ),
        Reading(
            "broken addresses of STUN",
            second(faults.broken(stun_faults.VALUE_FAULTS)),
            stun.read_address,
        ),
        Reading("events", rtp.telephone_events().map(bytes), dtmf.parse_events),
        Reading(
            "broken events",
            second(faults.broken(rtp_faults.EVENT_FAULTS)),
            dtmf.parse_events,
        ),
        Reading(
            "one broken event",
            second(faults.broken(rtp_faults.EVENT_FAULTS)),
            dtmf.TelephoneEvent.parse,
        ),
        Reading(
            "ChannelData",
            channel_messages.map(lambda pair: turn.channel_data(*pair))
            | second(faults.broken(stun_faults.CHANNEL_FAULTS)),
            turn.read_channel_data,
        ),
        Reading(
            "lifetimes",
            st.none()
            | st.integers(0, 3600).map(turn.write_lifetime)
            | second(faults.broken(stun_faults.LIFETIME_FAULTS)),
            turn.read_lifetime,
        ),
    ),
    {
        "p2psip.sip.headers Headers.__getitem__: if value is None: -> raise KeyError(name)": (
            "a caller asks so for a header that it knows to be there"
        ),
        "p2psip.rtp.rtcp_frame RtcpForm._read: def _read(cls, count: int, body: bytes) -> Self:": (
            "each form of packet has its own"
        ),
        "p2psip.rtp.payload.l16 decode_l16:"
        ' if sys.byteorder == "little":  # §4.5.11 [network-order] -> return samples': (
            "by the machine, not by the input"
        ),
    },
)
