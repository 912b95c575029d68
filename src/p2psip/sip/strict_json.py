"""JSON that every reader takes, of texts that peers have written.

Own design: octets of SIP that are no UTF-8 are kept as lone surrogates, as `p2psip.sip.grammar`
reads them.  Python writes those as escapes that other readers of JSON refuse, or read differently.

    >>> print(dumps({"call": "a\\udc85b", "emoji": "\\U0001f600"}))
    {"call": "a\\ufffdb", "emoji": "\\ud83d\\ude00"}
"""

import json
import re
from typing import Final

# one escape: that of a pair of surrogates, of a lone one, or any other
_ESCAPE: Final = re.compile(r"\\(?:ud[89ab]..\\ud[c-f]..|(ud[89a-f]..)|.)")


def dumps(value: object, *, indent: int | None = None) -> str:
    """Write `value` as ASCII, with U+FFFD for each surrogate that is alone; others as `str`."""
    text = json.dumps(value, default=str, indent=indent)
    if r"\ud" not in text:
        return text
    return _ESCAPE.sub(lambda found: r"\ufffd" if found[1] else found[0], text)
