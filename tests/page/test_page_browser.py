"""The page in a real browser: nothing runs that shouldn't, nothing is fetched, and everybody can
use it.

Skipped where there is no Chromium or no playwright, unless `LUTUMPY_NEED_BROWSER=1` says that there
must be.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from chromium import CHROMIUM, FLAGS, need_browser
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from profiles import examples

from lutumpy.doctor import check_messages
from lutumpy.errors import Problem
from lutumpy.page import render

need_browser()

from playwright.async_api import Browser, Page, async_playwright  # noqa: E402

# Runs before the page does, and sees what a hostile transcript would do if it could.
WATCH = """
window.executed = [];
window.violations = [];
for (const name of ["alert", "confirm", "prompt", "open", "fetch", "print"])
  window[name] = () => { window.executed.push(name); };
document.addEventListener("securitypolicyviolation", (event) => window.violations.push(event.violatedDirective));
"""


class Watched:
    """An open page and what was noticed of it."""

    def __init__(self, page: Page) -> None:
        self.page: Page = page
        self.console: list[str] = []
        self.requests: list[str] = []
        self.stopped: list[str] = []

    async def check_quiet(self) -> None:
        """Nothing ran that shouldn't, the policy had nothing to stop, and nothing was fetched."""
        assert self.console == []
        assert [url for url in self.requests if not url.startswith("data:")] == []
        assert await self.page.evaluate(
            "[window.executed, window.violations, window.pwned ?? 0]"
        ) == [[], [], 0]


@pytest.fixture(scope="module")
def event_loop() -> Iterator[asyncio.AbstractEventLoop]:
    """That of all tests here, since the browser belongs to one."""
    loop = asyncio.new_event_loop()
    yield loop
    loop.close()


@pytest.fixture(scope="module")
def browser(event_loop: asyncio.AbstractEventLoop) -> Iterator[Browser]:
    """Started once: each page has a context of its own, which shares nothing with the others."""
    driver = event_loop.run_until_complete(async_playwright().start())
    launch = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
    launched = event_loop.run_until_complete(launch)
    yield launched
    event_loop.run_until_complete(launched.close())
    event_loop.run_until_complete(driver.stop())


@asynccontextmanager
async def opened(
    browser: Browser, folder: Path, html: str, **options: Any
) -> AsyncIterator[Watched]:
    file = folder / "page.html"
    file.write_text(html, encoding="utf-8")
    context = await browser.new_context(**options)
    try:
        page = await context.new_page()
        watched = Watched(page)
        page.on(
            "console", lambda message: watched.console.append(f"{message.type}: {message.text}")
        )
        page.on("pageerror", lambda error: watched.console.append(f"error: {error}"))
        page.on("dialog", lambda dialog: watched.console.append(f"dialog: {dialog.message}"))
        await page.add_init_script(WATCH)
        await page.goto(file.as_uri())
        page.on("request", lambda request: watched.requests.append(request.url))
        page.on(
            "requestfailed",
            lambda r: watched.stopped.append(r.url) if r.failure == "csp" else None,
        )
        await page.reload()
        # The page itself is the one request.
        assert watched.requests.pop(0) == file.as_uri()
        yield watched
    finally:
        await context.close()


class Edit:
    def __init__(self, reason: str, position: str, patch: list[dict[str, Any]]) -> None:
        self.reason: str = reason
        self.position: str = position
        self.call_ids: tuple[str, ...] = ()
        self.patch: list[dict[str, Any]] = patch


@pytest.fixture
def good_page(chat: list[Any], decisions: list[Any]) -> str:
    tools = [
        {
            "type": "function",
            "function": {"name": "weather", "description": "The weather.", "parameters": {}},
        }
    ]
    usage = [
        {
            "prompt_tokens": 900,
            "completion_tokens": 90,
            "completion_tokens_details": {"reasoning_tokens": 30},
        },
        {
            "prompt_tokens": 1_900,
            "completion_tokens": 40,
            "prompt_tokens_details": {"cached_tokens": 800},
        },
    ]
    return render(
        chat,
        api="openai_chat",
        decisions=decisions,
        tools=tools,
        usage=usage,
        problems=[],
        title="A trip to Oslo",
    )


