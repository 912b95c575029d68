"""ReconnectRequest: a server asks its client to reconnect, to the same server or another.

Implements E-RTMP v2 §"Reconnect Request".

    >>> asked = request("//192.0.2.7/realtimeapp")
    >>> requested(asked, "rtmp://foo.example:1935/app")
    'rtmp://192.0.2.7/realtimeapp'
    >>> requested(request(), "rtmp://foo.example/app")
    'rtmp://foo.example/app'
"""

from typing import Final

from rtmplite.errors import LocalError, RemoteError
from rtmplite.rtmp.wire.command import Command, on_status
from rtmplite.rtmp.wire.url import join

CODE: Final = "NetConnection.Connect.ReconnectRequest"


def request(
    tc_url: str | None = None, description: str = "The streaming server is undergoing updates."
) -> Command:
    """Ask to reconnect, to `tc_url` if given: E-RTMP v2 §"NetConnection Commands"."""
    # E-RTMP v2 §"Message Flow When Handling NetConnection.Connect.ReconnectRequest"
    # [remap-sets-tc-url]
    where = {} if tc_url is None else {"tcUrl": tc_url}
    # E-RTMP v2 §"NetConnection Commands" [reconnect-code] [reconnect-level] [on-status-layout]
    return on_status("status", CODE, description, **where)


def requested(command: Command, tc_url: str) -> str | None:
    """Give the tcUrl to reconnect to, None if `command` is another one.

    `tc_url` is that of the connection it came on: E-RTMP v2 §"NetConnection Commands".  RemoteError
    for a tcUrl that is no URL.
    """
    information = command.args[0] if command.args else None
    if command.name != "onStatus" or not isinstance(information, dict):
        return None
    # E-RTMP v2 §"NetConnection Commands" [reconnect-code] [reconnect-level]
    if information.get("code") != CODE or information.get("level") != "status":
        return None
    where = information.get("tcUrl")
    # E-RTMP v2 §"NetConnection Commands" [relative-tc-url], E-RTMP v2 §"Message Flow When Handling
    # NetConnection.Connect.ReconnectRequest" [without-tc-url].
    return resolve(where if isinstance(where, str) else "", tc_url)


def resolve(reference: str, tc_url: str) -> str:
    """Make an absolute tcUrl of `reference`: E-RTMP v2 §"NetConnection Commands"."""
    try:
        return join(tc_url, reference)
    except LocalError as error:
        raise RemoteError(f"{reference!r:.200} is no place to reconnect to") from error
