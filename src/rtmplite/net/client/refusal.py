"""Turns the refusal of a server into an exception, or into the URL that it redirects to."""

from collections.abc import Iterator
from contextlib import contextmanager

from rtmplite.amf.values import Value
from rtmplite.errors import LocalError, RemoteError
from rtmplite.rtmp.client import Target, redirection


class RedirectError(RemoteError):
    """The server redirects to `url`."""

    def __init__(self, description: str, code: str, level: str, url: str) -> None:
        super().__init__(description, code, level)
        self.url = url


@contextmanager
def naming(target: Target) -> Iterator[None]:
    """Add host and port of `target` to every OSError, and so to TimeoutError."""
    try:
        yield
    except OSError as error:
        if error.strerror is None:
            error.args = (f"{place(target)}: {error}",)
        else:
            error.strerror = f"{place(target)}: {error.strerror}"
        raise


def place(target: Target) -> str:
    """Host and port of a target, without the rest of its URL."""
    host = f"[{target.host}]" if ":" in target.host else target.host
    return f"{host}:{target.port}"


def next_target(target: Target, error: RedirectError, hops_left: int) -> Target:
    """The target of a redirect; RemoteError after too many, or if it would leave TLS."""
    try:
        found = Target.parse(error.url, stream=False)
    except LocalError:
        raise error from None
    if not hops_left or not may_go(target, error.url):
        raise error
    return found.as_user_of(target)


def may_go(target: Target, url: str) -> bool:
    """Whether a redirect to `url` does not leave TLS.  Raises LocalError for a wrong URL."""
    return not target.secure or Target.parse(url, stream=False).secure


def failure(information: Value) -> RemoteError:
    """The exception for an information object."""
    if not isinstance(information, dict):
        return RemoteError(str(information))
    words = [information.get(key) for key in ("description", "code", "level")]
    description, code, level = (word if isinstance(word, str) else "" for word in words)
    code, level = code or "NetConnection.Call.Failed", level or "error"
    if (url := redirection(information)) is not None:
        return RedirectError(description, code, level, url)
    return RemoteError(description, code, level)