@pytest.fixture
def broken_page(broken: list[Any]) -> str:
    problems = check_messages("openai_chat", broken)
    problems += [
        Problem("odd", "messages[0]", "Works, badly.", "discouraged"),
        Problem("odd", "model", "?", "some"),
    ]
    patch = [
        {"op": "test", "path": "/4/tool_call_id", "value": "c9"},
        {"op": "replace", "path": "/4/tool_call_id", "value": "c1"},
    ]
    issue = {
        "call_id": "c1",
        "tool": "look",
        "decision": "issue",
        "reason": "malformed_arguments",
        "detail": "cut",
    }
    repairs = [
        Edit("Renamed.", "messages[4]", patch),
        Edit("Dropped.", "messages[5]", [{"op": "remove", "path": "/5"}]),
    ]
    return render(
        broken,
        api="openai_chat",
        problems=problems,
        repairs=repairs,
        decisions=[issue],
        title="Broken",
    )


# --- safety ---------------------------------------------------------------------------------------

ATTACKS = [
    "<script>window.pwned=1</script>",
    "</script><script>window.pwned=1</script>",
    "</style><script>window.pwned=1</script>",
    "--></title></textarea></pre><img src=x onerror=window.pwned=1>",
    "<svg onload=window.pwned=1>",
    "<svg><script>window.pwned=1</script></svg>",
    "<math><mtext></form><form><mglyph><style></math><img src onerror=window.pwned=1>",
    "<iframe srcdoc='<script>parent.pwned=1</script>'></iframe>",
    "<details open ontoggle=window.pwned=1>",
    "<body onload=window.pwned=1>",
    "<base href='https://attacker.invalid/'>",
    "<meta http-equiv=refresh content='0;url=https://attacker.invalid/'>",
    "<link rel=stylesheet href=https://attacker.invalid/x.css>",
    "<img src=https://attacker.invalid/x.png>",
    "<a href='javascript:window.pwned=1' autofocus onfocus=window.pwned=1>x</a>",
    "<input autofocus onfocus=window.pwned=1>",
    "<object data=https://attacker.invalid></object><embed src=https://attacker.invalid>",
    '" onmouseover="window.pwned=1" autofocus tabindex="0',
    "' onfocus='window.pwned=1' autofocus='",
    "javascript:window.pwned=1",
    "data:text/html,<script>window.pwned=1</script>",
    "data:image/svg+xml;base64,PHN2ZyBvbmxvYWQ9ImFsZXJ0KDEpIi8+",
    "&lt;script&gt;window.pwned=1&lt;/script&gt;&#60;img src=x onerror=window.pwned=1&#62;",
    "{{ cycler.__init__.__globals__.os.popen('id').read() }}{% for x in () %}",
    "\x00<scr\x00ipt>window.pwned=1</scr\x00ipt>",
    "\u202e<script>window.pwned=1</script>\u2066",
    "\ud800<img src=x onerror=window.pwned=1>\udfff",
    "+ADw-script+AD4-window.pwned=1+ADw-/script+AD4-",
    "\u003cscript\u003ewindow.pwned=1\u003c/script\u003e",
    "<!--><script>window.pwned=1</script>",
    "<![CDATA[<script>window.pwned=1</script>]]>",
    "#step-1' onclick='window.pwned=1",
]


