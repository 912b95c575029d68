"""What both ends say of enhanced RTMP, and that nobody is hurt who does not speak it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.rtmp.rtmp_world import World

from rtmplite.amf import amf0
from rtmplite.amf.values import EcmaArray
from rtmplite.rtmp.wire.capabilities import RELAY, Ability, Capabilities, Extra, VideoFunction
from rtmplite.strategies import amf

ABILITIES = st.dictionaries(
    st.sampled_from(["*", "av01", "Opus", "????"]), st.integers(1, 7).map(Ability)
)


@given(
    st.builds(
        Capabilities,
        st.lists(st.sampled_from(["*", "av01", "fLaC"])).map(tuple),
        ABILITIES,
        ABILITIES,
        st.integers(0, 15).map(Extra),
    )
)
def test_what_is_said_is_understood(capabilities):
    """Covers E-RTMP v2 §"Enhancing NetConnection connect Command" [four-cc-list] [info-maps]
    [caps-ex] [both-ways]; E-RTMP v1 §"Extending NetConnection connect Command" [four-cc-list].
    """
    (properties,) = amf0.decode(amf0.encode(capabilities.properties()))
    assert isinstance(properties["fourCcList"], list)
    assert Capabilities.parse(properties) == capabilities
    assert Capabilities.parse(EcmaArray(properties)) == capabilities


def test_bits():
    """Covers E-RTMP v2 §"Enhancing NetConnection connect Command" [info-maps] [caps-ex].

    Covers E-RTMP v2 §"Metadata Frame" [video-function].
    """
    assert [int(each) for each in Ability] == [1, 2, 4]
    assert [int(each) for each in Extra] == [1, 2, 4, 8]
    assert [int(each) for each in VideoFunction] == [1, 2, 4, 8]


def test_any_codec():
    """Covers E-RTMP v2 §"Enhancing NetConnection connect Command" [wildcard] [both-ways]
    [four-cc-list].
    """
    some = Capabilities.parse(
        {
            "videoFourCcInfoMap": {"*": 4.0, "vp09": 3.0},
            "audioFourCcInfoMap": {"Opus": 1.0},
            "fourCcList": ["hvc1"],
        }
    )
    assert some.video_ability("vp09") == 7 and some.video_ability("av01") == Ability.CAN_FORWARD
    assert some.audio_ability("Opus") == Ability.CAN_DECODE and not some.audio_ability("fLaC")
    assert some.supports("hvc1") and some.supports("????") and some.supports("Opus")
    assert not Capabilities.parse({"fourCcList": ["hvc1"]}).supports("av01")
    assert Capabilities.parse({"fourCcList": ["*"]}).supports("av01")


@given(
    st.dictionaries(
        st.sampled_from(["fourCcList", "videoFourCcInfoMap", "audioFourCcInfoMap", "capsEx"]),
        amf.values(),
    )
)
def test_whatever_is_said_is_harmless(properties):
    """Any value in place of any other."""
    said = Capabilities.parse(properties)
    assert said.is_enhanced or not said.supports("av01")


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -1.0, 2.0**32, "1", None, True])
def test_numbers_that_are_no_bits(number):
    """Nothing is known of who says this."""
    assert not Capabilities.parse({"capsEx": number}).extras
    assert Capabilities.parse({"capsEx": 16.0 + 2.5}).extras is Extra.MULTITRACK


def test_both_ends_declare_themselves():
    """Covers E-RTMP v2 §"Enhanced Video" [codecs-signaled], E-RTMP v2 §"Enhanced Audio"
    [codecs-signaled], E-RTMP v2 §"Enhancing NetConnection connect Command" [server-states-support]
    [maps-preferred] and E-RTMP v2 §"Metadata Frame" [video-function].
    """
    peer = World().client()
    assert {"videoFourCcInfoMap", "audioFourCcInfoMap"} < peer.server.properties.keys()
    everything = {"*": Ability.CAN_FORWARD}
    assert Capabilities(("*",), everything, everything, Extra(15)) == RELAY
    assert peer.server.capabilities == RELAY
    assert peer.server.properties["videoFunction"] == 7.0
    for values in peer.reply(1.0):
        assert Capabilities.parse(values) == RELAY and RELAY.supports("????")


def test_who_says_nothing_hears_nothing():
    """Covers E-RTMP v2 §"Enhancing NetConnection connect Command" [server-states-support].

    A client of 2008 is answered as in 2008.
    """
    silent = {"fourCcList": [], "videoFourCcInfoMap": {}, "audioFourCcInfoMap": {}, "capsEx": 0.0}
    peer = World().client(properties=silent)
    assert not peer.server.capabilities.is_enhanced
    for values in peer.reply(1.0):
        assert not {*silent} & {*values}
