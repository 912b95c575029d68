"""libsrtp and the annotated reference protect alike, and refuse alike, whatever arrives."""

from itertools import cycle

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from p2psip.errors import LocalError, RemoteError
from p2psip.rtp.packet import RtpPacket
from p2psip.rtp.rtcp import compound
from p2psip.srtp import libsrtp
from p2psip.srtp.libsrtp import LibSrtpReceiver, LibSrtpSender, srtp_receiver, srtp_sender
from p2psip.srtp.srtp import MAX_SOURCES, WINDOW, SrtpReceiver, SrtpSender
from p2psip.srtp.suites import AEAD_AES_128_GCM, AES_256_CM_HMAC_SHA1_80, SUITES
from p2psip.strategies.rtp import compounds, rtp_packets

FAST = [suite for suite in SUITES.values() if libsrtp.is_fast(suite)]
STEPS = st.sampled_from([1, 1, 1, 2, 5, 30, 63, 64, 65, 100, 4000, 20000, 32000])
HARM = st.sampled_from(["", "", "", "tag", "payload", "header", "short", "again"])


def ends(suite, window=WINDOW):
    """(senders, receivers) by one key: the reference, then libsrtp."""
    key, salt = bytes(range(suite.key_octets)), bytes(range(50, 50 + suite.salt_octets))
    return (SrtpSender(key, salt, suite), LibSrtpSender(key, salt, suite)), (
        SrtpReceiver(key, salt, suite, window=window),
        LibSrtpReceiver(key, salt, suite, window=window),
    )


def opened(open_, data):
    """What comes out, None for a refusal; nothing else may come."""
    try:
        return open_(data)
    except RemoteError:
        return None


def harmed(data, harm):
    match harm:
        case "tag":
            return data[:-1] + bytes((data[-1] ^ 1,))
        case "payload":
            return data[:13] + bytes((data[13] ^ 0x80,)) + data[14:]
        case "header":
            return data[:4] + bytes((data[4] ^ 1,)) + data[5:]
        case "short":
            return data[:20]
    return data


def test_the_fast_suites_are_there():
    """With the extra, which the tests have, libsrtp does all suites but those of longer AES-CM."""
    assert {suite.name for suite in SUITES.values()} - {suite.name for suite in FAST} == {
        "AES_192_CM_HMAC_SHA1_80",
        "AES_192_CM_HMAC_SHA1_32",
        "AES_256_CM_HMAC_SHA1_80",
        "AES_256_CM_HMAC_SHA1_32",
    }
    key, salt = bytes(16), bytes(12)
    assert isinstance(srtp_sender(key, salt, AEAD_AES_128_GCM), LibSrtpSender)
    assert isinstance(srtp_receiver(key, salt, AEAD_AES_128_GCM), LibSrtpReceiver)


def test_without_the_extra_and_for_other_suites_the_reference_does_it(monkeypatch):
    """Own design: nobody has to install libsrtp."""
    key, salt = bytes(32), bytes(14)
    assert isinstance(srtp_sender(key, salt, AES_256_CM_HMAC_SHA1_80), SrtpSender)
    assert isinstance(srtp_receiver(key, salt, AES_256_CM_HMAC_SHA1_80), SrtpReceiver)
    monkeypatch.setattr(libsrtp, "pylibsrtp", None)
    assert isinstance(srtp_sender(bytes(16), salt), SrtpSender)
    assert isinstance(srtp_receiver(bytes(16), salt), SrtpReceiver)


@given(
    st.sampled_from(FAST),
    st.sampled_from([WINDOW, 512]),
    st.integers(0, 0xFFFF),
    st.lists(st.tuples(STEPS, st.sampled_from([7, 7, 8]), HARM), min_size=1, max_size=25),
    st.randoms(use_true_random=False),
)
def test_packets_are_protected_and_opened_alike(suite, window, first, plan, random):
    """Covers RFC 3711 §3.3 [replayed-is-dropped] [forged-is-dropped].

    Covers RFC 7714 §12 [both-key-sizes].
    Packets are lost, late, doubled, changed and cut, and their numbers wrap.  What is on its way
    together comes out of order.
    """
    (ours, theirs), receivers = ends(suite, window)
    sequence, on_the_way = first, []
    for at, (step, ssrc, harm) in enumerate(plan):
        packet = bytes(RtpPacket(0, sequence & 0xFFFF, at, ssrc, b"sound %d" % at))
        protected = ours.protect_rtp(packet)
        assert theirs.protect_rtp(packet) == protected
        on_the_way += [harmed(protected, harm)] * (2 if harm == "again" else 1)
        sequence += step
        if at % 4 == 3 or at == len(plan) - 1:
            random.shuffle(on_the_way)
            for data in on_the_way:
                results = [opened(each.open_rtp, data) for each in receivers]
                event(f"opened: {results[0] is not None}")
                assert results[0] == results[1]
            on_the_way.clear()