def hostile_page(texts: list[str]) -> str:
    """Every text in every place that a conversation has for one."""
    messages: list[Any] = []
    decisions: list[Any] = []
    problems: list[Any] = []
    repairs: list[Any] = []
    for text in texts:
        at = f"messages[{len(messages)}]"
        arguments = json.dumps({text: [text, {"x": text}]})
        calls = [
            {"id": text, "type": "function", "function": {"name": text, "arguments": text}},
            {"id": f"{text}2", "type": text, "function": {"name": text, "arguments": arguments}},
        ]
        messages += [
            {"role": text, "content": text, text: text},
            {
                "role": "assistant",
                "content": text,
                "reasoning": text,
                "refusal": text,
                "tool_calls": calls,
            },
            {"role": "tool", "tool_call_id": text, "content": text},
            {"role": "tool", "tool_call_id": f"{text}2", "content": arguments},
            {
                "role": "user",
                "content": [
                    {"type": "image_url", "image_url": {"url": text}},
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64," + text}},
                    {
                        "type": "image",
                        "source": {"type": "base64", "media_type": text, "data": text},
                    },
                    {"type": "file", "file": {"filename": text}},
                    {"type": text, "text": text},
                ],
            },
        ]
        decisions.append(
            {"call_id": text, "tool": text, "decision": "edited", "input": {text: text}, "by": text}
        )
        decisions.append(
            {"call_id": f"{text}2", "tool": text, "decision": text, "reason": text, "source": text}
        )
        problems.append(Problem(text, at, text, "refused", 500, text, text, text, (text,), (text,)))
        repairs.append(Edit(text, at, [{"op": text, "path": text, "value": text}]))
    tools = [{"name": text, "description": text, "input_schema": {text: text}} for text in texts]
    return render(
        messages,
        api="openai_chat",
        system=texts[0],
        tools=tools,
        decisions=decisions,
        problems=problems,
        repairs=repairs,
        title=texts[-1],
    )


async def provoke(watched: Watched) -> None:
    """Open, hover and press what there is."""
    page = watched.page
    await page.keyboard.press("e")
    await page.evaluate("for (const d of document.querySelectorAll('details')) d.open = true")
    await page.mouse.move(300, 300)
    for _ in range(30):
        await page.keyboard.press("Tab")
    await page.evaluate(
        "for (const a of [...document.querySelectorAll('a')].slice(0, 200)) a.click()"
    )
    await page.evaluate(
        "dispatchEvent(new Event('beforeprint')); dispatchEvent(new Event('afterprint'))"
    )
    await asyncio.sleep(0)
    await watched.check_quiet()


