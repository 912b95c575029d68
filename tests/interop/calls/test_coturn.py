"""A real server tells addresses, and calls go between them."""

import sys

import pytest
from support.peers.coturn import Coturn
from support.peers.process import Process
from support.peers.tones import read_wav, tone, tone_fraction, trimmed, write_wav

pytestmark = pytest.mark.interop
SECONDS, HZ = 1.5, 600


class Phone(Process):
    """`python -m p2psip`, ready when it has printed `ready`."""

    def __init__(self, folder, *words, ready="", **variables):
        super().__init__(folder, [sys.executable, "-m", "p2psip", *map(str, words)])
        self.ready, self.environment = ready, variables

    def is_ready(self):
        return self.ready in self.output

    @property
    def uri(self):
        """Where it listens, as it has said itself."""
        return self.output.partition("listening at ")[2].split()[0]


def call_with_a_tone(start, tmp_path, *options):
    """One phone calls another, both with these options: what was heard, and both phones."""
    played = write_wav(tmp_path / "played.wav", tone(HZ, SECONDS))
    heard = tmp_path / "heard.wav"
    callee = start(
        Phone, "listen", "--calls", 1, "--record", heard, *options, ready="listening at "
    )
    caller = start(Phone, "call", callee.uri, "--play", played, *options)
    assert caller.finish(timeout=40) == 0, caller.output
    assert callee.finish(timeout=20) == 0, callee.output
    samples, rate = read_wav(heard)
    return trimmed(samples, rate), rate, caller, callee


@pytest.mark.needs("turnserver")
def test_phones_call_each_other_at_the_addresses_that_the_server_told(start, tmp_path):
    """Covers RFC 8489 §6.2.1 and §14.2: the answers of another implementation."""
    server = start(Coturn)
    samples, rate, *_ = call_with_a_tone(start, tmp_path, "--stun", server.address)
    assert tone_fraction(samples, rate, HZ) > 0.95 and len(samples) > 0.8 * SECONDS * rate


@pytest.mark.needs("turnserver")
def test_a_gateway_learns_its_address(start, gateway):
    server = start(Coturn)
    running = gateway("--stun", server.address)
    wanted = f"public-address address={running.sip} server={server.address}"
    running.wait_until(lambda: wanted in running.output, what="the address", timeout=20)
