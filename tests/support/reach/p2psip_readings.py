"""The parsers of the SIP family, and what the strategies draw for them."""

from hypothesis import strategies as st
from support.reach.reading import Family, Reading, first, octets, of_oracle, second

from p2psip.nat import stun
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
from p2psip.rtp.payload import (
    aac,
    comfort_noise,
    dtmf,
    duration,
    h264,
    h265,
    l16,
    opus,
    red,
    speex,
    vp8,
)
from p2psip.sdp import line, opus_parameters, session
from p2psip.sip import (
    address,
    auth,
    authentication_info,
    framing,
    grammar,
    headers,
    message,
    message_limits,
    multipart,
    params,
    uri,
    values,
    via,
    views,
)
from p2psip.strategies import (
    audio,
    digest,
    formats,
    header_values,
    payload_faults,
    rtp,
    rtp_faults,
    sip,
    sip_streams,
    stun_faults,
    video,
)
from p2psip.strategies import multipart as entities
from p2psip.strategies.stun import addresses, transaction_ids

_PARSERS = (
    *(address, grammar, headers, message, message_limits, params, uri, via, views),
    *(auth, authentication_info, framing, multipart, values),
    *(line, session),
    *(packet, fast, rtcp, rtcp_frame, feedback, extended_report, source_description, voip_metrics),
    *(dtmf, opus_parameters, stun),
    *(h264, h265, vp8, aac, opus, red, comfort_noise, l16, speex, duration),
)


def _headers_by_name(data):
    """Ask a message for each of its headers, of whatever name."""
    found = message.parse_message(data).headers
    return [found.values(name) for name, _ in found]


def _asked(value):
    """Read all that a value says of itself."""
    kind = type(value)
    names = [name for name in dir(kind) if isinstance(getattr(kind, name), property)]
    return [getattr(value, name) for name in names]


def _verified(data):
    told = auth.Credentials.parse(data)
    auth.verify(told, "REGISTER", "0" * 32)
    return _asked(told)


def _challenged(values_):
    found = headers.Headers([("WWW-Authenticate", each) for each in values_])
    return auth.strongest(auth.challenges(found, "WWW-Authenticate"))


def _in_pieces(framer, data):
    """As TCP may deliver them."""
    for at in range(0, len(data), 29):
        framer.feed(data[at : at + 29])


def _leaves(data):
    head, _, body = data.partition(b"\r\n\r\n")
    for part in multipart.leaves(head.decode().partition(": ")[2], body):
        _asked(part)


def _texts(drawn):
    """The text of a value."""
    return drawn.map(str)


_CHALLENGES = (
    _texts(digest.challenges()) | digest.other_schemes() | second(digest.broken_challenges())
)
_STREAMS = first(sip_streams.streams()) | second(sip_streams.broken_streams())
_LONG_STREAMS = second(sip_streams.excessive_streams())
_SIGNALLING = (
    Reading("challenges", _CHALLENGES, lambda data: _asked(auth.Challenge.parse(data))),
    Reading(
        "challenges of a message",
        st.lists(_CHALLENGES.map(lambda each: each if isinstance(each, str) else each.decode())),
        _challenged,
    ),
    Reading(
        "credentials",
        _texts(digest.credentials() | digest.foreign_credentials())
        | digest.other_schemes()
        | second(digest.broken_credentials()),
        _verified,
    ),
    Reading(
        "what follows credentials",
        _texts(digest.authentication_infos()) | second(digest.broken_infos()),
        lambda data: _asked(authentication_info.AuthenticationInfo.parse(data)),
    ),
    Reading("a stream", _STREAMS | _LONG_STREAMS, lambda each: framing.StreamFramer().feed(each)),
    Reading("a stream in pieces", _STREAMS, lambda each: _in_pieces(framing.StreamFramer(), each)),
    Reading(
        "a stream of little", _STREAMS, lambda each: framing.StreamFramer(limit=400).feed(each)
    ),
    Reading(
        "bodies",
        first(entities.entities())
        | second(entities.broken_entities())
        | second(entities.excessive_entities()),
        _leaves,
    ),
    Reading(
        "terms",
        _texts(header_values.terms()) | second(header_values.broken_terms()),
        lambda data: _asked(values.Term.parse(data)),
    ),
    Reading(
        "lists of terms",
        st.lists(_texts(header_values.terms())).map(", ".join),
        values.Term.parse_list,
    ),
    Reading(
        "references",
        _texts(header_values.references()) | second(header_values.broken_references()),
        values.Reference.parse,
    ),
    Reading(
        "times to try again",
        _texts(header_values.retries()) | second(header_values.broken_retries()),
        values.RetryAfter.parse,
    ),
    Reading(
        "timestamps",
        _texts(header_values.timestamps()) | second(header_values.broken_timestamps()),
        values.Timestamp.parse,
    ),
    Reading(
        "warnings",
        _texts(header_values.warnings()) | second(header_values.broken_warnings()),
        values.Warn.parse,
    ),
    Reading(
        "dates",
        header_values.dates() | second(header_values.broken_dates()).map(bytes.decode),
        values.date_of,
    ),
)


