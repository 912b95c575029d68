"""Two user agents over a network that may do its worst."""

from elements import Phone
from link import Link


def test_a_call_from_ring_to_bye():
    link = Link()
    alice, bob = Phone(link, "10.0.0.1"), Phone(link, "10.0.0.2", lambda call, now: call.ring(now))
    call = alice.dial("10.0.0.2", link.now)
    link.run(until=1.0)
    assert alice.log == [("ringing", call, 180, None)]
    bob.calls[0].accept(b"answer", link.now)
    link.run(until=2.0)
    assert bob.log == [("accepted", bob.calls[0], b"offer")]
    assert alice.log[1:] == [("accepted", call, b"answer")]
    bob.calls[0].bye(link.now)
    link.run(until=3.0)
    assert alice.log[2:] == [("ended", call, "BYE")]
    link.run()
    assert alice.idle and bob.idle
