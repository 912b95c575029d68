"""Who may use telephones from RTMP."""

from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.sip.homes import PASSWORD, store

from p2psip.server.guess_limit import BURST, BURST_OF_ALL
from p2psip.sip.auth import ha1
from rtmplite.auth.credentials import Users
from siprtmp.calls.access.admission import Admission, Admitted

FAR, URL = "192.0.2.9", "rtmp://192.0.2.1/call"
GOOD = f"user=bob&password={PASSWORD}"


def admission(*names, algorithms=("SHA-256", "MD5"), realm="home", password=PASSWORD):
    """Of a gateway with these users; with none of all, if there are none."""
    if not names:
        return Admission(False, None, None)
    hashes = [(n, realm, ha1(n, realm, password, a)) for n in names for a in algorithms]
    return Admission(False, store(*names, algorithms=algorithms), Users(hashes))


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "127.9.9.9"])
def test_this_machine_may(host):
    for names in ((), ("bob",)):
        assert admission(*names).judge(host, URL, "", 0.0) is Admitted.YES


def test_others_may_when_everybody_may():
    assert Admission(True, None, None).judge(FAR, URL, "", 0.0) is Admitted.YES


def test_a_file_that_was_read_again_counts_at_once():
    """For who calls and for who would be one of them."""
    judge = admission("bob")
    assert judge.judge(FAR, URL, GOOD, 0.0) is Admitted.YES and judge.has_user("bob", "home")
    judge.renew(store("ann"), Users([("ann", "home", ha1("ann", "home", PASSWORD, "MD5"))]))
    assert judge.judge(FAR, URL, GOOD, 0.0) is not Admitted.YES and not judge.has_user(
        "bob", "home"
    )
    assert judge.judge(
        FAR, URL, GOOD.replace("bob", "ann"), 0.0
    ) is Admitted.YES and judge.has_user("ann", "home")


@pytest.mark.parametrize("algorithms", [("MD5",), ("SHA-256",), ("SHA-256", "MD5")])
@pytest.mark.parametrize("where", ["stream", "tcUrl"])
def test_others_may_with_a_password_in_either_place(algorithms, where):
    for proof in (GOOD, GOOD.replace("password", "pass")):
        query, url = (proof, URL) if where == "stream" else ("", f"{URL}?{proof}")
        assert admission("bob", algorithms=algorithms).judge(FAR, url, query, 0.0) is Admitted.YES


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
    ],
)
def test_others_may_not(query):
    judge = admission("bob")
    assert (
        judge.judge(FAR, URL, query, 0.0) is not Admitted.YES
        and judge.judge(FAR, f"{URL}?{query}", "", 0.0) is not Admitted.YES
    )
    assert admission().judge(FAR, URL, GOOD, 0.0) is not Admitted.YES


def test_odd_letters_of_a_password_survive_the_url():
    query = f"user={quote('zoë')}&password={quote('a&b=c d+?')}"
    assert admission("zoë", password="a&b=c d+?").judge(FAR, URL, query, 0.0) is Admitted.YES


@given(st.text(), st.text())
def test_any_text_is_a_no_and_never_an_error(url, query):
    assert admission("bob").judge(FAR, url, query, 0.0) is not Admitted.YES
    assert admission("bob").judge("no address", f"rtmp://[{url}", query, 0.0) is not Admitted.YES


def test_who_has_a_password_is_known_by_name():
    judge = admission("bob")
    assert judge.has_user("bob", "home") and not judge.has_user("carol", "home")
    assert not admission().has_user("bob", "home")


def test_who_guesses_has_to_wait():
    """Own design: then even the right password is not looked at, but of who has shown it there."""
    judge, other = admission("bob", "ann"), "192.0.2.10"
    assert judge.judge(other, URL, GOOD, 0.0) is Admitted.YES
    for host in (FAR, other):
        for n in range(BURST):
            assert judge.judge(host, URL, f"user=ann&password={n}", 0.0) is Admitted.NO
    assert judge.judge(FAR, URL, GOOD, 9.0) is Admitted.LATER
    assert judge.judge(other, URL, GOOD, 9.0) is Admitted.YES
    assert judge.judge(FAR, URL, GOOD, 10.0) is Admitted.YES


def test_each_guess_counts_for_the_user_it_was_for():
    """Own design: two names in one URL and its stream are two guesses, and an escape is no name."""
    judge = admission("bob", "ann")
    for n in range(BURST_OF_ALL):
        host = f"192.0.2.{n + 20}"
        wrong = f"user=b%6Fb&password={n}"
        url = URL + "?user=nobody&password=x"
        assert judge.judge(host, url, wrong, 0.0) is Admitted.NO
    assert judge.judge(FAR, URL, GOOD, 0.0) is Admitted.LATER
    assert judge.judge(FAR, URL, f"user=ann&pass={PASSWORD}", 0.0) is Admitted.YES


def test_each_query_is_a_guess_at_the_user_that_it_names():
    """Another name beside it, or another way to write it, pays for nothing."""
    judge = admission("bob", "eve")
    own = f"user=eve&pass={PASSWORD}"
    assert judge.judge(FAR, f"{URL}?{own}", "user=bob&pass=guess", 0.0) is Admitted.YES
    assert not judge._guesses._is_owner(FAR, "bob", 0.0)
    for number in range(BURST_OF_ALL):
        name = "b%6Fb" if number % 2 else "bob"
        guess = f"{URL}?user={name}&pass={number}"
        judge.judge(f"10.1.{number}.1", guess, "user=decoy&pass=x", 1.0)
    assert judge.judge("10.2.0.1", URL, GOOD, 1.0) is Admitted.LATER
