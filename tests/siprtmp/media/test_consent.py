"""Whom media is sent to: the caller's host, whoever was heard, and others for a few seconds."""

import pytest
from support.gateway.audio_rig import ULAW, Rig, plan

from siprtmp.media.consent import Consent
from siprtmp.media.stream import Signalled
from siprtmp.media.translate.audio_formats import PCMU

CALLER, VICTIM, MEDIA = "192.0.2.9", "203.0.113.1", "203.0.113.2"


def opened(address, hosts=(CALLER,), now=0.0, answered=True):
    consent = Consent()
    consent.point((address, 5004), hosts, now, answered=answered)
    return consent


def spent(consent, since, until, octets=160):
    """When packets went to a third party, if there was one to send every 20 ms."""
    return [at / 50 for at in range(since * 50, until * 50) if consent.spend(octets, at / 50)]


@pytest.mark.parametrize("answered", [True, False])
def test_the_host_that_signals_needs_no_proof_of_its_own(answered):
    """Own design: it hears its calls wherever its port is."""
    assert opened(CALLER, answered=answered).is_open


@pytest.mark.parametrize("hosts", [(), (CALLER,)])
def test_nobody_else_is_sent_to_before_the_answer(hosts):
    """Own design: unless it was heard."""
    consent = opened(VICTIM, hosts, answered=False)
    assert not consent.is_open and not spent(consent, 0, 9)
    consent.hear(1.0)
    assert consent.is_open


def test_a_silent_third_party_is_tried_and_then_left_alone_until_it_is_heard():
    """Own design: fewer than three packets for each of INVITE and ACK."""
    consent = opened(VICTIM)
    assert not consent.is_open and spent(consent, 0, 9) == [0.0, 1.0, 2.0, 3.0, 4.0]
    consent.point((VICTIM, 5006), (CALLER,), 20.0, answered=True)
    assert not consent.is_open and not spent(consent, 20, 30)
    consent.hear(31.0)
    assert consent.is_open
    consent.point((VICTIM, 5006), (CALLER,), 32.0, answered=True)  # the same again
    assert consent.is_open


def test_long_packets_are_tried_less_often():
    """Own design: the peer chooses how long they are, by its a=ptime."""
    assert len(spent(opened(VICTIM), 0, 9, 480)) == 2
    assert len(spent(opened(VICTIM), 0, 9, 1600)) == 1


def test_seconds_of_grace_are_those_of_the_whole_call():
    """Own design: or every new offer would be worth another five, at one victim after another."""
    consent = opened(VICTIM)
    consent.point((CALLER, 5004), (CALLER,), 3.0, answered=True)
    assert consent.is_open and not consent.spend(160, 4.0)
    consent.point((MEDIA, 5004), (CALLER,), 10.0, answered=True)
    assert spent(consent, 10, 11) == [10.0]
    consent.hear(11.0)
    consent.point((VICTIM, 5004), (CALLER,), 20.0, answered=True)
    assert not consent.is_open and consent.spend(160, 20.0)
    consent.point(None, (CALLER,), 20.5, answered=True)
    assert not consent.is_open and not spent(consent, 21, 29)
    consent.point((VICTIM, 5004), (CALLER,), 30.0, answered=False)
    assert not spent(consent, 30, 39)
    consent.point((VICTIM, 5004), (CALLER,), 40.0, answered=True)
    assert spent(consent, 40, 49) == [40.0]


def test_neither_sound_nor_reports_go_where_they_are_not_wanted():
    """Covers RFC 3550 §6.2 and §6.6: not even a report or a goodbye."""
    rig = Rig()
    rig.stream.start(plan(PCMU), 0.0, Signalled(hosts=(CALLER,), early=True, proven=False))
    for second in range(30):
        rig.publish(ULAW, 1000 * second)
        rig.wait(second + 1.0)
    rig.stream.close(rig.now)
    assert not rig.sent and not rig.reports


def test_a_third_party_hears_five_packets_and_more_once_it_speaks():
    """Own design: the media server of a PBX is one, and speaks at once."""
    rig = Rig(PCMU, hosts=("192.0.2.1",))
    for second in range(20):
        rig.publish(ULAW, 1000 * second)
        rig.wait(second + 1.0)
        if second == 9:
            assert len(rig.sent) == 5 and not rig.reports
            rig.hear(1)
    assert len(rig.sent) == 15 and rig.sent[5][2]  # it hears a new talk spurt


def test_what_comes_before_the_ack_opens_the_way():
    """Own design: only who has seen our answer knows where to send."""
    rig = Rig()
    rig.stream.start(plan(PCMU), 0.0, Signalled(hosts=(CALLER,), early=True, proven=False))
    rig.publish(ULAW, 0)
    rig.hear(1)
    rig.publish(ULAW, 20)
    rig.wait(1.5)
    assert len(rig.sent) == 1 and rig.hosts == (CALLER,)


def test_a_new_address_waits_for_its_ack():
    """Covers RFC 3264 §8.3.1, for a third party; a hold and its end change nothing."""
    rig = Rig(PCMU)
    other = plan(PCMU, port=6000)
    rig.stream.start(other, 1.0, Signalled(hosts=("192.0.2.1",), early=True))
    rig.publish(ULAW, 0)
    assert not rig.sent
    rig.stream.start(other, 1.0, Signalled(hosts=("192.0.2.1",)))
    rig.publish(ULAW, 20)
    rig.wait(1.5)
    assert len(rig.sent) == 1


def test_nothing_is_sent_before_it_gets_through():
    """Covers RFC 8656 §11.1: an answer agrees, and a relay may not be ready yet."""
    rig = Rig()
    rig.is_ready = False
    rig.start(plan(PCMU), 0.0)
    rig.publish(ULAW, 0)
    rig.stream.start(plan(PCMU, direction="sendonly"), 0.0, Signalled(hosts=()))
    rig.publish(ULAW, 20)  # a third party costs its grace nothing either
    rig.start(plan(PCMU), 0.0)
    assert not rig.sent
    rig.is_ready = True
    rig.on_ready()
    rig.now = 0.04
    rig.publish(ULAW, 40)
    assert [packet[2] for packet in rig.sent] == [True]
