"""How much strangers may make an endpoint do."""

from rtmplite.rtmfp.endpoint.limits import StartupLimits


def test_the_limits_are_what_the_spec_names():
    """Covers RFC 7016 §3.5.1.1.1 [threshold-24]."""
    assert StartupLimits().redirect_threshold == 24
