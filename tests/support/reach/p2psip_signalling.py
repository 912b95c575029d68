"""What the strategies draw for parsers of digests, streams, bodies, header values and SDP."""

from hypothesis import strategies as st
from support.reach.reading import Reading, asked, first, second, texts

from p2psip.sdp import (
    attributes,
    codec,
    crypto,
    formats,
    h264_parameters,
    h265_parameters,
    opus_parameters,
    session,
)
from p2psip.sip import auth, authentication_info, framing, headers, multipart, values
from p2psip.strategies import (
    digest,
    faults,
    format_faults,
    header_values,
    sdp,
    sdp_faults,
    sip_streams,
)
from p2psip.strategies import formats as fmtps
from p2psip.strategies import multipart as entities

SIGNALLING_PARSERS = (
    *(auth, authentication_info, framing, multipart, values),
    *(attributes, codec, crypto, formats, h264_parameters, h265_parameters, opus_parameters),
)


def _verified(data):
    told = auth.Credentials.parse(data)
    auth.verify(told, "REGISTER", "0" * 32)
    return asked(told)


def _challenged(values_):
    found = headers.Headers([("WWW-Authenticate", each) for each in values_])
    found = found.with_("WWW-Authenticate", *values_)
    return auth.strongest(auth.challenges(found, "WWW-Authenticate"))


def _in_pieces(framer, data):
    """As TCP may deliver them."""
    for at in range(0, len(data), 29):
        framer.feed(data[at : at + 29])


def _leaves(data):
    head, _, body = data.partition(b"\r\n\r\n")
    for part in multipart.leaves(head.decode().partition(": ")[2], body):
        asked(part)


_CHALLENGES = (
    texts(digest.challenges())
    | digest.other_schemes()
    | second(faults.broken(digest.CHALLENGE_FAULTS))
)
_STREAMS = first(sip_streams.streams()) | second(faults.broken(sip_streams.STREAM_FAULTS))
_LONG_STREAMS = second(faults.broken(sip_streams.STREAM_LIMITS))
SIGNALLING = (
    Reading("challenges", _CHALLENGES, lambda data: asked(auth.Challenge.parse(data))),
    Reading(
        "challenges of a message",
        st.lists(_CHALLENGES.map(lambda each: each if isinstance(each, str) else each.decode())),
        _challenged,
    ),
    Reading(
        "credentials",
        texts(digest.credentials() | digest.foreign_credentials())
        | digest.other_schemes()
        | second(faults.broken(digest.CREDENTIAL_FAULTS)),
        _verified,
    ),
    Reading(
        "what follows credentials",
        texts(digest.authentication_infos()) | second(faults.broken(digest.INFO_FAULTS)),
        lambda data: asked(authentication_info.AuthenticationInfo.parse(data)),
    ),
    Reading("a stream", _STREAMS | _LONG_STREAMS, lambda each: framing.StreamFramer().feed(each)),
    Reading("a stream in pieces", _STREAMS, lambda each: _in_pieces(framing.StreamFramer(), each)),
    Reading(
        "a stream of little", _STREAMS, lambda each: framing.StreamFramer(limit=400).feed(each)
    ),
    Reading(
        "bodies",
        first(entities.entities())
        | second(faults.broken(entities.MULTIPART_FAULTS))
        | second(faults.broken(entities.MULTIPART_LIMITS)),
        _leaves,
    ),
    Reading(
        "terms",
        texts(header_values.terms()) | second(faults.broken(header_values.TERM_FAULTS)),
        lambda data: asked(values.Term.parse(data)),
    ),
    Reading(
        "lists of terms",
        st.lists(texts(header_values.terms())).map(", ".join),
        values.Term.parse_list,
    ),
    Reading(
        "references",
        texts(header_values.references()) | second(faults.broken(header_values.REFERENCE_FAULTS)),
        values.Reference.parse,
    ),
    Reading(
        "times to try again",
        texts(header_values.retries()) | second(faults.broken(header_values.RETRY_FAULTS)),
        values.RetryAfter.parse,
    ),
    Reading(
        "timestamps",
        texts(header_values.timestamps()) | second(faults.broken(header_values.TIMESTAMP_FAULTS)),
        values.Timestamp.parse,
    ),
    Reading(
        "warnings",
        texts(header_values.warnings()) | second(faults.broken(header_values.WARNING_FAULTS)),
        values.Warn.parse,
    ),
    Reading(
        "dates",
        header_values.dates() | second(faults.broken(header_values.DATE_FAULTS)).map(bytes.decode),
        values.date_of,
    ),
)


