"""The host that a request by HTTP counts as, for rights and for limits.

Own design: programs on this machine have rights that others lack.  A proxy on this machine passes
on the requests of others, so the address that it adds counts.  A page of another site runs in a
browser on this machine without being one of its programs, so it counts as that site.
"""

import ipaddress
import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from p2psip.stack.routing import is_loopback

UNKNOWN: Final = "0.0.0.0"  # a host that has no rights
_FORWARDED: Final = re.compile(r'for="?\[?([0-9A-Fa-f.:]+?)\]?(?::\d+)?"?(?:[;,\s]|$)', re.I)
_NAME: Final = re.compile(r"[\w.-]{1,253}")


def source_of(environ: Mapping[str, Any]) -> str:
    """The host, as an address or as the name of a site.

    >>> source_of({"REMOTE_ADDR": "127.0.0.1", "HTTP_X_FORWARDED_FOR": "127.0.0.1, 192.0.2.7"})
    '192.0.2.7'
    >>> source_of({"REMOTE_ADDR": "127.0.0.1", "HTTP_ORIGIN": "https://example.com"})
    'example.com'
    """
    host = str(environ.get("REMOTE_ADDR", ""))
    if not is_loopback(host):
        return host
    listed = str(environ.get("HTTP_X_FORWARDED_FOR", ""))
    field = str(environ.get("HTTP_FORWARDED", ""))
    if listed or field:  # the last one is what the proxy itself has seen
        found = listed.rsplit(",", 1)[-1].strip() if listed else _last(field)
        return found if _is_address(found) else UNKNOWN
    origin = environ.get("HTTP_ORIGIN")
    if origin is None:
        return host
    try:
        site = urlsplit(str(origin)).hostname or ""
    except ValueError:
        site = ""
    if is_loopback(site):
        return host
    return site if _NAME.fullmatch(site) else UNKNOWN


def _last(forwarded: str) -> str:
    found = _FORWARDED.findall(forwarded.rsplit(",", 1)[-1].strip())
    return str(found[-1]) if found else ""


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
