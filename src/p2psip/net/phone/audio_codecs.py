"""The codecs of a phone's audio by name, and what goes with them: keys, noise, redundancy.

Implements RFC 8866 §6.6 for names, RFC 4733 §2.2.1, RFC 3389 §4 and RFC 2198 §5 for the rest.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from p2psip.errors import LocalError, RemoteError
from p2psip.sdp.agreed_media import AgreedMedia
from p2psip.sdp.attributes import STATIC
from p2psip.sdp.codec import TELEPHONE_EVENT, Codec

CN, RED = "CN", "RED"  # RFC 3389 §4, RFC 2198 §5: what goes with a codec of audio
KEYS: Final = "0-15"  # the events we understand: RFC 4733 §3.2


def audio_codec(text: str) -> Codec:
    """Read "PCMU", "speex/16000" or "opus/48000/2": a name, a clock rate (Hz), channels.

    RFC 8866 §6.6.  The clock rate is 8000 and there is one channel unless said.  Raises LocalError.
    """
    name, *numbers = text.split("/")
    audio = all(each.isascii() and each.isdecimal() and int(each) for each in numbers)
    if not name or not audio or len(numbers) > 2:
        raise LocalError(f"{text!r} is not a codec")
    clock_rate = int(numbers[0]) if numbers else 8000
    return Codec(name, clock_rate, int(numbers[1]) if len(numbers) == 2 else 1)


def with_keys(codecs: Sequence[Codec]) -> tuple[Codec, ...]:
    """Add the telephone events for each clock of the codecs: RFC 4733 §2.2.1.

    Redundant audio names what it is made of, where that has a number of its own: RFC 2198 §5.
    """
    rates = dict.fromkeys(codec.clock_rate for codec in codecs)
    first = next((n for n, each in STATIC.items() if each.encoding == codecs[0].name.upper()), None)
    if first is not None:
        fmtp = f"{first}/{first}"
        codecs = [replace(each, fmtp=fmtp) if each.name.upper() == RED else each for each in codecs]
    return (*codecs, *(Codec(TELEPHONE_EVENT, rate, fmtp=KEYS) for rate in rates))


def type_beside(media: AgreedMedia, name: str) -> int | None:
    """The payload type by which we send noise or redundancy, None if that was not agreed on.

    RFC 3389 §5.1, RFC 2198 §5: its clock is that of the audio.
    """
    rate = media.codecs[0].clock_rate
    for codec, kind in zip(media.codecs, media.send_payload_types, strict=True):
        if codec.name.upper() == name and codec.clock_rate == rate:
            return kind
    return None


def audio_codec_first(media: AgreedMedia) -> AgreedMedia:
    """The same line with a codec of audio in front, as noise and redundancy need one: RFC 2198 §5.

    Raises RemoteError(488) if none was agreed on.
    """
    places = [at for at, codec in enumerate(media.codecs) if codec.name.upper() not in (CN, RED)]
    if not places:
        raise RemoteError("Not Acceptable Here", 488)
    order = [places[0], *(at for at in range(len(media.codecs)) if at != places[0])]
    return replace(
        media,
        codecs=tuple(media.codecs[at] for at in order),
        send_payload_types=tuple(media.send_payload_types[at] for at in order),
        receive_payload_types=tuple(media.receive_payload_types[at] for at in order),
    )
