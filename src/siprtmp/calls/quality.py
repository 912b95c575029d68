"""How good a call is: loss, jitter, round trip, and a score, in each direction.

Own design: the figures of RTCP (RFC 3550 §6.4.1) and of our own counts, for the operator.  The
score is the MOS of the E-model (`p2psip.rtp.e_model`); the delay in it is half the round trip, a
packet, and twice the jitter for the buffer of the listener.
"""

from collections.abc import Collection, Iterable
from typing import Final

from p2psip.rtp import e_model
from p2psip.rtp.session import Statistics
from siprtmp.calls.call import Call

Figures = dict[str, object]

FROM_PHONE: Final = "mos_from_phone"
TO_PHONE: Final = "mos_to_phone"


def figures_of(call: Call) -> Figures:
    """The codecs, packets and quality of a call, as far as they are known; times in ms."""
    seen = call.statistics
    figures: Figures = {
        "codec": seen.codec,
        "transcoding": seen.transcodes,
        "sent": seen.sent,
        "received": seen.received,
        "left_out": seen.left_out,
    }
    if seen.srtp:
        figures["srtp"] = seen.srtp
    if seen.video:
        figures |= {
            "video": ",".join(seen.video),
            "video_sent": seen.video_sent,
            "video_received": seen.video_received,
            "freezes": seen.freezes,
        }
    if seen.rtp is not None and seen.codec is not None:
        figures |= _quality(seen.rtp, seen.codec, seen.packet_seconds)
    return figures


def scores(calls: Iterable[Call]) -> list[float]:
    """Return the lower score of the two directions, for each call that has any."""
    found = []
    for call in calls:
        figures = figures_of(call)
        both = [figures.get(name) for name in (FROM_PHONE, TO_PHONE)]
        known = [each for each in both if isinstance(each, float)]
        if known:
            found.append(min(known))
    return found


def summary(calls: Collection[Call]) -> Figures:
    """The figures of all calls for `/status`; None without a call that has any."""
    known = scores(calls)
    return {
        "mos_lowest": min(known, default=None),
        "mos_mean": round(sum(known) / len(known), 2) if known else None,
    }


def _quality(seen: Statistics, codec: str, packet_seconds: float) -> Figures:
    lost_from = share(seen.lost, seen.packets_received + seen.lost)
    has_report = seen.remote_lost or seen.remote_jitter_ms or seen.rtt is not None
    lost_to = share(seen.remote_lost, seen.packets_sent) if has_report else None
    rtt = seen.rtt
    delay = packet_seconds + (rtt or 0.0) / 2
    return {
        "lost_from_phone": _percent(lost_from),
        "lost_to_phone": _percent(share(seen.remote_lost, seen.packets_sent)),
        "jitter_ms": round(seen.jitter_ms, 1),
        "jitter_to_phone_ms": round(seen.remote_jitter_ms, 1) if has_report else None,
        "round_trip_ms": round(rtt * 1000, 1) if rtt is not None else None,
        FROM_PHONE: _score(codec, lost_from, delay + seen.jitter_ms / 500),
        TO_PHONE: _score(codec, lost_to, delay + seen.remote_jitter_ms / 500),
    }


def _score(codec: str, loss: float | None, delay: float) -> float | None:
    if loss is None:
        return None
    return round(e_model.mos(e_model.r_factor(codec, loss=loss, one_way_delay=delay)), 2)


def share(lost: int, of: int) -> float | None:
    """The share that was lost, 0 to 1; None where nothing was sent.  Duplicates are no gain."""
    return min(max(lost, 0) / of, 1.0) if of > 0 else None


def _percent(of: float | None) -> float | None:
    return round(100 * of, 2) if of is not None else None