async def test_nothing_that_a_transcript_holds_is_run_or_fetched(
    browser: Browser, tmp_path: Path
) -> None:
    async with opened(browser, tmp_path, hostile_page(ATTACKS)) as watched:
        await provoke(watched)
        text = await watched.page.evaluate("document.body.textContent")
        assert "<script>window.pwned=1</script>" in text
        mixed = random.Random(6)
        pieces = [
            piece
            for attack in ATTACKS
            for piece in (attack, attack[: len(attack) // 2], attack[::-1])
        ]
    texts = ["".join(mixed.choices(pieces, k=3)) for _ in range(40)]
    async with opened(browser, tmp_path, hostile_page(texts)) as watched:
        await provoke(watched)


# Without shrinking: each example opens a page.
@settings(max_examples=examples(5), phases=[Phase.generate])
@given(
    st.lists(
        st.lists(st.sampled_from(ATTACKS) | st.text(max_size=20), max_size=4).map("".join),
        min_size=3,
        max_size=8,
    )
)
def test_no_made_up_text_is_run_or_fetched(
    event_loop: asyncio.AbstractEventLoop,
    browser: Browser,
    tmp_path_factory: pytest.TempPathFactory,
    texts: list[str],
) -> None:
    async def run() -> None:
        async with opened(browser, tmp_path_factory.mktemp("page"), hostile_page(texts)) as watched:
            await provoke(watched)

    event_loop.run_until_complete(run())


async def test_the_policy_stops_what_escaping_would_have_let_through(
    browser: Browser, tmp_path: Path, good_page: str
) -> None:
    """The second wall: markup put into a page by force neither runs nor loads."""
    forced = (
        "<script>window.pwned=1</script><img src=x onerror=window.pwned=1><img "
        "src='https://attacker.invalid/x.png'>"
        "<link rel=stylesheet href='https://attacker.invalid/x.css'><p style='color:red' "
        "id=styled>x</p>"
        "<iframe src='https://attacker.invalid/'></iframe><base href='https://attacker.invalid/'>"
    )
    html = good_page.replace('<main id="main">', forced + '<main id="main">')
    assert html != good_page
    async with opened(browser, tmp_path, html) as watched:
        page = watched.page
        assert await page.evaluate("window.pwned ?? 0") == 0
        # The browser tells of the requests that it stopped before they left.
        assert sorted(watched.requests) == sorted(watched.stopped)
        assert (
            await page.evaluate("getComputedStyle(document.getElementById('styled')).color")
            != "rgb(255, 0, 0)"
        )
        violated = set(await page.evaluate("window.violations"))
        assert {
            "script-src-elem",
            "script-src-attr",
            "img-src",
            "style-src-elem",
            "style-src-attr",
        } <= violated


async def test_good_and_broken_conversations_make_no_noise(
    browser: Browser, tmp_path: Path, good_page: str, broken_page: str
) -> None:
    for html in (good_page, broken_page):
        async with opened(browser, tmp_path, html) as watched:
            await provoke(watched)


# --- use without a mouse --------------------------------------------------------------------------

FOCUSED = "document.activeElement.closest('[id]')?.id ?? ''"


async def test_tab_reaches_every_fold_link_and_control_and_shows_where_it_is(
    browser: Browser, tmp_path: Path, broken_page: str
) -> None:
    async with opened(browser, tmp_path, broken_page) as watched:
        page = watched.page
        wanted = await page.evaluate(
            """() => [...document.querySelectorAll("summary, a[href], button, input")]
                .filter((e) => e.checkVisibility({contentVisibilityAuto: false}))
                .map((e, k) => { e.dataset.walk = k; return String(k); })"""
        )
        assert len(wanted) > 20
        reached = set()
        for _ in range(len(wanted) + 5):
            await page.keyboard.press("Tab")
            walked, outline = await page.evaluate(
                "(() => { const e = document.activeElement; const s = getComputedStyle(e);"
                " return [e.dataset.walk ?? '', s.outlineStyle !== 'none' && "
                "parseFloat(s.outlineWidth) >= 1]; })()"
            )
            if walked:
                assert outline, "focus that can't be seen"
            reached.add(walked)
        assert set(wanted) <= reached


async def test_folds_open_and_close_with_the_keyboard(
    browser: Browser, tmp_path: Path, good_page: str
) -> None:
    async with opened(browser, tmp_path, good_page) as watched:
        page = watched.page
        summaries = page.locator("summary")
        for index in range(await summaries.count()):
            summary = summaries.nth(index)
            if not await summary.is_visible():
                continue
            before = await summary.evaluate("(e) => e.parentElement.open")
            await summary.focus()
            await page.keyboard.press("Enter")
            assert await summary.evaluate("(e) => e.parentElement.open") is not before
            await page.keyboard.press("Space")
            assert await summary.evaluate("(e) => e.parentElement.open") is before


async def test_the_skip_link_leads_to_the_conversation(
    browser: Browser, tmp_path: Path, good_page: str
) -> None:
    async with opened(browser, tmp_path, good_page) as watched:
        page = watched.page
        await page.keyboard.press("Tab")
        assert (
            await page.evaluate("document.activeElement.textContent") == "Skip to the conversation"
        )
        assert await page.evaluate("document.activeElement.getBoundingClientRect().top >= 0")
        await page.keyboard.press("Enter")
        assert await page.evaluate(FOCUSED) == "conversation"


async def test_j_and_k_walk_the_steps_and_stay_in_the_conversation(
    browser: Browser, tmp_path: Path, good_page: str
) -> None:
    async with opened(browser, tmp_path, good_page, reduced_motion="reduce") as watched:
        page = watched.page
        seen = []
        for key in "jjjjjjkkk":
            await page.keyboard.press(key)
            seen.append(await page.evaluate(FOCUSED))
        assert seen == [
            "step-1",
            "step-2",
            "step-3",
            "step-4",
            "step-4",
            "step-4",
            "step-3",
            "step-2",
            "step-1",
        ]
        assert await page.evaluate("scrollY") > 0
        await page.locator("#next-step").press("Enter")
        assert (await page.evaluate(FOCUSED)).startswith("step-")


async def test_n_walks_the_problems_and_their_links_lead_there_and_back(
    browser: Browser, tmp_path: Path, broken_page: str
) -> None:
    async with opened(browser, tmp_path, broken_page) as watched:
        page = watched.page
        count = await page.locator(".note.problem").count()
        assert count >= 4
        walked = []
        for _ in range(count):
            await page.keyboard.press("n")
            walked.append(await page.evaluate(FOCUSED))
        assert len(set(walked)) == count
        await page.locator("#problem-1 a").first.press("Enter")
        target = await page.evaluate("location.hash.slice(1)")
        assert await page.evaluate(FOCUSED) == target
        note = page.locator(f"#{target} .note.problem a").first
        await note.press("Enter")
        assert (await page.evaluate(FOCUSED)).startswith("problem-")


async def test_e_unfolds_everything_and_folds_it_as_it_was(
    browser: Browser, tmp_path: Path, good_page: str
) -> None:
    async with opened(browser, tmp_path, good_page) as watched:
        page = watched.page
        states = "[...document.querySelectorAll('details:not(.raw)')].map((d) => d.open)"
        before = await page.evaluate(states)
        assert False in before
        await page.keyboard.press("e")
        assert False not in await page.evaluate(states)
        assert await page.locator("#unfold").get_attribute("aria-pressed") == "true"
        await page.keyboard.press("e")
        assert await page.evaluate(states) == before


async def test_search_keeps_the_steps_that_hold_the_words(
    browser: Browser, tmp_path: Path, good_page: str
) -> None:
    async with opened(browser, tmp_path, good_page) as watched:
        page = watched.page
        await page.keyboard.press("/")
        await page.keyboard.type("itinerary")
        await page.keyboard.press("Enter")
        assert await page.locator("li.step:visible").count() == 1
        assert await page.locator("#found").inner_text() == "1 of 4 steps"
        assert await page.evaluate(FOCUSED) == "step-2"
        await page.locator("#search").focus()
        await page.keyboard.type("j")  # a letter of the word, not a shortcut
        assert await page.evaluate(FOCUSED) == "search"
        await page.keyboard.press("Escape")
        assert await page.locator("li.step:visible").count() == 4


async def test_t_changes_the_colours(browser: Browser, tmp_path: Path, good_page: str) -> None:
    async with opened(browser, tmp_path, good_page, color_scheme="light") as watched:
        page = watched.page
        ground = "getComputedStyle(document.body).backgroundColor"
        light = await page.evaluate(ground)
        await page.keyboard.press("t")
        dark = await page.evaluate(ground)
        assert dark != light
        assert "dark" in await page.locator("#theme").inner_text()
        await page.reload()
        assert await page.evaluate(ground) == dark
        await page.keyboard.press("t")
        assert await page.evaluate(ground) == light


async def test_the_page_follows_the_system_into_the_dark(
    browser: Browser, tmp_path: Path, good_page: str
) -> None:
    grounds = []
    for scheme in ("light", "dark"):
        async with opened(browser, tmp_path, good_page, color_scheme=scheme) as watched:
            grounds.append(
                await watched.page.evaluate("getComputedStyle(document.body).backgroundColor")
            )
    assert grounds[0] != grounds[1]


async def test_it_works_without_javascript(
    browser: Browser, tmp_path: Path, broken_page: str
) -> None:
    async with opened(browser, tmp_path, broken_page, java_script_enabled=False) as watched:
        page = watched.page
        assert not await page.locator("#toolbar").is_visible()
        assert not await page.locator("#shortcuts").is_visible()
        fold = page.locator(".step details.rest")
        assert not await fold.locator(".prose").is_visible()
        await fold.locator("summary").press("Enter")
        assert await fold.locator(".prose").is_visible()
        await page.locator("#problem-1 a").first.press("Enter")
        assert "#" in page.url
        assert await page.locator(".note.problem").first.is_visible()


# --- what it looks like ---------------------------------------------------------------------------

# Colours go through a canvas, which knows every way to write one. Text is measured against the
# first opaque ground behind it, translucent ones laid over.
CONTRAST = """() => {
  const canvas = new OffscreenCanvas(1, 1).getContext("2d", {willReadFrequently: true});
  const rgba = (color) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = color;
    canvas.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  };
  const over = (top, under) => [0, 1, 2].map((k) => top[k] * top[3] + under[k] * (1 - top[3])).concat(1);
  const ground = (element) => {
    const layers = [];
    for (let e = element; e; e = e.parentElement) {
      const color = rgba(getComputedStyle(e).backgroundColor);
      if (color[3] > 0) layers.push(color);
      if (color[3] === 1) break;
    }
    return layers.reduceRight((under, top) => over(top, under), [255, 255, 255, 1]);
  };
  const light = (color) => {
    const [r, g, b] = color.slice(0, 3).map((v) => (v / 255 <= 0.03928 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ratio = (a, b) => {
    const [hi, lo] = [light(a), light(b)].sort((x, y) => y - x);
    return (hi + 0.05) / (lo + 0.05);
  };
  const found = [];
  const measure = (element, color, least, what) => {
    const under = ground(element);
    const value = ratio(over(rgba(color), under), under);
    found.push([value, least, what]);
  };
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = texts.nextNode(); node; node = texts.nextNode()) {
    const element = node.parentElement;
    if (!node.data.trim() || element.closest("script, style, svg, .unseen")) continue;
    if (!element.checkVisibility({visibilityProperty: true})) continue;
    const style = getComputedStyle(element);
    const size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    measure(element, style.color, large ? 3 : 4.5, `${element.tagName}.${element.className}: ${node.data.trim().slice(0, 40)}`);
  }
  for (const control of document.querySelectorAll("button, input")) {
    measure(control.parentElement, getComputedStyle(control).borderTopColor, 3, `border of ${control.id}`);
  }
  for (const input of document.querySelectorAll("input")) {
    measure(input, getComputedStyle(input, "::placeholder").color, 4.5, "placeholder");
  }
  for (const bar of document.querySelectorAll("figure rect")) {
    measure(bar.closest("figure"), getComputedStyle(bar).fill, 3, `bar ${bar.getAttribute("class")}`);
  }
  return found;
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_contrast_is_at_least_that_of_wcag_aa(
    browser: Browser, tmp_path: Path, good_page: str, broken_page: str, scheme: str
) -> None:
    for html in (good_page, broken_page):
        async with opened(browser, tmp_path, html, color_scheme=scheme) as watched:
            await watched.page.evaluate(
                "for (const d of document.querySelectorAll('details')) d.open = true"
            )
            found = await watched.page.evaluate(CONTRAST)
            assert len(found) > 100
            assert (
                sorted({(round(value, 2), what) for value, least, what in found if value < least})
                == []
            )


LONG_WORDS = "x" * 3_000 + "/" + "\u202e" * 300


@pytest.mark.parametrize("width", [320, 390, 820])
async def test_no_width_needs_scrolling_sideways(
    browser: Browser, tmp_path: Path, good_page: str, broken_page: str, width: int
) -> None:
    for html in (good_page, broken_page, hostile_page([LONG_WORDS])):
        async with opened(
            browser, tmp_path, html, viewport={"width": width, "height": 800}
        ) as watched:
            await watched.page.evaluate(
                "for (const d of document.querySelectorAll('details')) d.open = true"
            )
            needed = await watched.page.evaluate("document.documentElement.scrollWidth")
            assert needed <= width


async def test_parallel_calls_stand_side_by_side_where_there_is_room(
    browser: Browser, tmp_path: Path, good_page: str
) -> None:
    lefts = (
        "new Set([...document.querySelectorAll('.call')].map((e) => "
        "e.getBoundingClientRect().left)).size"
    )
    async with opened(
        browser, tmp_path, good_page, viewport={"width": 1280, "height": 800}
    ) as watched:
        assert await watched.page.evaluate(lefts) == 2
    async with opened(
        browser, tmp_path, good_page, viewport={"width": 400, "height": 800}
    ) as watched:
        assert await watched.page.evaluate(lefts) == 1


async def test_nothing_moves_for_those_who_want_stillness(
    browser: Browser, tmp_path: Path, good_page: str
) -> None:
    moving = (
        "[...document.querySelectorAll('*')].filter((e) => parseFloat(getComputedStyle(e, "
        "'::before').transitionDuration) > 0).length"
    )
    async with opened(browser, tmp_path, good_page) as watched:
        assert await watched.page.evaluate(moving) > 0
    async with opened(browser, tmp_path, good_page, reduced_motion="reduce") as watched:
        assert await watched.page.evaluate(moving) == 0


async def test_print_shows_the_folded_and_leaves_the_controls_out(
    browser: Browser, tmp_path: Path, good_page: str
) -> None:
    async with opened(
        browser, tmp_path, good_page, color_scheme="dark", java_script_enabled=False
    ) as watched:
        page = watched.page
        folded = page.locator("details.fold:not([open]) > pre").first
        assert not await folded.is_visible()
        await page.emulate_media(media="print")
        assert await folded.is_visible()
        assert (
            await page.evaluate("getComputedStyle(document.body).backgroundColor")
            == "rgb(255, 255, 255)"
        )


# --- structure ------------------------------------------------------------------------------------

AUDIT = """() => {
  const wrong = [];
  const name = (e) => (e.getAttribute("aria-label") || (e.getAttribute("aria-labelledby") || "").split(" ").filter(Boolean)
    .map((id) => document.getElementById(id)?.textContent ?? "").join(" ") || e.closest("label")?.textContent
    || (e.matches("button, a, summary") ? e.textContent : "") || "").trim();
  if (document.documentElement.lang !== "en") wrong.push("no language");
  if (!document.title.trim()) wrong.push("no title");
  if (document.querySelectorAll("main").length !== 1) wrong.push("not one main");
  if (document.querySelectorAll("h1").length !== 1) wrong.push("not one h1");
  let level = 0;
  for (const h of document.querySelectorAll("h1, h2, h3, h4, h5, h6")) {
    const next = Number(h.tagName[1]);
    if (next > level + 1) wrong.push(`h${level} then h${next}: ${h.textContent}`);
    if (!h.textContent.trim()) wrong.push(`empty heading ${h.id}`);
    level = next;
  }
  for (const e of document.querySelectorAll("button, input, a, summary, section, article, nav, [role=note], [role=toolbar], [role=img]"))
    if (!name(e)) wrong.push(`no name: ${e.outerHTML.slice(0, 120)}`);
  for (const e of document.querySelectorAll("img")) if (!e.alt) wrong.push("image without a text");
  for (const attribute of ["aria-labelledby", "aria-describedby", "aria-controls"])
    for (const e of document.querySelectorAll(`[${attribute}]`))
      for (const id of e.getAttribute(attribute).split(" ")) if (!document.getElementById(id)) wrong.push(`${attribute}: no ${id}`);
  for (const e of document.querySelectorAll("[tabindex]")) if (e.tabIndex > 0) wrong.push("an order of its own");
  for (const e of document.querySelectorAll("ul > *, ol > *")) if (e.tagName !== "LI") wrong.push(`${e.tagName} in a list`);
  for (const e of document.querySelectorAll("details")) if (e.firstElementChild?.tagName !== "SUMMARY") wrong.push("fold without summary");
  for (const e of document.querySelectorAll("table")) {
    if (!e.caption?.textContent.trim()) wrong.push("table without caption");
    for (const th of e.querySelectorAll("th")) if (!th.scope) wrong.push("header cell without scope");
  }
  for (const e of document.querySelectorAll("[aria-hidden=true]"))
    if (e.querySelector("a, button, input, summary, [tabindex]")) wrong.push("hidden from some, yet in the tab order");
  for (const e of document.querySelectorAll("summary a, summary button, a a, button a, label label")) wrong.push("control in a control");
  return wrong;
}"""


async def test_headings_names_and_roles_are_in_order(
    browser: Browser, tmp_path: Path, good_page: str, broken_page: str
) -> None:
    for html in (good_page, broken_page, hostile_page(ATTACKS), render([], api="openai_chat")):
        async with opened(browser, tmp_path, html) as watched:
            assert await watched.page.evaluate(AUDIT) == []


async def test_the_browser_gives_assistive_technology_a_name_for_everything(
    browser: Browser, tmp_path: Path, good_page: str
) -> None:
    async with opened(browser, tmp_path, good_page) as watched:
        devtools = await watched.page.context.new_cdp_session(watched.page)
        nodes = (await devtools.send("Accessibility.getFullAXTree"))["nodes"]
        named = [
            (n["role"]["value"], n.get("name", {}).get("value", ""))
            for n in nodes
            if not n["ignored"]
        ]
        interactive = {
            "button",
            "link",
            "searchbox",
            "heading",
            "DisclosureTriangle",
            "article",
            "region",
            "image",
            "table",
        }
        assert [role for role, name in named if role in interactive and not name.strip()] == []
        assert ("article", "Assistant step 3") in named
        assert ("heading", "Call of delete_file") in named
        assert sum(role == "DisclosureTriangle" for role, _ in named) >= 8


async def test_a_long_conversation_stays_usable(
    browser: Browser, tmp_path: Path, chat_call: Callable[..., Any]
) -> None:
    messages: list[Any] = []
    for k in range(3_000):
        messages.append(
            {"role": "assistant", "tool_calls": [chat_call(f"c{k}", "weather", f'{{"n": {k}}}')]}
        )
        messages.append({"role": "tool", "tool_call_id": f"c{k}", "content": f"result {k}"})
    html = render(
        messages,
        api="openai_chat",
        usage=[{"input_tokens": k + 1, "output_tokens": 1} for k in range(3_000)],
    )
    async with opened(
        browser, tmp_path, html, viewport={"width": 1280, "height": 800}, reduced_motion="reduce"
    ) as watched:
        page = watched.page
        # What is far away is not laid out: its text has no boxes.
        assert await page.evaluate(
            "!document.querySelector('#step-2900 .call').checkVisibility({contentVisibilityAuto: "
            "true})"
        )
        await page.locator(".jumps a").last.press("Enter")
        target = await page.evaluate("location.hash.slice(1)")
        await page.wait_for_function(
            "(id) => { const top = document.getElementById(id).getBoundingClientRect().top; "
            "return top >= 0 && top < 800; }",
            arg=target,
        )
        await page.keyboard.press("j")
        assert await page.evaluate(FOCUSED) == f"step-{int(target.removeprefix('step-')) + 1}"
        await page.keyboard.press("/")
        await page.keyboard.type("result 2999")
        await page.keyboard.press("Enter")
        assert await page.evaluate(FOCUSED) == "step-3000"
