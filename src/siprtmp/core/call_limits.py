"""The limits of calls, from the settings; with defaults where strangers reach a listener.

Own design: a gateway on loopback serves the users of one machine, and has no limits unless some are
given.  A gateway that other machines reach is found by password guessers within an hour, and the
calls of one stolen password can cost more than the machine.  There its users have limits that no
person with one phone meets, and no call leaves the gateway's domains without a pattern for it.
"""

from typing import Final

from p2psip.server.call_allowance import Allowance
from p2psip.server.domains import Domains
from siprtmp.calls.toll_guard import Tolls
from siprtmp.settings.table import CallSettings, SipSettings

AT_ONCE: Final = 10
AN_HOUR: Final = 60
MESSAGES: Final = 600  # an hour


def tolls(settings: SipSettings, domains: Domains) -> Tolls:
    limits = allowance(settings.calls, is_open=settings.listeners.is_open)
    return Tolls(limits, domains, has_passwords=settings.has_passwords, nat=settings.media.nat)


def allowance(calls: CallSettings, *, is_open: bool) -> Allowance:
    """The limits in force; 0 is no limit.  `is_open` says that strangers reach a listener."""
    given = calls.max_user_calls, calls.max_user_calls_per_hour, calls.max_user_messages_per_hour
    usual = (AT_ONCE, AN_HOUR, MESSAGES) if is_open else (0, 0, 0)
    pairs = zip(given, usual, strict=True)
    at_once, an_hour, messages = (use if of is None else of for of, use in pairs)
    targets = calls.allow_targets if calls.allow_targets or is_open else None
    return Allowance(at_once=at_once, an_hour=an_hour, messages=messages, targets=targets)