def _attributes(two):
    """Ask all that the attributes of a stream say."""
    stream, session = two
    for ask in (
        *(attributes.rtpmaps, attributes.fmtps, attributes.payload_types, attributes.mid),
        *(attributes.ptime, attributes.maxptime, attributes.rtcp_mux, codec.codecs_of),
    ):
        ask(stream)
    for ask in (
        *(attributes.direction, attributes.bits, attributes.media_address),
        attributes.rtcp_address,
    ):
        ask(stream, session)
    return crypto.choose(crypto.cryptos(stream))


def _h264(text):
    read = h264_parameters.H264Parameters.parse(text)
    return asked(read), asked(read.profile_level)


def _negotiated(name):
    def read(two):
        formats.configuration(name, two[0])
        return formats.negotiate(name, *two)

    return read


_H264 = fmtps.h264_fmtps() | second(faults.broken(format_faults.H264_FMTP_FAULTS)).map(bytes.decode)
_FMTPS = {
    "H264": _H264,
    "H265": fmtps.h265_fmtps(),
    "mpeg4-generic": fmtps.aac_fmtps(),
    "opus": fmtps.opus_fmtps(),
    "telephone-event": fmtps.event_lists(),
    "x-other": fmtps.odd_fmtps(),
}
_STREAM = b"m=audio 9 RTP/AVP 0\n"
_AMISS = [  # beside the faults that a judge looks for
    b"v=0\no=- 1 1 IN IP4 192.0.2.1\ns=-\nt=0 0\n" + line + b"\n"
    for line in (
        *(b"m=", b"m=audio", b"m=audio 9", b"m=audio 0 RTP/AVP", b"m=audio 9 RTP/AVP", b"  "),
        *(_STREAM + b"c=IN", b"c=IN\n" + _STREAM, _STREAM + b"v=0", _STREAM + b"t=0 0"),
        *(
            b"t=",
            b"t=\nr=1",
            b"t=0 0\nr=1\nz=1\nt=0 0",
            b"i=a\ni=b",
            b"a=",
            b"b=AS:64k",
            b"o=phone",
        ),
        *(_STREAM + b"a=rtpmap:0 G722/16000", _STREAM + b"i=a\ni=b", _STREAM + b"r=1"),
    )
]
DESCRIPTIONS = (
    Reading(
        "descriptions with something amiss",
        sdp_faults.broken_sessions() | st.sampled_from(_AMISS),
        session.SessionDescription.parse,
    ),
    Reading("attributes", st.tuples(format_faults.odd_media(), sdp.sessions()), _attributes),
    Reading(
        "mappings",
        second(faults.broken(format_faults.RTPMAP_FAULTS)).map(bytes.decode),
        attributes.RtpMap.parse,
    ),
    Reading(
        "parameters of any format", fmtps.odd_fmtps() | fmtps.opus_fmtps(), attributes.parameters
    ),
    Reading(
        "parameters of H.264",
        _H264,
        _h264,
    ),
    Reading("H.264 of two ends alike", fmtps.h264_pairs(), _negotiated("H264")),
    Reading("parameter sets of H.265", fmtps.h265_fmtps(), h265_parameters.parameter_sets),
    *(
        Reading(f"{name} of two ends", st.tuples(drawn, drawn), _negotiated(name))
        for name, drawn in _FMTPS.items()
    ),
    Reading("parameters of Opus", fmtps.opus_fmtps(), opus_parameters.OpusParameters.parse),
    Reading(
        "keys of SRTP",
        texts(fmtps.crypto_attributes())
        | fmtps.odd_cryptos()
        | second(faults.broken(format_faults.CRYPTO_FAULTS)).map(bytes.decode),
        lambda text: asked(crypto.CryptoAttribute.parse(text)),
    ),
)
