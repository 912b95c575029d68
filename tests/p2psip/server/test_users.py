"""The file of hashes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2psip.errors import LocalError
from p2psip.server.users import UserStore
from p2psip.sip.auth import ha1

MD5, SHA = "d" * 32, "5" * 64


def test_a_file_as_htdigest_writes_it_is_read():
    """Covers RFC 7616 §3.4.2."""
    text = f"# phones\n\nbob:example.com:{MD5}\n  bob:example.com:{SHA.upper()}\nann:b:{MD5}\n"
    users = UserStore.parse(text)
    assert len(users) == 3 and users.realms == ("example.com", "b")
    assert users.lookup("bob", "example.com", "MD5") == MD5
    assert users.lookup("bob", "example.com", "SHA-256") == SHA
    assert users.lookup("bob", "example.com", "SHA-256-sess") == SHA
    assert users.lookup("ann", "b", "SHA-256") is None
    assert users.has("ann", "b") and not users.has("ann", "example.com")


def test_a_realm_may_hold_a_port():
    """Covers RFC 7616 §3.4: of the three, only the name may hold no colon."""
    users = UserStore.parse(f"bob:[2001:db8::1]:5060:{MD5}")
    assert users.has("bob", "[2001:db8::1]:5060")


@pytest.mark.parametrize(
    "line",
    ["bob", "bob:realm", f":realm:{MD5}", f"bob::{MD5}", "bob:realm:zanzibar", f"b:r:{'g' * 32}"],
)
def test_a_line_that_is_wrong_is_named(line):
    with pytest.raises(LocalError, match="line 2"):
        UserStore.parse(f"ann:realm:{MD5}\n{line}\n")


def test_a_user_is_challenged_with_what_can_be_verified():
    """Covers RFC 8760 §2.3: the better algorithm first; strangers are asked as most are.

    Covers RFC 8760 §2.3 [best-first] [one-an-algorithm].
    """
    users = UserStore([("bob", "r", MD5), ("bob", "r", SHA), ("ann", "r", MD5)])
    assert users.algorithms("bob", "r") == ("SHA-256", "MD5")
    assert users.algorithms("ann", "r") == ("MD5",)
    more = UserStore([("bob", "r", SHA), ("ann", "r", MD5), ("eve", "r", MD5)])
    assert more.algorithms("nobody", "r") == more.algorithms("ann", "r") == ("MD5",)
    assert UserStore().algorithms("nobody", "r") == ("SHA-256", "MD5")


def test_a_domain_finds_its_realm():
    users = UserStore([("bob", "Example.com", MD5), ("bob", "example.net", MD5)])
    assert users.realm_for("example.com") == "Example.com"
    assert users.realm_for("EXAMPLE.net") == "example.net"
    assert users.realm_for("localhost") == "Example.com"
    assert UserStore().realm_for("localhost") == "localhost"


@pytest.mark.parametrize("name", ["Jürgen", "x y", "a@b", "\u4e2d\u6587", 'q"\\'])
def test_a_name_has_any_characters_but_a_colon(name):
    """Covers RFC 7616 §4 [any-name]."""
    users = UserStore.parse(f"{name}:r:{MD5}")
    assert users.lookup(name, "r", "MD5") == MD5


@given(st.lists(st.tuples(st.text("ab", min_size=1), st.text("xy:", min_size=1), st.booleans())))
def test_what_is_written_is_read(entries):
    """Covers RFC 7616 §3.4.2."""
    known = {}
    for user, realm, better in entries:
        name = "SHA-256" if better else "MD5"
        known[user, realm, name] = ha1(user, realm, "pw", name)
    users = UserStore.parse("\n".join(f"{u}:{r}:{h}" for (u, r, _), h in known.items()))
    assert len(users) == len(known)
    for (user, realm, name), hashed in known.items():
        assert users.lookup(user, realm, name) == hashed
