"""Nothing that a transcript holds becomes markup, and any transcript becomes a page."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from counting import calls_made
from hypothesis import given, settings
from hypothesis import strategies as st
from profiles import examples

from lutumpy.apis import api_names
from lutumpy.doctor import check_messages
from lutumpy.errors import Problem
from lutumpy.models import Api
from lutumpy.page import render, write
from lutumpy.page.text import shown

TESTS = Path(__file__).parent.parent
FIXTURES = [*sorted((TESTS / "fixtures").glob("*.jsonl"))]
SHARED = TESTS.parent.parent / "shared" / "fixtures"
FIXTURES += sorted(SHARED.glob("*.jsonl")) if SHARED.is_dir() else []

FRAGMENTS = (
    "< > & \" ' ` = </script> <script> <!-- --> ]]> <img/src=x/onerror=alert(1)> </pre> </details> "
    "<style> </style> "
    "<base/href=//x> {{ }} {% %} {{7*7}} &lt; &#60; javascript: on a \\u003c"
).split(" ")
HOSTILE = st.lists(
    st.sampled_from([*FRAGMENTS, " ", "\n", "\r", "\x00", "\u2028", "\u202e", "\ud800"])
    | st.text(st.characters(exclude_categories=()), max_size=8),
    max_size=12,
).map("".join)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | HOSTILE,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(HOSTILE, inner, max_size=4),
    max_leaves=8,
)
KEYS = (
    "role content type text tool_calls function arguments name id tool_call_id call_id output "
    "input tool_use_id is_error "
    "image_url url source data media_type file summary reasoning_content refusal function_call "
    "thinking signature"
).split()
WORDS = (
    "system user assistant tool function message function_call function_call_output tool_use "
    "tool_result text thinking "
    "image image_url input_text output_text reasoning web_search_call custom_tool_call file "
    "document custom"
).split()
NEARLY = st.recursive(
    st.none() | st.booleans() | st.integers() | HOSTILE | st.sampled_from(WORDS),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=6)
    ),
    max_leaves=25,
)
CHECKED = settings(max_examples=examples(60))


def visible(text: str) -> str:
    """What a page shows of a text."""
    return html.unescape(re.sub(r"</?b(?: class=\"hidden-character\")?>", "", shown(text)))


@CHECKED
@given(HOSTILE)
def test_no_text_anywhere_becomes_markup_and_all_of_it_is_shown(
    safe: Callable[[str], Any], text: str
) -> None:
    call = {"id": text, "type": "function", "function": {"name": text, "arguments": text}}
    messages = [
        {"role": text, "content": text},
        {
            "role": "assistant",
            "content": text,
            "reasoning_content": text,
            "refusal": text,
            "tool_calls": [call],
        },
        {"role": "tool", "tool_call_id": text, "content": text},
        {
            "role": "user",
            "content": [{"type": text}, {"type": "image_url", "image_url": {"url": text}}],
            text: text,
        },
        {
            "role": "user",
            "content": [
                {"type": "image_url", "image_url": {"url": "data:image/png;base64," + text}}
            ],
        },
        {
            "role": "user",
            "content": [{"type": "file", "file": {"filename": text, "file_id": text}}],
        },
    ]
    decision = {
        "call_id": text,
        "tool": text,
        "arguments": text,
        "decision": "edited",
        "input": {text: text},
        "by": text,
    }
    odd = {**decision, "decision": text, "reason": text, "source": text}
    problem: Any = Problem(text, text, text, text, 500, text, text, text, (text,), (text,))  # type: ignore[arg-type]

    class Edit:
        reason = position = text
        call_ids = (text,)
        patch = [{"op": text, "path": text, "value": {text: text}, "from": text}]

    page = safe(
        render(
            messages,
            api="openai_chat",
            system=text,
            tools=[{"name": text, "description": text}, text],
            decisions=[decision, odd],
            problems=[problem],
            repairs=[Edit()],
            usage=[{"input_tokens": 1}],
            title=text,
        )
    )
    assert page.text.count(visible(text)) >= 12


@CHECKED
@given(
    st.sampled_from([*api_names()]),
    st.lists(NEARLY, max_size=5) | JSON.filter(lambda v: isinstance(v, list)),
    JSON,
)
def test_any_json_is_a_page(
    safe: Callable[[str], Any], api: Api, messages: list[Any], system: Any
) -> None:
    problems = check_messages(api, messages)
    html = render(messages, api=api, system=system, problems=problems, tools=messages)
    safe(html)
    assert render(messages, api=api, system=system, problems=problems, tools=messages) == html


@pytest.mark.sweep
@pytest.mark.parametrize(
    "file", FIXTURES, ids=[f"{file.parent.parent.name}-{file.stem}" for file in FIXTURES]
)
def test_every_recorded_conversation_is_a_page(file: Path, safe: Callable[[str], Any]) -> None:
    """The recorded requests, refused and odd ones included, with the answers' usage and what the
    check says of them.
    """
    for number, line in enumerate(file.read_text().splitlines()):
        entry = json.loads(line)
        request = entry.get("request", {})
        named = entry.get("api") or next(
            (name for name in api_names() if file.stem.removeprefix("compat_").startswith(name)),
            None,
        )
        api: Api = named if named in api_names() else "openai_chat"
        messages = request.get("messages", request.get("input", entry.get("question", [[]])[0]))
        system = request.get("system", request.get("instructions"))
        answer = entry.get("response")
        usage = [answer.get("usage")] if isinstance(answer, dict) else []
        tools = (
            request.get("tools")
            if isinstance(request.get("tools"), list)
            else entry.get("functions", [])
        )
        problems = check_messages(api, messages if isinstance(messages, list) else [])
        html = render(
            messages,
            api=api,
            system=system,
            tools=tools,
            usage=usage,
            problems=problems,
            title=entry.get("id", "x"),
        )
        if number % 7 == 0:
            safe(html)


def test_the_page_permits_its_own_script_and_style_and_nothing_else(chat: list[Any]) -> None:
    text = render(chat, api="openai_chat")
    policy = re.search(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">', text)
    assert policy is not None
    rules = {rule.split()[0]: rule.split()[1:] for rule in policy[1].split(";")}

    def digest(tag: str) -> str:
        inner = re.search(f"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
        assert inner is not None
        return (
            "'sha256-" + base64.b64encode(hashlib.sha256(inner[1].encode()).digest()).decode() + "'"
        )

    assert rules == {
        "default-src": ["'none'"],
        "style-src": [digest("style")],
        "script-src": [digest("script")],
        "img-src": ["data:"],
        "base-uri": ["'none'"],
        "form-action": ["'none'"],
    }
    # A policy holds for what comes after it.
    assert text.index("Content-Security-Policy") < text.index("<style>") < text.index("<script>")
    assert text.index("<meta charset") < text.index("Content-Security-Policy")


@pytest.mark.slow
def test_the_same_conversation_gives_the_same_bytes_in_every_process(
    tmp_path: Path, chat: list[Any]
) -> None:
    (tmp_path / "chat.json").write_text(json.dumps(chat))
    program = (
        "import json, sys; from lutumpy.page import write\n"
        "write(sys.argv[2], json.load(open(sys.argv[1])), api='openai_chat', problems=[], title='A "
        "<title>')"
    )
    pages = []
    for seed in ("1", "2"):
        arguments = [
            sys.executable,
            "-c",
            program,
            str(tmp_path / "chat.json"),
            str(tmp_path / "out.html"),
        ]
        subprocess.run(
            arguments, check=True, env={**os.environ, "PYTHONHASHSEED": seed}, cwd=TESTS.parent
        )
        pages.append((tmp_path / "out.html").read_bytes())
    assert pages[0] == pages[1]


def test_a_page_that_cannot_be_made_leaves_the_file(tmp_path: Path) -> None:
    file = tmp_path / "out.html"
    file.write_text("before")
    with pytest.raises(ValueError, match="api"):
        write(file, [])
    assert file.read_text() == "before"


def rounds(count: int) -> list[Any]:
    messages: list[Any] = []
    for k in range(count):
        function = {"name": "weather", "arguments": f'{{"city": "Oslo", "n": {k:06}}}'}
        messages += [
            {"role": "user", "content": f"Question {k:06}"},
            {
                "role": "assistant",
                "tool_calls": [{"id": f"c{k:06}", "type": "function", "function": function}],
            },
            {"role": "tool", "tool_call_id": f"c{k:06}", "content": f'{{"t": {k:06}}}'},
        ]
    return messages


@pytest.mark.slow
def test_the_size_of_a_page_grows_with_the_conversation_and_no_faster() -> None:
    small, large = (len(render(rounds(count), api="openai_chat")) for count in (200, 1_600))
    base = len(render([], api="openai_chat"))
    assert (large - base) / (small - base) < 8.5


@pytest.mark.slow
def test_the_work_for_a_page_grows_with_the_conversation_and_no_faster() -> None:
    def work(count: int) -> int:
        messages = rounds(count)
        return calls_made(lambda: render(messages, api="openai_chat"))

    work(10)  # what is loaded at first use
    assert work(800) < 8.5 * work(100)
