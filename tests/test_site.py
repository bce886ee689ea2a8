"""The built site: every link inside it leads to a page and a place that are there, nothing is
loaded from elsewhere, the search answers questions, and the reference shows no private name.

`nox -s docs` builds it and says where it is in `LUTUMPY_SITE`; without a site there is nothing to
look at.
"""

from __future__ import annotations

import os
import re
import sys
from functools import cache
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

import pytest

from lutumpy import Transcript
from lutumpy.execution import ExecutionReport

DOCS = Path(__file__).parent.parent / "docs"
sys.path.insert(0, str(DOCS / "_extensions"))

import site_search  # noqa: E402
from search_words import SEARCH_WORDS  # noqa: E402

SITE = Path(os.environ.get("LUTUMPY_SITE", ""))
NEEDED = pytest.mark.skipif("LUTUMPY_SITE" not in os.environ, reason="no site was built")
PAGES = sorted(SITE.rglob("*.html")) if "LUTUMPY_SITE" in os.environ else []

# What a page loads by itself, as opposed to what a reader may follow.
LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}
# Links of a page about itself that no browser loads.
NAMED_ONLY = {"canonical", "index", "search", "next", "prev", "author", "copyright"}


class Link(NamedTuple):
    tag: str
    target: str
    loaded: bool


