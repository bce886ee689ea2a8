"""The built site in Chromium: no code is cut, what is copied is the source, the keyboard reaches
the search, and the search of the browser is that of the tests.

Skipped where there is no site, no playwright or no Chromium.
"""

from __future__ import annotations

import functools
import http.server
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from chromium import CHROMIUM, FLAGS

playwright = pytest.importorskip("playwright.sync_api")
if "LUTUMPY_SITE" not in os.environ or CHROMIUM is None:
    pytest.skip("no site was built, or there is no chromium", allow_module_level=True)

DOCS = Path(__file__).parent.parent / "docs"
sys.path.insert(0, str(DOCS / "_extensions"))

import site_search  # noqa: E402

SITE = Path(os.environ["LUTUMPY_SITE"])
NAMES = [
    file.relative_to(SITE).as_posix()
    for file in sorted(SITE.rglob("*.html"))
    if "_static" not in file.parts
]
WIDTHS = (390, 900, 1440)
# A landing page, a guide, a recipe, a page of the reference.
LOOKED_AT = ("index", "hooks", "recipes/batch", "reference/hooks")

MEASURE = """() => ({
  cut: [...document.querySelectorAll("article pre")]
    .filter((block) => block.scrollWidth > block.clientWidth + 1)
    .map((block) => block.textContent.slice(0, 60)),
  wider: document.documentElement.scrollWidth - document.documentElement.clientWidth,
  blocks: document.querySelectorAll(
    "article div.highlight-python pre, article div.highlight-py pre, article div.highlight-sh pre"
  ).length,
  buttons: document.querySelectorAll("article button.copybtn").length,
})"""

CONTRAST = """() => {
  const channels = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = (rgb) => {
    const [r, g, b] = rgb.slice(0, 3).map((c) => {
      c /= 255;
      return c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (node) => {
    for (; node; node = node.parentElement) {
      const color = channels(getComputedStyle(node).backgroundColor);
      if (color.length < 4 || color[3] === 1) return color;
    }
    return [255, 255, 255];
  };
  const pale = new Set();
  for (const node of document.querySelectorAll("article *, .sidebar-drawer a, .toc-drawer a")) {
    if (![...node.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim())) continue;
    if (node.closest("svg, button, .headerlink") || !node.getClientRects().length) continue;
    const [a, b] = [light(channels(getComputedStyle(node).color)), light(behind(node))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    const text = node.textContent.slice(0, 20);
    if (ratio < 4.5) pale.add(`${node.className} ${text} ${ratio.toFixed(1)}`);
  }
  return [...pale];
}"""


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    handler = functools.partial(Quiet, directory=str(SITE))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as started:
        launched = started.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield launched
        launched.close()


def page_at(browser: Any, width: int, scheme: str = "light") -> Any:
    context = browser.new_context(
        viewport={"width": width, "height": 900},
        color_scheme=scheme,
        permissions=["clipboard-read", "clipboard-write"],
    )
    return context.new_page()


def test_no_code_is_cut_no_page_is_too_wide_and_code_has_a_copy_button(
    browser: Any, address: str
) -> None:
    problems: list[str] = []
    page = page_at(browser, WIDTHS[0])
    for name in NAMES:
        page.goto(address + name)
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 900})
            seen = page.evaluate(MEASURE)
            if seen["cut"] or seen["wider"] > 0 or seen["buttons"] < seen["blocks"]:
                problems.append(f"{name} at {width}: {seen}")
    assert problems == []
    page.add_style_tag(content="article pre { white-space: pre; width: 5em; }")
    assert page.evaluate(MEASURE)["cut"] or not page.query_selector("article pre")
    page.context.close()


def test_what_is_copied_is_the_source(browser: Any, address: str) -> None:
    page = page_at(browser, 1440)
    for name in ("index", "quickstart", "recipes/batch", "CONTRIBUTING"):
        page.goto(f"{address}{name}.html")
        source = (DOCS / f"{name}.md").read_text(encoding="utf-8")
        for button in page.query_selector_all("article button.copybtn"):
            button.evaluate("(button) => button.click()")
            page.wait_for_function("document.querySelector('button.copybtn.success')")
            copied = page.evaluate("navigator.clipboard.readText()")
            assert f"```{'sh' if name == 'CONTRIBUTING' else ''}" in source
            assert copied.strip() in source, (name, copied)
            button.evaluate("(button) => button.classList.remove('success')")
    page.context.close()


def test_the_keyboard_reaches_the_search_and_typing_finds_pages(browser: Any, address: str) -> None:
    for width in WIDTHS:
        page = page_at(browser, width)
        page.goto(address + "rounds.html")
        page.keyboard.press("/")
        page.keyboard.type("ask a person before a tool runs")
        page.wait_for_selector(".sidebar-drawer .search-found a")
        found = page.eval_on_selector_all(".search-found a", "found => found.map(a => a.href)")
        assert "waiting.html" in found[0] or "hooks.html" in found[0]
        page.keyboard.press("Enter")
        page.wait_for_selector("#search-results a")
        assert "ask a person" in page.inner_text("#search-results > p")
        page.context.close()


def test_the_search_of_the_browser_is_that_of_the_tests(browser: Any, address: str) -> None:
    index = site_search.read_index(SITE)
    page = page_at(browser, 1440)
    page.goto(address + "index.html")
    for question in ("retries of a tool", "run_tools", "missing_result", "What's OpenAIChat?", ""):
        numbers = page.evaluate(
            "async (question) => window.siteSearch.search(await window.siteSearch.load(), question)"
            ".map((page) => page.number)",
            question,
        )
        found = [index.pages[number][0] for number in numbers]
        assert found[:5] == list(site_search.search(index, question))[:5]
    page.context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_enough_contrast(browser: Any, address: str, scheme: str) -> None:
    page = page_at(browser, 1440, scheme)
    for name in LOOKED_AT:
        page.goto(f"{address}{name}.html")
        assert page.evaluate(CONTRAST) == [], name
    page.add_style_tag(content="article p { color: #777 !important; }")
    assert page.evaluate(CONTRAST) != []
    page.context.close()


def test_pictures_of_the_site_are_made_for_eyes(browser: Any, address: str, tmp_path: Path) -> None:
    """`LUTUMPY_SHOTS` says where they are kept; eyes decide. Without it there is one page's."""
    folder = Path(os.environ.get("LUTUMPY_SHOTS", tmp_path))
    for scheme in ("light", "dark"):
        for width in WIDTHS:
            page = page_at(browser, width, scheme)
            for name in LOOKED_AT if "LUTUMPY_SHOTS" in os.environ else LOOKED_AT[:1]:
                page.goto(f"{address}{name}.html")
                picture = folder / f"{name.replace('/', '-')}-{width}-{scheme}.png"
                page.screenshot(path=picture)
                assert picture.stat().st_size > 10_000
            page.context.close()
