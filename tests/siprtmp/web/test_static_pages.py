"""The gateway's own pages as files."""

from types import SimpleNamespace

import pytest

from siprtmp.web.static_pages import StaticPages


@pytest.fixture(scope="module")
def pages():
    return StaticPages()


def ask(pages, path, method="GET", **more):
    answer = SimpleNamespace()

    def start(status, headers):
        answer.status, answer.headers = int(status.split()[0]), dict(headers)

    environ = {"PATH_INFO": path, "REQUEST_METHOD": method, **more}
    assert pages.serves(environ)
    answer.body = b"".join(pages(environ, start))
    return answer


def test_a_page_comes_with_a_policy_that_lets_nothing_else_run(pages):
    got = ask(pages, "/phone/")
    assert got.status == 200 and got.headers["Content-Type"] == "text/html; charset=utf-8"
    policy = dict(
        each.strip().split(" ", 1) for each in got.headers["Content-Security-Policy"].split(";")
    )
    assert policy["default-src"] == policy["frame-ancestors"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == "'self'"
    assert b"<script type" in got.body and b"onclick" not in got.body and b"style=" not in got.body


def test_a_page_fits_on_a_slow_line(pages):
    """All files of the phone together."""
    sizes = [len(each.content) for path, each in pages._files.items() if path.startswith("/phone/")]
    assert len(sizes) >= 5 and sum(sizes) < 60_000


def test_every_file_that_a_page_names_is_served(pages):
    for path in pages._files:
        for quote in (b'"', b"'"):
            for word in pages._files[path].content.split(quote)[1::2]:
                if word.startswith(b"./") or word in (b"phone.css", b"icon.svg"):
                    assert ask(pages, "/phone/" + word.decode().removeprefix("./")).status == 200


def test_what_is_kept_is_not_sent_again(pages):
    first = ask(pages, "/phone/phone.js")
    again = ask(pages, "/phone/phone.js", HTTP_IF_NONE_MATCH=first.headers["ETag"])
    assert (again.status, again.body) == (304, b"")
    assert ask(pages, "/phone/phone.js", HTTP_IF_NONE_MATCH='"other"').status == 200


def test_head_has_no_content_and_nothing_can_be_changed(pages):
    got = ask(pages, "/phone/", "HEAD")
    assert got.status == 200 and got.body == b"" and int(got.headers["Content-Length"]) > 0
    assert ask(pages, "/phone/", "POST").headers["Allow"] == "GET, HEAD"


@pytest.mark.parametrize(
    "path",
    ["/phone/../static_pages.py", "/phone/%2e%2e/x", "/phone//", "/phone/x.js", "/phone/index"],
)
def test_there_are_no_other_files(pages, path):
    assert ask(pages, path).status == 404


def test_the_folder_s_own_name_leads_to_the_page(pages):
    got = ask(pages, "/phone")
    assert (got.status, got.headers["Location"]) == (308, "/phone/")


def test_other_addresses_are_others(pages):
    for path in ("/phones/", "/", "", "*"):  # the last one is that of OPTIONS for a whole server
        assert not pages.serves({"PATH_INFO": path})
