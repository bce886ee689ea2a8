"""The built site: every link inside it leads to a page and a place that are there, and nothing is
loaded from elsewhere.

`nox -s docs` builds it and says where it is in `LUTUMPY_SITE`; without a site there is nothing to
look at.
"""

from __future__ import annotations

import os
import re
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

import pytest

from lutumpy import Transcript
from lutumpy.execution import ExecutionReport

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
