"""What a script has answered in words that no API has today, its server takes back (C8)."""

from __future__ import annotations

from typing import Any

import openai
import pytest

from lutumpy import AdapterError, Session, Toolset, tool, tool_fn
from lutumpy.adapters.openai import OpenAIResponses
from lutumpy.execution import Dispatcher
from lutumpy.loops import run_tools_sync
from lutumpy.testing import Reply, ScriptedModel, serve


@tool_fn
def look(path: str) -> str:
    """Look at a file."""
    raise AssertionError("no call of a known kind is made")


class Tools(Toolset):
    look = tool(look)


CALL = {"name": "look", "input": {"path": "x"}}
ITEM = {"type": "foo_call", "id": "foo_1", "call_id": "c1", "name": "look", "arguments": "{}"}
CHAT_CALL = {"id": "c1", "type": "foo", "foo": {"name": "look", "arguments": "{}"}}
RAW: dict[str, dict[str, Any]] = {
    "openai_chat": {
        "choices": [{"message": {"role": "assistant", "content": None, "tool_calls": [CHAT_CALL]}}]
    },
    "openai_responses": {"id": "r", "status": "completed", "output": [ITEM]},
    "anthropic_messages": {
        "id": "m",
        "content": [{"type": "foo_use", "id": "c1", **CALL}],
        "stop_reason": "end_turn",
    },
    "bedrock_converse": {
        "output": {
            "message": {"role": "assistant", "content": [{"fooUse": {"toolUseId": "c1", **CALL}}]}
        },
        "stopReason": "end_turn",
    },
    "gemini_generate_content": {
        "candidates": [
            {
                "content": {"role": "model", "parts": [{"fooCall": {"name": "look", "args": {}}}]},
                "finishReason": "STOP",
            }
        ]
    },
}


@pytest.mark.parametrize("api", RAW)
def test_a_loop_goes_on_after_a_call_of_an_unknown_kind_C8(api: str) -> None:
    session, llm = Session(), ScriptedModel([RAW[api], Reply("Done.")], api=api)
    session.push_user("go")
    ended = run_tools_sync(session, llm, tools=Tools, dispatch=Dispatcher(Tools))
    assert (ended.stopped_by, ended.text, ended.rounds) == ("answer", "Done.", 1)
    assert "can't be run here" in str(llm.requests[1])


def test_so_it_is_over_http() -> None:
    with serve([RAW["openai_responses"], Reply("Done.")]) as server:
        client = openai.OpenAI(base_url=server.openai_base_url, api_key="none")
        llm = OpenAIResponses("m", client=client)
        session = Session()
        session.push_user("go")
        ended = run_tools_sync(session, llm, tools=Tools, dispatch=Dispatcher(Tools))
    assert (ended.stopped_by, ended.text) == ("answer", "Done.")


def test_a_word_that_the_script_has_not_said_is_refused_as_ever() -> None:
    session = Session()
    session.push_user("go")
    outcome = Tools.offer().read(OpenAIResponses.response(RAW["openai_responses"]), session)
    outcome.round.commit(session, [])  # type: ignore[union-attr]
    for script in ([Reply("Done.")], [{**RAW["openai_responses"], "output": []}, Reply("Done.")]):
        llm = ScriptedModel(script, api="openai_responses")
        with pytest.raises(AdapterError, match="Invalid value: 'foo_call'"):
            session.text_turn(llm, tools=Tools).collect_sync()
