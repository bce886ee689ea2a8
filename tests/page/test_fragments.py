"""What a notebook shows: a fragment of the page, escaped, short, with nothing from outside."""

from __future__ import annotations

import re
import sys
from typing import Any

import pytest
from every_api import ADAPTERS

from lutumpy import Hold, NeedsTools, Reject, RunNormally, Session, Toolset, tool, tool_fn
from lutumpy.hooks import BaseToolCall
from lutumpy.loops import run_tools_sync
from lutumpy.page.fragment import MOST_BYTES, render_fragment
from lutumpy.testing import Call, Reply, ScriptedModel

HOSTILE = "<script>alert(1)</script><img src=x onerror=y>\u202e"


@tool_fn(effect="read")
def look(word: str) -> str:
    """Look a word up."""
    return word * 9


class Desk(Toolset):
    look = tool(look)


def check_fragment(html: str | None) -> str:
    assert html is not None
    assert len(html.encode()) < MOST_BYTES
    assert "<script" not in html
    assert not re.search(r"<(img|link|iframe)\b", html)
    assert not re.search(r"(src|href)=\"(?!#)", html)
    assert "\u202e" not in html
    return html


def asked(text: str = HOSTILE) -> Session:
    session = Session()
    session.push_user(text)
    return session


def round_of(session: Session, *calls: Call, api: Any = "openai_chat") -> Any:
    llm = ScriptedModel([Reply(text=HOSTILE, calls=calls)], api=api)
    outcome = session.text_turn(llm, tools=Desk).collect_sync()
    assert isinstance(outcome, NeedsTools)
    return outcome.round


@pytest.mark.parametrize("api", ADAPTERS)
def test_a_session_is_shown(api: Any) -> None:
    session = asked()
    opened = round_of(session, Call("look", {"word": HOSTILE}), api=api)
    assert "look" in check_fragment(opened._repr_html_())
    opened.commit(session, [call.complete(call.call_sync()) for call in opened.calls])
    html = check_fragment(session._repr_html_())
    assert "&lt;script&gt;" in html
    assert "look" in html


def test_held_calls_come_first_with_reason_and_input() -> None:
    words = ["pass", "no", "ask"]
    opened = round_of(asked(), *[Call("look", {"word": word}) for word in words])

    def policy(call: BaseToolCall) -> Any:
        word = call.arguments["word"]
        return {"no": Reject("never"), "ask": Hold("a person decides")}.get(word, RunNormally())

    plan = opened.apply_hooks_sync(policy)
    html = check_fragment(plan._repr_html_())
    assert html.index("a person decides") < html.index("never")
    assert html.index("ask") < html.index("&#34;pass&#34;")
    plan.discard()


def test_a_result_of_a_loop_is_shown() -> None:
    session = asked()
    done = run_tools_sync(session, ScriptedModel([Reply(text=HOSTILE)]), tools=Desk)
    assert "stopped by" in check_fragment(done._repr_html_())
    session.push_user("A number?")
    replies = [Reply(text="7"), Reply(text=HOSTILE)]
    llm = ScriptedModel(replies)
    typed = run_tools_sync(session, llm, tools=Desk, output=int)
    assert "<dd>7</dd>" in check_fragment(typed._repr_html_())
    session.push_user("And again?")
    untyped = run_tools_sync(session, llm, tools=Desk, output=int)
    assert "no value" in check_fragment(untyped._repr_html_())


def test_it_is_short_whatever_the_session_holds() -> None:
    session = Session()
    for number in range(60):
        session.push_user(f"{number} " + "<" * 20_000)
        session.push_assistant("&" * 20_000)
    html = check_fragment(session._repr_html_())
    assert "earlier steps left out" in html
    many = asked()
    opened = round_of(many, *[Call("look", {"word": "<" * 300})] * 300)
    check_fragment(opened._repr_html_())
    opened.discard()


def test_without_the_extra_a_notebook_shows_the_repr(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "lutumpy.page.fragment", raising=False)
    monkeypatch.setitem(sys.modules, "lutumpy.page.fragment", None)
    assert asked()._repr_html_() is None


def test_other_values_are_refused() -> None:
    with pytest.raises(TypeError, match="int"):
        render_fragment(7)
