"""Cases of paths and the names in them, by plain HTTP and by WebSocket.

Implements Resources §3, from the side of a client.

Own design: a case tries the last name that is right and the first one that is wrong.
"""

from rtclab.conform.checks import expect_equal
from rtclab.conform.resource.peer import SOCKET, ResourcePeer, by, ways


@ways("3")
def name_has_128_octets(peer: ResourcePeer) -> None:
    """A name of 128 octets is one, also if its letters have more than one each."""
    client = peer.client()
    room = peer.room(client)
    for name in ("a" * 128, "\u00e9" * 64):
        client.make(f"{room}/{name}", 1)
        expect_equal("entity", 1, client.read(f"{room}/{name}"))


@ways("3")
def longer_name_is_refused(peer: ResourcePeer) -> None:
    """A name of 129 octets is refused, also if its letters are fewer."""
    client = peer.client()
    room = peer.room(client)
    for name in ("a" * 129, "a" + "\u00e9" * 64):
        client.ask("PUT", f"{room}/{name}", entity=1).expect(4)
    expect_equal("children", [], client.read(room, view="children"))


@ways("3", "no-dots")
def dots_are_refused(peer: ResourcePeer) -> None:
    """The names . and .. are refused, wherever they stand."""
    client = peer.client()
    room = peer.room(client)
    for path in (f"{room}/.", f"{room}/..", f"{room}/./a", f"{room}/../{room[1:]}"):
        client.ask("PUT", path, entity=1).expect(4)
        client.ask("GET", path).expect(4)
    expect_equal("children", [], client.read(room, view="children"))


@ways("3", "no-dots")
def empty_name_is_refused(peer: ResourcePeer) -> None:
    """A path with two slashes, or one at its end, is refused."""
    client = peer.client()
    room = peer.room(client)
    for path in (f"{room}/", f"{room}//a"):
        client.ask("PUT", path, entity=1).expect(4)
        client.ask("GET", path).expect(4)


@ways("3")
def unprintable_name_is_refused(peer: ResourcePeer) -> None:
    """A name with a control character is refused."""
    client = peer.client()
    room = peer.room(client)
    for letter in ("\x00", "\x07", "\n", "\x7f"):
        client.ask("PUT", f"{room}/a{letter}", entity=1).expect(4)


@ways("3")
def path_has_8_names(peer: ResourcePeer) -> None:
    """A resource stands below seven others, and nothing below that."""
    client = peer.client()
    path = peer.room(client)
    for _ in range(7):
        path += "/a"
        client.make(path, 1)
    expect_equal("entity", 1, client.read(path))
    client.ask("PUT", f"{path}/a", entity=1).expect(4)


@ways("3")
def names_differ_by_octets(peer: ResourcePeer) -> None:
    """Names of other case, or of the same letters in other octets, name other resources."""
    client = peer.client()
    room = peer.room(client)
    names = ("a", "A", "\u00e9", "e\u0301", " a", "a+b", "a b", "a?b", "a#b")
    for number, name in enumerate(names):
        client.make(f"{room}/{name}", number)
    for number, name in enumerate(names):
        expect_equal("entity", number, client.read(f"{room}/{name}"))


@by(SOCKET, "3")
def nothing_is_unescaped(peer: ResourcePeer) -> None:
    """In a message %41 is a name of three letters."""
    client = peer.client()
    room = peer.room(client)
    client.make(f"{room}/%41", 1)
    expect_equal("children", ["%41"], client.read(room, view="children"))
    client.ask("GET", f"{room}/A").expect(404)


@by(SOCKET, "3")
def path_begins_with_a_slash(peer: ResourcePeer) -> None:
    """A resource without a slash at its beginning is refused."""
    client = peer.client()
    client.ask("GET", peer.room(client)[1:]).expect(4)
    client.ask("GET", "").expect(4)
