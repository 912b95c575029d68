"""`make docs` checks its own pages: each way in which a page can be wrong is found."""

import offline
import pytest

PAGE = '<html><body><p id="here">&lt;a href="x"</p>{}</body></html>'


@pytest.fixture
def found(tmp_path):
    """`found(html)` says what is wrong with a page of this body, which has another beside it."""

    def found(body, style=""):
        (tmp_path / "index.html").write_text(PAGE.format(body))
        (tmp_path / "deep").mkdir(exist_ok=True)
        (tmp_path / "deep" / "a b.html").write_text(PAGE.format('<a href="../index.html#here">'))
        (tmp_path / "style.css").write_text(style)
        return list(offline.broken(tmp_path))

    return found


@pytest.mark.parametrize(
    "link",
    [
        "#here",
        "#",
        "deep/a%20b.html",
        "deep/a%20b.html#here",
        "style.css?v=1",
        "deep/../index.html",
    ],
)
def test_a_link_that_leads_somewhere(found, link):
    assert found(f'<a class="x" href="{link}">') == []


@pytest.mark.parametrize("link", ["#there", "deep/a%20b.html#there", "b.html", "here", "deep"])
def test_a_link_that_leads_nowhere(found, link):
    assert found(f'<a class="x" href="{link}">') == [
        f"index.html has a link that leads nowhere: {link}"
    ]


@pytest.mark.parametrize(
    "element",
    ['<script async src="{}">', '<img alt="" src="{}">', '<link rel="stylesheet" href="{}">'],
)
@pytest.mark.parametrize("url", ["https://example.com/x", "//example.com/x"])
def test_what_is_fetched_from_a_network(found, element, url):
    assert found(element.format(url)) == [f"index.html fetches {url}"]


def test_a_link_for_people_may_lead_to_a_network(found):
    assert found('<a href="https://www.rfc-editor.org/rfc/rfc3261">') == []


def test_a_font_that_is_fetched_by_a_style(found):
    assert found("", "a { src: url('https://example.com/f') }") == [
        "style.css fetches https://example.com/f"
    ]
    assert found("", "a { background: url(data:image/png;base64,AA) }") == []
