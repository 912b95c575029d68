"""H.265 in a=fmtp: which descriptions are of one configuration, whatever they leave unsaid."""

import pytest

from p2psip.sdp.h265_parameters import negotiate, parameter_sets


@pytest.mark.parametrize(
    ("ours", "theirs", "is_same"),
    [
        ("profile-id=1", "", True),
        ("profile-id=1", "profile-id=1;level-id=150;x-unknown=y;max-fps=30", True),
        ("profile-id=2", "", False),
        ("profile-id=2", "profile-id=3", False),
        ("profile-space=0", "", True),
        ("profile-space=1", "", False),
        ("tier-flag=0", "", True),
        ("tier-flag=1", "", False),
        ("interop-constraints=b00000000000", "", True),
        ("profile-id=1", "interop-constraints=B00000000000", True),
        ("profile-id=1", "interop-constraints=900000000000", False),
        ("profile-id=1", "profile-compatibility-indicator=60000000", False),
        ("", "profile-space=3;profile-id=9;tier-flag=1;x=y", True),
    ],
)
def test_two_descriptions_are_of_one_configuration(ours, theirs, is_same):
    """Covers RFC 7798 §7.1 [unknown-is-ignored] [same-in-offer-and-answer] [no-space-is-0]
    [no-profile-is-1] [no-tier-is-0] [no-constraints-are-progressive-frames], §7.2.2
    [used-symmetrically].
    """
    agreed = negotiate(ours, theirs)
    assert (agreed is not None) == is_same
    assert agreed is None or (agreed[1] == theirs and "x" not in agreed[0])


def test_a_parameter_set_that_is_not_base64_is_left_out():
    """Covers RFC 7798 §7.2.2 [sets-of-the-description]: the sets beside it are kept."""
    said = "sprop-vps=QA!E=,QAE=;sprop-sps=QgE;sprop-pps=RAE="
    assert parameter_sets(said) == (b"\x40\x01", b"\x44\x01")
