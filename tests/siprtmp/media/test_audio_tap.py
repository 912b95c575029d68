"""What is sent to a phone, for others to hear."""

from support.gateway.audio_rig import ALAW, ULAW, Rig, plan

from siprtmp.media.translate.audio_formats import PCMA, PCMU


def test_a_tap_has_what_is_sent_with_its_codec():
    """Covers RFC 3551 §4.5: also what waits for its time, and nothing that is not sent."""
    rig, tapped = Rig(PCMU, PCMA), []
    rig.stream.tap(lambda codec, payload: tapped.append((rig.now, codec, payload)))
    rig.publish(ULAW, 0, 4)
    assert len(tapped) < 4
    rig.wait(1.0)
    rig.publish(ALAW, 1000)
    rig.start(plan(PCMU, PCMA, direction="recvonly"), rig.now)
    rig.publish(ALAW, 1020)
    assert [at for at, *_ in tapped] == [at for at, *_ in rig.sent]
    found = [(codec.payload_type, payload) for _, codec, payload in tapped]
    assert found == [(kind, payload) for _, kind, *_, payload in rig.sent] and len(found) == 5
    assert {codec for _, codec, _ in tapped} == {PCMU, PCMA}
