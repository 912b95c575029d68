"""The path of a resource: names from the top, one below the other.

Own design: a name is compared letter by letter, and none means another place, so that two texts
never name the same resource.
"""

from typing import Final

from p2psip.errors import RemoteError

Path = tuple[str, ...]
"""The names of a resource from the top; below a branch, from the branch: `()` is its own."""

MAX_DEPTH: Final = 8
MAX_NAME: Final = 128  # octets


def read_path(text: object) -> Path:
    """Read a path.  Raises RemoteError.

    >>> read_path("/call/conf123"), read_path("/")
    (('call', 'conf123'), ())
    """
    if not isinstance(text, str) or not text.startswith("/"):
        raise RemoteError("A resource is a path that begins with /")
    if text == "/":
        return ()
    names = tuple(text[1:].split("/", MAX_DEPTH))
    if len(names) > MAX_DEPTH or "/" in names[-1]:
        raise RemoteError(f"A path has {MAX_DEPTH} names at most", 414)
    for name in names:
        check_name(name)
    return names


def check_name(name: str) -> None:
    """Raise RemoteError for a text that cannot be a name."""
    if name in ("", ".", ".."):
        # Resources §3 [no-dots]
        raise RemoteError("A name in a path is neither empty nor made of dots")
    if not name.isprintable():  # lone surrogates neither
        raise RemoteError("A name in a path has printable letters alone")
    if len(name.encode()) > MAX_NAME:
        raise RemoteError(f"A name in a path has {MAX_NAME} octets at most", 414)


def write_path(path: Path) -> str:
    """Write a path as text."""
    return "/" + "/".join(path)
