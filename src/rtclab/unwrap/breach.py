"""What is wrong with the way in which something is carried.

Own design: readers go on behind it, since a rule book wants all that is wrong, and not the first.
"""

from typing import NamedTuple


class Breach(NamedTuple):
    """A rule of `rtclab lint` that is broken; `citation` where it is not the rule's own."""

    rule: str
    what: str
    citation: str = ""
