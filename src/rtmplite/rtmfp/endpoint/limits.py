"""Limits the work that strangers can cause in an endpoint.

Implements RFC 7016 §5, which asks for limits and names few numbers.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StartupLimits:
    """Limits the work that strangers can cause in an endpoint: §5.

    Own design: the numbers, but for the threshold.

    `sessions`            at a time; more: hellos are redirected to other servers, or not heard
    `unproven`            sessions of which nothing came yet that only the far end can have made;
                          more: the oldest one is dropped that was not asked for here
    `keyings`             Diffie-Hellman computations for strangers at a time; more: not heard
    `keyings_per_second`  of one host
    `hellos_per_second`   answered to one host
    `forwards_per_second` to one session, on behalf of hosts that ask for it; and of those that are
                          forwarded to us, answered in all
    `reassemblies`        packets of which only a part has come: §3.4
    `redirect_threshold`  candidate addresses of an opening session: §3.5.1.1.1
    `buffered_bytes`      of memory that all sessions take together: see `budget`
    `field_bytes`         of a tag, discriminator, cookie, certificate or keying component
    """

    sessions: int = 10_000
    unproven: int = 1024
    keyings: int = 64
    keyings_per_second: int = 32
    hellos_per_second: int = 100
    forwards_per_second: int = 20
    reassemblies: int = 64
    redirect_threshold: int = 24  # §3.5.1.1.1 [threshold-24]
    buffered_bytes: int = 256 << 20
    field_bytes: int = 4096
