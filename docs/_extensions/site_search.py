"""The search of the site: an index that is made after the pages are written, and added up by
`_static/search.js`.

Sphinx's own search wants every word of a question on one page, and ranks the changelog beside the
guides. Here a page needs some of the words. Each word has a weight on each page (BM25, with words
of titles and headings counted several times), which is computed here, so that the script has only
to add them up, and a test asks the same index without a browser.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from search_words import SEARCH_WORDS

if TYPE_CHECKING:
    from sphinx.application import Sphinx

# How often a word counts, by the element in which it stands.
COUNTS = {"words": 14.0, "h1": 12.0, "h2": 5.0, "h3": 4.0, "h4": 3.0, "p": 1.0, "dt": 0.5}
COUNTS["pre"] = 0.3
# What readers look for last: the score of such pages is multiplied by this.
LATER = {"decisions/": 0.3, "reference/": 0.5, "rules": 0.5, "from_lutum": 0.5}
LATER |= dict.fromkeys(("CHANGELOG", "benchmarks", "quality", "CONTRIBUTING", "architecture"), 0.3)
NOT_FOUND = {"search", "genindex", "index", "py-modindex"}
SATURATION, LENGTH = 8.0, 0.4  # k1 and b of BM25

STOP = set(
    "a an the of to with from my is are can be when what how i do does for in on at that as it its "
    "before after each and or not if by this you your into was".split()
)


def stem(word: str) -> str:
    """The word without its ending; `search.js` does the same."""
    for ending, instead in (
        ("ies", "y"),
        ("ing", ""),
        ("ed", ""),
        ("es", ""),
        ("s", ""),
        ("e", ""),
    ):
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith("ss"):
            word = word[: len(word) - len(ending)] + instead
            break
    return word[:-1] if len(word) > 3 and word[-1] == word[-2] else word


def words_of(text: str) -> Iterator[str]:
    """The words of a text as they are looked up: a name is also its parts."""
    for name in re.findall(r"[A-Za-z0-9_]+", text):
        parts = re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+", name)
        for word in dict.fromkeys([name, *parts] if len(parts) > 1 else [name]):
            if word.lower() not in STOP:
                yield stem(word.lower())


class Section(NamedTuple):
    place: str
    heading: str
    counts: Counter[str]


class PageText(HTMLParser):
    """The words of a page's article by section, its first sentence, and how long it is."""

    def __init__(self) -> None:
        super().__init__()
        self.sections: list[Section] = []
        self.about = ""
        self.length = 0.0
        self._in_article = False
        self._place = ""
        self._tags: list[str] = []
        self._text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "article":
            self._in_article = True
        elif tag == "section" and self._in_article:
            self._place = dict(attrs).get("id") or ""
        elif tag in COUNTS and self._in_article:
            self._tags.append(tag)
            self._text = ""

    def handle_endtag(self, tag: str) -> None:
        if tag == "article":
            self._in_article = False
        if not self._tags or self._tags[-1] != tag:
            return
        self._tags.pop()
        text = " ".join(self._text.split())
        if tag[0] == "h":
            heading = text.rstrip("\N{PILCROW SIGN}# ")
            self.sections.append(Section(self._place, heading, Counter()))
            self._count(heading, COUNTS[tag])
        elif tag == "p" and not self.about and len(self.sections) == 1:
            self.about = re.split(r"(?<=[.:])\s", text)[0]

    def handle_data(self, data: str) -> None:
        if self._in_article:
            self._text += data
            tag = self._tags[-1] if self._tags else "p"
            if tag[0] != "h" and self.sections:
                self._count(data, COUNTS[tag])

    def _count(self, text: str, times: float) -> None:
        for word in words_of(text):
            self.sections[-1].counts[word] += times
            self.length += min(times, 1.0)


class Index(NamedTuple):
    """What the browser loads.

    Attributes:
        pages: Address, title, first sentence, and the places and headings of the sections.
        words: For each word the pages that have it: number, score, and the section with most of it.
    """

    pages: list[tuple[str, str, str, list[tuple[str, str]]]]
    words: dict[str, list[tuple[int, int, int]]]


def make_index(pages: Mapping[str, PageText]) -> Index:
    """The index of pages by their names, such as `recipes/batch`."""
    listed: list[tuple[str, str, str, list[tuple[str, str]]]] = []
    found: dict[str, list[tuple[int, float, int]]] = defaultdict(list)
    mean = sum(page.length for page in pages.values()) / len(pages)
    for number, (name, page) in enumerate(pages.items()):
        places = [(section.place, section.heading) for section in page.sections]
        listed.append((f"{name}.html", page.sections[0].heading, page.about, places))
        factor = next((f for start, f in LATER.items() if name.startswith(start)), 1.0)
        total = Counter(dict.fromkeys(words_of(SEARCH_WORDS.get(name, "")), COUNTS["words"]))
        for section in page.sections:
            total += section.counts
        rest = SATURATION * (1 - LENGTH + LENGTH * page.length / mean)
        for word, count in total.items():
            most = max(range(len(places)), key=lambda k: page.sections[k].counts[word])
            found[word].append((number, factor * count / (count + rest), most))
    words: dict[str, list[tuple[int, int, int]]] = {}
    for word, pages_with in sorted(found.items()):
        rarity = math.log(1 + (len(pages) - len(pages_with) + 0.5) / (len(pages_with) + 0.5))
        words[word] = [(number, round(1000 * rarity * w), k) for number, w, k in pages_with]
    return Index(listed, words)


def search(index: Index, question: str) -> Sequence[str]:
    """The addresses of the pages that answer a question, best first: what `search.js` does."""
    scores: Counter[int] = Counter()
    for word in dict.fromkeys(words_of(question)):
        for number, score, _ in index.words.get(word, ()):
            scores[number] += score
    return [index.pages[number][0] for number, _ in scores.most_common()]


def read_index(site: Path) -> Index:
    """The index of a site that was built."""
    text = (site / "_static" / "search_index.js").read_text(encoding="utf-8")
    return Index(**json.loads(text.partition("=")[2].rstrip(";\n")))


def _write_index(app: Sphinx, exception: Exception | None) -> None:
    if exception is not None or app.builder.format != "html":
        return
    site = Path(app.outdir)
    pages: dict[str, PageText] = {}
    for name in sorted(app.env.found_docs - NOT_FOUND):
        pages[name] = PageText()
        pages[name].feed((site / f"{name}.html").read_text(encoding="utf-8"))
    index = make_index(pages)._asdict()
    text = json.dumps(index, ensure_ascii=False, separators=(",", ":"))
    (site / "_static" / "search_index.js").write_text(f"window.siteIndex={text};\n", "utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("build-finished", _write_index)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
