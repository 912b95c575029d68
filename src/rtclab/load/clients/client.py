"""What every client is: a function that works until it is killed, and tells its tally.

Own design: a client ends only by its server or by the end of the load.
"""

from collections.abc import Callable
from typing import TypeAlias

from rtclab.load.figures.tally import Tally
from rtmplite.errors import RemoteError
from rtmplite.net.client.client import CLOSED
from rtmplite.net.usage import in_words

Work: TypeAlias = Callable[[Tally], None]  # of one client
TIMEOUT = 10.0  # s for an answer


def own_url(url: str, number: int, *, each: bool) -> str:
    """The URL of one client: `{}` becomes its number, which otherwise goes behind if `each`."""
    if "{}" in url:
        return url.replace("{}", str(number))
    if not each:
        return url
    path, mark, query = url.partition("?")
    return f"{path}_{number}{mark}{query}"


def note_failure(tally: Tally, error: Exception) -> None:
    """Tell the tally what went wrong; a timeout is no word of the server's."""
    if isinstance(error, RemoteError):
        named = error.code and error.code != CLOSED  # which is our own word for no answer
        tally.fail(str(error) if named else error.description, refused=True)
    else:
        refused = isinstance(error, ConnectionError)
        tally.fail(in_words(error) or type(error).__name__, refused=refused)
