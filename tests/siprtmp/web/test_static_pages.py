"""The gateway's own pages as files."""

import re
from types import SimpleNamespace

import pytest

from siprtmp.web.static_pages import FOLDERS, StaticPages


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


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_page_comes_with_a_policy_that_lets_nothing_else_run(pages, folder):
    got = ask(pages, f"/{folder}/")
    assert got.status == 200 and got.headers["Content-Type"] == "text/html; charset=utf-8"
    policy = dict(
        each.strip().split(" ", 1) for each in got.headers["Content-Security-Policy"].split(";")
    )
    assert policy["default-src"] == policy["frame-ancestors"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == "'self'"
    assert b"<script type" in got.body and b"onclick" not in got.body and b"style=" not in got.body


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_page_fits_on_a_slow_line(pages, folder):
    """All files of a page together."""
    sizes = [len(each.content) for path, each in pages._files.items() if f"/{folder}/" in path]
    assert len(sizes) >= 5 and sum(sizes) < 60_000


def test_every_file_that_a_page_names_is_served(pages):
    for path in pages._files:
        folder = path.rpartition("/")[0]
        text = pages._files[path].content.decode()
        for word in re.findall(r'(?:href|src)="(\w+\.\w+)"|from "\./([^"]+)"', text):
            assert ask(pages, f"{folder}/{word[0] or word[1]}").status == 200


def test_pages_are_built_from_the_same_parts(pages):
    shared = {"parts.css", "parts.js", "icon.svg"}
    for folder in FOLDERS:
        assert shared <= {path.rpartition("/")[2] for path in pages._files if f"/{folder}/" in path}
        assert b'href="parts.css"' in ask(pages, f"/{folder}/").body
    assert not pages.serves({"PATH_INFO": "/shared/parts.js"})


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