def _lengths(payload):
    return [duration.ticks(name, payload, 48000) for name in ("PCMU", "L16", "Opus", "Speex", "x")]


_SPEEX = rtp.speex_payloads().map(lambda each: each.payload) | second(
    payload_faults.broken_speex() | payload_faults.excessive_speex()
)
_OPUS = octets(audio.opus_packets()) | second(payload_faults.broken_opus())
_MEDIA = (
    Reading(
        "H.264",
        video.h264_payloads()
        | first(video.odd_h264_payloads())
        | second(payload_faults.broken_h264()),
        h264.read_h264,
    ),
    Reading(
        "H.265",
        video.h265_payloads()
        | first(video.odd_h265_payloads())
        | second(payload_faults.broken_h265()),
        h265.read_h265,
    ),
    Reading(
        "VP8",
        octets(video.vp8_descriptors()) | second(payload_faults.broken_vp8()),
        vp8.Vp8Descriptor.parse,
    ),
    Reading("AAC", audio.aac_payloads() | second(payload_faults.broken_aac()), aac.read_aac),
    Reading("Opus", _OPUS, opus.OpusPacket.parse),
    Reading(
        "redundant audio",
        octets(audio.redundant_payloads()) | second(payload_faults.broken_red()),
        red.RedundantPayload.parse,
    ),
    Reading(
        "comfort noise",
        octets(audio.comfort_noises()) | second(payload_faults.broken_noise()),
        lambda data: _asked(comfort_noise.ComfortNoise.parse(data)),
    ),
    Reading("L16", st.binary() | second(payload_faults.broken_l16()), l16.decode_l16),
    Reading("Speex", _SPEEX, speex.split),
    Reading("Speex at 8 kHz", _SPEEX, speex.narrowband),
    Reading("lengths of payloads", _OPUS | _SPEEX, _lengths),
)

_PACKETS = rtp.rtcp_packets().filter(lambda each: not isinstance(each, rtcp.UnknownPacket))
_SIP_OCTETS = sip.messages().map(bytes)

FAMILY = Family(
    _PARSERS,
    (
        *of_oracle("sip", "sdp", "rtp", "rtcp", "stun"),
        *_SIGNALLING,
        *_MEDIA,
        Reading("headers by name", _SIP_OCTETS, _headers_by_name),
        Reading(
            "the latest hop",
            _SIP_OCTETS | sip.separators().map(bytes),
            lambda data: message.parse_message(data).via,
        ),
        Reading("RTP, fast", rtp.rtp_packets().map(bytes), fast.unpack),
        Reading("broken RTP, fast", rtp_faults.broken_rtp(), lambda pair: fast.unpack(pair[1])),
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
            stun_faults.broken_addresses(),
            lambda pair: stun.read_address(pair[1]),
        ),
        Reading("events", rtp.telephone_events().map(bytes), dtmf.parse_events),
        Reading(
            "broken events", rtp_faults.broken_events(), lambda pair: dtmf.parse_events(pair[1])
        ),
        Reading(
            "one broken event",
            rtp_faults.broken_events(),
            lambda pair: dtmf.TelephoneEvent.parse(pair[1]),
        ),
        Reading("parameters of Opus", formats.opus_fmtps(), opus_parameters.OpusParameters.parse),
    ),
    {
        "p2psip.sip.headers Headers.__getitem__: if value is None: -> raise KeyError(name)": (
            "a caller asks so for a header that it knows to be there"
        ),
        "p2psip.rtp.payload.l16 decode_l16:"
        ' if sys.byteorder == "little":  # §4.5.11 [network-order] -> return samples': (
            "by the machine, not by the input"
        ),
    },
)
