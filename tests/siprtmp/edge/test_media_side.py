"""The side of a gateway that has the media ports of its calls."""

from types import SimpleNamespace

from p2psip.net.local_network import LocalNetwork
from siprtmp.edge.media_side import MediaSide


def test_each_call_has_a_name_of_its_own():
    """Covers RFC 3550 §6.5.1 [cname-is-unique]."""
    settings = SimpleNamespace(nat=False, media_timeout=60.0, rtp_ports=(0, 0))
    network = LocalNetwork("127.0.0.1")
    media = MediaSide(settings, "127.0.0.1", network, lambda user, now: (), None)
    legs = [media.open_leg(None, (), 0.0)[0] for _ in range(3)]
    try:
        names = {leg.cname for leg in legs}
        assert len(names) == 3 and all(name.endswith("@127.0.0.1") for name in names)
    finally:
        for leg in legs:
            leg.close(0.0)
