"""Who may use telephones from RTMP."""

from urllib.parse import quote

import pytest
from homes import PASSWORD, store
from hypothesis import given
from hypothesis import strategies as st

from p2psip.core.users import UserStore
from siprtmp import admission
from siprtmp.admission import Admission
from siprtmp.config import Settings

FAR, URL = "192.0.2.9", "rtmp://192.0.2.1/call"
GOOD = f"user=bob&password={PASSWORD}"


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "127.9.9.9"])
def test_this_machine_may(host):
    for users in (None, store("bob")):
        assert Admission(Settings(), users).admits(host, URL, "")


def test_others_may_when_everybody_may():
    assert Admission(Settings(allow_anonymous=True), None).admits(FAR, URL, "")


@pytest.mark.parametrize("algorithms", [("MD5",), ("SHA-256",), ("SHA-256", "MD5")])
@pytest.mark.parametrize("where", ["stream", "tcUrl"])
def test_others_may_with_a_password_in_either_place(algorithms, where):
    users = store("bob", algorithms=algorithms)
    query, url = (GOOD, URL) if where == "stream" else ("", f"{URL}?{GOOD}")
    assert Admission(Settings(), users).admits(FAR, url, query)


@pytest.mark.parametrize(
    "query",
    [
        "",
        "user=bob",
        f"password={PASSWORD}",
        "user=bob&password=wrong",
        f"user=carol&password={PASSWORD}",
        f"user=Bob&password={PASSWORD}",
        f"user=&password={PASSWORD}",
        "user=bob&password=",
        f"{GOOD}&" + "&".join(f"a{i}=1" for i in range(50)),
    ],
)
def test_others_may_not(query):
    judge = Admission(Settings(), store("bob"))
    assert not judge.admits(FAR, URL, query) and not judge.admits(FAR, f"{URL}?{query}", "")
    assert not Admission(Settings(), None).admits(FAR, URL, GOOD)


def test_odd_letters_of_a_password_survive_the_url():
    users = UserStore([("zoë", "home", admission.ha1("zoë", "home", "a&b=c d+?", "MD5"))])
    query = f"user={quote('zoë')}&password={quote('a&b=c d+?')}"
    assert Admission(Settings(), users).admits(FAR, URL, query)


def test_every_hash_is_compared_whoever_asks(monkeypatch):
    """Own design: the time taken does not tell a user from nobody, or near from far."""
    compared = []
    compare = admission.hmac.compare_digest
    monkeypatch.setattr(
        admission.hmac, "compare_digest", lambda a, b: compared.append((a, b)) or compare(a, b)
    )
    judge = Admission(Settings(), store("bob", "alice"))
    counts = []
    for query in (GOOD, "user=bob&password=wrong", "user=nobody&password=wrong"):
        judge.admits(FAR, URL, query)
        counts.append(len(compared))
        assert all(len(a) == len(b) for a, b in compared)
        compared.clear()
    assert counts == [2, 2, 2]


@given(st.text(), st.text())
def test_any_text_is_a_no_and_never_an_error(url, query):
    assert not Admission(Settings(), store("bob")).admits(FAR, url, query)
    assert not Admission(Settings(), store("bob")).admits("no address", f"rtmp://[{url}", query)


def test_who_has_a_password_is_known_by_name():
    judge = Admission(Settings(), store("bob"))
    assert judge.has_user("bob", "home") and not judge.has_user("carol", "home")
    assert not Admission(Settings(), None).has_user("bob", "home")