class Page(HTMLParser):
    """The links and the places of one page."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[Link] = []
        self.places: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attributes}
        if "id" in given:
            self.places.append(given["id"])
        source = LOADED.get(tag)
        named_only = bool(NAMED_ONLY & {*given.get("rel", "").split()})
        if source is not None and source in given:
            self.links.append(Link(tag, given[source], loaded=not named_only))
        elif tag == "a" and "href" in given:
            self.links.append(Link(tag, given["href"], loaded=False))


@cache
def page_of(file: Path) -> Page:
    page = Page()
    page.feed(file.read_text())
    return page


def name_of(file: Path) -> str:
    return file.relative_to(SITE).as_posix()


def problems_of(file: Path) -> list[str]:
    problems: list[str] = []
    for link in page_of(file).links:
        parts = urlsplit(link.target)
        if parts.scheme or parts.netloc:
            if link.loaded:
                problems.append(f"loads {link.target}")
            elif parts.scheme not in ("http", "https", "mailto") or not (
                parts.netloc or parts.path
            ):
                problems.append(f"{link.target} is no address")
            continue
        target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
        if target.is_dir():
            target /= "index.html"
        if not target.is_file():
            problems.append(f"{link.target} leads nowhere")
        elif (
            parts.fragment
            and target.suffix == ".html"
            and unquote(parts.fragment) not in page_of(target).places
        ):
            problems.append(f"{link.target} leads to no place on that page")
    return problems


@NEEDED
def test_the_site_has_its_pages() -> None:
    names = {name_of(page) for page in PAGES}
    assert {"index.html", "quickstart.html", "reference/index.html", "genindex.html"} <= names


@pytest.mark.parametrize("file", PAGES, ids=[name_of(file) for file in PAGES])
def test_every_link_of_a_page_leads_somewhere_and_nothing_is_loaded_from_elsewhere(
    file: Path,
) -> None:
    assert problems_of(file) == []


@pytest.mark.parametrize("file", PAGES, ids=[name_of(file) for file in PAGES])
def test_a_page_has_one_title_and_no_place_twice(file: Path) -> None:
    places = page_of(file).places
    assert sorted({place for place in places if places.count(place) > 1}) == []
    if file.name == "search.html":
        return  # its title is written by its script
    assert len(re.findall(r"<h1\b", file.read_text())) == 1


# What other parts of the package call, and users don't; of a transcript that stands in its base
# class.
BETWEEN_PARTS: dict[type[object], tuple[str, ...]] = {
    Transcript: (),
    ExecutionReport: ("begin", "end"),
}


@NEEDED
@pytest.mark.parametrize("cls", BETWEEN_PARTS)
def test_the_reference_has_every_method_for_users_and_no_other(cls: type[object]) -> None:
    members = {name for name in vars(cls) if not name.startswith("_")}
    public = f"lutumpy.{'execution.' if cls is ExecutionReport else ''}{cls.__name__}"
    places = {place for page in PAGES for place in page_of(page).places}
    shown = {place.removeprefix(f"{public}.") for place in places if place.startswith(f"{public}.")}
    assert members - shown == {*BETWEEN_PARTS[cls]}


@NEEDED
def test_the_styles_load_nothing_from_elsewhere() -> None:
    styles = [
        file
        for file in SITE.rglob("*.css")
        if re.search(r"url\(\s*['\"]?(https?:)?//|@import", file.read_text())
    ]
    assert styles == []


# What readers ask, and the pages that answer it.
QUESTIONS = {
    "ask a person before a tool runs": "waiting hooks",
    "stream the answer to a browser": "front_ends streaming recipes/web_service",
    "retry a tool that timed out": "execution",
    "import an openai message history": "transcripts",
    "test without an api key": "testing recipes/pytest",
    "change the base url": "quickstart",
    "limit the number of rounds": "loops",
    "token budget": "loops sessions usage",
    "use tools of an mcp server": "mcp",
    "api rejects my history with 400": "doctor",
    "only one tool call at a time": "offers",
    "tool returns an image": "tools",
    "continue after a crash": "durable",
    "answer as a pydantic model": "structured",
    "run with ollama": "local hosts",
    "tools from an openapi file": "openapi",
    "save a conversation": "sessions durable",
    "hide a parameter from the model": "tools",
    "missing_result": "rounds errors",
    "too many tools": "finding_tools",
    "migrate from langchain": "migration",
    "use my own http client": "quickstart",
    "process many conversations in parallel": "recipes/batch",
    "jupyter notebook": "recipes/notebook",
    "openai compatible server": "hosts local",
    "run tools in parallel": "execution",
    "cancel a running loop": "loops",
    "what exceptions can be raised": "errors",
    "tool_choice required": "offers",
    "temporal workflow": "engines",
    "retry the request when rate limited": "errors",
    "edit the arguments of a call before it runs": "hooks",
    "model without native tool calling": "text_tools",
    "different tools for each user": "dynamic_tools recipes/per_request",
    "strict schema": "tool_doctor tools",
    "mypy": "toolsets",
    "how do I report a vulnerability": "security",
    "install": "quickstart",
    "which python versions are supported": "versions quickstart",
    "background job": "recipes/worker",
}


def pages_for(index: site_search.Index, question: str) -> list[str]:
    return [address.removesuffix(".html") for address in site_search.search(index, question)]


@NEEDED
def test_the_search_answers_questions_with_the_right_page_among_the_first_three() -> None:
    index = site_search.read_index(SITE)
    missed = {
        question: found
        for question, right in QUESTIONS.items()
        if not {*(found := pages_for(index, question)[:3])} & {*right.split()}
    }
    assert len(missed) <= len(QUESTIONS) // 10, missed


def test_the_words_of_the_search_are_of_pages_that_there_are() -> None:
    assert [name for name in SEARCH_WORDS if not (DOCS / f"{name}.md").is_file()] == []


@pytest.mark.parametrize(
    ("word", "stemmed"),
    [("retries", "retry"), ("running", "run"), ("runs", "run"), ("class", "class"), ("use", "use")],
)
def test_words_are_looked_up_without_their_endings(word: str, stemmed: str) -> None:
    assert site_search.stem(word) == site_search.stem(stemmed)


def test_a_name_is_found_by_its_parts() -> None:
    assert {"run_tool", "run", "tool"} == {*site_search.words_of("run_tools")}


def test_a_group_of_the_navigation_has_at_most_nine_entries() -> None:
    text = (DOCS / "index.md").read_text()
    groups = re.findall(r"^```\{toctree\}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    entries = [[line for line in group.split("\n") if line and line[0] != ":"] for group in groups]
    assert len(entries) > 4
    assert max(map(len, entries)) <= 9


@NEEDED
def test_where_sync_and_async_differ_there_are_tabs() -> None:
    tabbed = ("quickstart", "loops", "streaming", "structured", "execution")
    for name in tabbed:
        html, text = [(SITE / f"{name}{end}").read_text() for end in (".html", ".md")]
        assert html.count('class="sd-tab-set') == 1
        assert ":::" not in text
        assert ":sync:" not in text
        assert text.index("**Async**\n\n```python\n") < text.index("**Sync**\n\n```python\n")
    # No other page loads what tabs need.
    loading = {name_of(page) for page in PAGES if "sphinx-design" in page.read_text()}
    assert loading == {f"{name}.html" for name in tabbed}


@NEEDED
def test_every_page_is_there_as_markdown_and_llms_txt_lists_it() -> None:
    listed = {
        *re.findall(r"^- \[.+?\]\(([^)]+)\): \S", (SITE / "llms.txt").read_text(), re.MULTILINE)
    }
    pages = {
        file.relative_to(DOCS).with_suffix(".md").as_posix()
        for file in [*DOCS.rglob("*.md"), *DOCS.rglob("*.rst")]
    }
    assert pages - listed == {"index.md"}
    assert [page for page in sorted(pages) if not (SITE / page).read_text().startswith("# ")] == []


def article_of(file: Path) -> str:
    return file.read_text().partition("<article")[2].partition("</article")[0]


REFERENCE = [page for page in PAGES if page.parent.name == "reference"]


@NEEDED
def test_the_reference_shows_no_private_name() -> None:
    # A trailing `_input` of a class name is what `tool_input` cuts off.
    private = {
        (page.name, name)
        for page in REFERENCE
        for name in re.findall(
            r"(?<![\w.])_[A-Za-z]\w+", unescape(re.sub("<[^>]+>", "", article_of(page)))
        )
    }
    assert {name for _, name in private} <= {"_input", "_args"}, private


@NEEDED
def test_an_entry_of_the_reference_has_one_signature_and_opens_with_a_sentence() -> None:
    entries = 0
    for page in REFERENCE:
        text = article_of(page)
        assert '</dt>\n<dt class="sig' not in text, page.name
        for place, body in re.findall(
            r'<dt class="sig[^"]*" id="([^"]+)".*?</dt>\s*<dd>(.{5})', text, re.DOTALL
        ):
            assert body.startswith("<p>"), place
            entries += 1
    assert entries > 300


@NEEDED
def test_the_landing_page_is_small() -> None:
    page = SITE / "index.html"
    loaded = {
        link.target.partition("?")[0]
        for link in page_of(page).links
        if link.loaded and link.tag != "a"
    }
    size = page.stat().st_size + sum((SITE / file).stat().st_size for file in loaded if file)
    assert size < 200_000, loaded


def test_what_is_wrong_with_a_page_is_found(tmp_path: Path) -> None:
    (tmp_path / "other.html").write_text('<h1 id="here">Other</h1>')
    page = tmp_path / "page.html"
    page.write_text(
        '<script src="https://cdn.example/x.js"></script><link rel="stylesheet" href="missing.css">'
        '<a href="other.html#here">fine</a> <a href="https://example.org/">fine</a> <a '
        'href="#gone">no</a>'
        '<a href="other.html#there">no</a> <a href="nowhere.html">no</a> <a '
        'href="javascript:alert()">no</a>'
    )
    assert problems_of(page) == [
        "loads https://cdn.example/x.js",
        "missing.css leads nowhere",
        "#gone leads to no place on that page",
        "other.html#there leads to no place on that page",
        "nowhere.html leads nowhere",
        "javascript:alert() is no address",
    ]