@given(rtp_packets().map(bytes), st.sampled_from(FAST))
def test_packets_of_any_shape_are_protected_alike(packet, suite):
    """Covers RFC 3711 §3.3: with sources, an extension and padding, and without a payload."""
    (ours, theirs), receivers = ends(suite)
    protected = ours.protect_rtp(packet)
    assert theirs.protect_rtp(packet) == protected
    assert [each.open_rtp(protected) for each in receivers] == [packet, packet]


@given(
    st.sampled_from(FAST),
    st.lists(compounds().map(lambda packets: compound(*packets)), min_size=1, max_size=2),
    st.lists(HARM, min_size=1, max_size=8),
    st.randoms(use_true_random=False),
)
def test_reports_are_opened_alike(suite, reports, plan, random):
    """Covers RFC 3711 §3.4; libsrtp's own index begins at 1, and so has another first packet.

    The reports are sent in turns: each time they have another index.
    """
    senders, _ = ends(suite)
    for sender in senders:
        on_the_way = []
        for packet, harm in zip(cycle(reports), plan, strict=False):
            protected = harmed(sender.protect_rtcp(packet), harm if harm != "payload" else "tag")
            on_the_way += [protected] * (2 if harm == "again" else 1)
        random.shuffle(on_the_way)
        _, receivers = ends(suite)
        for data in on_the_way:
            results = [opened(each.open_rtcp, data) for each in receivers]
            assert results[0] == results[1]


@given(st.binary(max_size=80), st.sampled_from(FAST))
def test_any_octets_are_refused_by_both(data, suite):
    """Covers RFC 3711 §3.3 [forged-is-dropped]."""
    _, receivers = ends(suite)
    for receiver in receivers:
        assert opened(receiver.open_rtp, data) is opened(receiver.open_rtcp, data) is None


@pytest.mark.parametrize("suite", FAST)
def test_libsrtp_has_limits_of_its_own(suite):
    """One key has so many sources, and packets may be longer than pylibsrtp thinks."""
    (ours, theirs), receivers = ends(suite)
    sent = [
        ours.protect_rtp(bytes(RtpPacket(0, 1, 0, ssrc, b""))) for ssrc in range(MAX_SOURCES + 1)
    ]
    for receiver in receivers:
        assert [opened(receiver.open_rtp, data) for data in sent].count(None) == 1
    long = bytes(RtpPacket(0, 2, 0, 7, bytes(9000)))
    assert [each.open_rtp(theirs.protect_rtp(long)) for each in receivers] == [long, long]
    for wrong in (b"no", bytes(100_000)):
        with pytest.raises(LocalError):
            theirs.protect_rtp(wrong)
        with pytest.raises(RemoteError):
            receivers[1].open_rtp(wrong)


@pytest.mark.parametrize("suite", FAST)
def test_a_report_in_clear_is_refused_by_counter_mode_of_libsrtp_alone(suite):
    """Own design: it is the one thing in which they differ; nobody can agree to send such one."""
    (ours, _), (reference, fast) = ends(suite)
    mode, report = ours._rtcp, bytes.fromhex("80c900010000cafe0000000700000000")
    if suite.is_aead:
        head, tail = report, bytes(4)
        clear = head + mode._aead.encrypt(mode._nonce(0xCAFE, 0), b"", head + tail) + tail
    else:
        clear = report + bytes(4) + mode._tag(report + bytes(4))
    assert reference.open_rtcp(clear) == report
    assert opened(fast.open_rtcp, clear) == (report if suite.is_aead else None)
