"""Offer and answer: one end proposes media, the other accepts or refuses each line.

Implements RFC 3264, with the advice of RFC 6337 §5.

An offer names every stream its author wants; the answer has the same lines in the same order,
each accepted or refused (port 0).  There are three functions: `make_offer`, `make_answer`,
and `apply_answer` for the offerer who has got the answer.

    >>> codecs = Codec("speex", 16000), Codec("PCMU", 8000)
    >>> alice = LocalMedia("audio", codecs, LocalTransport(5004))
    >>> bob = LocalMedia("audio", (Codec("PCMU", 8000), Codec("PCMA", 8000)), LocalTransport(7078))
    >>> offer = make_offer([alice], Origin.at("192.0.2.1", 1), "192.0.2.1")
    >>> answer, at_bob = make_answer(offer, [bob], Origin.at("192.0.2.2", 9), "192.0.2.2")
    >>> at_bob[0].codecs[0].name, at_bob[0].remote
    ('PCMU', ('192.0.2.1', 5004))
    >>> at_alice = apply_answer(offer, answer)
    >>> at_alice[0].codecs[0].name, at_alice[0].remote
    ('PCMU', ('192.0.2.2', 7078))

Only unicast RTP is accepted, plain or, by `SdesTransport`, with keys in the line.  ICE, bundling
and the like are refused or passed over in the ways their specifications foresee for those who
lack them.
Not done: RFC 3264 §6.2: a multicast stream is refused, since no phone call has one.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Literal

from p2psip.errors import LocalError, RemoteError
from p2psip.sdp.agreed_media import FLOWS, WORDS, Agreed
from p2psip.sdp.agreed_media import AgreedMedia as AgreedMedia
from p2psip.sdp.agreed_media import accepted as accepted
from p2psip.sdp.attributes import (
    DEFAULT_PTIME,
    MAX_PTIME,
    RTCP_LOOKALIKES,
    bits,
    connection,
    direction,
    events,
    maxptime,
    media_address,
    mid,
    payload_types,
    ptime,
    rtcp_address,
    rtcp_mux,
)
from p2psip.sdp.codec import UNNUMBERED as UNNUMBERED
from p2psip.sdp.codec import Codec as Codec
from p2psip.sdp.codec import codecs_of, numbered
from p2psip.sdp.crypto import agreed_keys
from p2psip.sdp.formats import whole_frames
from p2psip.sdp.line import Attribute, Connection, Origin, is_unspecified
from p2psip.sdp.local_media import PROTOCOLS as PROTOCOLS
from p2psip.sdp.local_media import LocalMedia as LocalMedia
from p2psip.sdp.local_media import LocalTransport as LocalTransport
from p2psip.sdp.local_media import feedback_of, feedback_to_answer, feedback_to_offer
from p2psip.sdp.repairs import repairs_of, repairs_to_answer
from p2psip.sdp.session import MediaDescription, SessionDescription


def make_offer(
    media: Sequence[LocalMedia | None],
    origin: Origin,
    host: str,
    *,
    previous: SessionDescription | None = None,
    remote: SessionDescription | None = None,
) -> SessionDescription:
    """Write an offer, first (§5) or new (§8), for media at our address `host`.

    For a new one `previous` is the last description we sent, which gives the `o=` line
    (`origin` is then not used), and `remote` the last one we received: no payload type of
    either changes its meaning (§8.3.2).  None in `media`, or a line of `previous` beyond the end
    of `media`, is a stream that is off (§8.2).
    """
    names = [each.mid for each in media if each is not None and each.mid is not None]
    if len(set(names)) < len(names):
        raise LocalError("two lines of one name")  # RFC 5888 §4 [one-name-each]
    before = previous.media if previous else ()
    beyond = remote.media if remote else ()
    lines: list[MediaDescription] = []
    # §8 [each-old-line] [never-removed], §8.1 [new-lines-below]
    for index, (ours, old) in enumerate(zip_longest(media, before)):
        if ours is None:
            # RFC 6337 §5.2.5 [refused-lines-stay]
            lines.append(refusal(old) if old else MediaDescription("audio", 0, "RTP/AVP", ("0",)))
            continue
        used = codecs_of(old) if old and old.kind == ours.kind else ()
        if index < len(beyond) and beyond[index].kind == ours.kind:
            used += codecs_of(beyond[index])
        # RFC 6337 §5.2.5 [numbers-keep-their-codec]
        lines.append(_line(ours, numbered(ours.formats, used), ours.direction))
    return _session(origin, host, lines).following(previous)


def make_answer(
    offer: SessionDescription,
    media: Iterable[LocalMedia],
    origin: Origin,
    host: str,
    *,
    prefer: Literal["local", "remote"] = "remote",
    previous: SessionDescription | None = None,
) -> tuple[SessionDescription, Agreed]:
    """Answer an offer with the media we can have at our address `host`: §6.

    Each of `media` serves one line at most, the first that it fits; a line that none fits is
    refused, so with one audio stream the first usable audio line gets it.  A line at an address
    of the other family than `host` is not usable, unless it is on hold.  Codecs keep the
    numbers of the offer, and its order unless `prefer` is "local" (§6.1).  `previous` is the
    last description we sent in this session, if any (§8).

    If nothing was accepted, the caller decides: 488 refuses the whole (RFC 6337 §5.2.3).
    """
    spare = list(media)
    lines: list[MediaDescription] = []
    agreed: list[AgreedMedia] = []
    before = previous.media if previous else ()
    for index, theirs in enumerate(offer.media):
        # Field §"Numbers without rtpmap"
        known = codecs_of(before[index]) if index < len(before) else ()
        line, result = refusal(theirs), AgreedMedia(theirs.kind)  # §8.2 [zero-for-zero]
        for ours in spare:
            # RFC 6337 §5.2.3 [accepts-what-it-would-offer]
            if ours.kind != theirs.kind or not ours.transport.accepts(theirs, offer, host):
                continue
            # §6.1 [order-of-the-offer] [one-in-common] [nothing-in-common-is-refused]
            pairs = _pairs(codecs_of(theirs, known), ours.formats, ours.prefer or prefer)
            if _is_enough(pairs, ours.formats):  # RFC 6337 §5.2.3 [one-format-in-common]
                line, result = _accept(offer, theirs, ours, pairs)
                spare.remove(ours)
                break
        lines.append(line)  # §6 [a-line-for-each]; RFC 6337 §5.2.3 [as-many-lines]
        agreed.append(result)
    # §6 [same-time] [origin-of-our-own], §6.1 [unicast-for-unicast]
    session = replace(_session(origin, host, lines), times=offer.times)
    return session.following(previous), tuple(agreed)  # §8 [no-news-is-taken] [no-news-is-answered]


def apply_answer(
    offer: SessionDescription,
    answer: SessionDescription,
    media: Sequence[LocalMedia | None] = (),
) -> Agreed:
    """Apply the answer to our offer: §7.  Returns one entry for each line of the offer.

    `media` are those that the offer was made of, if any has another transport than plain RTP.

    Raises RemoteError(488) for an answer that does not fit line by line.  Lines missing at
    the end count as refused, and lines too many as nothing: Field §"Answers with fewer lines".
    """
    agreed: list[AgreedMedia] = []
    answered = answer.media[: len(offer.media)]
    for index, (ours, theirs) in enumerate(zip_longest(offer.media, answered)):
        if theirs is not None and theirs.kind != ours.kind and theirs.port:
            raise RemoteError("Answer does not match the offer", 488)
        mine = media[index] if index < len(media) else None
        transport = LocalTransport(ours.port) if mine is None else mine.transport
        agreed.append(_outcome(offer, ours, answer, theirs, transport))
    return tuple(agreed)


def refusal(media: MediaDescription) -> MediaDescription:
    """Give the same line with port 0 and one format, which is how to say no: §6, §8.2."""
    # §6 [refused-has-port-zero] [refused-has-a-format]; RFC 6337 §5.2.3 [zero-refuses-a-line]
    # RFC 6337 §5.2.3 [each-of-its-kind]
    # One that cannot be read may list none: Field §"Descriptions with something amiss".
    return MediaDescription(media.kind, 0, media.protocol, media.formats[:1] or ("0",))


def packet_time(wanted: int | None, longest: int | None, codec: Codec | None) -> int:
    """Choose how many ms of audio to put in a packet for a peer: §6.1, RFC 8866 §6.5.

    Between none and 200 ms whatever it asks for (RFC 3551 §4.2), in whole frames of the codec.
    What it sends itself may differ: Field §"Packet times that are not kept".
    """
    limit = min(longest or MAX_PTIME, MAX_PTIME)
    # RFC 8866 §6.5 [time-of-media], RFC 3551 §4.2 [default-20-ms]
    time = min(wanted or DEFAULT_PTIME, limit)
    return whole_frames(codec.name, time, limit) if codec else time


def _accept(
    offer: SessionDescription,
    theirs: MediaDescription,
    ours: LocalMedia,
    pairs: Sequence[tuple[Codec, Codec]],
) -> tuple[MediaDescription, AgreedMedia]:
    """Make the line that accepts an offered one, and the stream that both agree on: §6.1."""
    sends, receives = FLOWS[direction(theirs, offer)]
    we_send, we_receive = FLOWS[ours.direction]
    # §6.1 [answers-sendonly] [answers-recvonly] [answers-inactive]
    # §8.4 [no-hold-in-return]
    # Field §"Holds that are answered wrongly"
    # RFC 6337 §5.4 [zero-address-is-no-direction]
    word = WORDS[we_send and receives, we_receive and sends]
    # §6.1 [numbers-of-the-offer], RFC 6184 §8.2.2 [number-of-the-offer]
    # RFC 7798 §7.2.2 [number-of-the-offer]
    answered = tuple(replace(mine, payload_type=other.payload_type) for other, mine in pairs)
    line = _with_repairs(_line(ours, answered, word, theirs), ours, theirs)
    both = [(other, mine.payload_type) for (other, _), mine in zip(pairs, answered, strict=True)]
    return line, _agreed(line, offer, theirs, both, word)


def _with_repairs(
    line: MediaDescription, ours: LocalMedia, theirs: MediaDescription
) -> MediaDescription:
    """Add to our answer the formats of RTX that are offered for its codecs: RFC 4588 §8.1."""
    if ours.repairs is None:
        return line
    numbers = [number for number in payload_types(line) if "nack" in feedback_of(line, number)]
    formats = repairs_to_answer(theirs, numbers)
    if not formats:
        return line
    added = [attribute for each in formats for attribute in each.attributes()]
    return replace(
        line,
        formats=(*line.formats, *(str(each.payload_type) for each in formats)),
        attributes=(*line.attributes, *added, *ours.repairs.attributes()),
    )


def _outcome(
    offer: SessionDescription,
    ours: MediaDescription,
    answer: SessionDescription,
    theirs: MediaDescription | None,
    transport: LocalTransport,
) -> AgreedMedia:
    """Match one answered line with the offered one: §7."""
    # §5.1 [port-zero-unused]
    if theirs is None or ours.port == 0 or not transport.accepts(theirs, answer):
        return AgreedMedia(ours.kind)
    offered = codecs_of(ours)
    pairs = _pairs(codecs_of(theirs, offered), offered, "remote")
    if not _is_enough(pairs, offered):
        return AgreedMedia(ours.kind)
    we_send, we_receive = FLOWS[direction(ours, offer)]
    sends, receives = FLOWS[direction(theirs, answer)]
    word = WORDS[we_send and receives, we_receive and sends]
    both = [(other, mine.payload_type) for other, mine in pairs]
    return _agreed(ours, answer, theirs, both, word)


def _agreed(
    ours: MediaDescription,
    session: SessionDescription,
    theirs: MediaDescription,
    both: Sequence[tuple[Codec, int]],
    word: str,
) -> AgreedMedia:
    """Sum up a line; `both` pairs each codec of the peer with the number we receive it by."""
    codecs = [(codec, number) for codec, number in both if not codec.is_telephone_event]
    first = codecs[0][0] if codecs else None
    events_by = _telephone_events(both, first)
    event = events_by[0][0] if events_by else None
    # Field §"Numbers of an answer's own"
    events_heard = dict.fromkeys(number for _, number in events_by)
    sounds_heard = {number for _, number in codecs}
    for other, _ in events_by:
        if other.payload_type not in sounds_heard:
            events_heard[other.payload_type] = None
    where = connection(theirs, session)
    black_hole = where is not None and is_unspecified(where.address)  # §8.4 [zeros-are-a-hold]
    remote = media_address(theirs, session)
    is_muxed = rtcp_mux(ours) and rtcp_mux(theirs)  # RFC 5761 §5.1.1 [no-mux-unanswered]
    return AgreedMedia(
        kind=theirs.kind,
        accepted=True,
        port=ours.port,
        remote=remote,
        remote_rtcp=remote if is_muxed else rtcp_address(theirs, session),
        # §6.1 [sends-what-both-list], §7 [sends-what-is-answered]
        # RFC 8866 §5.14 [first-acceptable]
        codecs=tuple(codec for codec, _ in codecs),
        # §5.1 [numbers-of-the-answer], §6.1 [sends-by-the-offers-numbers]
        send_payload_types=tuple(codec.payload_type for codec, _ in codecs),
        receive_payload_types=tuple(number for _, number in codecs),
        telephone_event=event.payload_type if event else None,
        receive_telephone_events=tuple(events_heard),
        event_clock=event.clock_rate if event else 8000,
        events=events(event.fmtp) if event else frozenset(),
        direction=word,
        held=black_hole or not FLOWS[direction(theirs, session)][1],
        # §6.1 [ptime-of-the-offer], §7 [ptime-of-the-answer]
        # RFC 5574 §4.1.1 [ptime-multiple], RFC 8866 §6.5 [whole-frames]
        # RFC 7587 §7.1 [maxptime-of-the-peer]
        ptime=packet_time(ptime(theirs), maxptime(theirs), first),
        mid=mid(ours),
        rtcp_mux=is_muxed,
        feedback=_feedback(ours, theirs, both),  # RFC 4585 §4.2 [only-what-is-answered]
        avpf=theirs.protocol.endswith("AVPF"),
        bits=bits(theirs, session),
        keys=agreed_keys(ours, theirs),
        repairs=_repairs(ours, theirs, codecs),
        arriving_repairs=_arriving_repairs(ours, theirs, codecs),
    )


def _feedback(
    ours: MediaDescription, theirs: MediaDescription, both: Sequence[tuple[Codec, int]]
) -> frozenset[str]:
    """Give the messages that both lines name for the first codec: RFC 4585 §4.2."""
    if not both:
        return frozenset()
    first, number = both[0]
    # RFC 4585 §4.2 [not-understood-not-heeded]
    return feedback_of(ours, number) & feedback_of(theirs, first.payload_type)


def _repairs(
    ours: MediaDescription, theirs: MediaDescription, both: Sequence[tuple[Codec, int]]
) -> dict[int, int]:
    """The types of RTX to send, by those of the codecs: RFC 4588 §8.1."""
    repeated = set(repairs_of(ours).values())
    numbers = {codec.payload_type for codec, number in both if number in repeated}
    found = repairs_of(theirs) if numbers else {}
    return {original: number for number, original in found.items() if original in numbers}


def _arriving_repairs(
    ours: MediaDescription, theirs: MediaDescription, both: Sequence[tuple[Codec, int]]
) -> dict[int, int]:
    """The types of RTX that will arrive, and those of the codecs: RFC 4588 §8.1."""
    found = repairs_of(ours)
    repeated = set(repairs_of(theirs).values()) if found else set()
    numbers = {number for codec, number in both if codec.payload_type in repeated}
    return {number: original for number, original in found.items() if original in numbers}


def _telephone_events(
    both: Sequence[tuple[Codec, int]], speech: Codec | None
) -> list[tuple[Codec, int]]:
    """The event formats, the one with the clock of the speech in front: RFC 4733 §2.2.1."""
    found = [(codec, number) for codec, number in both if codec.is_telephone_event]
    if speech:
        found.sort(key=lambda pair: pair[0].clock_rate != speech.clock_rate)
    return found


def _pairs(
    theirs: Sequence[Codec], ours: Sequence[Codec], prefer: Literal["local", "remote"]
) -> list[tuple[Codec, Codec]]:
    """Pair their codecs with ours, each used once, in the order of one side: §6.1."""
    pairs: list[tuple[int, Codec, Codec]] = []
    spare = dict(enumerate(ours))
    for codec in theirs:
        for place, mine in spare.items():
            if agreed := mine.negotiate(codec):
                del spare[place]
                pairs.append((place, agreed.send, agreed.receive))
                break
    if prefer == "local":
        pairs.sort(key=lambda pair: pair[0])
    return [(send, receive) for _, send, receive in pairs]


def _is_enough(pairs: Sequence[tuple[Codec, Codec]], ours: Sequence[Codec]) -> bool:
    """Ask for something to hear or see, not digits alone, unless digits are all we have: §6.1."""
    speech = any(not mine.is_telephone_event for _, mine in pairs)
    return speech or (bool(pairs) and all(codec.is_telephone_event for codec in ours))


def _line(
    ours: LocalMedia,
    codecs: Sequence[Codec],
    word: str,
    offered: MediaDescription | None = None,
) -> MediaDescription:
    """Write a line of ours, as an offer or as the answer to an offered one: §5.1, §6.1."""
    transport = ours.transport
    name = ours.mid if offered is None or ours.mid is None else mid(offered)
    protocol = transport.protocol if offered is None else offered.protocol
    attributes = [attribute for codec in codecs for attribute in codec.attributes()]
    if ours.ptime:  # §5.1 [ptime-above-zero]
        attributes.append(Attribute("ptime", str(ours.ptime)))
    if ours.maxptime:
        attributes.append(Attribute("maxptime", str(ours.maxptime)))
    attributes += transport.attributes()
    if transport.rtcp_mux and _may_mux(codecs) and (offered is None or rtcp_mux(offered)):
        # RFC 5761 §5.1.1 [mux-is-offered] [mux-is-answered]
        attributes.append(Attribute("rtcp-mux"))
    if name is not None:
        attributes.append(Attribute("mid", name))
    if offered is None:
        attributes += feedback_to_offer(ours)
    else:
        attributes += feedback_to_answer(ours, offered, [each.payload_type for each in codecs])
    if word != "sendrecv":  # the default, left unsaid: §5.1
        attributes.append(Attribute(word))  # §5.1 [says-sendonly] [says-recvonly] [says-inactive]
    return MediaDescription(
        kind=ours.kind,  # §6.1 [same-kind]; RFC 6337 §5.2.3 [each-of-its-kind]
        port=transport.port,  # §6.1 [address-for-senders], §8.4 [hold-keeps-its-port]
        protocol=protocol,
        # §5.1 [formats-are-usable] [best-first], §6.1 [best-first]
        # RFC 8866 §8.2.3 [format-is-payload-type]
        formats=tuple(str(codec.payload_type) for codec in codecs),
        connection=Connection.to(transport.host) if transport.host else None,
        attributes=tuple(attributes),
    )


def _may_mux(codecs: Iterable[Codec]) -> bool:
    """Say whether no packet of these can be taken for RTCP: RFC 5761 §4."""
    # RFC 5761 §4 [no-lookalikes], §5.1.1 [answer-without-lookalikes]
    return all(codec.payload_type not in RTCP_LOOKALIKES for codec in codecs)


def _session(origin: Origin, host: str, lines: Iterable[MediaDescription]) -> SessionDescription:
    # RFC 8866 §5.7 [each-has-an-address]
    return SessionDescription(origin, connection=Connection.to(host), media=tuple(lines))
